"""The founders' minimum spanning tree from lists of nearest samples, without all pairs.

Boruvka's algorithm: in each round every part but the largest is joined to another by its shortest
edge. For most samples the nearest one outside their part is in their list. Where a list ends
before, and something so near could decide, that one is searched (`Outside`): a few of each part
first, whose edges then show that most others need no search.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from .landmarks import Neighbors, choose_landmarks

log = logging.getLogger(__name__)

#: Founders of a part that are searched before its others.
FIRST_OF_PART = 256
#: The nearest founder outside its part of each of some founders: their numbers, the part of every
#: founder and each part's shortest edge so far give distances (infinite without one, or where it is
#: longer than that edge) and numbers, of equally near founders the smallest.
Outside = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def founder_tree(
    index: np.ndarray, distance: np.ndarray, founders: np.ndarray, outside: Outside
) -> tuple[np.ndarray, np.ndarray]:
    """The edges of `geodesic.graph.spanning_tree` of the founders, and their lengths.

    Parameters
    ----------
    index, distance : arrays, (n, k)
        Nearest others of everyone, nearest first, ties by number.
    founders : bool array, (n,)
    outside : callable
        The founders are numbered 0, 1, … here.

    Returns
    -------
    edges : int64 array, (n_edges, 2)
        Numbers in sample order, the smaller one first, ordered.
    lengths : float64 array, (n_edges,)
    """
    who = np.flatnonzero(founders)
    lists = _Lists.of(index, distance, founders)
    part, edges = np.arange(len(who)), []
    while len(np.unique(part)) > 1:
        found = _outgoing(lists, part, outside)
        if not len(found):
            break  # what is left is infinitely far
        edges.append(found)
        part = _joined(part, found)
    table = np.unique(np.concatenate([np.empty((0, 3)), *edges]), axis=0)
    table = table[np.lexsort((table[:, 2], table[:, 1]))]
    return who[table[:, 1:].astype(np.int64)].reshape(-1, 2), table[:, 0]


class _Lists:
    """Lists of founders among founders: `near` (-1 where a newcomer is listed), `far`, `end`.

    `end` (n_founders,): at this distance or beyond, a founder need not be listed.
    """

    def __init__(self, near: np.ndarray, far: np.ndarray, end: np.ndarray) -> None:
        self.near, self.far, self.end = near, far, end

    @classmethod
    def of(cls, index: np.ndarray, distance: np.ndarray, founders: np.ndarray) -> _Lists:
        who = np.flatnonzero(founders)
        number = np.full(len(founders), -1)
        number[who] = np.arange(len(who))
        whole = index.shape[1] >= len(founders) - 1
        end = np.full(len(who), np.inf) if whole else distance[who, -1]
        return cls(number[index[who]], distance[who], end)

    def first_outside(self, part: np.ndarray) -> np.ndarray:
        """(distance, smaller, larger number) of each founder's nearest in another part."""
        outside = (self.near >= 0) & (part[self.near] != part[:, None]) & np.isfinite(self.far)
        own = np.arange(len(part))
        place = outside.argmax(axis=1) if self.near.shape[1] else own * 0
        known = outside.any(axis=1)
        found = np.full((len(part), 3), np.inf)
        other = self.near[own[known], place[known]]
        found[known, 0] = self.far[own[known], place[known]]
        found[known, 1:] = np.sort(np.stack([own[known], other], axis=1), axis=1)
        return found


def _outgoing(lists: _Lists, part: np.ndarray, outside: Outside) -> np.ndarray:
    """Shortest edge of every part but the largest, float64 (n_parts - 1 or fewer, 3)."""
    found = lists.first_outside(part)
    sizes = np.bincount(part)
    small = part != sizes.argmax()
    best = np.full(len(sizes), np.inf)
    np.minimum.at(best, part, found[:, 0])
    unknown = np.flatnonzero(small & np.isinf(found[:, 0]) & np.isfinite(lists.end))
    searched = 0
    for which in _few_first(unknown[np.lexsort((lists.end[unknown], part[unknown]))], part):
        which = np.sort(which[lists.end[which] <= best[part[which]]])
        if not len(which):
            continue
        searched += len(which)
        far, other = outside(which, part, best)
        known = np.isfinite(far)
        pairs = np.stack([which, other], axis=1)[known]
        found[which[known], 0] = far[known]
        found[which[known], 1:] = np.sort(pairs, axis=1)
        np.minimum.at(best, part[which], far)
    if searched:
        log.info("%d parts: %d founders searched for others outside", (sizes > 0).sum(), searched)
    order = np.lexsort((found[:, 2], found[:, 1], found[:, 0], part))
    order = order[small[order] & np.isfinite(found[order, 0])]
    _, first = np.unique(part[order], return_index=True)
    return found[order[first]]


def _few_first(ordered: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first founders of each part, and the others; `ordered`: founders, part by part."""
    _, starts, which = np.unique(part[ordered], return_index=True, return_inverse=True)
    first = np.arange(len(ordered)) - starts[which] < FIRST_OF_PART
    return ordered[first], ordered[~first]


def _joined(part: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Numbers of the parts that these edges make of others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = part[edges[:, 1:].astype(np.int64)]
    n = int(part.max()) + 1
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n, n))
    number = connected_components(graph, directed=False)[1][part]
    return np.unique(number, return_inverse=True)[1]


def neighbors_of_points(
    index: np.ndarray,
    distance: np.ndarray,
    cohorts: Sequence[str],
    founders: set[str],
    outside: Callable[[np.ndarray], Outside],
) -> Neighbors:
    """Lists of points as `Neighbors`; `outside` is asked for with the numbers of the founders."""
    among = np.isin(np.asarray(cohorts, str), sorted(founders))
    tree = founder_tree(index, distance, among, outside(np.flatnonzero(among)))
    return Neighbors(index, distance, choose_landmarks(cohorts, founders), *tree)
