"""Cohorts with shared stretches, and windows, for tests of identity by descent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.terms import Planes
from popdesic.ibd.candidates import Windows
from popdesic.ibd.find_candidates import find_candidates


def draw_pair_of_cohorts(rng, n_a: int, n_b: int, n_sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Genotypes int8 (n_a, n_sites), (n_b, n_sites): rare to common alleles, some missing.

    The last sample of either cohort is missing everywhere, the one before it never varies.
    """
    share = rng.choice([0.05, 0.15, 0.4], n_sites)
    cohorts = []
    for n in (n_a, n_b):
        genotypes = (rng.random((2, n, n_sites)) < share).sum(axis=0).astype(np.int8)
        genotypes[rng.random(genotypes.shape) < rng.choice([0, 0.05])] = -1
        if n > 2:
            genotypes[-1], genotypes[-2] = -1, 0
        cohorts.append(genotypes)
    return cohorts[0], cohorts[1]


def draw_windows(rng, n_sites: int, width: int, masked: float = 0.15, contigs: int = 3) -> Windows:
    """Windows of `width` sites on a few contigs of random lengths, the last ones shorter."""
    cuts = np.sort(rng.choice(np.arange(1, n_sites + 1), min(contigs - 1, n_sites), replace=False))
    bounds = np.unique([0, *cuts, n_sites])
    rows = [
        (contig, site, min(width, end - site))
        for contig, (start, end) in enumerate(pairwise(bounds))
        for site in range(start, end, width)
    ]
    contig, first, n = np.array(rows, np.int64).T
    left, right = np.cumsum(rng.random(2 * len(rows))).reshape(-1, 2).T
    return Windows(contig, first, n, left, right, rng.random(len(rows)) < masked)


def check_candidates(backend, rng, a: Planes, b: Planes, windows: Windows) -> int:
    """A backend's candidates are the bytes of the CPU's; how many there were.

    Of many narrow windows, only long runs without an error are asked for: others are too many.
    """
    many = len(windows.contig) > 100
    limits = {
        "tolerance": 0 if many else int(rng.integers(0, 3)),
        "min_length": float(rng.choice([20, 40] if many else [0, 0.5, 2])),
        "most": 1 << 22,
    }
    n_found = 0
    for other in (None, b):
        want = find_candidates(CpuBackend(2), a, other, windows, **limits)
        found = find_candidates(backend, a, other, windows, **limits)
        for name in ("i", "j", "first", "last"):
            ours, theirs = getattr(found, name), getattr(want, name)
            assert ours.dtype == theirs.dtype == np.int32
            np.testing.assert_array_equal(ours, theirs, name)
        n_found += len(want.i)
    return n_found
