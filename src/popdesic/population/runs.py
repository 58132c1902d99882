"""Runs of homozygosity of a cohort: by sample, by length class, and how many samples share them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.encode import load_planes
from ..cohort.prune import contig_runs
from ..engine.threads import run_tasks
from ..io.sites import chunks
from .blocks import spans

#: Lengths, in Mb, that divide runs into classes: young inbreeding makes long runs.
CLASSES_MB = (2, 4, 8, 16)
#: Samples whose planes are in memory at a time.
SAMPLES_AT_ONCE = 256


@dataclass(frozen=True)
class RunLimits:
    """What a run of homozygosity is (`population.roh`); the defaults are those of PLINK 1.9.

    Attributes
    ----------
    window_sites, window_hets, window_missing : int
        Sites of a window, and most heterozygous and missing ones of a homozygous window.
    threshold : float
        Share of the windows over a site that must be homozygous.
    min_sites, min_kb : int, float
        Least sites and length of a run.
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
    min_sites: int = 100
    min_kb: float = 1000
    kb_per_site: float = 50
    max_gap_kb: float = 1000
    max_hets: int = -1

    def for_kernel(self) -> tuple[np.ndarray, np.ndarray]:
        """Integers and numbers as `engine.host.homozygous_runs` takes them."""
        from ..engine.host.homozygous_runs import EPSILON

        counts = [
            *(self.window_sites, self.window_hets, self.window_missing, self.min_sites),
            *(self.max_hets, round(self.min_kb * 1000), round(self.max_gap_kb * 1000)),
        ]
        limits = [self.threshold, self.kb_per_site * 1000 + EPSILON]
        return np.array(counts, np.int64), np.array(limits)


def class_names() -> list[str]:
    """Columns of F_ROH by length class."""
    edges = ("0", *map(str, CLASSES_MB))
    pairs = [f"f_roh_{a}_{b}mb" for a, b in pairwise(edges)]
    return [*pairs, f"f_roh_{CLASSES_MB[-1]}mb"]


def find_all_runs(
    het: np.ndarray,
    missing: np.ndarray | None,
    sites: pd.DataFrame,
    limits: RunLimits,
    threads: int = 1,
) -> np.ndarray:
    """Runs of all samples.

    Parameters
    ----------
    het, missing : uint64 arrays, (n_samples, n_words)
        One bit a site; None: nothing is missing.
    sites : DataFrame
        `chrom`, `pos`.

    Returns
    -------
    int64 array, (n_runs, 5)
        Sample, first and last site, heterozygous and missing genotypes; by sample, then by place.
    """
    from ..engine.host.homozygous_runs import find_runs

    counts, numbers = limits.for_kernel()
    pos = np.array(sites.pos, np.int64)  # writeable, for which the kernel is compiled in advance
    contigs = list(contig_runs(sites.chrom.to_numpy()))
    nothing = np.empty(0, np.uint64)

    def work(sample: int) -> np.ndarray:
        hits = np.zeros(len(pos), np.uint8)
        rooms = np.empty((len(pos) // max(limits.min_sites, 1) + 1, 4), np.int64)
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


def cohort_runs(
    folder: Path,
    sites: pd.DataFrame,
    used: np.ndarray,
    table: pd.DataFrame,
    group: np.ndarray,
    n_groups: int,
    limits: RunLimits,
    threads: int,
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Runs of a cohort (`planes.npy` in `folder`).

    Pseudo-haploid samples have none: their homozygosity says nothing.

    Returns
    -------
    runs : DataFrame
        One row a run.
    table : DataFrame
        `table` with number, total length and F_ROH of each sample, in all and by class.
    in_runs : int64 array, (n_sites, n_groups)
        Samples of each group within a run.
    """
    planes, about = load_planes(folder)
    place = {name: k for k, name in enumerate(about["samples"])}
    order = np.array([place[name] for name in table["sample"]], np.int64)
    # X that is left out counts as heterozygous: no window of it is homozygous.
    outside = np.zeros(planes.words.shape[2] * 64, np.uint8)
    outside[: len(sites)] = ~used
    outside = np.packbits(outside, bitorder="little").view(np.uint64)
    ploidy = table.ploidy.to_numpy()
    found = np.empty((0, 5), np.int64)
    for begin, end in chunks(len(order), SAMPLES_AT_ONCE):
        words = np.asarray(planes.words[order[begin:end]])
        het = words[:, 0] & ~words[:, 1]
        missing = None
        if words.shape[1] > 2:
            het &= words[:, 2]
            missing = ~words[:, 2]
        het |= outside
        het[ploidy[begin:end] == 1] = ~np.uint64(0)
        part = find_all_runs(het, missing, sites, limits, threads)
        part[:, 0] += begin
        found = np.concatenate([found, part])
    sample, first, last = found[:, 0], found[:, 1], found[:, 2]
    pos = sites.pos.to_numpy(np.int64)
    length = pos[last] + 1 - pos[first]
    n_sites = last - first + 1
    runs = pd.DataFrame(
        {
            "sample": table["sample"].to_numpy()[sample],
            "population": table.population.to_numpy()[sample],
            "chrom": sites.chrom.to_numpy()[first],
            "start": pos[first],
            "end": pos[last],
            "kb": length / 1000,
            "sites": n_sites,
            "heterozygous": found[:, 3],
            "missing": found[:, 4],
        }
    )
    covered = spans(sites[used], round(limits.max_gap_kb * 1000))
    classes = np.digitize(length, np.array(CLASSES_MB) * 1e6)
    total = np.zeros((len(table), len(CLASSES_MB) + 1))
    np.add.at(total, (sample, classes), length)
    diploid = (table.ploidy == 2).to_numpy()
    share = np.where(diploid[:, None] & (covered > 0), total / max(covered, 1.0), np.nan)
    number = np.bincount(sample, minlength=len(table))
    columns = {
        "roh": number,
        "roh_kb": total.sum(axis=1) / 1000,
        "f_roh": share.sum(axis=1),
        **dict(zip(class_names(), share.T, strict=True)),
    }
    table = table.assign(**columns)
    ends = np.zeros((len(sites) + 1, n_groups), np.int64)
    known = group[sample] >= 0
    np.add.at(ends, (first[known], group[sample][known]), 1)
    np.add.at(ends, (last[known] + 1, group[sample][known]), -1)
    return runs, table, np.cumsum(ends, axis=0)[:-1]


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
