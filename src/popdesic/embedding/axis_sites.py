"""The sites and frequencies of the PCA: chosen from the unrelated founders' genotypes alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..cohort.prune import contig_runs, pruned
from ..cohort.site_planes import PlanesReader
from ..engine.base import Backend
from ..engine.comparisons import called_samples, moments
from ..engine.terms import Planes
from ..io.errors import UserError
from .long_range_ld import in_regions

#: r2 of two sites without LD that one pair in a thousand exceeds is this number over the number of
#: samples (a chi-square of one degree of freedom).
CHANCE = 10.83


@dataclass(frozen=True)
class AxisSites:
    """Sites that define the axes.

    Attributes
    ----------
    rows : int64 array, (n_used,)
        Rows of the panel, ascending.
    af : float64 array, (n_used,)
        ALT frequency among the samples that define the axes.
    counts : dict
        Sites of the `panel`, and what left: `monomorphic` among these samples, in `long_range_ld`,
        `ld_pruned`; `used`.
    r2 : float or None
        Threshold of LD pruning in use.
    """

    rows: np.ndarray
    af: np.ndarray
    counts: dict[str, int]
    r2: float | None


def choose_sites(
    read: PlanesReader,
    sites: pd.DataFrame,
    backend: Backend,
    *,
    pruning: tuple[float, str, int, float] | None,
    regions: list[tuple[str, int, int, str]],
) -> AxisSites:
    """Choose the panel's sites for the PCA; the panel itself stays whole.

    Monomorphic sites go first, then those in long-range LD, then LD pruning (`cohort.prune`). The
    threshold of r2 is raised to CHANCE over the number of samples where that is more: in a few
    samples many pairs of sites are correlated by chance.

    Parameters
    ----------
    read : callable
        Genotypes of the samples that define the axes, at some sites of the panel.
    sites : DataFrame
        The panel, in genome order.
    pruning : tuple, optional
        From `parse_pruning`; None prunes nothing.
    regions : list
        Regions of long-range LD to leave out (`long_range_ld.regions_of`).

    Raises
    ------
    UserError
        No site is left.
    """
    outside = ~in_regions(sites, regions)
    af = np.full(len(sites), np.nan)
    used = np.zeros(len(sites), bool)
    lost = {"monomorphic": 0, "long_range_ld": 0, "ld_pruned": 0}
    r2 = None
    for first, last in contig_runs(sites.chrom.to_numpy()):
        planes = read(first, last)
        alt, _ = moments(planes)
        with np.errstate(invalid="ignore"):
            af[first:last] = alt / (2 * called_samples(planes))
        with np.errstate(invalid="ignore"):
            varies = (af[first:last] > 0) & (af[first:last] < 1)
        keep = varies & outside[first:last]
        lost["monomorphic"] += int((~varies).sum())
        lost["long_range_ld"] += int((varies & ~keep).sum())
        if pruning is not None and keep.any():
            *window, asked = pruning
            r2 = min(max(asked, CHANCE / planes.n_sites), 1.0)
            here = sites.iloc[first:last][keep].reset_index(drop=True)
            kept = Planes(planes.words[keep], planes.n_sites)
            keep[keep] = ~pruned(kept, here, (*window, r2), backend)
            lost["ld_pruned"] += int((varies & outside[first:last]).sum() - keep.sum())
        used[first:last] = keep
    if not used.any():
        raise UserError(
            f"results/panel/sites.tsv: none of the {len(sites)} sites is left for the PCA "
            f"({lost['monomorphic']} do not vary among the unrelated founders, "
            f"{lost['long_range_ld']} are in regions of long-range LD); add samples or sites, or "
            "set embedding.long_range_ld to keep."
        )
    rows = np.flatnonzero(used)
    return AxisSites(rows, af[rows], {"panel": len(sites), **lost, "used": len(rows)}, r2)
