"""Missing calls of a cohort filled with imputed genotypes, where these are good enough."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import atomic_path, write_json
from ..io.bed import open_bed, read_bim
from ..io.genotypes import BED_MAGIC
from ..io.sites import canonical_contig
from .encode import CHUNK_SITES


def fill_calls(
    genotypes: Path,
    imputed: Sequence[Path],
    quality: Sequence[Path],
    out: Path,
    *,
    cohort: str,
    min_r2: float,
    haploid: Sequence[str] = (),
) -> dict[str, int]:
    """Write {out}.bed, .bim and .fam: called genotypes as they are, missing ones where imputed.

    Parameters
    ----------
    genotypes : Path
        Stem of the cohort's called genotypes on the panel (`encode.encode_cohort`).
    imputed, quality : paths
        For all windows in panel order: imputed .bed rows (`beagle.impute_window`), and the r2 of
        their sites (`imputation_quality.measure_quality`).
    min_r2 : float
        Sites below it, and those of r2 0, are left as they are called.
    haploid : sequence of str
        Contigs that are left as they are called: Beagle takes everyone as diploid.

    Returns
    -------
    dict
        Numbers of missing genotypes, of those filled and left, of sites with missing genotypes and
        of those whose r2 is too low; also in {out}.json.

    Raises
    ------
    UserError
        Imputed genotypes are of another panel or of other samples.
    """
    bed, bim = open_bed(genotypes), read_bim(genotypes)
    rows = np.concatenate([np.load(path) for path in imputed])
    r2 = np.concatenate([np.load(path) for path in quality])
    if rows.shape != bed.shape or len(r2) != len(bed):
        raise UserError(
            f"{Path(imputed[0]).parent} holds imputed genotypes of another panel or other samples "
            f"({rows.shape} and {len(r2)} sites, not {bed.shape}); delete the folder and rerun."
        )
    names = {canonical_contig(name) for name in haploid}
    diploid = ~bim.chrom.map(canonical_contig).isin(names).to_numpy()
    r2 = np.nan_to_num(r2)
    good = diploid & (r2 >= min_r2) & (r2 > 0)  # 0: Beagle could not impute, or nothing varies
    missing = np.zeros(len(bed), np.int64)
    with atomic_path(Path(f"{out}.bed")) as temporary, open(temporary, "wb") as file:
        file.write(BED_MAGIC)
        for first in range(0, len(bed), CHUNK_SITES):
            part = slice(first, first + CHUNK_SITES)
            filled, missing[part] = fill_missing_rows(bed[part], rows[part], good[part])
            file.write(filled.tobytes())
    for end in (".bim", ".fam"):
        with atomic_path(Path(f"{out}{end}")) as temporary:
            shutil.copyfile(f"{genotypes}{end}", temporary)
    some = missing > 0
    counts = {
        "missing": int(missing.sum()),
        "filled": int(missing[good].sum()),
        "left_missing": int(missing[~good].sum()),
        "sites_with_missing": int(some.sum()),
        "sites_below_min_r2": int((some & diploid & ~good).sum()),
        "sites_haploid": int((some & ~diploid).sum()),
    }
    write_json(Path(f"{out}.json"), {"cohort": cohort, "min_r2": min_r2, "counts": counts})
    return counts


def fill_missing_rows(
    called: np.ndarray, imputed: np.ndarray, good: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fill missing genotypes of .bed rows from other rows, where `good`.

    Parameters
    ----------
    called, imputed : uint8 arrays, (n_sites, row_bytes)
        Missing is the code 01; padding is 00 and never changes.
    good : bool array, (n_sites,)

    Returns
    -------
    filled : uint8 array, (n_sites, row_bytes)
    missing : int64 array, (n_sites,)
        Missing genotypes before.
    """
    low = called & ~(called >> 1) & 0x55
    mask = np.where(good[:, None], low | (low << 1), 0).astype(np.uint8)
    return (called & ~mask) | (imputed & mask), np.bitwise_count(low).sum(axis=1, dtype=np.int64)
