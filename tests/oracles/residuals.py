"""Slow, obvious versions of the scan of residuals: the oracle of its tests."""

from __future__ import annotations

import itertools

import numpy as np

from oracles import epistasis
from popdesic.epistasis.residual_cpu import residual_costs
from popdesic.epistasis.scan_data import Hits, ResidualData


def random_residuals(
    rng: np.random.Generator, n_sites: int, n_samples: int, *, missing: float = 0.0, effect=0.0
) -> tuple[ResidualData, np.ndarray]:
    """Scan data of random genotypes and levels, and the states, int8 (n_sites, n_samples).

    `effect`: levels that the product of the two first sites in scan order adds.
    """
    zeros = np.zeros(n_samples + 1, np.int64)
    scan, states, _ = epistasis.random_scan(
        rng, n_sites, (n_samples, 0), missing=missing, tables=(zeros, zeros)
    )
    spread = rng.normal(0, 30, n_samples)
    if effect and n_sites > 1:
        spread += effect * ((states[0] == 0) & (states[1] == 0))
    levels = np.clip(np.rint(128 + spread), 1, 255).astype(np.uint8)
    variance = max(float(levels.var()), 1.0)
    return ResidualData(scan.classes[0], levels, variance, scan.rank), states


def cells(states: np.ndarray, levels: np.ndarray, pair) -> tuple[np.ndarray, np.ndarray]:
    """Counts and sums of the nine cells, person by person."""
    counts, sums = np.zeros(9, np.int64), np.zeros(9, np.int64)
    index = {0: 0, 1: 1, 3: 2}
    for sample, level in enumerate(levels.tolist()):
        a, b = (int(states[site, sample]) for site in pair)
        if a != 2 and b != 2:
            counts[3 * index[a] + index[b]] += 1
            sums[3 * index[a] + index[b]] += level - 128
    return counts, sums


def statistic(states: np.ndarray, levels: np.ndarray, pair) -> tuple[float, int]:
    """What all cells explain beyond genotypic main effects, by least squares; and its df."""
    a, b = states[list(pair)]
    used = (a != 2) & (b != 2)
    a, b, y = a[used], b[used], levels[used].astype(float) - 128
    if not len(y):
        return 0.0, 0
    main = np.column_stack([x == state for x in (a, b) for state in (0, 1, 3)]).astype(float)
    whole = np.column_stack(
        [(a == s) & (b == t) for s, t in itertools.product((0, 1, 3), repeat=2)]
    ).astype(float)
    explained, rank = [], []
    for design in (main, whole):
        fitted, _, size, _ = np.linalg.lstsq(design, y, rcond=1e-10)
        explained.append(float(((design @ fitted) ** 2).sum()))
        rank.append(int(size))
    return explained[1] - explained[0], rank[1] - rank[0]


def scan(data: ResidualData, states: np.ndarray, first: range, top: int) -> Hits:
    """All pairs of a scan, table by table."""
    found = []
    for pair in itertools.combinations(range(data.n_sites), 2):
        counts, sums = cells(states, data.levels, pair)
        people = np.stack([counts, 0 * counts]).reshape(2, 3, 3)
        if pair[0] in first and (
            data.partners is None or epistasis.permits(data.partners, people, pair)
        ):
            cost = int(residual_costs(counts, sums, data.variance)[0])
            found.append((cost, *sorted(int(data.rank[site]) for site in pair), *pair))
    best = sorted(found)[:top]
    return Hits(
        np.array([row[0] for row in best], np.int64),
        np.array([row[-2:] for row in best], np.int32).reshape(-1, 2),
    )
