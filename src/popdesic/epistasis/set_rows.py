"""A row of results for each of many sets, in threads whose memory together is bounded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.errors import UserError
from ..core.threads import one_blas_thread, run_tasks
from .sets import SetTests, set_p_values

#: Bytes that matrices of all threads may have together, unless one set needs more.
MOST_TOGETHER = 2 << 30
#: Matrices of float64 that a set has at a time (`sets.py`).
MATRICES = 4

Sets = dict[str, tuple[np.ndarray, np.ndarray | None]]


@one_blas_thread
def set_rows(
    tests: SetTests, read: Callable[[np.ndarray], np.ndarray], sets: Sets, threads: int
) -> list[dict]:
    """Test sets of sites.

    Parameters
    ----------
    tests : SetTests
    read : callable
        Genotypes of some sites, given by their int64 numbers: int8 (n_people, n_chosen), ALT
        counts, -1 missing. It is called by several threads.
    sets : dict
        Name of each set and its sites, as int64, or those of two sets; None for no second one.
    threads : int
        Fewer run at a time where sets are large. Results do not depend on it.

    Returns
    -------
    list of dict
        In the order of `sets`: `set`, `sites`, `products`, the results of `sets.set_p_values`;
        `problem` says why a set cannot be tested.
    """

    def test(name: str) -> dict:
        row = {"set": name, "sites": 0, "products": 0, "site1": -1, "site2": -1}
        first, second = sets[name]
        sites = np.unique(first if second is None else np.concatenate([first, second]))
        places = [None if part is None else np.searchsorted(sites, part) for part in sets[name]]
        try:
            found = tests.scores(read(sites), *places)
        except UserError as error:
            return row | {"problem": str(error)}
        row |= {"sites": found.n_sites, "products": int((found.variances > 0).sum())}
        row |= set_p_values(found)
        ends = {end: int(sites[row[end]]) if row[end] >= 0 else -1 for end in ("site1", "site2")}
        return row | ends

    n_people = int(tests.used.sum())
    width = {name: threads_of_set(*sets[name], n_people, threads) for name in sets}
    rows: dict[str, dict] = {}
    for together in sorted(set(width.values()), reverse=True):
        names = [name for name in sets if width[name] == together]
        rows |= zip(names, run_tasks(test, [(name,) for name in names], together), strict=True)
    return [rows[name] for name in sets]


def threads_of_set(
    first: np.ndarray, second: np.ndarray | None, n_people: int, threads: int
) -> int:
    """Sets as large as this one that may be tested at a time: from 1 to `threads`."""
    one, other = len(np.unique(first)), 0 if second is None else len(np.unique(second))
    size = min(one * (one - 1) // 2 if second is None else one * other, n_people)
    return int(np.clip(MOST_TOGETHER // max(8 * MATRICES * size**2, 1), 1, threads))
