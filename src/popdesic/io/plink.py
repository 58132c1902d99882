"""Read biallelic SNP genotypes from PLINK 1 files (.bed, .bim, .fam), with A1 = ALT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .alleles import name_bases
from .batches import CHUNK_BYTES, DecodeCounts, SiteBatch
from .bed import iterate_bim_columns, numbered_bim, open_bed, read_plink_samples
from .call_filters import CallFilters
from .genotypes import bed_row_bytes
from .open_records import open_sites, settle_opened
from .site_rows import batch_of, clear_padding, count_missing, keep_snps, settle_unknown


def stream_plink(
    prefix: Path | str,
    counts: DecodeCounts,
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    *,
    _chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[SiteBatch]:
    """Yield the biallelic SNPs of PLINK 1 files, in file order.

    Sites without a position (chromosome 0, or a position below 1) are dropped and counted as
    unplaced, those with two unknown alleles (0) as no_alt. `line` is the line in the .bim. Of
    `filters` only the classes of sites matter.

    Raises
    ------
    UserError
        The files are inconsistent, a position is not an integer below 2**31, or alleles name no
        bases.
    """
    numbered = numbered_bim(prefix)
    n_samples = len(read_plink_samples(prefix)[0])
    bed = open_bed(prefix, n_samples=n_samples)
    n_rows = max(1, _chunk_bytes // bed_row_bytes(n_samples))
    start = 0
    classes = tuple(one for one in filters.classes if one != "multiallelic")
    for bim in iterate_bim_columns(prefix, n_rows):
        if numbered:
            name_bases(bim)
        if classes:
            bim, opened = open_sites(bim, classes)
        kept = np.flatnonzero(keep_snps(bim, counts))
        n_here = len(bim["pos"])
        rows = clear_padding(
            bed[start : start + n_here].copy() if len(kept) == n_here else bed[start + kept],
            n_samples,
        )
        batch = settle_unknown(batch_of(bim, kept, rows, n_samples, 0), counts)
        if classes:
            settle_opened(opened, batch, counts, filters)
        batch.line += start + 1
        n_missing = count_missing(batch.rows)
        counts.missing += n_missing
        counts.unphased += batch.rows.shape[0] * n_samples - n_missing
        if len(kept):
            yield batch
        start += n_here
