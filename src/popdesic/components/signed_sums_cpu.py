"""Sums of symmetric matrices whose rows and columns change signs, many draws at once."""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks

#: Rows of one task.
ROWS_A_TASK = 16


def add_signed(
    total: np.ndarray, matrices: np.ndarray, signs: np.ndarray, threads: int = 1
) -> None:
    """total[d, i, j] += sum over t of signs[d, t, i] * signs[d, t, j] * matrices[t, i, j], i <= j.

    Parameters
    ----------
    total : float64 array, (n_draws, n, n)
        Its lower triangles stay as they are.
    matrices : float64 array, (n_matrices, n, n)
        Only upper triangles are read.
    signs : float64 array, (n_draws, n_matrices, n)
        1 or -1.
    """
    n = total.shape[1]
    tasks = [(first, min(n, first + ROWS_A_TASK)) for first in range(0, n, ROWS_A_TASK)]
    run_tasks(
        lambda first, last: add_rows_loop(total, matrices, signs, first, last), tasks, threads
    )


@numba.njit(nogil=True, cache=True)
def add_rows_loop(total, matrices, signs, first, last):
    n = total.shape[1]
    for i in range(first, last):
        for d in range(total.shape[0]):
            row = total[d, i]
            for t in range(matrices.shape[0]):
                own, sign, values = signs[d, t, i], signs[d, t], matrices[t, i]
                for j in range(i, n):
                    row[j] += own * sign[j] * values[j]
