"""A row of results for each of many sets, in threads whose memory together is bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import UserError
from ..core.threads import one_blas_thread, run_tasks
from .set_numbers import NumberTests
from .set_products import sites_of
from .set_scores import SetScores, SetStatistics
from .sets import MOST_KEPT, SetTests, set_p_values

#: Bytes that matrices of all threads may have together, unless one set needs more.
MOST_TOGETHER = 2 << 30
#: Matrices of float64 that a set has at a time (`sets.py`).
MATRICES = 4
#: Bytes for each two of its sites, of main effects and places of products.
SQUARE_BYTES = 150

Sets = dict[str, tuple[np.ndarray, np.ndarray | None]]


def set_rows(
    tests: SetTests, read: Callable[[np.ndarray], np.ndarray], sets: Sets, threads: int
) -> list[dict]:
    """Test sets of sites; parameters as of `for_each_set`.

    Returns
    -------
    list of dict
        In the order of `sets`: `set`, `sites`, `products`, the results of `sets.set_p_values`;
        `problem` says why a set cannot be tested.
    """

    def test(name: str, genotypes: np.ndarray, sites: np.ndarray, places: list) -> dict:
        try:
            return _row(name, sites, tests.scores(genotypes, *places))
        except UserError as error:
            return _row(name, sites, error)

    return for_each_set(test, tests, read, sets, threads)


def rows_of_numbers(
    tests: NumberTests, read: Callable[[np.ndarray], np.ndarray], sets: Sets, threads: int
) -> list[list[dict]]:
    """Rows as of `set_rows` for each of several numbers of the same people."""

    def test(name: str, genotypes: np.ndarray, sites: np.ndarray, places: list) -> list[dict]:
        try:
            found: list[SetScores | UserError] = tests.scores(genotypes, *places)
        except UserError as error:
            found = [error] * len(tests.tests)
        return [_row(name, sites, one) for one in found]

    by_set = for_each_set(test, tests, read, sets, threads)
    return [list(rows) for rows in zip(*by_set, strict=True)]


def _row(name: str, sites: np.ndarray, found: SetScores | UserError) -> dict:
    row = {"set": name, "sites": 0, "products": 0, "site1": -1, "site2": -1}
    if isinstance(found, UserError):
        return row | {"problem": str(found)}
    row |= {"sites": found.n_sites, "products": int((found.variances > 0).sum())}
    row |= set_p_values(found)
    return row | {end: int(sites[row[end]]) if row[end] >= 0 else -1 for end in ("site1", "site2")}


def set_statistics(
    tests: SetTests, read: Callable[[np.ndarray], np.ndarray], sets: Sets, threads: int
) -> list[SetStatistics | str]:
    """What other cohorts need of each set, or why it cannot be tested."""

    def score(_: str, genotypes: np.ndarray, sites: np.ndarray, places: list):
        try:
            found = tests.statistics(genotypes, *places)
        except UserError as error:
            return str(error)
        return replace(found, sites=np.where(found.sites < 0, -1, sites[found.sites]))

    return for_each_set(score, tests, read, sets, threads)


@one_blas_thread
def for_each_set(
    work: Callable[..., Any],
    tests: SetTests | NumberTests,
    read: Callable[[np.ndarray], np.ndarray],
    sets: Sets,
    threads: int,
    kept: int = 0,
) -> list:
    """Results of work(name, genotypes, sites, places) for sets of sites, in their order.

    Parameters
    ----------
    work : callable
        It gets genotypes int8 (n_people, n_sites) of the `sites` of a set, or of two, and the
        places of both in them.
    tests : SetTests or NumberTests
    read : callable
        Genotypes of some sites, given by their int64 numbers: int8 (n_people, n_chosen), ALT
        counts, -1 missing. It is called by several threads.
    sets : dict
        Name of each set and its sites, as int64, or those of two sets; None for no second one.
    threads : int
        Fewer run at a time where sets are large. Results do not depend on it.
    kept : int
        Matrices of products that `work` keeps beside its own, one for each cohort.
    """

    def run(name: str) -> Any:
        first, second = sets[name]
        sites = sites_of(first, second)
        places = [None if part is None else np.searchsorted(sites, part) for part in sets[name]]
        return work(name, read(sites), sites, places)

    n_people = int(tests.used.sum())
    width = {name: threads_of_set(*sets[name], n_people, threads, kept) for name in sets}
    found: dict[str, Any] = {}
    for together in sorted(set(width.values()), reverse=True):
        names = [name for name in sets if width[name] == together]
        found |= zip(names, run_tasks(run, [(name,) for name in names], together), strict=True)
    return [found[name] for name in sets]


def threads_of_set(
    first: np.ndarray, second: np.ndarray | None, n_people: int, threads: int, kept: int = 0
) -> int:
    """Sets as large as this one that may be tested at a time: from 1 to `threads`."""
    one, other = len(np.unique(first)), 0 if second is None else len(np.unique(second))
    products = one * (one - 1) // 2 if second is None else one * other
    in_all = MATRICES * min(products, n_people) ** 2 + kept * min(products, MOST_KEPT) ** 2
    needed = 8 * in_all + SQUARE_BYTES * (one + other) ** 2
    return int(np.clip(MOST_TOGETHER // max(needed, 1), 1, threads))
