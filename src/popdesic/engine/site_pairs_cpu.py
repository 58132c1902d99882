"""Compiled loops of the SNP comparisons: correlations from counts, pair tables, pruning."""

from __future__ import annotations

import functools

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from .popcount_cpu import popcount

#: Rows of one task.
ROWS_A_TASK = 64

_I64, _F64 = types.int64, types.float64


def _vector(element):
    return types.Array(element, 1, "A", readonly=True)


def _matrix(element, ndim=2):
    return types.Array(element, ndim, "A")


def _squared_correlation(n, sum_a, square_a, sum_b, square_b, product):
    covariance = np.float64(n * product - sum_a * sum_b)
    variance_a = np.float64(n * square_a - sum_a * sum_a)
    variance_b = np.float64(n * square_b - sum_b * sum_b)
    if variance_a <= 0 or variance_b <= 0:
        return np.nan
    return covariance * covariance / (variance_a * variance_b)


_squared_correlation = numba.njit(inline="always")(_squared_correlation)


def _r2_complete(n, sum_a, square_a, sum_b, square_b, product, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = _squared_correlation(
                n, sum_a[i], square_a[i], sum_b[j], square_b[j], product[i, j]
            )


def _r2_masked(counts, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = _squared_correlation(
                counts[0, i, j],
                counts[1, i, j] + counts[2, i, j],
                counts[1, i, j] + 3 * counts[2, i, j],
                counts[3, i, j] + counts[4, i, j],
                counts[3, i, j] + 3 * counts[4, i, j],
                counts[5, i, j],
            )


@functools.cache
def complete_kernel():
    signature = types.void(_I64, *(_vector(_I64),) * 4, _matrix(_I64), _matrix(_F64))
    return numba.njit([signature], nogil=True, cache=True)(_r2_complete)


@functools.cache
def masked_kernel():
    signature = types.void(_matrix(_I64, 3), _matrix(_F64))
    return numba.njit([signature], nogil=True, cache=True)(_r2_masked)


def r2_complete(n, sum_a, square_a, sum_b, square_b, product, threads=1):
    """Squared correlations from a product alone: nothing is missing.

    Parameters
    ----------
    n : int
        Samples.
    sum_a, square_a, sum_b, square_b : int64 arrays, (m,), (n,)
        Sums of ALT counts and of their squares.
    product : int64 array, (m, n)

    Returns
    -------
    float64 array, (m, n), NaN where a site does not vary.
    """
    out = np.empty(product.shape)
    kernel = complete_kernel()

    def work(first):
        rows = slice(first, first + ROWS_A_TASK)
        kernel(n, sum_a[rows], square_a[rows], sum_b, square_b, product[rows], out[rows])

    run_tasks(work, [(first,) for first in range(0, len(out), ROWS_A_TASK)], threads)
    return out


def r2_masked(counts, threads=1):
    """Squared correlations from the outputs of `base.LD`, int64 (6, m, n): float64 (m, n)."""
    out = np.empty(counts.shape[1:])
    kernel = masked_kernel()

    def work(first):
        rows = slice(first, first + ROWS_A_TASK)
        kernel(counts[:, rows], out[rows])

    run_tasks(work, [(first,) for first in range(0, len(out), ROWS_A_TASK)], threads)
    return out


def _band_r2(words, n_samples, first, ends, out):
    carrier, hom, called = 0, 1, words.shape[1] - 1
    masked = words.shape[1] == 3
    for row in range(out.shape[0]):
        a = words[first + row]
        for column in range(min(out.shape[1], ends[first + row] - first - row - 1)):
            b = words[first + row + 1 + column]
            n, product = n_samples, 0
            a1, a2, b1, b2 = 0, 0, 0, 0
            if masked:
                n = 0
                for w in range(words.shape[2]):
                    n += popcount(a[called, w] & b[called, w])
                    a1 += popcount(a[carrier, w] & b[called, w])
                    a2 += popcount(a[hom, w] & b[called, w])
                    b1 += popcount(b[carrier, w] & a[called, w])
                    b2 += popcount(b[hom, w] & a[called, w])
            else:
                for w in range(words.shape[2]):
                    a1 += popcount(a[carrier, w])
                    a2 += popcount(a[hom, w])
                    b1 += popcount(b[carrier, w])
                    b2 += popcount(b[hom, w])
            for w in range(words.shape[2]):
                product += popcount(a[carrier, w] & b[carrier, w])
                product += popcount(a[carrier, w] & b[hom, w])
                product += popcount(a[hom, w] & b[carrier, w])
                product += popcount(a[hom, w] & b[hom, w])
            out[row, column] = _squared_correlation(
                n, a1 + a2, a1 + 3 * a2, b1 + b2, b1 + 3 * b2, product
            )


@functools.cache
def band_kernel():
    words = types.Array(types.uint64, 3, "A", readonly=True)
    signature = types.void(words, _I64, _I64, _vector(_I64), _matrix(_F64))
    return numba.njit([signature], nogil=True, cache=True)(_band_r2)


def band_r2(words, n_samples, ends, first, last, threads=1):
    """Squared correlations of sites with those that follow within their windows.

    Parameters
    ----------
    words : uint64 array, (n_sites, 2 or 3, n_words)
        Planes u and v, and c if something is missing.
    ends : int64 array, (n_sites,)
        One past the last partner of each site.
    first, last : int
        The sites i of this call.

    Returns
    -------
    float64 array, (last - first, width)
        Of site first + i with site first + i + 1 + k; NaN beyond the window, and where a site
        does not vary over the jointly called samples. The numbers are those of `r2_complete` and
        `r2_masked`.
    """
    width = max(0, int((ends[first:last] - np.arange(first, last)).max(initial=1)) - 1)
    out = np.full((last - first, width), np.nan)
    kernel = band_kernel()

    def work(row):
        kernel(words, n_samples, first + row, ends, out[row : row + ROWS_A_TASK])

    run_tasks(work, [(row,) for row in range(0, len(out), ROWS_A_TASK)], threads)
    return out


def _pair_tables(words, rows, columns, out):
    for pair in range(rows.shape[0]):
        a, b = words[rows[pair]], words[columns[pair]]
        for word in range(words.shape[2]):
            both = a[2, word] & b[2, word]
            for x in range(3):
                if x == 0:
                    left = both & ~a[0, word]
                elif x == 1:
                    left = both & a[0, word] & ~a[1, word]
                else:
                    left = both & a[1, word]
                out[pair, x, 0] += popcount(left & ~b[0, word])
                out[pair, x, 1] += popcount(left & b[0, word] & ~b[1, word])
                out[pair, x, 2] += popcount(left & b[1, word])


@functools.cache
def tables_kernel():
    words = types.Array(types.uint64, 3, "A", readonly=True)
    signature = types.void(words, _vector(_I64), _vector(_I64), _matrix(_I64, 3))
    return numba.njit([signature], nogil=True, cache=True)(_pair_tables)


def pair_tables(words, rows, columns, threads=1):
    """Genotype tables of pairs of rows of planes.

    Parameters
    ----------
    words : uint64 array, (n, 3, n_words)
        Planes u, v and c.
    rows, columns : int64 arrays, (n_pairs,)

    Returns
    -------
    int64 array, (n_pairs, 3, 3)
        Jointly called entries by the genotypes of both.
    """
    out = np.zeros((len(rows), 3, 3), np.int64)
    kernel = tables_kernel()
    size = 4096

    def work(first):
        part = slice(first, first + size)
        kernel(words, rows[part], columns[part], out[part])

    run_tasks(work, [(first,) for first in range(0, len(rows), size)], threads)
    return out


def _prune(correlated, start, stop, major, removed):
    n_windows = start.shape[0]
    width = correlated.shape[1]
    unchecked = np.arange(1, removed.shape[0] + 1)
    for window in range(n_windows):
        first_site, last_site = start[window], stop[window]
        progress = True
        while progress:
            progress = False
            for i in range(first_site, last_site):
                if removed[i]:
                    continue
                j = unchecked[i]
                while j < last_site:
                    if not removed[j]:
                        offset = j - i - 1
                        if offset < width and correlated[i, offset]:
                            progress = True
                            # The site with the commoner major allele goes; of equals the later.
                            if major[i] > major[j] * (1 + 2.0**-44):
                                removed[i] = True
                            else:
                                removed[j] = True
                            break
                    j += 1
                if not removed[i]:
                    while j < last_site and removed[j]:
                        j += 1
                    unchecked[i] = j


@functools.cache
def prune_kernel():
    flags = types.Array(types.boolean, 2, "A", readonly=True)
    removed = types.Array(types.boolean, 1, "A")
    signature = types.void(flags, _vector(_I64), _vector(_I64), _vector(_F64), removed)
    return numba.njit([signature], nogil=True, cache=True)(_prune)


def prune(correlated, start, stop, major, removed):
    """Greedy pruning of sites inside successive windows, in place; see `compare.prune`.

    Parameters
    ----------
    correlated : bool array, (n_sites, width)
        Whether site i is too strongly correlated with site i + 1 + k.
    start, stop : int64 arrays, (n_windows,)
        Windows of sites.
    major : float64 array, (n_sites,)
        Frequency of each site's major allele.
    removed : bool array, (n_sites,)
        True from the start for sites that do not vary.
    """
    prune_kernel()(correlated, start, stop, major, removed)
