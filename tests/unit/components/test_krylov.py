"""Leading eigenvectors from products alone: those of LAPACK."""

import numpy as np
import pytest

from popdesic.components import krylov
from popdesic.components.krylov import Krylov
from popdesic.engine import columns_cpu
from popdesic.engine.columns import Bases, own_lengths
from popdesic.engine.columns_cpu import CpuColumns


def symmetric(rng, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with these eigenvalues, and its eigenvectors in their order."""
    vectors = np.linalg.qr(rng.normal(size=(len(values),) * 2))[0]
    return (vectors * values) @ vectors.T, vectors


def crowd(rng, n: int, top: list[float]) -> np.ndarray:
    """Components that stand out from many that do not."""
    return np.sort(np.concatenate([top, rng.uniform(0.8, 1.3, n - len(top))]))[::-1]


@pytest.mark.parametrize("top", [[30, 20, 12, 5, 2], [9, 8.99, 8.98, 2], [4, 4, 4], [1.5]])
def test_components_that_stand_out_are_those_of_eigh(top):
    rng = np.random.default_rng(len(top))
    values = crowd(rng, 700, top)
    matrix, vectors = symmetric(rng, values)
    space = Krylov(lambda block: matrix @ block, rng.normal(size=(700, 16)), CpuColumns())
    assert space.search(len(top))
    found, own, _ = space.pairs(len(top))
    np.testing.assert_allclose(found, values[: len(top)], rtol=1e-5)
    if len(set(top)) == len(top):
        r = np.abs((own * vectors[:, : len(top)]).sum(axis=0))
        assert (r >= 0.99999).all(), r
    share = np.linalg.norm(vectors[:, : len(top)].T @ own, axis=0)
    assert (share >= 0.99999).all(), "equal values: the same space"
    assert space.passes <= 20


def test_a_restart_keeps_what_was_found(monkeypatch):
    monkeypatch.setattr(krylov, "BASIS_COLUMNS", 96)
    rng = np.random.default_rng(3)
    values = crowd(rng, 600, [1.45, 1.4])
    matrix, vectors = symmetric(rng, values)
    space = Krylov(lambda block: matrix @ block, rng.normal(size=(600, 16)), CpuColumns())
    assert space.search(2) and space.passes > 6
    found, own, _ = space.pairs(2)
    assert len(space.values) <= 96
    np.testing.assert_allclose(found, values[:2], rtol=1e-5)
    assert (np.abs((own * vectors[:, :2]).sum(axis=0)) >= 0.99999).all()


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 40])
def test_few_rows_and_few_directions_are_exact(n):
    rng = np.random.default_rng(n)
    rank = max(1, n // 2)
    data = rng.normal(size=(n, rank))
    matrix = data @ data.T
    space = Krylov(lambda block: matrix @ block, rng.normal(size=(n, 16)), CpuColumns())
    assert space.search(rank)
    found = space.values[:rank]
    np.testing.assert_allclose(found, np.linalg.eigvalsh(matrix)[::-1][:rank], rtol=1e-8)


def test_the_search_ends_where_nothing_stands_out():
    rng = np.random.default_rng(7)
    matrix, _ = symmetric(rng, crowd(rng, 900, []))
    space = Krylov(lambda block: matrix @ block, rng.normal(size=(900, 16)), CpuColumns())
    assert not space.search(20, most_passes=6)
    assert space.passes == 6
    assert 1.28 < space.values[0] <= 1.3


@pytest.mark.parametrize(("n", "steps"), [(40, 3), (2049, 9), (5000, 14)])
def test_each_column_has_an_orthonormal_basis(n, steps):
    rng, found = np.random.default_rng(8), []
    vectors = rng.normal(size=(steps, n, 8)) + 3
    for threads in (1, 3):
        own = CpuColumns(threads)
        first = vectors[0] / own_lengths(own, vectors[0])
        bases = Bases(own, first, steps)
        for vector in vectors[1:]:
            left = vector.copy()
            bases.subtract(left)
            bases.add(left / own_lengths(own, left))
        rows = bases._rows
        for column in range(8):
            inner = rows[:, :, column] @ rows[:, :, column].T
            np.testing.assert_allclose(inner, np.eye(steps), atol=1e-13)
            # Each spans what the vectors so far span.
            spanned = np.linalg.qr(vectors[:, :, column].T)[0]
            along = np.abs(spanned.T @ rows[:, :, column].T)
            np.testing.assert_allclose(along, np.eye(steps), atol=1e-9)
        found.append(rows.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("rows", [7, 64, 500])
def test_blocks_of_rows_find_the_same_on_any_number_of_threads(monkeypatch, rows):
    """Also where the last block has fewer rows than a pass has vectors."""
    rng, found = np.random.default_rng(5), []
    matrix, vectors = symmetric(rng, crowd(rng, 513, [9, 5, 3]))
    start = rng.normal(size=(513, 16))
    monkeypatch.setattr(krylov, "BASIS_COLUMNS", 96)
    for threads in (1, 3):
        monkeypatch.setattr(columns_cpu, "ROWS", rows)
        space = Krylov(lambda block: matrix @ block, start, CpuColumns(threads))
        assert space.search(3)
        own = space.pairs(3)
        found.append(b"".join(part.tobytes() for part in own))
        assert (np.abs((own[1] * vectors[:, :3]).sum(axis=0)) >= 0.99999).all()
        basis = space._basis.get()
        np.testing.assert_allclose(basis.T @ basis, np.eye(len(space._small)), atol=1e-12)
    assert found[0] == found[1]
