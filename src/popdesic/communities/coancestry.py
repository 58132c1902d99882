"""Groups of samples by their coancestry: what they copy from each other.

A coancestry is made symmetric, a sample's own cell takes the mean of its row, and rows and columns
are centred. Where the samples are of one population, what is left is chance: it differs between
stretches of the genome. Structure is the same in all of them. So the largest eigenvalue of the sum
over stretches is compared with that of sums in which half of the stretches, drawn at random, have
the other sign. Structure cancels there, and chance does not.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..components.eigen import leading_eigenpairs
from ..core.files import beside
from ..core.tables import read_table, write_table
from ..core.threads import one_blas_thread

log = logging.getLogger("popdesic")

#: Sums with random signs, as many of each.
FLIPS = 50
#: Deviations of these above their mean from which the largest eigenvalue is structure
#: (tests/bench/bench_painting.py).
LEAST_EXCESS = 6.0
#: Neither part of a division has fewer samples.
LEAST_SAMPLES = 5
#: Bytes of sums that are held at a time.
SUM_BYTES = 1 << 28
#: Fewer stretches have too few orders of signs: 20 of six, 70 of eight.
LEAST_STRETCHES = 8


class StructureTest(NamedTuple):
    """Samples that were tested for structure.

    Attributes
    ----------
    samples : int
    deviations : float
        Of the largest eigenvalue from the mean of those by chance, in their standard deviation.
    halves : tuple of int
        Samples of both parts, if they were divided; else empty.
    """

    samples: int
    deviations: float
    halves: tuple[int, ...]


def divide_samples(lengths: np.ndarray) -> np.ndarray:
    """Group of each sample, as of `find_groups`."""
    return find_groups(lengths)[0]


@one_blas_thread
def find_groups(lengths: np.ndarray) -> tuple[np.ndarray, list[StructureTest]]:
    """Groups of samples by divisions in two where there is structure, and the tests for it.

    Parameters
    ----------
    lengths : float array, (n_stretches, n_samples, n_samples)
        What samples (rows) copy from samples (columns).

    Returns
    -------
    group : int64 array, (n_samples,)
        From 0, in the order of the groups' first samples.
    tests : list of StructureTest
        In the order in which they were made; the first is of all samples.
    """
    found = np.zeros(lengths.shape[1], np.int64)
    waiting, tests = [], []
    if len(lengths) >= LEAST_STRETCHES:
        waiting = [np.arange(lengths.shape[1])]
    while waiting:
        members = waiting.pop()
        if len(members) < 2 * LEAST_SAMPLES:
            continue
        excess, second = _halves(lengths, members)
        halves: tuple[int, ...] = ()
        if second is not None:
            found[members[second]] = found.max() + 1
            waiting += [members[~second], members[second]]
            halves = (int((~second).sum()), int(second.sum()))
        tests.append(StructureTest(len(members), float(excess), halves))
    _, first, inverse = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse], tests


def write_groups(out: Path, lengths: np.ndarray) -> list[int]:
    """Add the group of each sample to the list beside a painting; returns their sizes.

    Parameters
    ----------
    out : Path
        Of `paint_file.paint_file`.
    lengths : float64 (n_stretches, n_samples, n_samples)
    """
    path = beside(str(out.with_suffix("")), ".samples.tsv")
    group = divide_samples(lengths)
    write_table(path, read_table(path).assign(group=group))
    return np.bincount(group).tolist()


def _halves(lengths: np.ndarray, members: np.ndarray) -> tuple[float, np.ndarray | None]:
    """Deviations above chance, and which samples are in the second half: None if undivided."""
    from .two_means_cpu import two_means

    n = len(members)
    (whole,) = _signed_sums(lengths, members, np.ones((1, len(lengths))))
    (top,), vector = leading_eigenpairs(whole, 1)
    signs = balanced_signs(len(lengths), n)
    by_chance, step = [], max(1, SUM_BYTES // (8 * n * n))
    for some in np.split(signs, range(step, FLIPS, step)):
        sums = _signed_sums(lengths, members, some)
        by_chance += [leading_eigenpairs(one, 1)[0][0] for one in sums]
    mean, deviation = np.mean(by_chance), np.std(by_chance)
    excess = (top - mean) / deviation if deviation > 0 else 0.0
    log.info("coancestry of %d samples: %.1f deviations above chance", n, excess)
    if excess < LEAST_EXCESS:
        return excess, None
    second = two_means(vector)
    if min(second.sum(), (~second).sum()) < LEAST_SAMPLES:
        return excess, None
    return excess, second


def balanced_signs(n_stretches: int, seed: int) -> np.ndarray:
    """Signs of stretches in random orders: float64 (FLIPS, n_stretches).

    Each sum of signs is 0; of an odd number of stretches it is 1 and -1 in turn.
    """
    places = np.arange(FLIPS)[:, None] + np.arange(n_stretches)
    return np.random.default_rng(seed).permuted(1 - 2.0 * (places % 2), axis=1)


def _signed_sums(lengths: np.ndarray, members: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Sums of the centred stretches, each with its sign: float64 (n_sums, n_members, n_members).

    One stretch at a time is in memory.
    """
    sums = np.zeros((len(signs), len(members), len(members)))
    for stretch, column in zip(lengths, signs.T, strict=True):
        centred = centred_coancestry(stretch[np.ix_(members, members)])
        for total, sign in zip(sums, column, strict=True):
            if sign > 0:
                total += centred
            else:
                total -= centred
    return sums


def centred_coancestry(lengths: np.ndarray) -> np.ndarray:
    """Symmetric and centred, float64 (n_samples, n_samples)."""
    both = (lengths.astype(np.float64) + lengths.T) / 2
    np.fill_diagonal(both, 0)
    np.fill_diagonal(both, both.sum(axis=0) / (len(both) - 1))
    mean = both.mean(axis=0)
    return both - mean - mean[:, None] + mean.mean()
