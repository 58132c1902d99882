"""The GPU's min-plus products and closures have the bytes of the CPU and equal the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import reference
from support.operands import draw_lengths, draw_weights, wide

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.minplus import infinity
from popdesic.geodesic.closure import close_matrix, close_paths, insert_paths

pytestmark = pytest.mark.gpu

DTYPES = ("int32", "int64", "float32", "float64")
CPU = CpuBackend(8)


@pytest.fixture(scope="module")
def backend(gpu_device):
    from popdesic.engine.backend_gpu import GpuBackend

    return GpuBackend()


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 2, 800), (127, 33, 129), (128, 32, 128), (130, 257, 400)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_product(backend, dtype, shape):
    m, k, n = shape
    rng = np.random.default_rng(sum(shape))
    a, b, c = (draw_lengths(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
    start, mine = c.copy(), c.copy()
    CPU.minplus().multiply(mine, a, b)
    backend.minplus().multiply(c, a, b)
    assert c.tobytes() == mine.tobytes()
    wanted = reference.minplus(wide(a), wide(b))
    wanted = np.where(wanted >= infinity(dtype), np.inf, wanted)
    np.testing.assert_allclose(wide(c), np.minimum(wide(start), wanted), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_and_transposes(backend, dtype):
    rng = np.random.default_rng(1)
    whole = draw_lengths(rng, (300, 300), dtype)
    for a, b, c in [
        (whole[:40, :70], whole[100:170, 5:60], whole[200:240, 200:255]),
        (whole[:70, :40].T, whole[5:60, 100:170].T, whole[200:255, 200:240].T),
        (whole[:80:2, :140:2], whole[100:170, 120:10:-2], whole[240:200:-1, 200:255]),
    ]:
        before, mine = whole.copy(), c.copy()
        CPU.minplus().multiply(mine, a, b)
        backend.minplus().multiply(c, a, b)
        np.testing.assert_array_equal(c, mine)
        outside = np.ones(whole.shape, bool)
        outside[200:256, 200:256] = False
        np.testing.assert_array_equal(whole[outside], before[outside])
        whole[:] = before


@pytest.mark.parametrize("n", [1, 64, 128, 129, 512, 700, 1300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_closure_has_the_bytes_of_the_cpu(backend, dtype, n):
    weights = draw_weights(np.random.default_rng(n), n, dtype, 0.3)
    mine, theirs = weights.copy(), weights.copy()
    close_paths(mine, CPU)
    held = backend.minplus().hold(weights)
    close_paths(held, backend)
    backend.minplus().fetch(held, theirs)
    assert theirs.tobytes() == mine.tobytes()
    if n < 200 and dtype == "float64":
        np.testing.assert_allclose(
            wide(theirs), reference.floyd_warshall(wide(weights)), rtol=1e-14
        )


@pytest.mark.parametrize("staged", [1, 100_000, 32 << 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_goes_and_comes_in_another_order(backend, monkeypatch, dtype, staged):
    """In ranges of one row, of some and of all; random orders, and what was sent is closed."""
    from popdesic.engine import matrix_copy_gpu

    monkeypatch.setattr(matrix_copy_gpu, "STAGED_BYTES", staged)
    rng, kernels = np.random.default_rng(3), backend.minplus()
    for n in (1, 130, 777):
        weights, order = draw_weights(rng, n, dtype, 0.3), rng.permutation(n)
        held, found = kernels.hold(weights, order), np.full_like(weights, 7)
        assert held.get()[:n, :n].tobytes() == weights[np.ix_(order, order)].tobytes()
        kernels.fetch(held, found, order)
        assert found.tobytes() == weights.tobytes()
        if dtype.startswith("int"):  # sums of floats depend on the order of panels
            closed, _ = close_matrix(weights, order, backend)
            close_paths(weights, CPU)
            assert closed.tobytes() == weights.tobytes()


@pytest.mark.parametrize("new", [1, 128, 300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_insertion(backend, dtype, new):
    old = 640
    n = old + new
    weights = draw_weights(np.random.default_rng(new), n, dtype, 0.3)
    mine = weights.copy()
    close_paths(mine[:old, :old], CPU)
    held = backend.minplus().hold(mine)
    insert_paths(mine, old, CPU)
    insert_paths(held, old, backend)
    theirs = np.empty_like(mine)
    backend.minplus().fetch(held, theirs)
    assert theirs.tobytes() == mine.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pruning_skips_work_and_changes_nothing(backend, dtype):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(1600, 40)) + 4 * rng.normal(size=(16, 40)).repeat(100, axis=0)
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    weights = (squared * 2**16).astype(dtype)
    np.fill_diagonal(weights, 0)
    results = []
    for prune in (False, True):
        held = backend.minplus().hold(weights)
        work = close_paths(held, backend, prune=prune)
        out = np.empty_like(weights)
        backend.minplus().fetch(held, out)
        results.append(out)
    assert work.skipped_share > 0.1
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_matrices_beyond_the_device(gpu_device, dtype):
    """With little device memory the matrix stays in host memory and is processed in blocks."""
    from popdesic.engine.backend_gpu import GpuBackend

    n = 1700
    weights = draw_weights(np.random.default_rng(8), n, dtype, 0.3)
    mine, theirs = weights.copy(), weights.copy()
    close_paths(mine, CPU)
    small = GpuBackend(device_bytes=8 << 20)
    small.host_panel = 640
    assert small.minplus().hold(theirs) is theirs
    close_paths(theirs, small)
    assert theirs.tobytes() == mine.tobytes()
