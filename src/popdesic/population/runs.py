"""Runs of homozygosity of a cohort: by sample, by length class, and how many samples share them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from ..core.threads import run_tasks
from ..io.sites import contig_runs
from .blocks import spans

#: Lengths, in Mb, that divide runs into classes: young inbreeding makes long runs.
CLASSES_MB = (2, 4, 8, 16)
#: Share of the genome in which a run could be found, below which F_ROH is not given: too low.
LEAST_SEARCHED = 0.5
#: Chance of any run among the samples of a random-mating study, where sites are independent.
FALSE_RUNS = 0.05
#: Sites for each heterozygous and each missing genotype of a window, as in a window of PLINK.
SITES_PER_HET, SITES_PER_MISSING = 50, 10
#: Most heterozygous genotypes of a window, in all and as a share of those that chance gives.
MOST_HETS, MOST_SHARE = 5, 0.1


@dataclass(frozen=True)
class RunLimits:
    """What a run of homozygosity is (`population.roh`); the numbers are those of PLINK 1.9.

    Attributes
    ----------
    window_sites, window_hets, window_missing : int
        Sites of a window, and most heterozygous and missing ones of a homozygous window.
    threshold : float
        Share of the windows over a site that must be homozygous.
    min_sites, min_kb : int, float
        Least sites and length of a run. Without `min_sites` each sample has windows and least
        sites of its own (`fitting_windows`).
    kb_per_site : float
        Most kilobases a site, on average over a run.
    max_gap_kb : float
        Largest distance of neighbouring sites within a run.
    max_hets : int
        Most heterozygous genotypes of a run; -1: no limit beside that of the windows.
    """

    window_sites: int = 50
    window_hets: int = 1
    window_missing: int = 5
    threshold: float = 0.05
    min_sites: int | None = 100
    min_kb: float = 1000
    kb_per_site: float = 50
    max_gap_kb: float = 1000
    max_hets: int = -1

    def with_window(self, sites: int, hets: int) -> RunLimits:
        """The same limits, with such windows, and runs of no fewer sites."""
        own = {"window_sites": sites, "window_hets": hets, "min_sites": sites}
        return replace(self, **own, window_missing=sites // SITES_PER_MISSING)

    def for_kernel(self) -> tuple[np.ndarray, np.ndarray]:
        """Integers and numbers as `population.homozygous_runs_cpu` takes them."""
        from .homozygous_runs_cpu import EPSILON

        counts = [
            *(self.window_sites, self.window_hets, self.window_missing, self.min_sites),
            *(self.max_hets, round(self.min_kb * 1000), round(self.max_gap_kb * 1000)),
        ]
        limits = [self.threshold, self.kb_per_site * 1000 + EPSILON]
        return np.array(counts, np.int64), np.array(limits)


def fitting_windows(
    heterozygosity: np.ndarray, n_sites: int, n_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sites of a window and of a run, so that chance gives hardly any, and hets of a window.

    The smallest L for which random mating gives any of n_i samples a window of L sites with at most
    k heterozygous ones with a chance of at most FALSE_RUNS. With heterozygosity h and n_s sites, by
    the sum of the chances of all windows,

        n_s n_i sum over j <= k of C(L, j) h^j (1 - h)^(L - j) <= FALSE_RUNS.

    For k = 0 this is L = ln(FALSE_RUNS / (n_s n_i)) / ln(1 - h) (Lencz et al. 2007, PNAS 104;
    Meyermans et al. 2020, BMC Genomics 21). k, for wrong genotypes, is 1, or the most that are no
    more than one in SITES_PER_HET sites, and no more than a share MOST_SHARE of those expected.

    Parameters
    ----------
    heterozygosity : float64 array, (n,)
        Of each sample.

    Returns
    -------
    sites : int64 array, (n,)
        At most n_sites + 1: no window has so many.
    hets : int64 array, (n,)
    """
    h = np.clip(heterozygosity, 1e-6, 0.9)
    odds, scale = h / (1 - h), float(max(n_sites, 1) * max(n_samples, 1))
    sites, hets = np.zeros(len(h)), np.ones(len(h), np.int64)
    for k in range(1, MOST_HETS + 1):
        own = sites
        for _ in range(200):  # rises to the solution
            ways, term = np.ones(len(h)), np.ones(len(h))
            for j in range(1, k + 1):
                term = term * np.maximum(own - j + 1, 0) / j * odds
                ways += term
            step = np.log(FALSE_RUNS / (scale * ways)) / np.log1p(-h)
            close = np.abs(step - own).max(initial=0) < 1e-6
            own = step
            if close:
                break
        own = np.ceil(own - 1e-5)
        better = (own * np.minimum(1 / SITES_PER_HET, MOST_SHARE * h) >= k) | (k == 1)
        sites, hets = np.where(better, own, sites), np.where(better, k, hets)
        if not better.any():
            break
    return np.clip(sites, hets + 1, n_sites + 1).astype(np.int64), hets


