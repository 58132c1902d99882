"""Standardised genotypes of chosen samples, and lists of who is missing, compiled.

A site has four values, one a genotype: a look-up of each genotype replaces five passes of numpy
over eight times as many bytes. The values are those of the formula, to the last bit.

Shapes: `genotypes` int8 (n_sites, n_samples), 0, 1, 2 or -1 for missing; `rows` int64 (n_rows,),
sites to take; `table` float64 (n_rows, 4), values of missing, 0, 1 and 2 at these. Of polyploids
genotypes are sums of layers (`io.layers`), and tables have a column for each.
"""

from __future__ import annotations

import numba
import numpy as np

#: Sites and samples of a square that is turned in the first level of cache.
TILE = 64


def value_table(af: np.ndarray, most: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Sites that vary, int64 (n_rows,), and their table; missing counts 0.

    `af`: float64 (n_sites,), ALT frequencies. Sites with 0, 1 or NaN are left out. `most`: the
    largest genotype, of which the table has float64 (n_rows, most + 2).
    """
    scale = np.sqrt(most * af * (1 - af))
    rows = np.flatnonzero(scale > 0)  # not NaN: no founder is called there
    table = np.zeros((len(rows), most + 2))
    table[:, 1:] = (np.arange(most + 1.0) - most * af[rows, None]) / scale[rows, None]
    return rows, table


def standard_rows(genotypes: np.ndarray, rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Values of all samples, float64 (n_rows, n_samples)."""
    out = np.empty((len(rows), genotypes.shape[1]))
    fill_rows_loop(np.ascontiguousarray(genotypes, np.int8), rows, table, out)
    return out


def standard_columns(
    genotypes: np.ndarray, rows: np.ndarray, table: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Values of some samples, int64 (n_columns,): float64 (n_rows, n_columns), sample by sample.

    That is column-major, as ``values[:, columns]`` of numpy is: the order of sums hangs on it.
    """
    out = np.empty((len(columns), len(rows)))
    fill_columns(np.ascontiguousarray(genotypes, np.int8), rows, table, columns, out)
    return out.T


def list_missing(
    genotypes: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Who of some samples is missing, site after site.

    Returns
    -------
    starts : int64 array, (n_rows + 1,)
    items : int32 array
        Numbers among `columns`, ascending at each site.
    """
    genotypes = np.ascontiguousarray(genotypes, np.int8)
    starts, places = np.zeros(len(rows) + 1, np.int64), np.full(genotypes.shape[1], -1, np.int32)
    places[columns] = np.arange(len(columns))
    list_missing_loop(genotypes, rows, places, starts, np.empty(0, np.int32))
    items = np.empty(starts[-1], np.int32)
    list_missing_loop(genotypes, rows, places, starts, items)
    return starts, items


@numba.njit(nogil=True, cache=True)
def fill_rows_loop(genotypes, rows, table, out):
    for i in range(rows.shape[0]):
        own, values, to = genotypes[rows[i]], table[i], out[i]
        for j in range(own.shape[0]):
            to[j] = values[own[j] + 1]


@numba.njit(nogil=True, cache=True)
def fill_columns(genotypes, rows, table, columns, out):
    n, m = rows.shape[0], columns.shape[0]
    for first in range(0, n, TILE):
        last = min(n, first + TILE)
        for start in range(0, m, TILE):
            for j in range(start, min(m, start + TILE)):
                column = columns[j]
                for i in range(first, last):
                    out[j, i] = table[i, genotypes[rows[i], column] + 1]


@numba.njit(nogil=True, cache=True)
def list_missing_loop(genotypes, rows, places, starts, items):
    """Fill `starts`, and `items` if it has room."""
    fill, total = items.shape[0] > 0, 0
    for i in range(rows.shape[0]):
        own = genotypes[rows[i]]
        for j in range(own.shape[0]):
            if own[j] < 0 and places[j] >= 0:
                if fill:
                    items[total] = places[j]
                total += 1
        starts[i + 1] = total
