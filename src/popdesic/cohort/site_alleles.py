"""Numbers of ALT alleles of the samples of cohorts, site by site, whatever their ploidy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..io.bed import open_bed, read_fam
from ..io.genotypes import take_samples, unpack_bed
from ..io.layers import Reader, columns_of, common_most, join_layers, layers_in, sizes_in


def read_cohorts(
    prefixes: list[Path], sites: np.ndarray | None = None, keep: list[np.ndarray] | None = None
) -> tuple[Reader, list[int]]:
    """Reader of cohorts on the panel, and the number of samples that it gives of each.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' .bed files on the panel, in sample order.
    sites : int array, optional
        Rows of the panel, ascending; all by default.
    keep : list of bool arrays (samples of the cohort,), optional
        Samples to give of each cohort; all by default.
    """
    beds = [open_bed(prefix) for prefix in prefixes]
    fams = [read_fam(prefix) for prefix in prefixes]
    layers = [layers_in(fam) for fam in fams]
    counts = [len(fam) // k for fam, k in zip(fams, layers, strict=True)]
    chosen = [np.ones(count, bool) for count in counts] if keep is None else keep
    sizes = [sizes_in(fam) for fam in fams]
    most = common_most(sizes)
    units = [
        (most // (2 * own[who])).astype(np.int8) for own, who in zip(sizes, chosen, strict=True)
    ]
    several = any((own > 1).any() for own in units)

    def read(first: int, last: int) -> np.ndarray:
        rows = slice(first, last) if sites is None else sites[first:last]
        parts = []
        for bed, who, k in zip(beds, chosen, layers, strict=True):
            part = np.ascontiguousarray(bed[rows])
            if not who.all():
                part = take_samples(part, columns_of(np.flatnonzero(who), len(who), k))
            parts.append(join_layers(unpack_bed(part, k * int(who.sum())), k))
        if several:
            parts = [np.where(p < 0, p, p * u) for p, u in zip(parts, units, strict=True)]
        return np.concatenate(parts, axis=1)  # site by site, as compiled readers of it need

    return read, [int(who.sum()) for who in chosen]


def names_once(prefix: Path) -> pd.Series:
    """Samples of a cohort's .fam, each once."""
    fam = read_fam(prefix)
    return fam["sample"].iloc[: len(fam) // layers_in(fam)]
