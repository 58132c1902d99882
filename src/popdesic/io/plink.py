"""Read biallelic SNP genotypes from PLINK 1 files (.bed, .bim, .fam), with A1 = ALT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .batches import CHUNK_BYTES, DecodeCounts, SiteBatch
from .bed import beside, iterate_bim_columns, open_bed, read_fam
from .errors import UserError
from .files import is_file
from .genotypes import bed_row_bytes, site_kind

#: The lower bit of each two-bit code in a word.
LOW_BITS = 0x5555_5555_5555_5555


def plink_prefix(source: Path | str) -> Path | None:
    """Return the prefix if `source` names PLINK 1 files, with or without '.bed', else None."""
    source = Path(source)
    if source.name.endswith(".bed"):
        return source.with_name(source.name.removesuffix(".bed"))
    return source if not is_file(source) and is_file(beside(source, ".bed")) else None


def read_plink_samples(prefix: Path | str) -> tuple[list[str], list[str]]:
    """Return the sample names (second column) and sex codes of {prefix}.fam.

    Raises
    ------
    UserError
        The .fam is missing or malformed, has no samples, or repeats a name.
    """
    fam = read_fam(prefix)
    path = beside(prefix, ".fam")
    names = fam["sample"].tolist()
    if not names:
        raise UserError(f"{path} has no samples; give a file with genotypes.")
    name, n_times = Counter(names).most_common(1)[0]
    if n_times > 1:
        line = len(names) - names[::-1].index(name)
        raise UserError(
            f"{path}, line {line}: the sample name {name!r} occurs {n_times} times (family IDs "
            "do not distinguish samples); rename or remove the duplicates."
        )
    return names, fam["sex"].tolist()


def stream_plink(
    prefix: Path | str, counts: DecodeCounts, *, _chunk_bytes: int = CHUNK_BYTES
) -> Iterator[SiteBatch]:
    """Yield the biallelic SNPs of PLINK 1 files, in file order.

    Sites without a position (chromosome 0, or a position below 1) are dropped and counted as
    unplaced, those with the allele 0 as no_alt. `line` is the line in the .bim.

    Raises
    ------
    UserError
        The files are inconsistent, or a position is not an integer below 2**31.
    """
    n_samples = len(read_plink_samples(prefix)[0])
    bed = open_bed(prefix, n_samples=n_samples)
    n_rows = max(1, _chunk_bytes // bed_row_bytes(n_samples))
    start = 0
    for bim in iterate_bim_columns(prefix, n_rows):
        kept = np.flatnonzero(keep_snps(bim, counts))
        n_here = len(bim["pos"])
        rows = clear_padding(
            bed[start : start + n_here].copy() if len(kept) == n_here else bed[start + kept],
            n_samples,
        )
        n_missing = count_missing(rows)
        counts.missing += n_missing
        counts.unphased += len(rows) * n_samples - n_missing
        if len(kept):
            yield batch_of(bim, kept, rows, n_samples, first_line=start + 1)
        start += n_here


def keep_snps(sites: dict, counts: DecodeCounts) -> list[bool]:
    """Say which sites of PLINK files are placed biallelic SNPs, and add all sites to `counts`.

    Parameters
    ----------
    sites : dict
        Columns chrom, pos, ref and alt; the ALT alleles of one site are separated by commas.
    """
    known: dict[tuple[str, str], str] = {}  # sites have few different pairs of alleles
    kinds = []
    for pair in zip(sites["ref"], sites["alt"], strict=True):
        if (kind := known.get(pair)) is None:
            kind = known[pair] = site_kind(pair[0], [pair[1]])
        kinds.append(kind)
    nowhere = (sites["pos"] < 1) | np.array([chrom == "0" for chrom in sites["chrom"]], bool)
    for k in np.flatnonzero(nowhere):
        kinds[k] = "unplaced"
    for kind, number in Counter(kinds).items():
        setattr(counts, kind, getattr(counts, kind) + number)
    counts.records += len(kinds)
    return [kind == "snps" for kind in kinds]


def clear_padding(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Set the bits of .bed rows beyond the last sample to zero, in place, and return them."""
    if n_samples % 4:
        rows[:, -1] &= (1 << 2 * (n_samples % 4)) - 1
    return rows


def count_missing(rows: np.ndarray) -> int:
    """Count the missing genotypes (code 01) of .bed rows without padding."""
    flat = rows.reshape(-1)
    whole = flat[: len(flat) // 8 * 8].view(np.uint64)
    n_missing = 0
    for codes, low in ((whole, LOW_BITS), (flat[8 * len(whole) :], LOW_BITS & 0xFF)):
        found = ~(codes >> 1)
        found &= codes
        found &= low
        n_missing += int(np.bitwise_count(found).sum(dtype=np.int64))
    return n_missing


def batch_of(
    sites: dict, kept: np.ndarray, rows: np.ndarray, n_samples: int, first_line: int
) -> SiteBatch:
    """Return the `kept` ones of some sites, given by columns, with their .bed rows."""
    names = {name: sites[name] for name in ("chrom", "id", "ref", "alt")}
    if len(kept) < len(sites["pos"]):
        names = {name: [column[k] for k in kept.tolist()] for name, column in names.items()}
    return SiteBatch(
        pos=sites["pos"][kept], rows=rows, n_samples=n_samples, line=first_line + kept, **names
    )
