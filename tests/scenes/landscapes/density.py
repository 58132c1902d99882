"""What the density of sampling does to lengths, with and without correction (geodesic.density)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from . import scores
from .methods import NEIGHBORS, People, Way
from .scenes import Scene

#: Exponents and numbers of neighbours that are compared.
ALPHAS = (1.5, 2.0, 4.0, 8.0)
NEIGHBOURS = (15, 30, 60)


def _ways() -> list[Way]:
    """Ways at the first of ALPHAS; without correction the complete graph has no neighbours."""
    found = []
    for kind in ("Fermat", "knn"):
        for density in ("keep", "correct"):
            many = (NEIGHBORS,) if (kind, density) == ("Fermat", "keep") else NEIGHBOURS
            found += [Way(kind, ALPHAS[0], k, density=density) for k in many]
    return found


def ratio_of_halves(drawn: Scene, lengths: np.ndarray) -> float:
    """How much longer equal true distances are where fewer people were sampled.

    Ratio of mean lengths in the sparse half of a chain to those in its dense half.
    """
    x, truth = drawn.coordinates[:, 0], drawn.true_distance
    dense = x < drawn.parameters["demes"] // 2
    between = np.unique(truth[np.ix_(~dense, ~dense)])[1:]
    means = []
    for half in (~dense, dense):
        own, true = lengths[np.ix_(half, half)], truth[np.ix_(half, half)]
        means.append([own[true == steps].mean() for steps in between])
    return float(np.mean(np.divide(*means)))


def measure_correction(drawn: Scene, people: People) -> dict[tuple[str, str], float]:
    """Rank correlation with the true distance; where sampling is uneven, ratio of the halves.

    Of lengths as they are exported: roots of sums, but for corrected weights the sums themselves.
    """
    found = {}
    for one in _ways():
        for alpha in ALPHAS:
            way = replace(one, alpha=alpha)
            lengths = way.lengths(people)
            if way.density == "keep":
                lengths = lengths ** (1 / alpha)
            rank = scores.rank_correlation(lengths, drawn.true_distance)
            found["corrected rank", str(way)] = rank
            if "denser" in drawn.parameters:
                found["corrected ratio", str(way)] = ratio_of_halves(drawn, lengths)
    return found


def correction_rows(name: str, draws: Sequence[dict[tuple[str, str], float]]) -> list[tuple]:
    """Rows of a table, one a graph, of the means of a scene's draws; see `CORRECTION_HEAD`."""
    rows = []
    for one in _ways():
        keys = [
            (kind, str(replace(one, alpha=alpha)))
            for kind in ("corrected ratio", "corrected rank")
            for alpha in ALPHAS
        ]
        cells = [f"{np.mean([v[k] for v in draws]):.3f}" if k in draws[0] else "" for k in keys]
        if any(cells):
            everyone = (one.kind, one.density) == ("Fermat", "keep")
            graph = "knn" if one.kind == "knn" else "complete"
            rows.append((name, graph, "" if everyone else one.neighbors, one.density, *cells))
    return rows


CORRECTION_HEAD = (
    *("scene", "graph", "neighbours", "density"),
    *(f"{what}, α {alpha:g}" for what in ("ratio", "rank") for alpha in ALPHAS),
)
