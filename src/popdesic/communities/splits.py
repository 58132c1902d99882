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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..core.threads import one_blas_thread, run_tasks
from .dip import dip, dip_probability
from .near import nearest_to
from .straighten import neighbor_graph, straight_coordinates

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Smallest dip of a gap, largest probability of so large a dip without one, and smallest width of
#: a gap as a share of the mean distance within the wider half. In simulations (stepping-stone
#: chains and grids with demes sampled evenly or not, gradients) dips of cuts reach 0.066 and widths
#: 0.42, never both; four islands at F_ST 0.01 have at least 0.083 and 0.66
#: (tests/bench/bench_landscapes.py).
MIN_DIP, MAX_P, MIN_WIDTH = 0.07, 1e-3, 0.45
#: Share of the smaller half that may lie in a gap.
IN_GAP = 0.05
#: Fewest samples of a community.
FEWEST = 10
#: Longest edges of the spanning tree that are tried as places of a cut, and most that are judged.
MAX_EDGES, MAX_CUTS = 50, 8
#: Most rounds in which samples move to their neighbours' half.
MAX_ROUNDS = 10
#: Samples from which mean distances are computed, evenly spaced.
MAX_SAMPLED = 1_000
#: Most samples of the smaller half from which the width of a gap is measured, evenly spaced.
MAX_ACROSS = 5_000
#: Where the widest gap between depths is looked for, as shares of the deepest: splits deeper than
#: the second are always coarse, those less deep than the first never. Chosen on simulated worlds
#: with continents (tests/bench/bench_communities.py --worlds 16).
COARSE_BETWEEN = (0.1, 0.4)
#: Keeps a ratio finite where no split has any depth.
TINY = 1e-12
#: Most significant components that communities are found on. Chosen on the same worlds: unrelated
#: people had at most 11, and all of them did no harm; families that define axes add dozens.
MOST_COMPONENTS = 20


@dataclass(frozen=True)
class Gap:
    """Evidence for one split.

    Attributes
    ----------
    dip : float
        Hartigan's dip of the samples next to the cut, as many on either side: 0 for an even spread,
        at most 0.25.
    p : float
        Probability of a dip at least as large under an even spread.
    width : float
        Distance to the larger half that all but IN_GAP of the smaller half exceed, as a share of
        the mean distance within the wider half.
    """

    dip: float
    p: float
    width: float

    @property
    def supported(self) -> bool:
        """Whether the halves are communities of their own."""
        return self.dip >= MIN_DIP and self.p < MAX_P and self.width >= MIN_WIDTH


@dataclass(frozen=True)
class Split:
    """A node of the tree of splits: a set of samples and, if a gap supports it, its two halves.

    Attributes
    ----------
    members : int64 array
        Sample numbers, ascending.
    gap : Gap or None
        The clearest gap that was found; None if there are too few samples, or if no gap supports
        a split of a half.
    halves : tuple
        Two further nodes, or none.
    depth : float
        Hudson's F_ST between the halves, from `depth.with_depths`; 0 for a leaf, and before.
    """

    members: np.ndarray
    gap: Gap | None
    halves: tuple[Split, ...] = ()
    depth: float = 0.0

    def walk(self) -> Iterator[Split]:
        """This node and all below it."""
        yield self
        for half in self.halves:
            yield from half.walk()

    @property
    def deepest(self) -> float:
        """Largest depth of this node and all below it."""
        return max(node.depth for node in self.walk())


def split_samples(scores: np.ndarray, threads: int = 1) -> Split:
    """The tree of supported splits.

    Parameters
    ----------
    scores : float64 array, (n, k)
        On the significant principal components.
    threads : int
        Changes no byte.
    """
    return split_each([scores], threads)[0]


