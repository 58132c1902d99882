"""Communities as splits that a gap in the data supports, found from the top down.

A set of samples is split in two only if the samples leave a gap between the halves. The gap is
tested by Hartigan's dip (Hartigan and Hartigan 1985) on the line between the halves' centres, as in
projected dip-means (Kalogeratos and Likas 2012; Chamalis and Likas 2018), in coordinates where
curved continua are straight (`straighten`). An even continuum has no gap wherever it is cut, and
panmictic samples have no coordinates that mean anything: neither is split.

Testing from the top down matters. The demes of a stepping-stone model are groups of their own if
two neighbours are looked at alone; seen whole they are a continuum, and they are called one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import diptest
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from .straighten import neighbor_graph, straight_coordinates

#: Smallest dip of a gap, and largest probability of a dip so large without a gap. Demes of a chain
#: or grid that samples fill unevenly have dips up to 0.048 in simulations, four islands at
#: F_ST 0.01 at least 0.071 (tests/bench/bench_landscapes.py).
MIN_DIP, MAX_P = 0.055, 1e-3
#: Halves with a smaller share of the samples are judged by the samples next to the cut and must be
#: at least DISTINCT times as far from the other half as either is wide: a dip cannot exceed half
#: of the smaller share, and the tip of an even continuum is only 1.5 to 1.8 times as far.
MINORITY, DISTINCT = 0.15, 2.2
#: Fewest samples of a community.
FEWEST = 10
#: Longest edges of the spanning tree that are tried as the place of a cut.
MAX_EDGES = 50
#: Most rounds in which samples move to their neighbours' half.
MAX_ROUNDS = 10
#: Samples per side from which mean distances are computed, evenly spaced.
MAX_SAMPLED = 1_000
#: Splits less deep than this share of the deepest one only separate fine communities.
COARSE_DEPTH = 0.2


@dataclass(frozen=True)
class Gap:
    """Evidence for one split.

    Attributes
    ----------
    dip : float
        Hartigan's dip: 0 for an even spread, at most 0.25.
    p : float
        Probability of a dip at least as large under an even spread.
    distinct : float
        Mean distance between the halves divided by the larger mean distance within one.
    supported : bool
        Whether the halves are communities of their own.
    """

    dip: float
    p: float
    distinct: float
    supported: bool


@dataclass(frozen=True)
class Split:
    """A node of the tree of splits: a set of samples and, if a gap supports it, its two halves.

    Attributes
    ----------
    members : int64 array
        Sample numbers, ascending.
    depth : float
        Squared distance between the halves' centres among the principal components, so that depths
        compare as F_ST does; 0 for a leaf.
    gap : Gap or None
        The clearest gap that was found; None if there are too few samples.
    halves : tuple
        Two further nodes, or none.
    """

    members: np.ndarray
    depth: float
    gap: Gap | None
    halves: tuple[Split, ...] = ()

    def walk(self) -> Iterator[Split]:
        """This node and all below it."""
        yield self
        for half in self.halves:
            yield from half.walk()

    @property
    def deepest(self) -> float:
        """Largest depth of this node and all below it."""
        return max(node.depth for node in self.walk())


@threadpool_limits.wrap(limits=1)  # sums in an order that does not depend on the threads
def split_samples(scores: np.ndarray) -> Split:
    """The tree of supported splits.

    Parameters
    ----------
    scores : float64 array, (n, k)
        On the significant principal components.
    """
    return _split(np.arange(len(scores)), scores)


def _split(members: np.ndarray, scores: np.ndarray) -> Split:
    points = scores[members]
    if not points.shape[1] or len(points) < max(2 * FEWEST, points.shape[1] + 2):
        return Split(members, 0.0, None)
    graph = neighbor_graph(points)
    coordinates = straight_coordinates(points, graph)
    cuts = list(_cuts(points, graph))
    gaps = [judge_cut(coordinates, cut) for cut in cuts]
    if not gaps:
        return Split(members, 0.0, None)
    best = next((i for i, gap in enumerate(gaps) if gap.supported), 0)
    if not gaps[best].supported:
        return Split(members, 0.0, gaps[best])
    side = cuts[best]
    apart = points[side].mean(axis=0) - points[~side].mean(axis=0)
    halves = _split(members[side], scores), _split(members[~side], scores)
    return Split(members, float((apart**2).sum()), gaps[best], halves)


def _cuts(points: np.ndarray, graph: csr_array) -> Iterator[np.ndarray]:
    """Ways to split some samples, bool arrays (n,), both halves of at least FEWEST samples.

    The halves of 2-means, moved off groups that they cut through; and the parts that the longest
    edge of the spanning tree joins, which finds small distant groups that 2-means would not.
    """
    tree = minimum_spanning_tree(graph)
    halves = KMeans(2, n_init=8, random_state=0).fit_predict(points) == 1
    halves = _with_neighbors(halves, graph)
    if FEWEST <= halves.sum() <= len(points) - FEWEST:
        yield halves
    for edge in np.argsort(-tree.data, kind="stable")[:MAX_EDGES]:
        without = tree.copy()
        without.data = np.where(np.arange(len(tree.data)) == edge, 0.0, tree.data)
        without.eliminate_zeros()
        _, part = connected_components(without, directed=False)
        end = int(np.searchsorted(tree.indptr, edge, side="right")) - 1
        side = part == part[end]
        if FEWEST <= side.sum() <= len(points) - FEWEST:
            yield side
            return


def _with_neighbors(side: np.ndarray, graph: csr_array) -> np.ndarray:
    """Halves in which every sample is with most of its neighbours; ties stay where they are."""
    joined = graph.copy()
    joined.data = np.ones_like(joined.data)
    degree = joined.sum(axis=1)
    for _ in range(MAX_ROUNDS):
        share = joined @ side.astype(np.float64)
        moved = np.where(2 * share == degree, side, 2 * share > degree)
        if (moved == side).all():
            break
        side = moved
    return side


def judge_cut(points: np.ndarray, side: np.ndarray) -> Gap:
    """The gap between two halves of some samples.

    Parameters
    ----------
    points : float64 array, (n, k)
    side : bool array, (n,)
    """
    line = points[side].mean(axis=0) - points[~side].mean(axis=0)
    along = points @ line
    few = min(side.sum(), (~side).sum())
    distinct = _distinctness(points[side], points[~side])
    if few < MINORITY * len(points):
        near = np.concatenate([np.sort(along[side])[:few], np.sort(along[~side])[-few:]])
        dip, p = diptest.diptest(near)
        return Gap(dip, p, distinct, bool(p < MAX_P and distinct >= DISTINCT))
    dip, p = diptest.diptest(along)
    return Gap(dip, p, distinct, bool(p < MAX_P and dip >= MIN_DIP))


def _distinctness(one: np.ndarray, other: np.ndarray) -> float:
    a, b = _spaced(one), _spaced(other)
    widest = max(_mean_distance(a, a), _mean_distance(b, b))
    return _mean_distance(a, b) / widest if widest else np.inf


def _spaced(points: np.ndarray) -> np.ndarray:
    chosen = np.linspace(0, len(points) - 1, min(len(points), MAX_SAMPLED)).astype(np.int64)
    return points[chosen]


def _mean_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Mean distance of pairs; among one set, of pairs of different samples."""
    total = float(np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2)).sum())
    pairs = len(a) * len(b) if a is not b else len(a) * (len(a) - 1)
    return total / max(1, pairs)


def cut_tree(root: Split, least: float = 0.0) -> np.ndarray:
    """Groups at the leaves of a tree of splits, int64 (n,), numbered as the tree is walked.

    `least`: nodes below which no split is at least so deep are not split.
    """
    groups = np.zeros(len(root.members), np.int64)
    count = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.halves and node.deepest >= least:
            waiting.extend(reversed(node.halves))
        else:
            groups[node.members] = count
            count += 1
    return groups
