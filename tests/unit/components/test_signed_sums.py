"""Signed sums beside numpy's."""

import numpy as np
import pytest

from popdesic.components.signed_sums_cpu import add_signed


@pytest.mark.parametrize(("draws", "matrices", "n"), [(1, 1, 1), (3, 2, 17), (2, 5, 40)])
@pytest.mark.parametrize("threads", [1, 3])
def test_upper_triangles_are_signed_sums(draws, matrices, n, threads):
    rng = np.random.default_rng(n)
    # whole numbers: sums are exact in any order
    symmetric = rng.integers(-99, 99, (matrices, n, n)).astype(float)
    signs = rng.choice([-1.0, 1.0], (draws, matrices, n))
    total = rng.integers(0, 9, (draws, n, n)).astype(float)
    upper = np.triu(np.ones((n, n), bool))
    expected = total + np.einsum("dti,dtj,tij->dij", signs, signs, symmetric) * upper
    add_signed(total, symmetric, signs, threads)
    np.testing.assert_array_equal(total, expected)
