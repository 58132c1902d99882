"""Leading eigenvectors of large symmetric matrices, the same bytes every run.

Up to DENSE_ROWS rows LAPACK decomposes the matrix, about n**3 operations. Above, ARPACK's Lanczos
iteration (Lehoucq, Sorensen and Yang 1998) needs a product with a vector for each step, n**2
operations, from a start that depends on n alone. Callers keep BLAS to one thread, so that sums run
in one order.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

#: Rows from which on Lanczos takes over (tests/bench/bench_maps.py).
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
        Of any sign.
    """
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
