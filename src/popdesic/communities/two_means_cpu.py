"""Two clusters of points by k-means, compiled.

Not scikit-learn's: its threads add the points of a centre in the order in which they end, so that
the last digits of centres, and with them points on the border, could differ between runs.
"""

from __future__ import annotations

import numba
import numpy as np

#: Starts, of which the one with the smallest sum of squares counts.
STARTS = 8
#: Most rounds of one start, and the shift of the centres at which it ends, as a share of the mean
#: variance of the coordinates.
MOST_ROUNDS, LEAST_SHIFT = 300, 1e-4


def two_means(points: np.ndarray) -> np.ndarray:
    """The halves of 2-means: bool (n,).

    Lloyd's algorithm from STARTS pairs of points that greedy k-means++ draws (Arthur and
    Vassilvitskii 2007), the second from two candidates. The draws are those of scikit-learn's
    ``KMeans(2, n_init=8, random_state=0)``, so that the halves are too, but for ties within the
    rounding of sums.

    Parameters
    ----------
    points : float64 array, (n, k)
    """
    centred = np.ascontiguousarray(points - points.mean(axis=0))
    shift = LEAST_SHIFT * float(np.var(centred, axis=0).mean())
    drawn = np.random.RandomState(0).random_sample((STARTS, 3))
    return two_means_loop(centred, drawn, MOST_ROUNDS, shift)


@numba.njit(nogil=True, cache=True)
def _squares_from(points, center):
    """Squared distances of all points from a place, float64 (n,)."""
    n, k = points.shape
    squares = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(k):
            total += (points[i, j] - center[j]) ** 2
        squares[i] = total
    return squares


@numba.njit(nogil=True, cache=True)
def _drawn_centers(points, drawn):
    """Two points to start from, float64 (2, k): the first is any, the second far from it."""
    n = len(points)
    centers = np.empty((2, points.shape[1]))
    centers[0] = points[min(n - 1, int(drawn[0] * n))]
    from_first = _squares_from(points, centers[0])
    upto = np.cumsum(from_first)
    least = np.inf
    for candidate in drawn[1:]:
        at = min(n - 1, np.searchsorted(upto, candidate * upto[-1]))
        left = np.minimum(from_first, _squares_from(points, points[at])).sum()
        if left < least:
            least = left
            centers[1] = points[at]
    return centers


@numba.njit(nogil=True, cache=True)
def _assign(points, centers, side):
    """Enter which points are nearer to the second centre; the changes, and the sum of squares."""
    first, second = _squares_from(points, centers[0]), _squares_from(points, centers[1])
    changes, total = 0, 0.0
    for i in range(len(points)):
        nearer = second[i] < first[i]
        changes += nearer != side[i]
        side[i] = nearer
        total += second[i] if nearer else first[i]
    return changes, total


@numba.njit(nogil=True, cache=True)
def _move_centers(points, side, centers):
    """Centres become means of their points; the sum of squares of their shifts.

    An empty half gets the point farthest from the other centre.
    """
    n, k = points.shape
    sums, counts = np.zeros((2, k)), np.zeros(2)
    for i in range(n):
        own = int(side[i])
        counts[own] += 1
        for j in range(k):
            sums[own, j] += points[i, j]
    for own in range(2):
        if counts[own] == 0:
            far = np.argmax(_squares_from(points, centers[1 - own]))
            sums[own] = points[far]
            sums[1 - own] -= points[far]
            counts[own] += 1
            counts[1 - own] -= 1
    moved = 0.0
    for own in range(2):
        for j in range(k):
            mean = sums[own, j] / counts[own]
            moved += (mean - centers[own, j]) ** 2
            centers[own, j] = mean
    return moved


@numba.njit(nogil=True, cache=True)
def two_means_loop(points, drawn, most_rounds, least_shift):
    """Halves of the best of all starts: bool (n,). `drawn`: in [0, 1), (n_starts, 3)."""
    n = len(points)
    best, least = np.zeros(n, np.bool_), np.inf
    for start in range(len(drawn)):
        centers = _drawn_centers(points, drawn[start])
        side = np.zeros(n, np.bool_)
        _, total = _assign(points, centers, side)
        for _ in range(most_rounds):
            moved = _move_centers(points, side, centers)
            changes, total = _assign(points, centers, side)
            if not changes or moved <= least_shift:
                break
        if total < least:
            least = total
            best = side
    return best
