"""Genotypes by look-up are what the formula gives, to the last bit."""

import itertools

import numpy as np
import pytest

from popdesic.cohort.standard_genotypes_cpu import (
    list_missing,
    standard_columns,
    standard_rows,
    value_table,
)
from popdesic.relatives.expected_genotypes_cpu import residuals

SHAPES = [(1, 1), (2, 63), (63, 65), (64, 64), (129, 130), (300, 7)]


def drawn(n_sites: int, n: int, seed: int):
    """Genotypes with missing ones, and frequencies of which some leave a site out."""
    rng = np.random.default_rng(seed)
    genotypes = rng.integers(0, 3, (n_sites, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.1] = -1
    af = rng.choice([0.0, 1.0, np.nan, *rng.uniform(0.01, 0.99, 20)], n_sites)
    return rng, genotypes, af


def by_formula(genotypes: np.ndarray, af: np.ndarray) -> np.ndarray:
    """(g - 2p) / sqrt(2p (1 - p)) of sites that vary, 0 where missing."""
    scale = np.sqrt(2 * af * (1 - af))
    use = scale > 0
    values = (genotypes[use].astype(np.float64) - 2 * af[use, None]) / scale[use, None]
    values[genotypes[use] < 0] = 0.0
    return values


@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_those_of_the_formula(shape):
    rng, genotypes, af = drawn(*shape, seed=shape[1])
    expected = by_formula(genotypes, af)
    rows, table = value_table(af)
    columns = np.flatnonzero(rng.random(shape[1]) < 0.5)
    for given in (genotypes, np.asfortranarray(genotypes)):
        np.testing.assert_array_equal(standard_rows(given, rows, table), expected)
        some = standard_columns(given, rows, table, columns)
        np.testing.assert_array_equal(some, expected[:, columns])
        assert some.T.flags.c_contiguous  # as `values[:, columns]`: sums depend on it


@pytest.mark.parametrize("shape", SHAPES)
def test_missing_are_listed_site_by_site(shape):
    rng, genotypes, af = drawn(*shape, seed=2 * shape[1])
    rows, _ = value_table(af)
    columns = np.flatnonzero(rng.random(shape[1]) < 0.7)
    starts, items = list_missing(genotypes, rows, columns)
    expected = [np.flatnonzero(genotypes[row, columns] < 0).tolist() for row in rows]
    found = [items[a:b].tolist() for a, b in itertools.pairwise(starts)]
    assert found == expected


@pytest.mark.parametrize("n_axes", [1, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_residuals_beside_expected_genotypes(shape, n_axes):
    """Whole numbers, person by person; 0 where nothing is expected, and for people who pad."""
    rng, genotypes, _ = drawn(*shape, seed=3 * shape[1])
    n_sites, n = shape
    coefficients = rng.uniform(-0.5, 0.9, (n_sites, n_axes))
    coefficients[rng.random(n_sites) < 0.1] = np.nan
    basis = rng.uniform(0.2, 1, (n, n_axes))
    mu = sum(coefficients[:, k, None] * basis[:, k] for k in range(n_axes))
    with np.errstate(invalid="ignore"):
        counts = (mu >= 0.01) & (mu <= 0.99) & (genotypes >= 0)
    mu = np.where(counts, mu, 0.5)
    expected = (
        np.where(counts, np.rint((genotypes - 2 * mu) * 1024), 0),
        np.where(counts, np.rint(np.sqrt(mu * (1 - mu)) * 4094), 0),
    )
    found = residuals(genotypes, coefficients, basis, (1024, 4094), (0.01, 0.99))
    for array, one in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array[:n], one.T)
        assert not array[n:].any()
