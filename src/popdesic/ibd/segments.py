"""Segments of IBD between two blocks of samples: candidates, then ends and LOD site by site."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.threads import run_tasks
from ..engine.backend import Backend
from ..engine.terms import Planes
from .candidates import UNITS_PER_CENTIMORGAN, Candidates, Windows
from .definition import SegmentLimits, Segments
from .find_candidates import find_candidates
from .model import GAIN_SHARE, SCALE, all_seen_pairs, end_scores, log_ratios
from .windows import GeneticSites, sites_per_window, windows_of

#: Least likely length of a segment, as a share of the shortest. With 1, one in fifty of the true
#: segments of at least 7 cM would be lost, because their length is not known so well.
LIKELY_SHARE = 0.9
#: Candidates of one task.
TASK_CANDIDATES = 2048


class ScoreTables(NamedTuple):
    """Scores of the genotypes of two samples at each site; zero at sites left out.

    Attributes
    ----------
    ends1, ends2 : int32 arrays, (n_sites, 2)
        `model.end_scores` of one and of two shared alleles.
    sums1, sums2
        `segments_cpu.running_sums` of them.
    ratios1, ratios2 : int32 arrays, (n_sites, 16)
        `ratios_cpu.by_bits` of `model.log_ratios`.
    losses2, weights
        `segments_cpu.chunk_losses` of two alleles, and `ratios_cpu.end_weights`.
    """

    ends1: np.ndarray
    sums1: np.ndarray
    ratios1: np.ndarray
    ends2: np.ndarray
    sums2: np.ndarray
    ratios2: np.ndarray
    losses2: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class SearchGenome:
    """What of a panel the search reads, prepared once for all pairs of cohorts.

    Attributes
    ----------
    sites : GeneticSites
    windows : Windows
    tables : ScoreTables
    """

    sites: GeneticSites
    windows: Windows
    tables: ScoreTables

    @classmethod
    def of(cls, sites: GeneticSites, af: np.ndarray, limits: SegmentLimits) -> SearchGenome:
        """Prepare a panel with ALT frequencies `af`."""
        from .ratios_cpu import by_bits, end_weights
        from .segments_cpu import chunk_losses, running_sums

        af = np.where(sites.used, af, np.nan)
        tables: list[np.ndarray] = []
        seen = all_seen_pairs(af, limits.error_rate)
        for shared in (1, 2):
            ends = end_scores(af, limits.error_rate, shared, seen)
            tables += [ends, running_sums(ends)]
            tables.append(by_bits(log_ratios(af, limits.error_rate, shared, seen)))
        tables += [chunk_losses(tables[3]), end_weights(GAIN_SHARE, SCALE)]
        windows = windows_of(sites, sites_per_window(sites, limits.window))
        return cls(sites, windows, ScoreTables(*tables))


def least_run(limits: SegmentLimits, windows: Windows) -> float:
    """Length of a run of windows that a segment of `min_cm` surely holds, in cM.

    It holds all windows but the two at its ends, which it may hold in part.
    """
    widths = (windows.right - windows.left)[~windows.masked]
    widest = float(np.quantile(widths, 0.9)) if len(widths) else 0.0
    return max(limits.min_cm - 2 * widest, limits.min_cm / 3)


def segments_between(
    a: Planes, b: Planes | None, genome: SearchGenome, limits: SegmentLimits, backend: Backend
) -> Segments:
    """Segments of all pairs of two blocks of samples, or of one block with itself (b None).

    The same from every backend and any number of threads.
    """
    found = candidates_between(a, b, genome, limits, backend)
    return segments_of(found, a, a if b is None else b, genome, limits, backend.threads)


def candidates_between(
    a: Planes, b: Planes | None, genome: SearchGenome, limits: SegmentLimits, backend: Backend
) -> Candidates:
    """Candidates of all pairs of two blocks of samples, or of one block with itself (b None)."""
    windows = genome.windows
    if windows.masked.all():
        return Candidates(*np.zeros((4, 0), np.int32))
    return find_candidates(
        backend,
        *(a, b, windows),
        tolerance=limits.tolerance,
        min_length=least_run(limits, windows),
        most=limits.most,
    )


def candidate_parts(found: Candidates, size: int) -> Iterator[Candidates]:
    """Candidates in parts of about `size`, all those of a pair in one part."""
    new = np.flatnonzero((np.diff(found.i) != 0) | (np.diff(found.j) != 0)) + 1
    cuts = new[np.flatnonzero(np.diff(new // size, prepend=0))]
    for begin, end in itertools.pairwise([0, *cuts.tolist(), len(found.i)]):
        if begin < end:
            yield Candidates(*(column[begin:end] for column in found))


def segments_of(
    found: Candidates,
    a: Planes,
    b: Planes,
    genome: SearchGenome,
    limits: SegmentLimits,
    threads: int,
) -> Segments:
    """Segments of candidates: ends, LOD and stretches of two alleles, site by site on the CPU.

    Parameters
    ----------
    found : Candidates
        Of samples of `a` and of `b`, ordered by pair, in windows of `genome`.
    a, b : Planes
        In host memory.
    genome : Genome
    limits : SegmentLimits
    threads : int
        Do not change the result.
    """
    from .segments_cpu import FIELDS, find_segments, readable

    windows = genome.windows
    i, j, first, last = found
    bounds = np.array(genome.sites.contigs, np.int64).reshape(-1, 2)[windows.contig[first]]
    new = (np.diff(i, prepend=-1) != 0) | (np.diff(j, prepend=-1) != 0)
    pair = np.cumsum(new) - 1
    listed = np.column_stack(
        [pair, i, j, windows.first[first], windows.first[last] + windows.sites[last], bounds]
    ).astype(np.int64)
    words = readable(a), readable(b)
    least_lod = limits.min_lod, limits.min_lod
    scores = np.rint(SCALE * np.array([limits.drop, *least_lod, limits.trim, limits.split]))
    least = [limits.min_cm, limits.min_ibd2_cm, LIKELY_SHARE * limits.min_cm]
    places = np.rint(genome.sites.cm * UNITS_PER_CENTIMORGAN).astype(np.int64)

    def work(begin: int, end: int) -> np.ndarray:
        part = np.ascontiguousarray(listed[begin:end])
        room = np.empty((2 * len(part) + 64, len(FIELDS)), np.int64)
        while True:
            n_found = find_segments(
                *(*words, part, genome.tables, scores.astype(np.int64)),
                *(genome.sites.cm, places, np.array(least) - 1e-9, room),
            )
            if n_found <= len(room):
                return room[:n_found].copy()
            room = np.empty((n_found, len(FIELDS)), np.int64)

    starts = np.flatnonzero(new)
    cuts = [*np.unique(starts[pair[::TASK_CANDIDATES]]).tolist(), len(i)]
    parts = run_tasks(work, list(itertools.pairwise(cuts)), threads)
    rows = np.concatenate([np.zeros((0, len(FIELDS)), np.int64), *parts])
    own = starts[rows[:, 0]]
    cm = genome.sites.cm
    return Segments(
        *(i[own], j[own], rows[:, 1], rows[:, 2], cm[rows[:, 2]] - cm[rows[:, 1]]),
        *(rows[:, 3] / SCALE, *rows[:, 4:].T),
    )
