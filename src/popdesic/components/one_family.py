"""Axes that one family or one inbred sample makes: relatives whom kinship did not tell.

KING-robust measures the distance of two samples by their heterozygotes, of which inbred samples
have few: siblings whose parents are siblings get kinships near 0, and their family an axis of its
own. What relatives have inherited together lies in long pieces, in which they are never opposite
homozygotes, however inbred they are and wherever they are from. So a family is told by stretches
of the genome that lack them (IBS0), where strangers have about ten; and an inbred sample, by
stretches that lack heterozygotes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.site_alleles import read_cohorts
from ..io.genotypes import MISSING
from ..io.layers import Reader
from ..io.sites import chunks, contig_runs
from .relationship import CHUNK_SITES

#: An axis is looked at if so few samples have half of its variance.
MOST_SAMPLES, HALF = 12, 0.5
#: Opposite homozygotes expected of strangers in a stretch, and share of them up to which the two
#: share a haplotype there (genotyping errors).
EXPECTED, FEW = 10.0, 0.1
#: Two samples are relatives if they share so much more of the genome than most pairs that are
#: looked at, and a sample is inbred if its two haplotypes do; strangers share 0.02 at most
#: (tests/bench/bench_family_axes.py).
LEAST_SHARED, LEAST_INBRED = 0.2, 0.1


@dataclass(frozen=True)
class FamilyAxis:
    """An axis of one family: `axis` (from 1), its samples, and their share of its variance."""

    axis: int
    who: list[int]
    share: float


def axes_of_families(
    vectors: np.ndarray,
    prefixes: list[Path],
    rows: np.ndarray,
    keep: list[np.ndarray],
    af: np.ndarray,
    sites: pd.DataFrame,
) -> list[FamilyAxis]:
    """Axes most of whose variance is that of one family, or of one inbred sample.

    Parameters
    ----------
    vectors : float64 array, (n, k)
        The axes that are significant.
    prefixes, rows, keep
        As in `relationship.read_cohorts`: genotypes of the n samples at the sites of the axes.
    af : float64 array, (n_sites,)
        Their ALT frequencies.
    sites : DataFrame
        `chrom` of these sites.
    """
    some = []
    for axis, column in enumerate(vectors.T):
        squared = column**2 / (column**2).sum()
        order = np.argsort(-squared, kind="stable")
        few = int(np.searchsorted(np.cumsum(squared[order]), HALF)) + 1
        if few <= MOST_SAMPLES:  # and some more: others of the family have less
            some.append((axis, squared, np.sort(order[:MOST_SAMPLES])))
    if not some:
        return []
    chosen = np.unique(np.concatenate([who for *_, who in some]))
    ends = np.cumsum([0, *(int(own.sum()) for own in keep)])
    left = []
    for own, first in zip(keep, ends, strict=False):
        mask = np.zeros(len(own), bool)
        inside = chosen[(chosen >= first) & (chosen < first + own.sum())] - first
        mask[np.flatnonzero(own)[inside]] = True
        left.append(mask)
    shared = shared_genome(read_cohorts(prefixes, rows, left)[0], af, sites)
    found = []
    for axis, squared, who in some:
        at = np.searchsorted(chosen, who)
        groups = _groups(who, shared[np.ix_(at, at)])
        axes = [FamilyAxis(axis + 1, group, float(squared[group].sum())) for group in groups]
        found += [one for one in axes if one.share >= HALF]
    return found


def drop_families(
    keep: list[np.ndarray], names: list[str], families: list[FamilyAxis]
) -> tuple[list[np.ndarray], list[dict]]:
    """Who is left of those who define axes: the first of each family, no lone inbred sample.

    Parameters
    ----------
    keep : list of bool arrays
        Who of each cohort defines axes, n in all.
    names : list of str, (n,)
        Theirs.

    Returns
    -------
    keep : list of bool arrays
    about : list of dict
        Of each axis: `axis`, `share` of its variance, `samples`, and `left_out` of them.
    """
    out = {x for one in families for x in (one.who[1:] or one.who)}
    about = [
        {
            "axis": one.axis,
            "share": float(f"{one.share:.6g}"),
            "samples": [names[x] for x in one.who],
            "left_out": [names[x] for x in one.who if x in out],
        }
        for one in families
    ]
    ends = np.cumsum([0, *(int(own.sum()) for own in keep)])
    left = [own.copy() for own in keep]
    for own, first in zip(left, ends, strict=False):
        own[np.flatnonzero(own)[[x - first for x in out if 0 <= x - first < own.sum()]]] = False
    return left, about


def shared_genome(read: Reader, af: np.ndarray, sites: pd.DataFrame) -> np.ndarray:
    """Share of the genome in which two samples have hardly any opposite homozygotes, (n, n).

    Of stretches of consecutive sites with EXPECTED opposite homozygotes of strangers each; those
    at which the two are called too little do not count. On the diagonal the share in which a
    sample has hardly any heterozygotes.
    """
    opposite, het = 2 * (af * (1 - af)) ** 2, 2 * af * (1 - af)
    apart, within = stretches_of(opposite, sites), stretches_of(het, sites)
    genotypes = np.concatenate([read(*bounds) for bounds in chunks(len(af), CHUNK_SITES)])
    n = genotypes.shape[1]
    shared = np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        a, b = genotypes[:, i], genotypes[:, j]
        both = (a != MISSING) & (b != MISSING)
        seen = both & (np.abs(a - b) == 2)
        shared[i, j] = shared[j, i] = _share(apart, seen, np.where(both, opposite, 0.0))
    for i, own in enumerate(genotypes.T):
        shared[i, i] = _share(within, own == 1, np.where(own != MISSING, het, 0.0))
    return shared


def _share(stretch: np.ndarray, seen: np.ndarray, expected: np.ndarray) -> float:
    """Share of the stretches in which hardly anything is seen of what is expected."""
    found, due = np.bincount(stretch, seen), np.bincount(stretch, expected)
    counts = due >= EXPECTED / 2
    return float((found <= FEW * due)[counts].mean()) if counts.any() else 0.0


def stretches_of(expected: np.ndarray, sites: pd.DataFrame) -> np.ndarray:
    """Stretch of each site, int64 (n_sites,): consecutive ones of a contig add up to EXPECTED."""
    stretch = np.zeros(len(expected), np.int64)
    last = 0
    for first, end in contig_runs(sites.chrom.to_numpy()):
        total = np.cumsum(expected[first:end])
        # The end of a contig belongs to the stretch before it.
        number = np.minimum(total // EXPECTED, max(total[-1] // EXPECTED - 1, 0))
        stretch[first:end] = last + number.astype(np.int64)
        last = stretch[end - 1] + 1
    return stretch


def _groups(who: np.ndarray, shared: np.ndarray) -> list[list[int]]:
    """Groups of samples that relatives join, and inbred samples alone; of `who`, (m,)."""
    from scipy.sparse.csgraph import connected_components

    pairs = shared[np.triu_indices(len(who), 1)]
    usual = float(np.median(pairs)) if len(pairs) else 0.0
    near = shared - usual >= LEAST_SHARED
    inbred = np.diag(shared) - np.median(np.diag(shared)) >= LEAST_INBRED
    n_groups, number = connected_components(near, directed=False)
    groups = [np.flatnonzero(number == k) for k in range(n_groups)]
    return [who[group].tolist() for group in groups if len(group) > 1 or inbred[group[0]]]
