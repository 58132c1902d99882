"""Agreement of maps with distances: neighbours kept, intruders, ranks.

The neighbours of an anchor are sorted once for each matrix of distances and once for each map,
whatever the number of maps that are compared with a matrix. Very many samples are not sorted: the
nearest are listed, and only their ranks are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.threads import run_tasks
from ..distance.matrix import rows_of_points
from ..io.sites import chunks

#: Neighbourhood sizes for recall, and for trustworthiness and continuity.
RECALL_AT, TRUST_AT = (5, 15, 50), 15
MOST_NEAR = max(*RECALL_AT, TRUST_AT)
#: Distances of one matrix, or on one map, that a thread holds at a time.
BLOCK_NUMBERS = 200_000
#: Samples up to which all others are ranked, and the number of others drawn for each anchor of
#: larger studies, whose rank correlations are those with the drawn.
MOST_RANKED, DRAWN_OTHERS, SEED = 20_000, 4_000, 1
#: Ending of the name of a standard error.
ERROR = "_se"
Rows = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class _Ranked:
    """All samples in order of their distance to each anchor of a block.

    Attributes
    ----------
    order : int64 array, (m, n)
        Nearest first; the anchor itself comes before all others, ties are in sample order.
    ranks : int64 array, (m, n)
        Place of each sample in `order`.
    centred : float64 array, (m, n)
        Ranks of the others less their mean, ties sharing their mean; 0 for the anchor.
    """

    order: np.ndarray
    ranks: np.ndarray
    centred: np.ndarray


def _rank(far: np.ndarray, anchors: np.ndarray) -> _Ranked:
    m, n = far.shape
    own = np.arange(m)
    far = np.array(far, np.float64)
    far[own, anchors] = -np.inf
    # numpy sorts several times faster if it need not keep ties in order
    order = np.argsort(far, axis=1)
    values = np.take_along_axis(far, order, 1)
    tied = (values[:, 1:] == values[:, :-1]).any(axis=1)
    order[tied] = np.argsort(far[tied], axis=1, kind="stable")
    ranks = np.empty((m, n), np.int64)
    np.put_along_axis(ranks, order, np.arange(n)[None], 1)
    centred = ranks.astype(np.float64)
    if tied.any():
        shared = _share_ties(values[tied])
        np.put_along_axis(shared, order[tied], shared.copy(), 1)
        centred[tied] = shared
    centred -= n / 2
    centred[own, anchors] = 0.0
    return _Ranked(order, ranks, centred)


def _share_ties(values: np.ndarray) -> np.ndarray:
    """Mean place of the values equal to each, for sorted rows; float64 (m, n)."""
    m, n = values.shape
    places = np.broadcast_to(np.arange(n), (m, n))
    new = np.ones((m, n + 1), bool)
    new[:, 1:-1] = values[:, 1:] != values[:, :-1]
    first = np.maximum.accumulate(np.where(new[:, :-1], places, 0), axis=1)
    last = np.where(new[:, 1:], places, n)[:, ::-1]
    return (first + np.minimum.accumulate(last, axis=1)[:, ::-1]) / 2


@dataclass(frozen=True)
class EachAnchor:
    """What a map and a matrix have in common in the view of each anchor.

    Attributes
    ----------
    intruders, lost : int64 arrays, (m,)
        Ranks beyond TRUST_AT of the neighbours on the map, and of the neighbours by distance.
    recalled : int64 array, (m, len(RECALL_AT))
    correlations : float64 array, (m,)
        NaN where all distances or all points are equal.
    """

    intruders: np.ndarray
    lost: np.ndarray
    recalled: np.ndarray
    correlations: np.ndarray

    def of(self, chosen: np.ndarray) -> EachAnchor:
        """Some of the anchors, by their places."""
        return EachAnchor(*(values[chosen] for values in vars(self).values()))

    def summary(self, n: int) -> dict[str, float]:
        """Means over anchors that were drawn from n samples, and their standard errors."""
        m, fits = len(self.intruders), n / 2 > TRUST_AT
        most = TRUST_AT * (2 * n - 3 * TRUST_AT - 1) / 2 if fits else np.nan
        shares = {
            "trustworthiness": (1 - self.intruders.sum() / (m * most), self.intruders / most),
            "continuity": (1 - self.lost.sum() / (m * most), self.lost / most),
        }
        for i, k in enumerate(RECALL_AT):
            own, of = self.recalled[:, i], k if k < n - 1 else np.nan
            shares[f"recall_{k}"] = own.sum() / (m * of), own / of
        shares["rank_correlation"] = self.correlations.mean(), self.correlations
        found = {key: float(mean) for key, (mean, _) in shares.items()}
        errors = {key: standard_error(values, n) for key, (_, values) in shares.items()}
        return found | {key + ERROR: error for key, error in errors.items()}


def standard_error(values: np.ndarray, n: int) -> float:
    """Standard error of the mean of a sample without replacement from n values; 0 of all of them.

    NaN of fewer than two values, or if one is NaN (Cochran 1977, Sampling techniques, section 2.5).
    """
    m = len(values)
    if m == n:
        return float("nan") if np.isnan(values).any() else 0.0
    if m < 2:
        return float("nan")
    return float(np.sqrt(values.var(ddof=1) / m * (1 - m / n)))


def _compare(drawn: _Ranked, far: _Ranked) -> EachAnchor:
    near = np.take_along_axis(far.ranks, drawn.order[:, 1 : MOST_NEAR + 1], 1)
    back = np.take_along_axis(drawn.ranks, far.order[:, 1 : TRUST_AT + 1], 1)
    return EachAnchor(
        np.maximum(near[:, :TRUST_AT] - TRUST_AT, 0).sum(axis=1),
        np.maximum(back - TRUST_AT, 0).sum(axis=1),
        np.stack([(near[:, :k] <= k).sum(axis=1) for k in RECALL_AT], axis=1),
        _correlations(drawn, far),
    )


def _correlations(drawn: _Ranked, far: _Ranked) -> np.ndarray:
    """Spearman's correlation of each row, float64 (m,); NaN where all of a row are equal."""
    # ranks are multiples of a half: these sums are exact, in any order
    both = np.einsum("ij,ij->i", drawn.centred, far.centred)
    norms = [np.einsum("ij,ij->i", one.centred, one.centred) for one in (drawn, far)]
    norm = np.sqrt(norms[0] * norms[1])
    return np.divide(both, norm, out=np.full(len(norm), np.nan), where=norm > 0)


