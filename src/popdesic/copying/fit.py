"""The numbers of the copying model by maximum likelihood, on the haplotypes of a panel itself.

Each of some haplotypes is taken for a mosaic of the others. The likelihood is looked at on a grid,
whose points are the same everywhere, and its highest point is found by going up from one in the
middle. Logarithms are rounded to whole multiples of 2^-20 and summed as integers.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.threads import run_tasks, usable_cpus
from .copying import Haplotypes, recombination
from .copying_plan import MISMATCHES

#: Steps of the grid: effective sizes a factor of 10^(1/4) apart, mismatches 10^(1/2).
_PER_DECADE = (4, 2)
#: Effective sizes from 10^1 to 10^8.
_SIZES = (1, 8)
#: Haplotypes whose likelihood is taken, evenly spaced in the panel.
FITTED = 64
#: Sites: the first with this minor allele frequency in each stretch of the map of this length, in
#: cM, about the density of an array.
FITTED_MAF, FITTED_CM = 0.01, 0.004


def _fitted_sites(panel: Haplotypes) -> np.ndarray:
    share = np.bitwise_count(panel.bits).sum(axis=1, dtype=np.int64) / panel.n_haplotypes
    common = np.flatnonzero(np.minimum(share, 1 - share) >= FITTED_MAF)
    if not len(common):
        return common
    stretch = ((panel.cm[common] - panel.cm[common[0]]) // FITTED_CM).astype(np.int64)
    return common[np.unique(stretch, return_index=True)[1]]


def fit_model(
    panel: Haplotypes, owner: np.ndarray, *, threads: int | None = None
) -> tuple[float, float]:
    """Effective size and mismatch with the highest likelihood for a panel's haplotypes.

    Parameters
    ----------
    panel : Haplotypes
    owner : int array, (n_haplotypes,)
        Sample of each haplotype; those of one do not copy from each other.
    threads : int, optional

    Returns
    -------
    (float, float)
        Points of a grid: sizes 10^(1/4) apart, mismatches 10^(1/2).

    Notes
    -----
    Leave-one-out likelihood of Li and Stephens (2003, Genetics 165:2213), over 64 haplotypes.
    """
    sites = _fitted_sites(panel)
    n = panel.n_haplotypes
    chosen = np.unique(np.linspace(0, n - 1, min(n, FITTED)).astype(np.int64))
    rows = np.ascontiguousarray(panel.rows[sites])
    others = [(h, own) for h in chosen if len(own := np.flatnonzero(owner == owner[h])) < n]
    known: dict[tuple[int, int], int] = {}

    def height(point: tuple[int, int]) -> int:
        if point not in known:
            ne, mismatch = _values(point)
            tasks = [
                (panel, sites, rows, haplotype, own, ne, mismatch) for haplotype, own in others
            ]
            known[point] = sum(run_tasks(_log2_likelihood, tasks, threads or usable_cpus()))
        return known[point]

    best = (5 * _PER_DECADE[0], -4 * _PER_DECADE[1])
    if not others or not len(sites):
        return _values(best)
    moved = True
    while moved:
        moved = False
        for axis in (0, 1):
            for step in (1, -1):
                while True:
                    other = list(best)
                    other[axis] += step
                    if not _inside(tuple(other)) or height(tuple(other)) <= height(best):
                        break
                    best, moved = tuple(other), True
    return _values(best)


def _values(point: tuple[int, int]) -> tuple[float, float]:
    """Effective size and mismatch at a point of the grid."""
    return tuple(round(10.0 ** (k / n), 9) for k, n in zip(point, _PER_DECADE, strict=True))


def _inside(point: tuple[int, int]) -> bool:
    size, mismatch = point[0] / _PER_DECADE[0], _values(point)[1]
    return _SIZES[0] <= size <= _SIZES[1] and MISMATCHES[0] <= mismatch <= MISMATCHES[1]


def _log2_likelihood(
    panel: Haplotypes,
    sites: np.ndarray,
    rows: np.ndarray,
    haplotype: int,
    own: np.ndarray,
    ne: float,
    mismatch: float,
) -> int:
    """log2 of the likelihood of a haplotype given those that are not its sample's, times 2^20."""
    from .copying_cpu import likelihood_loop

    n_states = panel.n_haplotypes - len(own)
    alleles = (rows[:, haplotype // 32] >> np.uint32(haplotype % 32) & np.uint32(1)).astype(np.int8)
    number, exponent = likelihood_loop(
        rows,
        np.arange(len(rows)),
        alleles,
        recombination(panel.cm[sites], ne, n_states),
        panel.counted(own),
        n_states,
        np.float32(mismatch / (1 - mismatch)),
    )
    log2 = math.log2(number) + exponent + len(rows) * math.log2(1 - mismatch)
    return round(log2 * (1 << 20))