def class_names() -> list[str]:
    """Columns of F_ROH by length class."""
    edges = ("0", *map(str, CLASSES_MB))
    pairs = [f"f_roh_{a}_{b}mb" for a, b in pairwise(edges)]
    return [*pairs, f"f_roh_{CLASSES_MB[-1]}mb"]


@dataclass(frozen=True)
class SiteDensity:
    """How well sites suit a search for runs (`search_density`).

    Attributes
    ----------
    searched : float
        Share of the distances between neighbouring sites over which a run could lie.
    kb_per_site : float
        Median distance of neighbouring sites in kb; NaN without any.
    shortest_kb : float
        A run must usually be this long to be found.
    """

    searched: float
    kb_per_site: float
    shortest_kb: float


def search_density(sites: pd.DataFrame, used: np.ndarray, limits: RunLimits) -> SiteDensity:
    """Where the sites are dense enough for runs of homozygosity, whatever the genotypes are.

    A run has `min_sites` sites that are at most `kb_per_site` apart on average, and no larger gap
    than `max_gap_kb`; so each run overlaps as many sites in a row that fulfil both. Of the
    distances between neighbouring sites those within such stretches of at least `min_kb` count.

    Parameters
    ----------
    sites : DataFrame
        `chrom`, `pos` in genome order.
    used : bool array, (n_sites,)
    """
    total = inside = 0
    steps = []
    n = max(limits.min_sites, 2)
    for first, last in contig_runs(sites.chrom.to_numpy()):
        pos = sites.pos.to_numpy(np.int64)[first:last][used[first:last]]
        gaps = np.diff(pos)
        steps.append(gaps)
        total += int(gaps.sum())
        if len(pos) < n:
            continue
        wide = np.concatenate([[0], np.cumsum(gaps > limits.max_gap_kb * 1000)])
        starts = np.arange(len(pos) - n + 1)
        length = pos[n - 1 :] - pos[: len(starts)] + 1
        fits = (length <= n * limits.kb_per_site * 1000) & (wide[n - 1 :] == wide[: len(starts)])
        change = np.zeros(len(gaps) + 1, np.int64)
        np.add.at(change, starts[fits], 1)
        np.add.at(change, starts[fits] + n - 1, -1)
        covered = np.cumsum(change)[:-1] > 0
        stretch = np.cumsum(np.diff(covered, prepend=False))  # odd where covered
        long = np.bincount(stretch, np.where(covered, gaps, 0)) >= limits.min_kb * 1000 - 1
        inside += int(gaps[covered & long[stretch]].sum())
    steps = np.concatenate(steps) if steps else np.empty(0, np.int64)
    usual = float(np.median(steps)) / 1000 if len(steps) else np.nan
    shortest = max(limits.min_kb, 0.0 if np.isnan(usual) else n * usual)
    return SiteDensity(inside / total if total else 0.0, usual, shortest)


