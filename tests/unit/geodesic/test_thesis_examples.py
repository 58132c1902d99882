"""The worked examples of the thesis on genome distances and R-Kleene, appendices A.1 and A.2."""

import numpy as np
import pytest

import popdesic
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.geodesic.closure import close_paths

#: A.1: three people at two sites, and the Fermat graph at alpha 2 with its shortest paths.
GENOTYPES = np.array([[0, 0], [1, 0], [2, 1]])
WEIGHTS = np.array([[0, 1, 5], [1, 0, 2], [5, 2, 0]])
LENGTHS = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]])


def test_a_1_from_genotypes_to_the_closure():
    distances = popdesic.pairwise_distance(GENOTYPES, device="cpu")
    np.testing.assert_array_equal(distances, np.sqrt(WEIGHTS))
    np.testing.assert_array_equal(distances.round(2), [[0, 1, 2.24], [1, 0, 1.41], [2.24, 1.41, 0]])
    np.testing.assert_allclose(popdesic.fermat_weights(distances, alpha=2), WEIGHTS, rtol=1e-15)
    closure = popdesic.shortest_paths(distances, alpha=2, device="cpu")
    np.testing.assert_allclose(closure.lengths, LENGTHS, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_a_2_step_by_step(dtype):
    """Steps 3 to 6 with A = [0]: our product takes the minimum with what is there."""
    product = CpuBackend(1).minplus().multiply
    h = WEIGHTS.astype(dtype)
    a, b, c, d = h[:1, :1].copy(), h[:1, 1:].copy(), h[1:, :1].copy(), h[1:, 1:].copy()
    outer = np.full_like(d, 100)
    product(outer, c, b)  # step 4
    np.testing.assert_array_equal(outer, [[2, 6], [6, 10]])
    product(d, c, b)
    np.testing.assert_array_equal(d, [[0, 2], [2, 0]])
    product(b, b.copy(), d)  # step 6
    np.testing.assert_array_equal(b, [[1, 3]])
    product(c, d, c.copy())
    np.testing.assert_array_equal(c, [[1], [3]])
    product(a, b, c)
    np.testing.assert_array_equal(a, [[0]])
    np.testing.assert_array_equal(np.block([[a, b], [c, d]]), LENGTHS)
    close_paths(h, CpuBackend(1))
    np.testing.assert_array_equal(h, LENGTHS)
