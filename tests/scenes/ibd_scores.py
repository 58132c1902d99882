"""How true segments of IBD are, beside the truth of `ibd_people` and `ibd_pedigrees`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from popdesic.engine.select import cpu_backend
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.segments import SearchGenome, segments_between
from popdesic.ibd.windows import genetic_sites
from scenes.ibd_people import HUMAN_CM, Intervals, People, joined, overlap

#: A segment is found, or right, if more than this share of it is covered.
COVERED = 0.5


@dataclass(frozen=True)
class Scores:
    """Counts of one scene: true segments and those found, calls and right ones; ends in cM.

    `lengths` and `covered` are of each true segment: cM, and whether it is found.
    """

    true: int
    found: int
    called: int
    right: int
    one_ancestor: int
    ends: np.ndarray
    lengths: np.ndarray
    covered: np.ndarray

    @property
    def recall(self) -> float:
        return self.found / max(self.true, 1)

    @property
    def precision(self) -> float:
        return self.right / max(self.called, 1)


def call_people(people: People, limits: SegmentLimits, threads: int = 1) -> Intervals:
    """Segments with a shared allele, by pair: (contig, left, right) in cM."""
    sites = genetic_sites(people.sites, None)
    genome = SearchGenome.of(sites, people.alt, limits)
    found = segments_between(people.planes, None, genome, limits, cpu_backend(threads))
    contig = people.sites.chrom.astype(int).to_numpy() - 1
    cm = sites.pos / 1e6
    calls = defaultdict(list)
    one = found.shared == 1
    columns = (found.a, found.b, found.first, found.last)
    for a, b, first, last in zip(*(column[one].tolist() for column in columns), strict=True):
        calls[a, b].append((int(contig[first]), float(cm[first]), float(cm[last])))
    return dict(calls)


def score(people: People, calls: Intervals, least_cm: float) -> Scores:
    """Compare calls with the truth.

    The truth of unphased genotypes is where at least one haplotype is shared: true segments of a
    pair that overlap or touch are one. One of at least `least_cm` is found if more than half of it
    is covered by calls, a call is right if more than half of it is true. `one_ancestor`: calls of
    which one true segment of two haplotypes, from one ancestor, covers more than half.
    """
    true = found = right = called = one_ancestor = 0
    ends, lengths, covered = [], [], []
    for pair in people.true.keys() | calls.keys():
        own, paths = calls.get(pair, []), people.true.get(pair, [])
        whole = joined(paths)
        for part in whole:
            if part[2] - part[1] < least_cm:
                continue
            true += 1
            lengths.append(part[2] - part[1])
            covered.append(overlap(part, own) > COVERED * lengths[-1])
            found += covered[-1]
            best = max(own, key=lambda call, part=part: overlap(part, [call]), default=None)
            if best and overlap(part, [best]) > 0:
                ends += [best[1] - part[1], best[2] - part[2]]
        for call in own:
            called += 1
            half = COVERED * (call[2] - call[1])
            right += overlap(call, whole) > half
            one_ancestor += any(overlap(call, [path]) > half for path in paths)
    each = np.array(lengths), np.array(covered, bool)
    return Scores(true, found, called, right, one_ancestor, np.array(ends), *each)


def human_sites(per_cm: float) -> tuple[np.ndarray, np.ndarray]:
    """Contig and genetic position of evenly spread sites of the human autosomes."""
    chrom = np.concatenate([np.full(int(per_cm * c), k) for k, c in enumerate(HUMAN_CM)])
    cm = np.concatenate([np.arange(int(per_cm * c)) / per_cm for c in HUMAN_CM])
    return chrom, cm
