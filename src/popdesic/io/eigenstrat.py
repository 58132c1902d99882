"""Read biallelic SNP genotypes from EIGENSTRAT and PACKEDANCESTRYMAP files (.geno, .snp, .ind).

EIGENSOFT defines them, and the database AADR is written in them (`eigenstrat_tables`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import beside
from .alleles import name_bases
from .batches import CHUNK_BYTES, DecodeCounts, SiteBatch
from .columns import count_lines
from .eigenstrat_tables import (
    BY_SAMPLE,
    BY_SITE,
    DIGITS,
    Geno,
    check_geno,
    hash_names,
    iterate_snp,
    numbered_snp,
    require_hash,
    require_same_geno_sites,
    uneven_lines,
)
from .genotypes import bed_row_bytes, pack_bed
from .site_rows import batch_of, clear_padding, count_missing, keep_snps, settle_unknown

#: Bytes read of a file packed by samples, in bytes of other files: its sites lie far apart.
SLAB = 16
#: .bed byte of each packed byte: first sample highest, 0 to 2 copies of REF or 3 for missing.
PACKED = np.array(
    [
        sum((0b00, 0b10, 0b11, 0b01)[byte >> (6 - shift) & 3] << shift for shift in (0, 2, 4, 6))
        for byte in range(256)
    ],
    np.uint8,
)


def stream_eigenstrat(
    prefix: Path | str, counts: DecodeCounts, *, _chunk_bytes: int = CHUNK_BYTES
) -> Iterator[SiteBatch]:
    """Yield the biallelic SNPs of EIGENSTRAT or PACKEDANCESTRYMAP files, in file order.

    Sites are kept and counted as in `popdesic.io.plink.stream_plink`. `line` is the line in the
    .snp.

    Raises
    ------
    UserError
        The files are inconsistent or damaged, a genotype is none of 0, 1, 2 and 9, a position is
        not an integer below 2**31, or alleles name no bases.
    """
    geno, snp = check_geno(prefix), beside(prefix, ".snp")
    numbered = numbered_snp(prefix)
    data = np.memmap(geno.path, np.uint8, "r", offset=geno.before)
    n_rows = max(1, _chunk_bytes // bed_row_bytes(geno.n_samples))
    if geno.kind == BY_SAMPLE:
        n_rows = 4 * -(-SLAB * n_rows // 4)
    start, found = 0, 0
    for sites in iterate_snp(prefix, n_rows):
        n_here = len(sites["pos"])
        if start + n_here > geno.n_sites:
            require_same_geno_sites(geno, snp, count_lines(snp))
        found = hash_names(sites["id"], found)
        if numbered:
            name_bases(sites)
        kept = np.flatnonzero(keep_snps(sites, counts))
        rows = _read_rows(geno, data, start, n_here)[kept]
        batch = settle_unknown(batch_of(sites, kept, rows, geno.n_samples, start + 1), counts)
        n_missing = count_missing(batch.rows)
        counts.missing += n_missing
        counts.unphased += batch.rows.shape[0] * geno.n_samples - n_missing
        if len(kept):
            yield batch
        start += n_here
    require_same_geno_sites(geno, snp, start)
    require_hash(geno, found, 1, snp)


def _read_rows(geno: Geno, data: np.ndarray, start: int, n: int) -> np.ndarray:
    """PLINK 1 codes of `n` sites from `start`: uint8 (n, ceil(n_samples / 4)), padding zero."""
    n_samples, record = geno.n_samples, geno.record
    if geno.kind == BY_SAMPLE:
        from . import codecs_cpu

        slab = data.reshape(n_samples, record)[:, start // 4 : (start + n + 3) // 4]
        return codecs_cpu.turn_codes(PACKED[slab])[:n]
    here = data[start * record : (start + n) * record]
    if geno.kind == BY_SITE:
        rows = PACKED[here.reshape(n, record)[:, : bed_row_bytes(n_samples)]]
        return clear_padding(rows, n_samples)
    if len(here) < n * record:  # the last line has no end
        here = np.concatenate([here, np.full(n * record - len(here), ord("\n"), np.uint8)])
    here = here.reshape(n, record)
    genotypes = DIGITS[here[:, :n_samples]]
    wrong = genotypes == -2
    if wrong.any():
        site, sample = divmod(int(np.argmax(wrong)), n_samples)
        if here[site, sample] > ord("\r"):
            raise UserError(
                f"{geno.path}, line {start + site + 1}: the genotype of sample {sample + 1} is "
                f"{chr(here[site, sample])!r}; give 0, 1, 2, or 9 for missing."
            )
    if wrong.any() or (here[:, n_samples:] > ord("\r")).any():
        raise uneven_lines(geno)
    return pack_bed(genotypes)
