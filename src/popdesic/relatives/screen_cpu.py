"""Which pairs of a block of counts are looked at again, and the best match of every sample.

One pass over the five counts of `engine.terms.KINSHIP` finds them (`kinship.screen.Screen`), in
place of a dozen passes of NumPy over temporaries of the block's size.

Kernels
-------
`screen_columns`: loops rows, then a stripe of columns, whose lists of best matches are in one
thread's hands. `match_rows`: the same for lists of the rows. Shares of mismatches compare as in
`matches.rank_key`, in integers: floor(x / y) < k where x < k y, so that no pair costs a division.
"""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks
from ..distance.nearest import SHARE_BITS
from ..engine.backend import Backend
from ..engine.terms import KINSHIP, Planes
from .matches import TopMatches
from .screen import Screen, Screened

#: Samples per side of one block: its five int64 matrices take 160 MB.
BLOCK_SAMPLES = 2048
#: Columns, or rows, of one task.
STRIPE = 128
#: Room for pairs of a task at first; it doubles.
ROOM = 256
#: What limits of kinship are widened by: rounding of the kinship that decides.
SLACK = 1e-9
#: Above every key of `matches.rank_key` but NEVER, whose products overflow.
ABOVE = 1 << (SHARE_BITS + 1)


@numba.njit(nogil=True, cache=True)
def _insert(key, index, mismatches, called, query, mine, other, differ, sites):
    """Put a match into a query's list, behind all that are as good; the last one leaves it."""
    place = key.shape[1] - 1
    while place > 0 and key[query, place - 1] > mine:
        key[query, place] = key[query, place - 1]
        index[query, place] = index[query, place - 1]
        mismatches[query, place] = mismatches[query, place - 1]
        called[query, place] = called[query, place - 1]
        place -= 1
    key[query, place], index[query, place] = mine, other
    mismatches[query, place], called[query, place] = differ, sites


@numba.njit(nogil=True, cache=True)
def _offer(lists, query, other, differ, sites):
    """Put a match into a query's list if it is better than the last one there."""
    key, index, mismatches, called = lists
    k = key.shape[1]
    if k and (differ << SHARE_BITS) < min(key[query, k - 1], ABOVE) * sites:
        mine = (differ << SHARE_BITS) // sites
        _insert(key, index, mismatches, called, query, mine, other, differ, sites)


@numba.njit(nogil=True, cache=True)
def screen_columns(counts, own, limits, least, row0, column0, lists, first, last):
    """Pairs of the columns first ... last - 1 that are looked at again, int64 (n_pairs, 2).

    counts: int64 (5, m, n) in the order of KINSHIP; own: the block is of samples with themselves,
    of whose pairs those above the diagonal are looked at; limits: min_kinship, max_same,
    max_mismatch, max_absent; least: least_related, least_matched; lists: key, index, mismatches and
    called sites of the columns' samples, whose numbers begin with column0, those of the rows with
    row0. Returns also how many pairs have too few jointly called sites.
    """
    min_kinship, max_same, max_mismatch, max_absent = limits
    least_related, least_matched = least
    at_best = max(least_matched, 1)
    found = np.empty((ROOM, 2), np.int64)
    n_found, few = 0, 0
    for i in range(counts.shape[1]):
        for j in range(first, last):
            if own and i == j:
                continue
            ibs0, het_a, het_b = counts[0, i, j], counts[2, i, j], counts[3, i, j]
            both, sites = counts[1, i, j], counts[4, i, j]
            differ = het_a + het_b - 2 * both + ibs0
            if sites >= at_best:
                _offer(lists, column0 + j, row0 + i, differ, sites)
            if own and j < i:
                continue
            few += sites < least_matched
            if sites < least_related:
                continue
            room = 4.0 * min(het_a, het_b) * (0.5 - min_kinship)
            again = differ + 3 * ibs0 <= room * (1 + SLACK) + SLACK
            again |= differ <= max_same * sites * (1 + SLACK)
            absent = ibs0 + min(het_a, het_b) - both
            again |= absent <= max_absent * sites and differ > max_mismatch * sites
            if again:
                if n_found == len(found):
                    more = np.empty((2 * n_found, 2), np.int64)
                    more[:n_found] = found
                    found = more
                found[n_found, 0], found[n_found, 1] = i, j
                n_found += 1
    return found[:n_found], few


