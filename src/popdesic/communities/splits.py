"""Communities as splits that a gap in the data supports, found from the top down.

A set of samples is split in two only if the samples leave a gap between the halves, or a valley: a
few mixed samples between two groups must not join them. The gap is tested by Hartigan's dip
(Hartigan and Hartigan 1985) on the line between the halves' centres, as in projected dip-means
(Kalogeratos and Likas 2012; Chamalis and Likas 2018), in coordinates where curved continua are
straight (`straighten`). That the dip spans a good part of the way between the halves, and is not
the space between two demes of a chain, is seen by counting: a stretch of that way must hold at most
half as many samples as each stretch of the same length beside it. An even continuum has no valley
wherever it is cut, and panmictic samples have no coordinates that mean anything: neither is split.

Testing from the top down matters. The demes of a stepping-stone model are groups of their own if
two neighbours are looked at alone; seen whole they are a continuum, and they are called one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.threads import one_blas_thread, run_tasks
from .dip import dip, dip_probability
from .straighten import neighbor_graph, straight_coordinates

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Smallest dip of a gap: that of seven equally spaced demes, fewer of which are no continuum.
#: Largest probability of so large a dip, and of so few samples in a valley, without a gap.
MIN_DIP, MAX_P = 0.07, 1e-3
#: Most samples in a valley, as a share of those in the emptier of the two stretches beside it.
#: Along a continuum it is about 1 however densely parts of it are sampled.
MOST_IN_VALLEY = 0.5
#: Lengths of valleys, as shares of the way between the medians of two halves, and places of each.
#: Half of it is a quarter of a continuum; a third still spans seven demes' spaces.
VALLEYS, PLACES = (1 / 2, 1 / 3), 21
#: Fewest samples of a community.
FEWEST = 10
#: Longest edges of the spanning tree that are tried as places of a cut, and most that are judged.
MAX_EDGES, MAX_CUTS = 50, 8
#: Most rounds in which samples move to their neighbours' half.
MAX_ROUNDS = 10
#: F_ST from which on a split is coarse, and shares of the deepest F_ST between which that limit
#: stays. Chosen on simulated worlds with continents (tests/bench/bench_communities.py --worlds 16).
COARSE_F_ST, COARSE_BETWEEN = 0.02, (0.1, 0.4)
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
    valley : float
        Samples in the emptiest stretch between the halves, as a share of those in the emptier of
        the stretches beside it; 1 where no stretch is significantly emptier.
    gain : float
        Sum of squares between the halves' centres: of two gaps the larger one splits.
    """

    dip: float
    p: float
    valley: float
    gain: float = 0.0

    @property
    def supported(self) -> bool:
        """Whether the halves are communities of their own."""
        return self.dip >= MIN_DIP and self.p < MAX_P and self.valley <= MOST_IN_VALLEY


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
    gaps = _judge_each(coordinates, cuts)
    best = max(range(len(gaps)), key=lambda i: (gaps[i].supported, gaps[i].gain))
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


def _judge_each(points: np.ndarray, cuts: list[np.ndarray]) -> list[Gap]:
    """`judge_cut` of every cut; about half of them repeat others, perhaps with halves swapped."""
    known: dict[bytes, Gap] = {}
    gaps = []
    for side in cuts:
        # Of equal halves the first is another if they are swapped.
        smaller = side if 2 * np.count_nonzero(side) <= len(side) else ~side
        key = smaller.tobytes()
        if key not in known:
            known[key] = judge_cut(points, smaller)
        gaps.append(known[key])
    return gaps


def judge_cut(points: np.ndarray, side: np.ndarray) -> Gap:
    """The gap between two halves of some samples.

    Parameters
    ----------
    points : float64 array, (n, k)
    side : bool array, (n,)
    """
    one, other = points[side], points[~side]
    if len(one) > len(other):
        one, other = other, one
    line = one.mean(axis=0) - other.mean(axis=0)
    along, beyond = np.sort(one @ line), np.sort(other @ line)
    near = np.concatenate([along, beyond[-len(one) :]])
    found = dip(near)
    gain = float(line @ line) * len(one) * len(other) / len(points)
    return Gap(found, dip_probability(found, len(near)), _valley(along, beyond), gain)


def _valley(one: np.ndarray, other: np.ndarray) -> float:
    """`Gap.valley` of two halves on a line, ascending, on which the first lies above the other."""
    from scipy.special import bdtr

    low, high = np.median(other), np.median(one)
    if high <= low:
        return 1.0
    both, least = np.sort(np.concatenate([one, other])), 1.0
    for length in (high - low) * np.array(VALLEYS):
        first = np.linspace(low, high - length, PLACES)
        ends = np.searchsorted(both, first + length * np.arange(-1, 3)[:, None])
        before, inside, after = np.diff(ends, axis=0)
        beside = np.minimum(before, after)
        # As likely in the valley as beside it, if there is none.
        rare = bdtr(inside, inside + beside, 0.5) < MAX_P
        least = min(least, float((inside[rare] / beside[rare]).min(initial=1.0)))
    return least


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
    """Depth from which on splits are coarse: COARSE_F_ST, within COARSE_BETWEEN of the deepest.

    The shares are for filters of sites that make all F_ST smaller, and for studies whose groups
    differ less, or much more, than continents do. 0 for a tree without splits.
    """
    low, high = (share * root.deepest for share in COARSE_BETWEEN)
    return float(np.clip(COARSE_F_ST, low, high))


def cut_coarse(root: Split) -> np.ndarray:
    """Groups that coarse splits part, int64 (n,): the communities that are shown first."""
    return cut_tree(root, least_coarse_depth(root))


def describe_split(node: Split) -> dict[str, Any]:
    """A split, or the clearest gap that supports none, as `communities.json` has it."""
    return {
        "samples": len(node.members),
        "halves": [len(half.members) for half in node.halves],
        "f_st": round(node.depth, 5),
        "dip": round(node.gap.dip, 5),
        "p": round(node.gap.p, 6),
        "valley": round(node.gap.valley, 4),
    }


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