@one_blas_thread
def split_each(drawn: Sequence[np.ndarray], threads: int = 1) -> list[Split]:
    """`split_samples` of several sets of samples, side by side on some threads.

    The geodesics of a set, most of its work, are shared among the threads that are left over.
    """
    share = max(1, threads // max(1, len(drawn)))

    def split(own: np.ndarray) -> Split:
        return _split(np.arange(len(own)), own, share)

    return run_tasks(split, zip(drawn), threads)


def _split(members: np.ndarray, scores: np.ndarray, threads: int, whole: bool = True) -> Split:
    """The tree of some samples; `whole`: say which gap is clearest where none supports a split."""
    points = scores[members]
    if not points.shape[1] or len(points) < max(2 * FEWEST, points.shape[1] + 2):
        return Split(members, None)
    graph = neighbor_graph(points, threads=threads)
    coordinates = straight_coordinates(points, graph, threads)
    cuts = list(_cuts(points, graph))
    if not cuts:
        return Split(members, None)
    gaps = _judge_each(coordinates, cuts, every_width=whole, threads=threads)
    best = max(range(len(gaps)), key=lambda i: (gaps[i].supported, gaps[i].width))
    if not gaps[best].supported:
        return Split(members, gaps[best] if whole else None)
    side = cuts[best]
    halves = tuple(_split(members[own], scores, threads, False) for own in (side, ~side))
    return Split(members, gaps[best], halves)


def _cuts(points: np.ndarray, graph: csr_array) -> Iterator[np.ndarray]:
    """Ways to split some samples, bool arrays (n,), both halves of at least FEWEST samples.

    The halves of 2-means, moved off groups that they cut through; and the parts that the longest
    edges of the spanning tree join, which separate distant groups that 2-means would cut or miss.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    from .graph_sides_cpu import settle_sides, sides_of_edges
    from .two_means_cpu import two_means

    joined = _neighbors_of(graph)
    halves = settle_sides(*joined, two_means(points), MAX_ROUNDS)
    if FEWEST <= halves.sum() <= len(points) - FEWEST:
        yield halves
    tree = minimum_spanning_tree(graph)
    rows = np.repeat(np.arange(len(points)), np.diff(tree.indptr))
    both = _neighbors_of(tree + tree.T)
    longest = np.argsort(-tree.data, kind="stable")[:MAX_EDGES]
    edges = rows[longest], tree.indices[longest].astype(np.int64)
    yield from sides_of_edges(*both, *joined, *edges, MAX_ROUNDS, FEWEST, MAX_CUTS)


def _neighbors_of(graph: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Where the neighbours of every node start, and these: int64 (n + 1,) and (n_edges,)."""
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


def _judge_each(
    points: np.ndarray, cuts: list[np.ndarray], every_width: bool, threads: int = 1
) -> list[Gap]:
    """`judge_cut` of every cut; about half of them repeat others, perhaps with halves swapped."""
    known: dict[bytes, Gap] = {}
    gaps = []
    for side in cuts:
        # Of equal halves the first is another if they are swapped.
        smaller = side if 2 * np.count_nonzero(side) <= len(side) else ~side
        key = smaller.tobytes()
        if key not in known:
            known[key] = judge_cut(points, smaller, every_width, threads)
        gaps.append(known[key])
    return gaps


def judge_cut(
    points: np.ndarray, side: np.ndarray, every_width: bool = True, threads: int = 1
) -> Gap:
    """The gap between two halves of some samples.

    Parameters
    ----------
    points : float64 array, (n, k)
    side : bool array, (n,)
    every_width : bool
        Else the width is left out, as 0, of gaps whose dip does not support a split.
    """
    one, other = points[side], points[~side]
    if len(one) > len(other):
        one, other = other, one
    line = one.mean(axis=0) - other.mean(axis=0)
    near = np.concatenate([one @ line, np.sort(other @ line)[-len(one) :]])
    found = dip(near)
    gap = Gap(found, dip_probability(found, len(near)), 0.0)
    if not every_width and not replace(gap, width=np.inf).supported:
        return gap
    _, across = nearest_to(evenly_spaced(one, MAX_ACROSS), other, threads)
    widest = max(_mean_distance(one), _mean_distance(other))
    return replace(gap, width=float(np.quantile(across, IN_GAP)) / widest if widest else 0.0)


def _mean_distance(points: np.ndarray) -> float:
    """Mean distance of pairs of at most MAX_SAMPLED evenly spaced points."""
    from scipy.spatial.distance import pdist

    chosen = evenly_spaced(points, MAX_SAMPLED)
    return float(pdist(chosen).mean()) if len(chosen) > 1 else 0.0


def evenly_spaced(points: np.ndarray, most: int) -> np.ndarray:
    """At most so many of some rows, evenly spaced."""
    n = len(points)
    return points[np.linspace(0, n - 1, min(n, most)).astype(np.int64)]


def cut_tree(root: Split, least: float = 0.0) -> np.ndarray:
    """Groups at the leaves of a tree of splits, int64 (n,), numbered as the tree is walked.

    `least`: nodes below which no split is at least so deep are not split.
    """
    groups = np.zeros(len(root.members), np.int64)
    for number, (node, _) in enumerate(_leaves(root, least)):
        groups[node.members] = number
    return groups


def least_coarse_depth(root: Split) -> float:
    """Depth from which on splits are coarse: the first above the widest gap between depths.

    Depths compare as ratios, because filters of sites and who was sampled change all F_ST. Only the
    part of a gap within COARSE_BETWEEN counts. 0 for a tree without splits.
    """
    low, high = (share * root.deepest for share in COARSE_BETWEEN)
    depths = sorted({node.depth for node in root.walk() if node.halves}, reverse=True)
    widest, least = 0.0, root.deepest
    for depth, following in pairwise([*depths, 0.0]):
        ratio = min(depth, high) / max(following, low, TINY)
        if ratio > widest:
            widest, least = ratio, depth
    return least


def cut_coarse(root: Split) -> np.ndarray:
    """Groups that coarse splits part, int64 (n,): the communities that are shown first."""
    return cut_tree(root, least_coarse_depth(root))


def join_depths(root: Split) -> np.ndarray:
    """Depth of the split just above each sample's coarse group, float64 (n,); NaN without one."""
    depths = np.full(len(root.members), np.nan)
    for node, above in _leaves(root, least_coarse_depth(root)):
        depths[node.members] = above
    return depths


def _leaves(root: Split, least: float) -> Iterator[tuple[Split, float]]:
    """The nodes at which a tree is cut, and the depth of the split above each."""
    waiting = [(root, np.nan)]
    while waiting:
        node, above = waiting.pop()
        if node.halves and node.deepest >= least:
            waiting += [(half, node.depth) for half in reversed(node.halves)]
        else:
            yield node, above
