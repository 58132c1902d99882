"""Leading eigenpairs by passes of blocks of vectors: those of LAPACK, whatever the spectrum."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.components import eigen
from popdesic.components.eigen import few_eigenpairs
from popdesic.core.threads import one_blas_thread

N, K = 700, 6


@pytest.fixture
def blocks(monkeypatch):
    """Blocks of vectors for small matrices too, and whether they were enough."""
    monkeypatch.setattr(eigen, "MANY_ROWS", 100)
    monkeypatch.setattr(eigen, "ROWS_A_PAIR", 10)
    monkeypatch.setattr(eigen, "COLUMNS", 8)
    found, plain = [], eigen._by_blocks

    def watched(*arguments):
        found.append(plain(*arguments))
        return found[-1]

    monkeypatch.setattr(eigen, "_by_blocks", watched)
    return found


def draw(values: np.ndarray) -> np.ndarray:
    """A symmetric matrix with these eigenvalues."""
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(N, N)))[0]
    return (turn * values) @ turn.T


def noise(m: int) -> np.ndarray:
    """Eigenvalues from 1 to 0 with the edge of random matrices."""
    return 1 - (np.arange(m) / m) ** (2 / 3)


SPECTRA = {
    "structure over noise": np.r_[9.0, 5.0, 3.0, noise(N - 3)],
    "negative ones are larger": np.r_[4.0, 3.0, noise(N - 42), np.linspace(-9, -1, 40)],
    "equal ones": np.r_[2.0, 2.0, 2.0, noise(N - 3)],
    "few": np.r_[3.0, 2.0, 1.0, np.zeros(N - 3)],
}


@pytest.mark.parametrize("name", SPECTRA)
def test_blocks_find_the_pairs_of_lapack(blocks, name):
    values = SPECTRA[name]
    matrix = draw(values)
    found, vectors = one_blas_thread(few_eigenpairs)(matrix, K)
    assert blocks[0] is not None
    np.testing.assert_allclose(found, np.sort(values)[::-1][:K], atol=1e-8 * values[0])
    residuals = np.linalg.norm(matrix @ vectors - vectors * found, axis=0)
    # the allowed residual, or that of an angle among gaps of at most the largest eigenvalue
    assert residuals.max() <= max(eigen.ANGLE, eigen.FLOOR) * values[0]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(K), atol=1e-12)


def test_bytes_do_not_depend_on_threads(blocks):
    matrix = draw(SPECTRA["structure over noise"])
    one, three = (one_blas_thread(few_eigenpairs)(matrix, K, threads) for threads in (1, 3))
    assert [part.tobytes() for part in one] == [part.tobytes() for part in three]
    assert len(blocks) == 2


def test_what_blocks_do_not_find_is_left_to_single_vectors(blocks, monkeypatch):
    monkeypatch.setattr(eigen, "MOST_PASSES", 4)
    values = SPECTRA["structure over noise"]
    found, _ = few_eigenpairs(draw(values), K)
    assert blocks == [None]
    np.testing.assert_allclose(found, values[:K], atol=1e-9)


def test_zeros_and_a_multiple_of_the_identity(blocks):
    assert (few_eigenpairs(np.zeros((N, N)), K)[0] == 0).all()
    np.testing.assert_allclose(few_eigenpairs(3 * np.eye(N), K)[0], 3)
    assert None not in blocks
