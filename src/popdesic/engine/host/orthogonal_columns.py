"""Take what columns have in common with other columns out of them, each with its own, compiled.

Formula: image[:, j] -= one[:, j] * sum over i of one[i, j] * image[i, j]. Sums are in the order of
the rows, so the numbers are those of numpy, without two arrays in between.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def remove_columns(one, image):
    """Change `image` in place; float64 (n, k) both, row-major."""
    shares = np.zeros(image.shape[1])
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            shares[j] += one[i, j] * image[i, j]
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            image[i, j] -= one[i, j] * shares[j]
