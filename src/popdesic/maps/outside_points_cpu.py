"""The nearest point of another part, for points of some parts: edges of a spanning tree.

Points are sorted by their first coordinate. Those within the shortest edge of a part so far lie in
a window of it, and most of them are farther by one of the next coordinates.

Shapes: points (n, m), sorted. Loops: threads take runs of the points that are asked for.
"""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks

#: Points that tighten the bounds before all others are searched, and points of a task.
FIRST, POINTS_OF_TASK = 64, 512
#: Squares whose roots may be equal differ by less than this share.
SAME_ROOT = 1e-15


@numba.njit(nogil=True, cache=True)
def search_loop(points, part, number, asked, bounds, far, other, first, last):
    """Nearest points of other parts of the points asked[first] ... asked[last - 1].

    part, number: of each point; bounds: squared length of each part's shortest edge so far, made
    shorter. far, other: filled at the places of the points; what is farther than the bound of its
    part may be missing.
    """
    n, m = points.shape
    for at in range(first, last):
        i = asked[at]
        mine = part[i]
        for step in (1, -1):
            j = i + step
            while 0 <= j < n:
                apart = points[j, 0] - points[i, 0]
                value = apart * apart
                if value > bounds[mine]:
                    break
                if part[j] != mine:
                    for axis in range(1, m):
                        apart = points[i, axis] - points[j, axis]
                        value += apart * apart
                        if value > bounds[mine]:
                            break
                    if value <= bounds[mine]:
                        length = np.sqrt(value)
                        if length < far[i] or (length == far[i] and number[j] < other[i]):
                            far[i], other[i] = length, number[j]
                            bounds[mine] = min(bounds[mine], value * (1 + SAME_ROOT))
                j += step


def nearest_outside(
    points: np.ndarray, which: np.ndarray, part: np.ndarray, best: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest point of another part, of each of some points.

    Parameters
    ----------
    points : float64 array, (n, m)
        Finite; searches are fastest where the first coordinate has the largest variance.
    which : int64 array, (w,)
        Points that are asked for.
    part : int64 array, (n,)
        Part of each point, from 0 on.
    best : float64 array, (n_parts,)
        Edges that are longer than this need not be found.
    threads : int
        Does not change the shortest edge of a part.

    Returns
    -------
    far : float64 array, (w,)
        Euclidean distance, squares summed in the order of the coordinates. Infinite, or too long,
        for points that do not have the shortest edge of their part.
    other : int64 array, (w,)
        The point at this distance, of equals the first; meaningless where `far` is infinite.
    """
    order = np.argsort(points[:, 0], kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    bounds = best * best * (1 + 4 * SAME_ROOT)
    far, other = np.full(len(points), np.inf), np.full(len(points), len(points))
    asked = place[which]
    fixed = np.ascontiguousarray(points[order]), part[order], order, asked
    few = np.ascontiguousarray(asked[:: max(1, len(asked) // FIRST)])
    search_loop(*fixed[:3], few, bounds, far, other, 0, len(few))
    tasks = [(i, min(i + POINTS_OF_TASK, len(asked))) for i in range(0, len(asked), POINTS_OF_TASK)]

    def search(first: int, last: int) -> None:
        search_loop(*fixed, bounds.copy(), far, other, first, last)

    run_tasks(search, tasks, threads)
    return far[asked], other[asked]
