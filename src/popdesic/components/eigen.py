"""Leading eigenvectors of large symmetric matrices, with the same bytes in every run.

LAPACK decomposes a matrix in about n**3 operations. Where few pairs are asked for, ARPACK's Lanczos
iteration (Lehoucq, Sorensen and Yang 1998) is faster: one matrix-vector product, n**2 operations,
per step, from a start vector that depends only on n. Callers limit BLAS to one thread to fix the
order of sums; threads share the rows of a product in blocks that do not depend on their number.

Reading a large matrix takes longer than multiplying it. For few pairs (`few_eigenpairs`) each pass
multiplies COLUMNS vectors: block Lanczos iteration (Golub and Underwood 1977) with full
orthogonalisation. A pair is found when its residual r says that its vector lies within ANGLE of the
true one: the sine of the angle is at most r / gap, with the gap to the next eigenvalue (Davis and
Kahan 1970). Pairs among many almost equal eigenvalues have no direction of their own; there a
residual of FLOOR of the largest eigenvalue is enough.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np

from ..core.threads import run_tasks

#: Lanczos is used above this many rows for each pair: 10 pairs of 4 000 rows take 0.3 s instead of
#: 5.5, 60 pairs 4.6 s.
ROWS_A_PAIR = 60
#: From so many rows on, passes multiply COLUMNS vectors, until vectors are found within ANGLE or
#: FLOOR (see above), MOST_PASSES at most: if that is not enough, `leading_eigenpairs` follows.
MANY_ROWS, COLUMNS, MOST_PASSES = 4_000, 16, 96
ANGLE, FLOOR = 1e-4, 1e-6
#: Passes before the first look at what is found, and between two.
LOOK = 4
#: Rows of a matrix that one task multiplies; the last task has up to twice as many, because BLAS
#: sums a single row in another order.
ROWS_A_TASK = 256


def row_blocks(n: int) -> list[tuple[int, int]]:
    """Bounds of blocks of ROWS_A_TASK rows or, the last, of up to twice as many."""
    starts = [*range(0, max(n - ROWS_A_TASK, 0) + 1, ROWS_A_TASK), n]
    return list(pairwise(starts))


def leading_eigenpairs(
    matrix: np.ndarray, k: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, largest first, and their vectors.

    Parameters
    ----------
    matrix : float64 array, (n, n)
        Symmetric.
    k : int
        From 0 to n - 1.
    threads : int
        Of the products of the Lanczos iteration; changes no byte.

    Returns
    -------
    values : float64 array, (k,)
    vectors : float64 array, (n, k)
        Signs are arbitrary.
    """
    from scipy.linalg import eigh
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = len(matrix)
    if k < 1:
        return np.zeros(0), np.zeros((n, 0))
    if n <= ROWS_A_PAIR * k:
        values, vectors = eigh(matrix, subset_by_index=[n - k, n - 1])
    else:
        rng = np.random.default_rng(n)
        start = rng.normal(size=n)
        options = {"which": "LA", "v0": start, "ncv": 3 * k + 20, "rng": rng}
        with ThreadPoolExecutor(max(threads, 1)) as pool:

            def product(vector: np.ndarray) -> np.ndarray:
                vector, out = vector.ravel(), np.empty(n)

                def work(bounds: tuple[int, int]) -> None:
                    np.matmul(matrix[slice(*bounds)], vector, out=out[slice(*bounds)])

                list(pool.map(work, row_blocks(n)))
                return out

            operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
            values, vectors = eigsh(operator, k, **options)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def few_eigenpairs(matrix: np.ndarray, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """`leading_eigenpairs`, of a large matrix in passes of blocks of vectors, up to ANGLE."""
    found = None
    if len(matrix) >= MANY_ROWS and 0 < k <= COLUMNS:
        found = _by_blocks(matrix, k, threads)
    return leading_eigenpairs(matrix, k, threads) if found is None else found


def _by_blocks(matrix: np.ndarray, k: int, threads: int) -> tuple[np.ndarray, np.ndarray] | None:
    """By block Lanczos iteration; None if MOST_PASSES do not find them."""
    n, width = len(matrix), COLUMNS
    block = np.linalg.qr(np.random.default_rng(n).normal(size=(n, width)))[0]
    room = np.empty((n, width * min(MOST_PASSES, n // (2 * width))))
    small = np.empty((0, 0))
    for number in range(room.shape[1] // width):
        own = len(small) + np.arange(width)
        room[:, own] = block
        basis = room[:, : own[-1] + 1]
        image = np.empty((n, width))
        run_tasks(partial(_multiply, matrix, block, image), row_blocks(n), threads)
        shares = _inner(basis, image, threads)
        grown = np.zeros((len(shares), len(shares)))
        grown[: len(small), : len(small)] = small
        grown[:, own], grown[own] = shares, shares.T
        grown[np.ix_(own, own)] = (shares[own] + shares[own].T) / 2
        small = grown
        _subtract(image, basis, shares, threads)
        _subtract(image, basis, _inner(basis, image, threads), threads)
        block, rest = np.linalg.qr(image)
        # Once more: directions that were next to nothing are orthogonal to the basis no longer.
        _subtract(block, basis, _inner(basis, block, threads), threads)
        block, again = np.linalg.qr(block)
        if (number + 1) % LOOK == 0 and len(small) > 2 * k:
            values, turn = np.linalg.eigh(small)
            values, turn = values[::-1], turn[:, ::-1]
            residuals = np.linalg.norm(again @ rest @ turn[own, :k], axis=0)
            gaps = -np.diff(values[: k + 1], prepend=np.inf)
            gap = np.minimum(gaps[:k], gaps[1 : k + 1])
            if (residuals <= np.maximum(ANGLE * gap, FLOOR * abs(values[0]))).all():
                return values[:k], basis @ turn[:, :k]
    return None


def _multiply(matrix, vectors, out, first: int, last: int) -> None:
    np.matmul(matrix[first:last], vectors, out=out[first:last])


def _inner(left: np.ndarray, right: np.ndarray, threads: int) -> np.ndarray:
    """Inner products of columns, (k, m) of (n, k) and (n, m): sums of blocks of rows, in order."""
    blocks = row_blocks(len(left))
    parts = run_tasks(lambda one, last: left[one:last].T @ right[one:last], blocks, threads)
    return sum(parts[1:], start=parts[0])


def _subtract(out: np.ndarray, basis: np.ndarray, shares: np.ndarray, threads: int) -> None:
    """Take the basis times shares out of some columns, in place."""

    def work(first: int, last: int) -> None:
        out[first:last] -= basis[first:last] @ shares

    run_tasks(work, row_blocks(len(out)), threads)