@dataclass(frozen=True)
class _Listed:
    """The nearest others of each anchor of a block, where samples are too many to sort.

    Attributes
    ----------
    values : float64 array, (m, n)
        Distances.
    anchors : int64 array, (m,)
    near : int64 array, (m, MOST_NEAR)
    some : _Ranked
        Of each anchor and the others that are drawn for it.
    """

    values: np.ndarray
    anchors: np.ndarray
    near: np.ndarray
    some: _Ranked


def _list(far: np.ndarray, anchors: np.ndarray) -> _Listed:
    from .near_ranks_cpu import k_nearest  # imports numba

    values = np.ascontiguousarray(far, np.float64)
    which = np.stack([_others_of(anchor, values.shape[1]) for anchor in anchors.tolist()])
    some = _rank(np.take_along_axis(values, which, 1), np.zeros(len(anchors), np.int64))
    return _Listed(values, anchors, k_nearest(values, anchors, MOST_NEAR), some)


def _others_of(anchor: int, n: int) -> np.ndarray:
    """An anchor, and DRAWN_OTHERS of the others: the same for all maps and matrices."""
    count = min(DRAWN_OTHERS, n - 1)
    drawn = np.random.default_rng([SEED, anchor]).choice(n - 1, count, replace=False, shuffle=False)
    return np.concatenate([[anchor], np.sort(drawn + (drawn >= anchor))])


