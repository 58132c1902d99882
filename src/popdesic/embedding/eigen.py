"""Leading eigenvectors of large symmetric matrices, with the same bytes in every run.

Up to DENSE_ROWS rows LAPACK decomposes the matrix in about n**3 operations. Larger matrices use
ARPACK's Lanczos iteration (Lehoucq, Sorensen and Yang 1998): one matrix-vector product, n**2
operations, per step, from a start vector that depends only on n. Callers limit BLAS to one thread
to fix the order of sums.
"""

from __future__ import annotations

import numpy as np

#: Above this many rows Lanczos is used (measured by tests/bench/bench_maps.py).
DENSE_ROWS = 4_000


def leading_eigenpairs(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, largest first, and their vectors.

    Parameters
    ----------
    matrix : float64 array, (n, n)
        Symmetric.
    k : int
        From 0 to n - 1.

    Returns
    -------
    values : float64 array, (k,)
    vectors : float64 array, (n, k)
        Signs are arbitrary.
    """
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    n = len(matrix)
    if k < 1:
        return np.zeros(0), np.zeros((n, 0))
    if n <= DENSE_ROWS:
        values, vectors = eigh(matrix, subset_by_index=[n - k, n - 1])
    else:
        rng = np.random.default_rng(n)
        start = rng.normal(size=n)
        values, vectors = eigsh(matrix, k, which="LA", v0=start, ncv=3 * k + 20, rng=rng)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]
