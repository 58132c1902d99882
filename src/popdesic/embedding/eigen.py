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
#: Random vectors and Lanczos steps of the estimate of a sum of eigenvalues.
PROBES, STEPS = 24, 60


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


def sum_of_positive(matrix: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> float:
    """Sum of the eigenvalues above zero, some of which are known.

    The rest is estimated by stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017): the mean
    over PROBES random vectors z of z' f(A) z, f(x) = max(x, 0), A without the known eigenvectors.
    For n rows it is off by about sqrt(2 / (n PROBES)), 0.5 % at 4 000 rows and less above.

    Parameters
    ----------
    matrix : float64 array, (n, n)
        Symmetric.
    values, vectors : float64 arrays, (k,) and (n, k)
        Of `leading_eigenpairs`.
    """
    n = len(matrix)
    rng = np.random.default_rng(n)
    steps = min(STEPS, n - len(values))

    def without_known(columns: np.ndarray) -> np.ndarray:
        return columns - vectors @ (vectors.T @ columns)

    column = without_known(rng.choice([-1.0, 1.0], size=(n, PROBES)))
    squares = (column**2).sum(axis=0)
    column /= np.sqrt(squares)
    before = np.zeros_like(column)
    diagonal, beside = np.zeros((steps, PROBES)), np.zeros((steps, PROBES))
    path = np.empty((steps, n, PROBES))
    for step in range(steps):
        path[step] = column
        product = without_known(matrix @ column)
        if step:
            product -= beside[step - 1] * before
        diagonal[step] = (column * product).sum(axis=0)
        product -= diagonal[step] * column
        # all earlier vectors again: without this, found values come up twice
        shares = np.einsum("snp,np->sp", path[: step + 1], product)
        product -= np.einsum("snp,sp->np", path[: step + 1], shares)
        beside[step] = np.sqrt((product**2).sum(axis=0))
        before, column = column, product / np.where(beside[step] > 0, beside[step], 1.0)
    rest = 0.0
    for probe in range(PROBES):
        steps_of = np.diag(diagonal[:, probe])
        off = np.diag(beside[:-1, probe], 1)
        found, parts = np.linalg.eigh(steps_of + off + off.T)
        rest += squares[probe] * (parts[0] ** 2 @ np.maximum(found, 0.0))
    return float(np.maximum(values, 0.0).sum() + rest / PROBES)
