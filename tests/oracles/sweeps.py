"""iHS, nSL, XP-EHH and Garud's H by their definitions, pair by pair and site by site."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import log, nan

import numpy as np


def area(rows: list[str], site: int, steps: np.ndarray, way: int) -> float:
    """Area under the homozygosity of haplotypes from a site to where it is at most 0.05."""
    n, end, total, before = len(rows), site, 0.0, None
    while 0 <= end < len(rows[0]):
        low, high = min(site, end), max(site, end)
        counts = Counter(row[low : high + 1] for row in rows)
        now = sum(c * (c - 1) for c in counts.values()) / (n * (n - 1))
        if before is not None:
            total += steps[end if way < 0 else end - 1] * (before + now) / 2
        elif now <= 0.05:
            return 0.0
        if now <= 0.05:
            return total
        before, end = now, end + way
    return nan


def shared(first: str, second: str, site: int) -> int:
    """Equal sites of two haplotypes on both sides of a site, which counts on each."""
    right = next((k for k in range(site, len(first)) if first[k] != second[k]), len(first))
    left = next((k for k in range(site, -1, -1) if first[k] != second[k]), -1)
    return right - site + site - left


def ratio(over: float, under: float) -> float:
    return log(over / under) if over > 0 and under > 0 else nan


def scores(alleles: np.ndarray, steps: np.ndarray, site: int) -> tuple[float, float]:
    """iHS and nSL of a site, not standardised; alleles (n_sites, n_haplotypes)."""
    rows = ["".join(map(str, column)) for column in alleles.T]
    areas, lengths = [], []
    for allele in "10":
        own = [row for row in rows if row[site] == allele]
        pairs = [shared(a, b, site) for a, b in combinations(own, 2)]
        lengths.append(np.mean(pairs) if pairs else nan)
        both = [area(own, site, steps, way) for way in (-1, 1)] if pairs else [nan]
        areas.append(sum(both))
    return ratio(*areas), ratio(*lengths)


def between(first: np.ndarray, second: np.ndarray, steps: np.ndarray, site: int) -> float:
    """XP-EHH of a site, not standardised."""
    areas = []
    for alleles in (first, second):
        rows = ["".join(map(str, column)) for column in alleles.T]
        areas.append(sum(area(rows, site, steps, way) for way in (-1, 1)))
    return ratio(*areas)


def garud(alleles: np.ndarray) -> tuple[float, float, float, float]:
    """H1, H12, H123 and H2/H1 of a window."""
    counts = Counter(map(bytes, alleles.T.astype(np.uint8)))
    p = [count / alleles.shape[1] for _, count in counts.most_common()] + [0.0, 0.0]
    h1 = sum(x * x for x in p)
    h12 = (p[0] + p[1]) ** 2 + sum(x * x for x in p[2:])
    h123 = (p[0] + p[1] + p[2]) ** 2 + sum(x * x for x in p[3:])
    return h1, h12, h123, (h1 - p[0] ** 2) / h1
