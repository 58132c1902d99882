"""Windows of sites in which opposite homozygotes are counted, and sites that are left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..io.sites import contig_runs
from .candidates import Windows
from .model import expected_lod

#: Longest step between neighbouring sites that counts to a length, in cM.
MOST_STEP_CM = 1.0
#: Windows are not longer than this where sites are dense enough, in cM.
MOST_WINDOW_CM = 1.0
#: Sites of a window: a multiple of so many, and at least so many.
STEP_SITES, LEAST_SITES = 16, 16
#: LOD that the shortest wanted segment must reach on average: a genome has some hundred places and
#: a study millions of pairs, a chance LOD of L has at most the probability 10**-L, and in linkage
#: disequilibrium a third of a LOD may be the same thing said again.
LEAST_LOD = 15.0
#: Fewest samples that ALT frequencies come from. Of fewer, two that share a segment make what they
#: share look common: planted segments of 20 cM were found from 5 samples on, whole from 8 on.
FEWEST_SAMPLES = 8
#: A whole genome of array density has windows of so many sites (two words of 64 bits).
MOST_SITES = 128


@dataclass(frozen=True)
class GeneticSites:
    """Where the panel's sites lie on the genetic map.

    Attributes
    ----------
    chrom : str array, (n_sites,)
    pos : int64 array
        In base pairs.
    cm : float64 array
        Genetic position that counts: it does not grow over regions that are left out, nor over
        steps longer than MOST_STEP_CM. Only differences within a contig have a meaning.
    used : bool array
        Sites outside of the regions that are left out.
    """

    chrom: np.ndarray
    pos: np.ndarray
    cm: np.ndarray
    used: np.ndarray

    @property
    def contigs(self) -> list[tuple[int, int]]:
        """First and end site of each contig."""
        return contig_runs(self.chrom)

    def lengths(self) -> np.ndarray:
        """Length of each contig that counts, in cM: float64 (n_contigs,)."""
        return np.array([self.cm[last - 1] - self.cm[first] for first, last in self.contigs])


def genetic_sites(
    sites: pd.DataFrame, cm: np.ndarray | None, left_out: np.ndarray | None = None
) -> GeneticSites:
    """Genetic positions of sites; without a map one centimorgan a megabase.

    Parameters
    ----------
    sites : DataFrame
        `chrom`, `pos`, in panel order.
    cm : float64 array, (n_sites,), optional
        From a genetic map.
    left_out : bool array, (n_sites,), optional
        Sites in regions that are left out.
    """
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy(np.int64)
    used = np.ones(len(pos), bool) if left_out is None else ~np.asarray(left_out, bool)
    own = pos / 1e6 if cm is None else np.asarray(cm, np.float64)
    counted = np.zeros(len(pos))
    for first, last in contig_runs(chrom):
        step = np.diff(own[first:last])
        step[(step > MOST_STEP_CM) | ~used[first : last - 1] | ~used[first + 1 : last]] = 0
        counted[first + 1 : last] = np.cumsum(step)
    return GeneticSites(chrom, pos, counted, used)


def windows_of(sites: GeneticSites, n_sites: int) -> Windows:
    """Cut each contig into windows of `n_sites` sites; the last one of a contig may be shorter.

    A window is masked if fewer than half of its sites are used, or if it is the short rest of a
    contig with less than half a window of sites.
    """
    parts = []
    for number, (first, last) in enumerate(sites.contigs):
        starts = np.arange(first, last, n_sites)
        ends = np.minimum(starts + n_sites, last)
        used = np.add.reduceat(sites.used[first:last].astype(np.int64), starts - first)
        parts.append(
            (
                np.full(len(starts), number, np.int32),
                starts,
                ends - starts,
                sites.cm[starts],
                sites.cm[np.minimum(ends, last - 1)],
                2 * used < n_sites,
            )
        )
    if not parts:
        return Windows(*(np.zeros(0, kind) for kind in ("i4", "i8", "i8", "f8", "f8", bool)))
    return Windows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def sites_per_window(sites: GeneticSites, asked: int | None = None) -> int:
    """Sites of a window: as asked for, or as many as MOST_WINDOW_CM has, at most MOST_SITES."""
    if asked:
        return asked
    per_cm = int(sites.used.sum()) / max(sites.lengths().sum(), 1e-9)
    fitting = int(per_cm * MOST_WINDOW_CM) // STEP_SITES * STEP_SITES
    return int(np.clip(fitting, LEAST_SITES, MOST_SITES))


def require_density(
    sites: GeneticSites, af: np.ndarray, error_rate: float, min_cm: float, *, study: bool = True
) -> float:
    """The LOD that a segment of `min_cm` reaches on average on these sites.

    Parameters
    ----------
    study : bool
        Name the configuration's keys in messages; without, the arguments of a function.

    Raises
    ------
    UserError
        No contig is that long, or the LOD is below LEAST_LOD: people without common ancestors
        would have such segments by chance.
    """
    length = sites.lengths().sum()
    used = int(sites.used.sum())
    who, key, out = "the sites", "min_cm", ""
    if study:
        who, key, out = (
            "ibd: the panel's sites",
            "ibd.min_cm",
            ", or remove ibd from compare.analyses",
        )
    if length <= 0 or not used:
        raise UserError(
            f"{who} span no genetic length, so segments of IBD cannot be measured; give sites that "
            f"lie apart{out}."
        )
    longest = float(sites.lengths().max())
    if longest < min_cm:
        raise UserError(
            f"{who} lie on contigs of at most {longest:.3g} cM, less than {key} = {min_cm:g}, so "
            f"no segment can be found; lower {key}{out}."
        )
    whole = float(expected_lod(af[sites.used], error_rate).sum())
    lod = whole / length * min_cm
    if lod < LEAST_LOD:
        needed = used / length * LEAST_LOD / max(lod, 1e-9)
        way = "loosen panel.ld_prune and panel.min_maf" if study else "give more sites"
        raise UserError(
            f"{who} are {used / length:.3g} a centimorgan, on which a segment of {key} = "
            f"{min_cm:g} cM reaches a LOD of {lod:.2g}; {needed:.3g} sites a centimorgan, or {key} "
            f"of {min_cm * LEAST_LOD / max(lod, 1e-9):.3g}, are needed for a LOD of "
            f"{LEAST_LOD:g}, at which chance makes no segments: {way}, raise {key}{out}."
        )
    return lod
