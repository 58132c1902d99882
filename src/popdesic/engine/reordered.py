"""Square matrices in host memory with rows and columns in another order."""

from __future__ import annotations

import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks

#: Rows that are put into another order together: they fit into a core's cache.
ROWS_A_TASK = 16


def reordered(
    matrix: np.ndarray, order: np.ndarray, threads: int, out: np.ndarray | None = None
) -> np.ndarray:
    """``matrix[order][:, order]``, by blocks of rows, on threads."""
    out = np.empty_like(matrix) if out is None else out

    def work(first: int, last: int) -> None:
        np.take(matrix[order[first:last]], order, axis=1, out=out[first:last], mode="clip")

    run_tasks(work, chunks(len(matrix), ROWS_A_TASK), threads)
    return out
