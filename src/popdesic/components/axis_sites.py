"""The sites and frequencies of the PCA: chosen from the unrelated founders' genotypes alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..cohort.dosage_r2 import dosage_r2
from ..cohort.long_range_ld import in_regions
from ..cohort.prune import pruned, widest_window
from ..cohort.site_planes import PlanesReader, contigs_at_once
from ..core.errors import UserError
from ..core.threads import run_tasks
from ..engine.backend import Backend
from ..engine.site_pairs import NARROW, called_samples, moments, r2_block
from ..engine.terms import Planes
from ..io.sites import contig_runs

#: r2 of two sites without LD that one pair in a thousand exceeds is this number over the number of
#: samples (a chi-square of one degree of freedom).
CHANCE = 10.83
#: Pairs of sites of a contig whose LD beyond the window of pruning is measured, and fewest in all.
PAIRS_BEYOND, FEWEST_BEYOND = 64, 20
#: Why sites leave, in this order.
LOST = ("monomorphic", "long_range_ld", "ld_pruned")


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
    r2_beyond : float or None
        Mean r2, less what chance gives, of kept sites just beyond the window of pruning, up to
        twice as far; None for windows in sites, and where there are few such pairs.
    """

    rows: np.ndarray
    af: np.ndarray
    counts: dict[str, int]
    r2: float | None
    r2_beyond: float | None = None


def choose_sites(
    read: PlanesReader,
    sites: pd.DataFrame,
    backend: Backend,
    *,
    n_samples: int = 0,
    read_alone: PlanesReader | None = None,
    read_alleles: Callable[[int, int], np.ndarray] | None = None,
    pruning: tuple[float, str, int, float] | None,
    regions: list[tuple[str, int, int, str]],
    run: Callable[..., list] | None = None,
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
    n_samples : int
        Samples that `read` gives, if known: then contigs are looked at side by side where windows
        are narrow and their planes take little memory. Changes nothing else.
    read_alone : callable, optional
        `read` on one thread, for contigs that are looked at side by side.
    read_alleles : callable, optional
        Of polyploids: ALT alleles of these samples, int8 (n, n_samples), which LD is of.
    pruning : tuple, optional
        From `parse_pruning`; None prunes nothing.
    regions : list
        Regions of long-range LD to leave out (`long_range_ld.regions_of`).
    run : callable, optional
        Looks at the contigs in place of `run_tasks`: that of a team of processes. Changes no site.

    Raises
    ------
    UserError
        No site is left.
    """
    outside = ~in_regions(sites, regions)
    runs = contig_runs(sites.chrom.to_numpy())
    narrow = pruning is None or widest_window(sites, *pruning[:2]) <= NARROW
    at_once, backend = contigs_at_once(runs, n_samples, narrow, backend)
    if at_once > 1:
        read = read_alone or read

    def choose(first: int, last: int) -> _Contig:
        here = sites.iloc[first:last].reset_index(drop=True)
        alleles = None if read_alleles is None or pruning is None else read_alleles(first, last)
        given = read(first, last), here, outside[first:last], pruning, backend, alleles
        return _choose_on_contig(*given)

    found = (run or run_tasks)(choose, runs, at_once)
    af = np.concatenate([one.af for one in found] or [np.empty(0)])
    used = np.concatenate([one.keep for one in found] or [np.empty(0, bool)])
    lost = {name: sum(one.lost[name] for one in found) for name in LOST}
    r2 = next((one.r2 for one in found if one.r2 is not None), None)
    if not used.any():
        raise UserError(
            f"results/panel/sites.tsv: none of the {len(sites)} sites is left for the PCA "
            f"({lost['monomorphic']} do not vary among the unrelated founders, "
            f"{lost['long_range_ld']} are in regions of long-range LD); add samples or sites, or "
            "set long_range_ld to keep."
        )
    rows = np.flatnonzero(used)
    beyond = np.concatenate([one.beyond for one in found])
    left = float(f"{beyond.mean():.4f}") if len(beyond) >= FEWEST_BEYOND else None
    return AxisSites(rows, af[rows], {"panel": len(sites), **lost, "used": len(rows)}, r2, left)


@dataclass(frozen=True)
class _Contig:
    """What is chosen on one contig: as `AxisSites`, with `keep` bool (n_sites,).

    `beyond`: r2 of pairs of sites as `AxisSites.r2_beyond` has them, float64.
    """

    af: np.ndarray
    keep: np.ndarray
    lost: dict[str, int]
    r2: float | None
    beyond: np.ndarray


def _choose_on_contig(
    planes: Planes,
    sites: pd.DataFrame,
    outside: np.ndarray,
    pruning: tuple[float, str, int, float] | None,
    backend: Backend,
    alleles: np.ndarray | None,
) -> _Contig:
    """`choose_sites` of one contig; `outside` of all regions, bool (n_sites,)."""
    alt, _ = moments(planes)
    with np.errstate(invalid="ignore"):
        af = alt / (2 * called_samples(planes))
        varies = (af > 0) & (af < 1)
    eligible = varies & outside
    keep, r2, beyond = eligible.copy(), None, np.empty(0)
    if pruning is not None and keep.any():
        *window, asked = pruning
        n_samples = planes.n_sites if alleles is None else alleles.shape[1]
        r2 = min(max(asked, CHANCE / n_samples), 1.0)
        kept = Planes(planes.words[keep], planes.n_sites)
        there = sites[keep].reset_index(drop=True)
        own = None if alleles is None else alleles[keep]
        keep[keep] = ~pruned(kept, there, (*window, r2), backend, own)
        if window[1] == "bp":
            rows = np.flatnonzero(keep)
            pos = sites.pos.to_numpy(np.int64)[rows]
            beyond = _r2_beyond(planes, rows, pos, window[0], backend, alleles)
    counts = ~varies, varies & ~eligible, eligible & ~keep
    lost = dict(zip(LOST, (int(one.sum()) for one in counts), strict=True))
    return _Contig(af, keep, lost, r2, beyond)


def _r2_beyond(
    planes: Planes,
    rows: np.ndarray,
    pos: np.ndarray,
    window: float,
    backend: Backend,
    alleles: np.ndarray | None,
) -> np.ndarray:
    """r2 of sites (`rows` at `pos`) with the first site beyond a window, up to twice as far."""
    partner = np.searchsorted(pos, pos + window, "right")
    first = np.flatnonzero(partner < len(pos))
    first = first[pos[partner[first]] - pos[first] <= 2 * window]
    if not len(first):
        return np.empty(0)
    first = first[np.unique(np.linspace(0, len(first) - 1, PAIRS_BEYOND).round().astype(int))]
    pairs = rows[first], rows[partner[first]]
    if alleles is None:
        n_samples = planes.n_sites
        found = r2_block(*(Planes(planes.words[k], n_samples) for k in pairs), backend)
    else:
        n_samples = alleles.shape[1]
        found = dosage_r2(*(alleles[k] for k in pairs), backend.threads)
    r2 = np.diag(found) - 1 / max(n_samples - 1, 1)
    return r2[np.isfinite(r2)]