def _compare_lists(drawn: _Listed, far: _Listed) -> EachAnchor:
    from .near_ranks_cpu import ranks_beyond

    anchors = far.anchors
    kept = [
        (drawn.near[:, :k, None] == far.near[:, None, :k]).any(axis=2).sum(axis=1)
        for k in RECALL_AT
    ]
    return EachAnchor(
        ranks_beyond(far.values, anchors, drawn.near[:, :TRUST_AT]),
        ranks_beyond(drawn.values, anchors, far.near[:, :TRUST_AT]),
        np.stack(kept, axis=1),
        _correlations(drawn.some, far.some),
    )


def compare_each(
    maps: Mapping[Hashable, np.ndarray],
    references: Mapping[Hashable, Rows],
    compared: Mapping[Hashable, Sequence[Hashable]],
    anchors: np.ndarray,
    threads: int = 1,
) -> dict[tuple[Hashable, Hashable], EachAnchor]:
    """What `measure_agreement` summarises, by map and reference."""
    n = len(next(iter(maps.values())))
    rank, compare = (_rank, _compare) if n <= MOST_RANKED else (_list, _compare_lists)

    def work(first: int, last: int) -> dict[tuple[Hashable, Hashable], EachAnchor]:
        some, found = anchors[first:last], {}
        far = {name: rank(rows(some), some) for name, rows in references.items()}
        for name, points in maps.items():
            drawn = rank(rows_of_points(points)(some), some)
            found |= {(name, other): compare(drawn, far[other]) for other in compared[name]}
        return found

    blocks = run_tasks(work, chunks(len(anchors), max(1, BLOCK_NUMBERS // max(n, 1))), threads)
    pairs = [(name, other) for name in maps for other in compared[name]]
    return {pair: _joined([block[pair] for block in blocks]) for pair in pairs}


def _joined(blocks: list[EachAnchor]) -> EachAnchor:
    parts = zip(*(vars(block).values() for block in blocks), strict=True)
    return EachAnchor(*map(np.concatenate, parts))


def measure_agreement(
    maps: Mapping[Hashable, np.ndarray],
    references: Mapping[Hashable, Rows],
    compared: Mapping[Hashable, Sequence[Hashable]],
    anchors: np.ndarray,
    threads: int = 1,
) -> dict[tuple[Hashable, Hashable], dict[str, float]]:
    """Agreement of maps with distances.

    Trustworthiness and continuity as defined by Venna and Kaski (2001), with k = TRUST_AT:
    samples that are neighbours only on the map lower trustworthiness, neighbours that the map
    separates lower continuity. Recall is the share of the k nearest by distance that
    are among the k nearest on the map. Each is a mean over the anchors; neighbours come from all
    samples. Ties are broken by sample order.

    Parameters
    ----------
    maps : dict
        Points (n_samples, n_axes) by the name of the map.
    references : dict
        Distances (len(which), n_samples) of the samples `which` to all, by name.
    compared : dict
        Names of the references of each map.
    anchors : int array
        Rows whose neighbourhoods are measured.
    threads : int
        Changes no byte.

    Returns
    -------
    dict
        By map and reference: `trustworthiness`, `continuity`, `recall_{k}`, `rank_correlation`
        (Spearman, all pairs of an anchor and another sample; above MOST_RANKED samples, of an
        anchor and DRAWN_OTHERS, whose choice is part of the standard error). NaN if the study is
        too small for k, or if all distances or all points are equal. Then the standard error of
        each, with the ending ERROR: anchors are a random sample of all, without replacement.
    """
    n = len(next(iter(maps.values())))
    each = compare_each(maps, references, compared, anchors, threads)
    return {pair: found.summary(n) for pair, found in each.items()}