@numba.njit(nogil=True, cache=True)
def match_rows(counts, least_matched, row0, column0, lists, first, last):
    """Best matches of the rows first ... last - 1 among the columns."""
    least = max(least_matched, 1)
    for i in range(first, last):
        for j in range(counts.shape[2]):
            ibs0, het_a, het_b = counts[0, i, j], counts[2, i, j], counts[3, i, j]
            differ = het_a + het_b - 2 * counts[1, i, j] + ibs0
            sites = counts[4, i, j]
            if sites >= least:
                _offer(lists, row0 + i, column0 + j, differ, sites)


def screen_pairs(
    counts: np.ndarray,
    screen: Screen,
    best: TopMatches,
    row0: int,
    column0: int,
    *,
    own: bool,
    both_ways: bool,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Pairs of a block to look at again, ordered, and how many have too few sites for matches.

    Parameters
    ----------
    counts : int64 array, (5, m, n)
        Of `engine.terms.KINSHIP`.
    screen : Screen
    best : TopMatches
        Of the samples of the columns, and with `both_ways` of the rows. A sample meets others in
        the order of their numbers, so that ties go to the first.
    row0, column0 : int
        Numbers of the first row and column.
    own : bool
        The block is of samples with themselves: nobody matches himself, and of two pairs of the
        same people the one above the diagonal counts.
    threads : int
        Changes no byte.

    Returns
    -------
    rows, columns : int64 arrays, (n_pairs,)
        Within the block.
    few : int
    """
    limits = screen.min_kinship, screen.max_same, screen.max_mismatch, screen.max_absent
    limits = tuple(map(float, limits))
    least = int(screen.least_related), int(screen.least_matched)
    lists = best.key, best.index, best.mismatches, best.called
    n_rows, n_columns = counts.shape[1:]

    def columns(first: int) -> tuple[np.ndarray, int]:
        stripe = first, min(first + STRIPE, n_columns)
        return screen_columns(counts, own, limits, least, row0, column0, lists, *stripe)

    def rows(first: int) -> None:
        stripe = first, min(first + STRIPE, n_rows)
        match_rows(counts, least[1], row0, column0, lists, *stripe)

    stripes = [(first,) for first in range(0, n_columns, STRIPE)]
    found = run_tasks(columns, stripes, threads)
    if both_ways and not own:
        run_tasks(rows, [(first,) for first in range(0, n_rows, STRIPE)], threads)
    pairs = np.concatenate([np.empty((0, 2), np.int64), *(part for part, _ in found)])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return pairs[:, 0], pairs[:, 1], sum(few for _, few in found)


def screen_blocks(
    backend: Backend, a: Planes, b: Planes | None, screen: Screen, top: int
) -> Screened:
    """`screen_pairs` by blocks of a backend's products."""
    own = b is None
    other = a if own else b
    best, few, parts = TopMatches(other.n_samples, top), 0, []
    for row in range(0, a.n_samples, BLOCK_SAMPLES):
        rows = Planes(a.words[row : row + BLOCK_SAMPLES], a.n_sites)
        for column in range(row if own else 0, other.n_samples, BLOCK_SAMPLES):
            diagonal = own and row == column
            columns = Planes(other.words[column : column + BLOCK_SAMPLES], a.n_sites)
            counts = backend.bitgemm(rows, None if diagonal else columns, KINSHIP)
            places = screen, best, row, column
            options = {"own": diagonal, "both_ways": own, "threads": backend.threads}
            i, j, fewer = screen_pairs(counts, *places, **options)
            parts.append((i + row, j + column, counts[:, i, j]))
            few += fewer
    return Screened.joined(parts, few, best)
