"""Passes of the relationship: the ways that make its sums give the same bytes."""

import numpy as np
import pytest

from popdesic.components import relationship
from popdesic.components.relationship import missing_in_both, relationship_to

SIZES = [40, 30]


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.02, 0.9])
def test_missing_in_both_of_every_pair(rate):
    rng = np.random.default_rng(int(1000 * rate))
    genotypes = np.where(rng.random((150, 70)) < rate, -1, 1).astype(np.int8)
    rows, left, right = np.arange(0, 150, 2), np.arange(25), np.arange(20, 70)
    sites, missing, both = missing_in_both(genotypes, rows, left, right)
    absent = genotypes[rows] < 0
    expected = absent[:, left].T.astype(int) @ absent[:, right].astype(int)
    assert sites == len(rows)
    np.testing.assert_array_equal(missing[0], absent[:, left].sum(axis=0))
    np.testing.assert_array_equal(missing[1], absent[:, right].sum(axis=0))
    np.testing.assert_array_equal(0 * expected if both is None else both, expected)


def test_products_of_each_pass_and_of_all_blocks_are_the_same(monkeypatch):
    """Byte by byte, on any number of threads; and as the formula says."""
    rng = np.random.default_rng(3)
    genotypes = rng.integers(-1, 3, (500, sum(SIZES))).astype(np.int8)
    af, axes = rng.uniform(0.05, 0.95, 500), rng.random(sum(SIZES)) < 0.7
    monkeypatch.setattr(relationship, "CHUNK_SITES", 64)
    monkeypatch.setattr(relationship, "BLOCK_SAMPLES", 16)
    found = []
    for small in (0, 1 << 23):
        monkeypatch.setattr(relationship, "SMALL_BYTES", small)
        for threads in (1, 3):
            given = lambda a, b: genotypes[a:b], SIZES, axes, af, threads
            found.append([part.tobytes() for part in relationship_to(*given)])
    assert all(one == found[0] for one in found)
    called = genotypes >= 0
    values = (
        np.where(called, (genotypes - 2 * af[:, None]), 0) / np.sqrt(2 * af * (1 - af))[:, None]
    )
    joint = called[:, ~axes].T.astype(int) @ called[:, axes].astype(int)
    rows, own = relationship_to(lambda a, b: genotypes[a:b], SIZES, axes, af)
    np.testing.assert_allclose(rows, values[:, ~axes].T @ values[:, axes] / joint, atol=1e-12)
    squares = (values[:, ~axes] ** 2).sum(axis=0) / called[:, ~axes].sum(axis=0)
    np.testing.assert_allclose(own, squares, rtol=1e-12)
