"""Components of samples of several ploidies: variances, a null, and places by population."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.components.loadings import site_loadings
from popdesic.components.noise_null import significant_axes
from popdesic.components.relationship import (
    Alleles,
    alt_frequency,
    relationship_among,
    relationship_to,
)

N_SITES = 3_000


def drawn(kinds: list[int], n: int, seed: int, apart: float = 0.0):
    """Two populations of independent sites, each with n samples of each ploidy."""
    rng = np.random.default_rng(seed)
    middle = rng.uniform(0.2, 0.8, N_SITES)
    away = rng.normal(0, apart, N_SITES) if apart else np.zeros(N_SITES)
    ploidy, population = np.tile(np.repeat(kinds, n), 2), np.repeat([0, 1], n * len(kinds))
    f = np.clip(middle + np.where(population == 1, 1, -1)[:, None] * away, 0.02, 0.98)
    genotypes = rng.binomial(ploidy[:, None], f)
    share = genotypes.sum(axis=0) / ploidy.sum()
    return genotypes[:, (share > 0) & (share < 1)], ploidy, population


def axes_of(genotypes: np.ndarray, ploidy: np.ndarray, weighted: bool = True):
    most = int(np.lcm.reduce(ploidy))
    shares = np.ascontiguousarray((genotypes * (most // ploidy)[:, None]).T.astype(np.int8))
    alleles, n = Alleles(most, ploidy), len(ploidy)
    af = alt_frequency(shares, most, ploidy)
    np.testing.assert_allclose(af, genotypes.sum(axis=0) / ploidy.sum(), rtol=1e-12)
    weights = alleles.weights if weighted else None

    def read(first, last):
        return shares[first:last]

    relationship = relationship_among(read, [n], af, 1, most, weights)
    sites = pd.DataFrame({"chrom": "1", "pos": 10_000_000 * np.arange(1, len(af) + 1)})
    options = {"most": most, "weights": weights}
    axes, tests, _ = significant_axes(relationship, read, [n], af, sites, "auto", **options)
    return alleles, read, af, axes, tests, relationship


@pytest.mark.parametrize("kinds", [[2, 4], [1, 2], [4, 6]])
def test_relationships_are_those_of_the_definition(kinds):
    genotypes, ploidy, _ = drawn(kinds, 4, seed=3, apart=0.1)
    alleles, read, af, axes, _, relationship = axes_of(genotypes, ploidy)
    k = ploidy[:, None]
    standard = (genotypes - k * af) / np.sqrt(k * af * (1 - af))
    np.testing.assert_allclose(relationship, standard @ standard.T / len(af), atol=1e-12)
    defining = np.arange(len(ploidy)) % 3 > 0
    given = read, [len(ploidy)], defining, af
    rows, own = relationship_to(*given, 1, None, alleles.most, alleles.weights)
    np.testing.assert_allclose(rows, relationship[~defining][:, defining], atol=1e-12)
    np.testing.assert_allclose(own, np.diag(relationship)[~defining], atol=1e-12)
    leading = axes.values[:2], axes.vectors[:, :2]
    found = site_loadings(read, af, *leading, alleles.most, alleles.weights)
    np.testing.assert_allclose(
        found, standard.T @ leading[1] / np.sqrt(leading[0] * len(af)), atol=1e-12
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_parts_ploidies_of_one_population(seed):
    genotypes, ploidy, _ = drawn([2, 8], 15, seed)
    assert axes_of(genotypes, ploidy)[4].count == 0


def test_populations_part_and_ploidies_lie_together():
    genotypes, ploidy, population = drawn([2, 4], 10, seed=5, apart=0.08)
    alleles, _, _, axes, tests, _ = axes_of(genotypes, ploidy)
    assert tests.count == 1
    whole = axes.vectors[:, 0] * np.sqrt(axes.values[0])
    first = alleles.as_shares(whole[:, None])[:, 0]

    def middle(scores):
        return [[scores[(population == p) & (ploidy == k)].mean() for k in (2, 4)] for p in (0, 1)]

    (a, b), (c, d) = middle(first)
    assert max(abs(a - b), abs(c - d)) < 0.05 * abs(a - c)
    (a, b), (c, d) = middle(whole)  # what `as_shares` is for
    np.testing.assert_allclose([b / a, d / c], np.sqrt(2), rtol=0.1)
