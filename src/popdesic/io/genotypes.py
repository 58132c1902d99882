"""Genotype codes shared by all: int8 in memory, PLINK 1 two-bit codes on disk.

In memory a genotype is the count of ALT alleles, 0, 1 or 2, or MISSING. In a .bed file, with
A1 = ALT, it takes two bits: 2 -> 00, missing -> 01, 1 -> 10, 0 -> 11 (PLINK 1 binary format).
"""

import numpy as np

MISSING = -1

# The first three bytes of a variant-major .bed file.
BED_MAGIC = b"\x6c\x1b\x01"

#: Every .bed byte with its homozygotes swapped: pairs of equal bits are inverted, also in padding.
SWAPPED = np.array(
    [
        sum((code ^ 3 if (code := (b >> s) & 3) in (0, 3) else code) << s for s in (0, 2, 4, 6))
        for b in range(256)
    ],
    np.uint8,
)


def bed_row_bytes(n_samples: int) -> int:
    """Return the bytes per site in a .bed file: four samples per byte."""
    return (n_samples + 3) // 4


def pack_bed(genotypes: np.ndarray) -> np.ndarray:
    """Pack genotypes into PLINK 1 .bed rows.

    Parameters
    ----------
    genotypes : (n_sites, n_samples) int8
        0, 1, 2 or MISSING; no other value is allowed.

    Returns
    -------
    (n_sites, ceil(n_samples / 4)) uint8
        The first sample in the lowest bits; the padding of the last byte is zero.
    """
    from . import codecs_cpu  # numba imports slowly, and checking sheets does not need it

    return codecs_cpu.pack_bed(genotypes)


def unpack_bed(packed: np.ndarray, n_samples: int) -> np.ndarray:
    """Unpack PLINK 1 .bed rows, (n_sites, ceil(n_samples / 4)) uint8; inverse of `pack_bed`."""
    from . import codecs_cpu

    return codecs_cpu.unpack_bed(packed, n_samples)


def take_samples(packed: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return PLINK 1 .bed rows of the samples `kept`, int64 (n_kept), without unpacking them."""
    from . import codecs_cpu

    return codecs_cpu.take_samples(packed, kept)


def site_kind(ref: str, alts: list[str], plink: bool = True) -> str:
    """Return the field of `DecodeCounts` that counts a site; 'snps' and 'one_allele' are kept.

    `vcf_text` classifies sites of VCF text in the same way. PLINK writes an unknown allele as 0
    (PLINK 2 as '.'), which can be either of the two, and sometimes an indel as I and D.
    """
    unknown = ("0", ".") if plink else (".",)
    if plink and ref in unknown and len(alts) == 1:
        ref, alts = alts[0], []
    if not alts or (len(alts) == 1 and alts[0] in unknown):
        return "one_allele" if len(ref) == 1 and ref.upper() in "ACGT" else "no_alt"
    if len(alts) > 1 or "," in alts[0]:
        return "multiallelic"
    alt = alts[0]
    breakend = len(alt) > 1 and (alt.startswith(".") or alt.endswith("."))
    if breakend or set(alt) & set("<[]"):
        return "symbolic"
    if alt == "*":
        return "star"
    if len(ref) != 1 or len(alt) != 1 or (plink and {ref, alt} <= {"I", "D"}):
        return "indel"
    if not {ref.upper(), alt.upper()} <= set("ACGT"):
        return "non_acgt"
    return "no_alt" if ref.upper() == alt.upper() else "snps"
