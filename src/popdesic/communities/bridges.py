"""Samples between communities: those of mixed ancestry, which belong to none of them alone.

On principal components a sample of mixed ancestry lies between the centres of its ancestors'
groups, at the shares that each gave. So each sample is fitted by a mixture of the centres of all
communities, with axes scaled by how far samples of one community scatter along them. A community
that is itself such a mixture, without any drift of its own, is a bridge as a whole.
"""

from __future__ import annotations

import numpy as np

#: Least second share of a sample between communities, and in standard errors of a share.
LEAST_SHARE, ERRORS = 0.2, 4.0
#: Largest distance from the mixture, as a multiple of what 95 % of unmixed samples have.
FARTHEST = 1.5
#: Largest distance of a community's centre from a mixture of others, in scatters of its samples.
FROM_OTHERS = 1.0
#: Quantiles of a community along an axis; standard deviations between the outer two of a side.
TAILS, TAIL_WIDTH = (0.05, 0.25, 0.75, 0.95), 0.9704


def find_bridges(
    points: np.ndarray, community: np.ndarray, founders: np.ndarray
) -> list[tuple[int, ...]]:
    """Communities that each sample lies between, ascending; none for those of one community.

    Parameters
    ----------
    points : float64 array, (n, k)
        On the significant principal components.
    community : int array, (n,)
        1, 2, …
    founders : bool array, (n,)
        They alone define centres and scatter, where a community has any.
    """
    count = int(community.max())
    none: list[tuple[int, ...]] = [()] * len(points)
    told = [(community == g) & founders for g in range(1, count + 1)]
    told = [own if own.any() else community == g for g, own in enumerate(told, 1)]
    centres = np.array([np.median(points[own], axis=0) for own in told])
    scale = np.median([_scatter(points[own], count == 2) for own in told], axis=0)
    used = scale > 0
    if count < 2 or not used.any():
        return none
    points, centres = points[:, used] / scale[used], centres[:, used] / scale[used]
    sources = _sources(centres)
    shares = np.array([nearest_mixture(point, centres[sources]) for point in points])
    far = np.sqrt(((points - shares @ centres[sources]) ** 2).sum(axis=1))
    order = np.argsort(-shares, axis=1, kind="stable")
    second = np.take_along_axis(shares, order[:, [1]], 1)[:, 0]
    one, other = (centres[sources][order[:, i]] for i in range(2))
    between = np.linalg.norm(one - other, axis=1)
    is_bridge = second > np.maximum(LEAST_SHARE, ERRORS / np.maximum(between, 1e-9))
    unmixed = ~is_bridge & founders
    if not unmixed.any():  # founders of mixed ancestry alone
        unmixed = ~is_bridge
    if unmixed.any():
        is_bridge &= far <= FARTHEST * np.quantile(far[unmixed], 0.95)
    found = list(none)
    for i in np.flatnonzero(is_bridge):
        own = sources[shares[i] > LEAST_SHARE]
        found[i] = tuple((np.sort(own) + 1).tolist())
    return found


def _scatter(points: np.ndarray, by_tails: bool) -> np.ndarray:
    """Standard deviation of a community along each axis, whatever few samples do: float64 (k,).

    `by_tails`: by the tail of the side on which no mixed samples lie, even if these are nearly half
    of it. With two communities the median of all scatters does not tell that one took them in.
    """
    whole = 1.4826 * np.median(np.abs(points - np.median(points, axis=0)), axis=0)
    if not by_tails:
        return whole
    low, lower, upper, high = np.quantile(points, TAILS, axis=0)
    return np.minimum(whole, np.minimum(lower - low, high - upper) / TAIL_WIDTH)


def _sources(centres: np.ndarray) -> np.ndarray:
    """Communities whose centre is no mixture of the others', at least two: int64 array."""
    kept = list(range(len(centres)))
    while len(kept) > 2:
        off = []
        for g in kept:
            others = centres[[h for h in kept if h != g]]
            share = nearest_mixture(centres[g], others)
            mixed = np.sort(share)[-2] > LEAST_SHARE
            off.append(np.linalg.norm(centres[g] - share @ others) if mixed else np.inf)
        if min(off) > FROM_OTHERS:
            break
        kept.pop(int(np.argmin(off)))
    return np.array(kept)


def nearest_mixture(point: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Shares, not negative and of sum 1, of the mixture of centres (m, k) nearest to a point."""
    from scipy.optimize import nnls

    heavy = 1e3 * max(1.0, float(np.abs(centres).max()))
    matrix = np.vstack([centres.T, np.full(len(centres), heavy)])
    share, _ = nnls(matrix, np.append(point, heavy))
    return share / share.sum()
