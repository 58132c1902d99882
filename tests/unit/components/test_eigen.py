"""Lanczos equals dense decompositions, at sizes where both are possible."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.components import principal_components
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits

from popdesic.components import eigen
from popdesic.components.eigen import leading_eigenpairs
from popdesic.components.scaling import principal_coordinates


@pytest.fixture
def iterate(monkeypatch):
    """Lanczos, also at sizes where the dense solver would be used."""

    def switch(on):
        monkeypatch.setattr(eigen, "ROWS_A_PAIR", 0 if on else 10**9)

    return switch


def structured(rng, n, groups=4, sites=900):
    """Relationship of samples of diverged groups, from standardised genotypes."""
    af = np.clip(rng.uniform(0.1, 0.9, sites) + rng.normal(0, 0.12, (groups, sites)), 0.02, 0.98)
    genotypes = rng.binomial(2, af[np.arange(n) % groups])
    genotypes = genotypes[:, np.ptp(genotypes, axis=0) > 0]  # others cannot be standardised
    mean = genotypes.mean(axis=0) / 2
    z = (genotypes - 2 * mean) / np.sqrt(2 * mean * (1 - mean))
    return z @ z.T / genotypes.shape[1]


@pytest.mark.parametrize("n", [60, 311])
def test_lanczos_finds_the_dense_components(rng, iterate, n):
    relationship = structured(rng, n)
    founders = rng.random(n) < 0.8
    found = {}
    for on in (False, True):
        iterate(on)
        found[on] = principal_components(relationship, founders, 10)
    for dense, iterated in zip(found[False], found[True], strict=True):
        # vectors rotate by the rounding error over the eigenvalue gap; scores are of order one
        np.testing.assert_allclose(iterated, dense, atol=1e-8)


def test_lanczos_gives_the_same_bytes_whatever_the_threads(rng, iterate):
    relationship = structured(rng, 150)
    iterate(True)
    bytes_of = []
    for threads in (1, 2, 1):
        with threadpool_limits(threads, "blas"):
            scores, explained = principal_components(relationship, np.ones(150, bool), 6)
        bytes_of.append(scores.tobytes() + explained.tobytes())
    assert len(set(bytes_of)) == 1


def test_few_components_of_degenerate_matrices(iterate):
    iterate(True)
    values, vectors = leading_eigenpairs(np.diag([3.0, 2, 2, 2, 1, 1, 0, 0, -5] + [0.0] * 40), 4)
    np.testing.assert_allclose(values, [3, 2, 2, 2], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)
    assert leading_eigenpairs(np.eye(3), 0)[1].shape == (3, 0)


@pytest.mark.parametrize("alpha", [1, 2, 6])
def test_coordinates_and_their_shares(rng, iterate, alpha):
    """Powers of distances have negative eigenvalues, so shares are of the trace."""
    points = rng.normal(size=(400, 8)) + 3 * (np.arange(400) % 3)[:, None]
    distances = squareform(pdist(points)) ** alpha
    found = {}
    for on in (False, True):
        iterate(on)
        found[on] = principal_coordinates(distances, 4)
    scale = np.abs(found[False][0]).max()
    np.testing.assert_allclose(found[True][0] / scale, found[False][0] / scale, atol=1e-7)
    centring = np.eye(400) - 1 / 400
    values = np.linalg.eigvalsh(-centring @ distances**2 @ centring / 2)
    for on in (False, True):
        np.testing.assert_allclose(found[on][1], values[::-1][:4] / values.sum(), rtol=1e-9)
