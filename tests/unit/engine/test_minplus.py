"""The CPU's min-plus product and base case equal broadcasting and the triple loop."""

import numpy as np
import pytest
from oracles import reference

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.minplus import INFINITY_INT32, infinity

DTYPES = (np.int32, np.float32, np.float64)
#: Sizes around register tiles (8 rows; 24, 48 columns), panels (depth 128), blocks (128 rows).
SIZES = (
    (1, 1, 1),
    (1, 5, 2),
    (2, 1, 3),
    (7, 8, 9),
    (8, 24, 48),
    (9, 25, 49),
    (16, 127, 33),
    (33, 128, 130),
    (65, 129, 47),
    (129, 130, 131),
    (130, 257, 400),
    (3, 2, 800),
)


@pytest.fixture(scope="module")
def backend():
    return CpuBackend(2)


def draw(rng, shape, dtype, holes: float = 0.1) -> np.ndarray:
    """Weights, some infinite; integers, so that float sums are exact too."""
    weights = rng.integers(0, 2**20, shape).astype(dtype)
    weights[rng.random(shape) < holes] = infinity(np.dtype(dtype))
    return weights


def expected(c, a, b) -> np.ndarray:
    """The product in float64 with a true infinity, converted back to the type of c."""
    wide = [np.where(x == infinity(x.dtype), np.inf, x.astype(np.float64)) for x in (c, a, b)]
    found = np.minimum(wide[0], reference.minplus(wide[1], wide[2]))
    return np.where(np.isinf(found), infinity(c.dtype), found).astype(c.dtype)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_product(backend, dtype, size):
    m, k, n = size
    rng = np.random.default_rng(sum(size))
    a, b = draw(rng, (m, k), dtype), draw(rng, (k, n), dtype)
    for c in (draw(rng, (m, n), dtype), np.full((m, n), infinity(np.dtype(dtype)), dtype)):
        wanted = expected(c, a, b)
        backend.minplus().multiply(c, a, b)
        assert c.dtype == dtype
        np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_and_transposes(backend, dtype):
    rng = np.random.default_rng(1)
    whole = draw(rng, (300, 300), dtype)
    for a, b, c in [
        (whole[:40, :70], whole[100:170, 5:60], whole[200:240, 200:255]),
        (whole[:70, :40].T, whole[5:60, 100:170].T, whole[200:255, 200:240].T),
        (whole[:80:2, :140:2], whole[100:170, 120:10:-2], whole[240:200:-1, 200:255]),
    ]:
        before = whole.copy()
        wanted = expected(c, a, b)
        outside = np.ones(whole.shape, bool)
        outside[200:256, 200:256] = False
        backend.minplus().multiply(c, a, b)
        np.testing.assert_array_equal(c, wanted)
        np.testing.assert_array_equal(whole[outside], before[outside])
        whole[:] = before


@pytest.mark.parametrize("n", [1, 2, 33, 64, 129, 200])
@pytest.mark.parametrize("dtype", DTYPES)
def test_symmetric_product(backend, dtype, n):
    rng = np.random.default_rng(n)
    b = draw(rng, (n, 50), dtype)
    c = draw(rng, (n, n), dtype)
    c = np.minimum(c, c.T)
    wanted = expected(c, b, b.T)
    backend.minplus().multiply(c, b, b.T, symmetric=True)
    upper = np.triu_indices(n)
    np.testing.assert_array_equal(c[upper], wanted[upper])
    backend.minplus().mirror(c)
    np.testing.assert_array_equal(c, wanted)


def test_infinity_of_int32_does_not_overflow(backend):
    assert INFINITY_INT32 == 2**30 - 1
    top = np.full((20, 20), INFINITY_INT32, np.int32)
    c = top.copy()
    backend.minplus().multiply(c, top, top)
    assert (c == INFINITY_INT32).all()
    largest = np.full((20, 20), INFINITY_INT32 - 1, np.int32)
    backend.minplus().multiply(c, largest, largest)
    assert (c == INFINITY_INT32).all(), "a sum beyond infinity is no edge"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_agree_in_floats(dtype):
    rng = np.random.default_rng(2)
    a, b = (rng.random(shape).astype(dtype) for shape in ((150, 140), (140, 300)))
    results = []
    for threads in (1, 2, 64):
        c = np.full((150, 300), np.inf, dtype)
        CpuBackend(threads).minplus().multiply(c, a, b)
        results.append(c)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    # one rounding of one sum
    np.testing.assert_array_equal(results[0], reference.minplus(a, b))


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_products_change_nothing(backend, shape):
    m, k, n = shape
    c = np.full((m, n), 5, np.int32)
    backend.minplus().multiply(c, np.zeros((m, k), np.int32), np.zeros((k, n), np.int32))
    assert (c == 5).all()


def test_one_dtype_is_needed(backend):
    a = np.zeros((2, 2), np.float32)
    with pytest.raises(ValueError, match="one dtype"):
        backend.minplus().multiply(a, a, a.astype(np.float64))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
@pytest.mark.parametrize("dtype", DTYPES)
def test_base_case(backend, dtype, n):
    rng = np.random.default_rng(n)
    w = draw(rng, (n, n), dtype, holes=0.5)
    w = np.minimum(w, w.T)
    np.fill_diagonal(w, 0)
    wide = np.where(w == infinity(w.dtype), np.inf, w.astype(np.float64))
    wanted = reference.floyd_warshall(wide)
    backend.minplus().close_block(w)
    np.testing.assert_array_equal(np.where(w == infinity(w.dtype), np.inf, w), wanted)
