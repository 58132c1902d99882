"""Ways to measure distances between people, and the rule that chooses one without the truth.

What it is judged by is in `held_out`: how well a way orders pairs at sites that took no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..components.pca import STORED
from ..engine.backend import Backend
from .graph import COMPLETE, Graph, longest_paths
from .measure import close_all
from .weights import choose_number, power_weights

#: Numbers of components that are compared, and nearest neighbours.
COMPONENTS = (1, 2, 4, STORED)
NEIGHBORS = 15
#: How much more the rank correlation at held-out sites has to be for another number of components
#: than the largest of COMPONENTS, or for another way than geodesics among nearest neighbours.
#: Chosen on seeds 1 and 2 of the large scenes of tests/scenes/landscapes: the largest lead of a way
#: that is worse in truth was 0.0015, the smallest lead worth having 0.0057.
MARGIN = 0.003
#: Rank correlation with plain distances from which on geodesics do not change the picture.
SAME_ORDER = 0.99
#: Rank correlation at held-out sites below which these do not tell ways apart.
LEAST_EVIDENCE = 0.05


@dataclass(frozen=True)
class Way:
    """A way to measure distances.

    Attributes
    ----------
    graph : {'complete', 'knn'}
    alpha : float
        Edges weigh d^alpha; plain distances are those of the complete graph at alpha = 1.
    neighbors : int
        Of the graph ``knn``; else 0.
    pcs : int or None
        Number of components; None for distances of genotypes.
    """

    graph: str = "complete"
    alpha: float = 1.0
    neighbors: int = 0
    pcs: int | None = None

    @property
    def is_plain(self) -> bool:
        return self.graph == "complete" and self.alpha == 1

    def lengths(self, distances: np.ndarray, backend: Backend) -> np.ndarray:
        """Lengths of the shortest paths between points with these distances, float64 (n, n)."""
        if self.is_plain:
            return distances
        everyone, graph = np.ones(len(distances), bool), Graph(self.graph, self.neighbors)
        weights = graph.keep_edges(power_weights(distances, self.alpha), distances, everyone)
        longest = None if graph == COMPLETE else longest_paths(weights, everyone)
        number = choose_number(weights, everyone, "auto", longest)
        return number.value(close_all(number.store(weights), backend)[0])


PLAIN = Way()
#: Taken unless another way leads by the margin: the geodesics of Isomap.
NEAREST = Way("knn", 1.0, NEIGHBORS)
#: What is compared for each number of components.
WAYS = (NEAREST, PLAIN, Way(alpha=1.5), Way(alpha=2.0))


def ways_of(components: Sequence[int | None]) -> list[Way]:
    """All ways for these numbers of components; ``[None]`` for distances of genotypes."""
    return [replace(way, pcs=k) for k in components for way in WAYS]


@dataclass(frozen=True)
class Evidence:
    """What held-out sites say of each way; means over splits and directions.

    Attributes
    ----------
    held_out : dict
        Rank correlation of its lengths with squared genetic distances at held-out sites.
    agreement : dict
        Rank correlation of its lengths with plain distances of the same components.
    chance : dict
        Largest rank correlation at held-out sites after people changed places at random.
    """

    held_out: dict[Way, float]
    agreement: dict[Way, float]
    chance: dict[Way, float]

    def of(self, space: str) -> Evidence:
        """Of the space ``genotypes`` or ``pcs`` alone."""
        tables = self.held_out, self.agreement, self.chance
        return Evidence(
            *(
                {way: table[way] for way in table if (way.pcs is None) == (space == "genotypes")}
                for table in tables
            )
        )


@dataclass(frozen=True)
class Choice:
    """The way that is taken, and why.

    Attributes
    ----------
    way : Way
    reason : str
        ``nearest`` or ``lead``: geodesics order pairs best; ``plain``: plain distances do;
        ``same order``: geodesics hardly change it; ``no evidence``: nothing could be told.
    best : Way
        The best geodesics at held-out sites, of the chosen number of components; where plain
        distances are better, the best of those that order pairs differently.
    """

    way: Way
    reason: str
    best: Way


def choose_way(evidence: Evidence) -> Choice:
    """The best way at held-out sites, with preferences.

    The largest of COMPONENTS is taken unless the best way of fewer leads its best by more than
    MARGIN, and more components under the same condition. Then geodesics among nearest neighbours
    are taken unless the best way leads them by more than MARGIN; if it does, but does not lead
    plain distances by as much, it is these. Plain distances are also taken where geodesics put
    pairs in almost the same order, or where the best way is no better than chance.
    """
    held_out = evidence.held_out
    groups: dict[int | None, list[Way]] = {}
    for way in held_out:
        groups.setdefault(way.pcs, []).append(way)
    numbers = [k for k in groups if k is not None]
    usual = [k for k in numbers if k <= COMPONENTS[-1]]
    order = [*sorted(usual, reverse=True), *sorted(set(numbers) - set(usual))] or [None]
    leaders = [max(groups[k], key=held_out.__getitem__) for k in order]
    best = leaders[0]
    for other in leaders[1:]:
        if held_out[other] > held_out[best] + MARGIN:
            best = other
    nearest, plain = replace(NEAREST, pcs=best.pcs), replace(PLAIN, pcs=best.pcs)
    bent = max(
        (w for w in groups[best.pcs] if not w.is_plain),
        key=lambda way: (evidence.agreement[way] < SAME_ORDER, held_out[way]),
    )
    # The best of many ways may be so by chance: compared with the best by chance.
    if held_out[best] < max(LEAST_EVIDENCE, *evidence.chance.values()):
        return Choice(plain, "no evidence", bent)
    leads = held_out[best] > held_out[nearest] + MARGIN
    if leads and held_out[best] <= held_out[plain] + MARGIN:
        best = plain
    chosen = best if leads else nearest
    if chosen.is_plain:
        return Choice(plain, "plain", bent)
    if evidence.agreement[chosen] >= SAME_ORDER:
        return Choice(plain, "same order", chosen)
    return Choice(chosen, "lead" if leads else "nearest", chosen)


def name_of_way(way: Way) -> str:
    """What a way is called in a sentence."""
    if way.is_plain:
        return "plain distances"
    edges = f" among {way.neighbors} nearest neighbours" if way.graph == "knn" else ""
    return f"geodesics{edges} with α = {way.alpha:g}"