def find_all_runs(
    het: np.ndarray,
    missing: np.ndarray | None,
    sites: pd.DataFrame,
    limits: RunLimits,
    threads: int = 1,
    windows: np.ndarray | None = None,
) -> np.ndarray:
    """Runs of all samples.

    Parameters
    ----------
    het, missing : uint64 arrays, (n_samples, n_words)
        One bit a site; None: nothing is missing.
    sites : DataFrame
        `chrom`, `pos`.
    windows : int64 array, (n_samples, 2), optional
        Of each sample the sites of a window, which are also the least of a run, and its most
        heterozygous sites (`fitting_windows`).

    Returns
    -------
    int64 array, (n_runs, 5)
        Sample, first and last site, heterozygous and missing genotypes; by sample, then by place.
    """
    from .homozygous_runs_cpu import find_runs

    if windows is None:
        kernel = [limits.for_kernel()] * len(het)
    else:
        kernel = [limits.with_window(*map(int, own)).for_kernel() for own in windows]
    pos = np.array(sites.pos, np.int64)  # writeable, for which the kernel is compiled in advance
    contigs = list(contig_runs(sites.chrom.to_numpy()))
    nothing = np.empty(0, np.uint64)

    def work(sample: int) -> np.ndarray:
        counts, numbers = kernel[sample]
        hits = np.zeros(len(pos), np.uint8)
        rooms = np.empty((len(pos) // max(int(counts[3]), 1) + 1, 4), np.int64)
        own_het = np.ascontiguousarray(het[sample])
        own_missing = nothing if missing is None else np.ascontiguousarray(missing[sample])
        found = []
        for first, last in contigs:
            n = find_runs(own_het, own_missing, first, last, pos, counts, numbers, hits, rooms)
            found.append(rooms[:n].copy())
        rows = np.concatenate(found) if found else np.empty((0, 4), np.int64)
        return np.column_stack([np.full(len(rows), sample), rows])

    parts = run_tasks(work, [(k,) for k in range(len(het))], threads)
    return np.concatenate([np.empty((0, 5), np.int64), *parts])


def runs_of_words(
    words: np.ndarray,
    used: np.ndarray,
    ploidy: np.ndarray,
    sites: pd.DataFrame,
    limits: RunLimits,
    threads: int,
    windows: np.ndarray | None = None,
) -> np.ndarray:
    """`find_all_runs` of planes (n_samples, 2 or 3, n_words).

    Pseudo-haploid samples have no runs, because their homozygosity says nothing, and none lies on
    sites that are not used: both count as heterozygous everywhere.
    """
    het = words[:, 0] & ~words[:, 1]
    missing = None
    if words.shape[1] > 2:
        het &= words[:, 2]
        missing = ~words[:, 2]
    het |= ~used
    het[ploidy == 1] = ~np.uint64(0)
    return find_all_runs(het, missing, sites, limits, threads, windows)


def runs_table(found: np.ndarray, samples: pd.DataFrame, sites: pd.DataFrame) -> pd.DataFrame:
    """One row a run; `found` as `find_all_runs` returns it."""
    sample, first, last = found[:, 0], found[:, 1], found[:, 2]
    pos = sites.pos.to_numpy(np.int64)
    return pd.DataFrame(
        {
            "sample": samples["sample"].to_numpy()[sample],
            "population": samples.population.to_numpy()[sample],
            "chrom": sites.chrom.to_numpy()[first],
            "start": pos[first],
            "end": pos[last],
            "kb": (pos[last] + 1 - pos[first]) / 1000,
            "sites": last - first + 1,
            "heterozygous": found[:, 3],
            "missing": found[:, 4],
        }
    )


def with_runs(
    table: pd.DataFrame,
    found: np.ndarray,
    sites: pd.DataFrame,
    used: np.ndarray,
    limits: RunLimits,
    density: SiteDensity,
) -> pd.DataFrame:
    """`table` with number and length of the runs of each sample, and F_ROH, also by class.

    F_ROH is the share of `blocks.spans` that lies in runs; NaN for pseudo-haploid samples, and for
    all on sites that are too sparse to find runs on LEAST_SEARCHED of the genome.
    """
    sample = found[:, 0]
    pos = sites.pos.to_numpy(np.int64)
    length = pos[found[:, 2]] + 1 - pos[found[:, 1]]
    covered = spans(sites[used], round(limits.max_gap_kb * 1000))
    total = np.zeros((len(table), len(CLASSES_MB) + 1))
    np.add.at(total, (sample, np.digitize(length, np.array(CLASSES_MB) * 1e6)), length)
    known = (table.ploidy == 2).to_numpy() & (covered > 0)
    known &= density.searched >= LEAST_SEARCHED
    share = np.where(known[:, None], total / max(covered, 1.0), np.nan)
    return table.assign(
        roh=np.bincount(sample, minlength=len(table)),
        roh_kb=total.sum(axis=1) / 1000,
        f_roh=share.sum(axis=1),
        **dict(zip(class_names(), share.T, strict=True)),
    )


def count_in_runs(found: np.ndarray, group: np.ndarray, n_groups: int, n_sites: int) -> np.ndarray:
    """Samples of each group (-1: none) within a run at every site: int64 (n_sites, n_groups)."""
    ends = np.zeros((n_sites + 1, n_groups), np.int64)
    known = found[group[found[:, 0]] >= 0]
    own = group[known[:, 0]]
    np.add.at(ends, (known[:, 1], own), 1)
    np.add.at(ends, (known[:, 2] + 1, own), -1)
    return np.cumsum(ends, axis=0)[:-1]


def consensus_regions(
    in_runs: np.ndarray, diploid: int, sites: pd.DataFrame, share: float
) -> pd.DataFrame:
    """Regions where at least a share of the people have a run of homozygosity.

    Parameters
    ----------
    in_runs : int array, (n_sites,)
        People within a run.
    diploid : int
        People whose runs were sought.

    Returns
    -------
    DataFrame
        `chrom`, `start`, `end`, `kb`, `sites`, `people` (the most at one site), `share` (of all).
    """
    within = in_runs >= max(share * diploid, 2)
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy(np.int64)
    rows = []
    for first, last in contig_runs(chrom):
        inside = np.concatenate([[False], within[first:last], [False]])
        starts = np.flatnonzero(inside[1:] & ~inside[:-1]) + first
        ends = np.flatnonzero(~inside[1:] & inside[:-1]) + first - 1
        for a, b in zip(starts, ends, strict=True):
            most = int(in_runs[a : b + 1].max())
            kb = (pos[b] + 1 - pos[a]) / 1000
            rows.append((chrom[a], pos[a], pos[b], kb, b - a + 1, most, most / diploid))
    columns = ["chrom", "start", "end", "kb", "sites", "people", "share"]
    return pd.DataFrame(rows, columns=columns)
