"""Statistics of samples of any ploidy by their definitions: one pair and one site at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def frequency_sums(genotypes, ploidy) -> tuple[list, list, np.ndarray]:
    """Sums of |a/p - b/q| and of its square as fractions, and called sites, of all pairs."""
    n = len(genotypes)
    linear = [[Fraction(0)] * n for _ in range(n)]
    squared = [[Fraction(0)] * n for _ in range(n)]
    called = np.zeros((n, n), np.int64)
    for i in range(n):
        for j in range(n):
            for a, b in zip(genotypes[i].tolist(), genotypes[j].tolist(), strict=True):
                if a < 0 or b < 0:
                    continue
                difference = abs(Fraction(a, int(ploidy[i])) - Fraction(b, int(ploidy[j])))
                linear[i][j] += difference
                squared[i][j] += difference**2
                called[i, j] += 1
    return linear, squared, called


def draw_of_ploidy(rng, ploidy, n_sites: int, missing: float) -> np.ndarray:
    """Genotypes 0 to the ploidy of each sample, -1 where missing: int8 (n_samples, n_sites)."""
    frequency = rng.uniform(0, 1, n_sites)
    found = rng.binomial(np.asarray(ploidy)[:, None], frequency[None, :])
    found[rng.random(found.shape) < missing] = -1
    return found.astype(np.int8)
