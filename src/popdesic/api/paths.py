"""Geodesics: weights of distances, shortest paths, and samples that come later."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..engine.select import backend_for
from ..geodesic import weights
from ..geodesic.graph import COMPLETE, Graph
from ..geodesic.measure import Closure as Found
from ..geodesic.measure import close_weights
from ..geodesic.weights import fermat_distances
from .arrays import (
    ArrayLike,
    distance_array,
    given_back,
    on_gpu,
    require_choice,
    require_square,
)

GRAPHS = ("complete", "knn")
NUMBERS = ("auto", "int32", "int64", "float32", "float64")


@dataclass(frozen=True, repr=False)
class Closure:
    """All-pairs shortest paths: what `shortest_paths` and `insert` give.

    Attributes
    ----------
    lengths : float64 array, (n, n)
        Length of the shortest path between two samples, the sum of its weights; infinite where
        there is none. ``numpy.asarray(closure)`` gives the same. A CuPy array where a GPU
        computed it from a CuPy array, else a numpy array.
    alpha : float
    graph : Graph
        ``kind`` and ``neighbors``: the edges that paths may use.
    number : str
        Number type in which it was computed: fixed point (``int32``, ``int64``) gives the same
        bytes on every device and in any order of arrival.
    error_bound : float
        Largest relative error of a length from that number type.
    indirect_share : float
        Share of the pairs whose shortest path runs through others.
    continued : bool
        Whether an earlier closure was continued (`insert`), or all was computed from scratch.
    """

    lengths: ArrayLike
    alpha: float
    graph: Graph
    number: str
    error_bound: float
    indirect_share: float
    continued: bool
    _found: Found = field(compare=False)
    _distances: np.ndarray = field(compare=False)
    _founders: np.ndarray = field(compare=False)
    _wanted: str = "auto"

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        lengths = self.lengths.get() if on_gpu(self.lengths) else self.lengths
        return np.array(lengths, dtype) if copy else np.asarray(lengths, dtype)

    @property
    def distances(self) -> np.ndarray:
        """Sample Fermat distances, ``lengths ** (1 / alpha)`` (Little, McKenzie and Murphy 2022).

        float64 (n, n), a numpy array, in the unit of the distances that were given.
        """
        return fermat_distances(np.asarray(self), self.alpha)

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        return (
            f"<Closure: {len(self)} samples, alpha {self.alpha:g}, {self.number}, "
            f"{self.indirect_share:.0%} of pairs indirect>"
        )


def fermat_weights(distances: ArrayLike, alpha: float) -> ArrayLike:
    """Weights of the edges between samples, ``distances ** alpha``.

    Parameters
    ----------
    distances : array-like, (n, n)
        0 or more; infinite where two samples cannot be compared. NaN is refused.
    alpha : float
        At least 1. The larger, the more a path through many close samples is preferred to one long
        step.

    Returns
    -------
    float64 array, (n, n)
        Zero stays zero, infinity infinite. Computed on the CPU; a numpy array.

    Raises
    ------
    ValueError
        An argument that cannot be used, or a weight too large for a float64.

    Examples
    --------
    >>> import popdesic
    >>> popdesic.fermat_weights([[0, 3], [3, 0]], alpha=2)
    array([[0., 9.],
           [9., 0.]])
    """
    array = distance_array(distances)
    if not (np.isfinite(alpha) and alpha >= 1):
        raise ValueError(f"alpha is {alpha}; give a number of at least 1.")
    with np.errstate(over="ignore"):
        largest = array[np.isfinite(array)].max(initial=0.0)
        if not np.isfinite(largest**alpha):
            raise ValueError(
                f"alpha = {alpha:g} makes a weight too large for a number of the distance "
                f"{largest:.6g}; lower it, or divide the distances."
            )
    return weights.fermat_weights(array, float(alpha))


def shortest_paths(
    distances: ArrayLike,
    alpha: float = 1.0,
    *,
    graph: str = "complete",
    neighbors: int = 15,
    number: str = "auto",
    device: str = "auto",
    threads: int | None = None,
) -> Closure:
    """Shortest paths between all samples, in a graph whose edges weigh d^alpha.

    Exact, by blocked Floyd-Warshall on a symmetric matrix (R-Kleene; D'Alberto and Nicolau): about
    n³ / 2 additions and comparisons. In the complete graph at ``alpha=1`` nothing is shorter than a
    distance that obeys the triangle inequality.

    Parameters
    ----------
    distances : array-like, (n, n)
        Symmetric, zero diagonal, 0 or more; infinite where two samples cannot be compared. NaN is
        refused.
    alpha : float
        At least 1.
    graph : {'complete', 'knn'}
        ``knn``: only nearest neighbours have edges, two samples within the distance of either's
        `neighbors`-th nearest sample, and those of the minimum spanning tree. At ``alpha=1`` these
        are the geodesics of Isomap.
    neighbors : int
        At least 1; of the graph ``knn`` alone.
    number : {'auto', 'int32', 'int64', 'float32', 'float64'}
        In what to compute. ``auto`` takes the narrowest fixed point that holds every weight to a
        millionth, else float64.
    device : {'auto', 'cpu', 'gpu'}
        ``auto`` takes a GPU where one can be used; in fixed point the numbers are the same.
    threads : int, optional
        Of the CPU; all by default.

    Returns
    -------
    Closure
        Its ``lengths`` are what is asked for; `insert` adds samples to it.

    Raises
    ------
    ValueError
        An argument that cannot be used, or a sample that can be compared with no other.
    RuntimeError
        `device` is ``gpu`` and none can be used.

    Examples
    --------
    >>> import popdesic
    >>> closure = popdesic.shortest_paths([[0, 1, 2], [1, 0, 1], [2, 1, 0]], alpha=2, device="cpu")
    >>> closure.lengths
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    array = distance_array(distances)
    require_square(array)
    require_choice(graph, GRAPHS, "graph")
    if neighbors < 1:
        raise ValueError(f"neighbors is {neighbors}; give a number of at least 1.")
    edges = COMPLETE if graph == "complete" else Graph("knn", int(neighbors))
    everyone = np.ones(len(array), bool)
    return _close(array, everyone, distances, alpha, edges, number, device, threads)


def insert(
    closure: Closure, distances: ArrayLike, *, device: str = "auto", threads: int | None = None
) -> Closure:
    """Add samples to a closure: m n² operations for m newcomers instead of n³ / 2.

    Parameters
    ----------
    closure : Closure
        From `shortest_paths` or an earlier `insert`, of k samples.
    distances : array-like, (m, k + m)
        From each newcomer to the k samples in their order, then to the m newcomers (symmetric, zero
        diagonal); 0 or more, infinite where two cannot be compared.
    device, threads
        As in `shortest_paths`.

    Returns
    -------
    Closure
        Of all k + m samples, at the same alpha: what `shortest_paths` gives of all of them at once
        in the same number type, to the last bit in fixed point. (In a graph ``knn``, the samples
        of the first closure alone define who is near.) Where a newcomer needs another
        number type or scale, all is computed from scratch (``continued`` says so). Floats are too,
        since they would depend on the order of arrival.

    Raises
    ------
    ValueError, RuntimeError
        As `shortest_paths`.

    Examples
    --------
    >>> import popdesic
    >>> closure = popdesic.shortest_paths([[0, 2], [2, 0]], alpha=2, device="cpu")
    >>> later = popdesic.insert(closure, [[1, 1, 0]], device="cpu")
    >>> later.lengths
    array([[0., 2., 1.],
           [2., 0., 1.],
           [1., 1., 0.]])
    >>> later.continued
    True
    """
    if not isinstance(closure, Closure):
        raise ValueError("closure is no result of shortest_paths or insert; give one of them.")
    array = distance_array(distances)
    k, m = len(closure), len(array)
    if array.shape[1] != k + m:
        raise ValueError(
            f"distances have the shape {array.shape}; {m} newcomers to a closure of {k} samples "
            f"need ({m}, {k + m}): the samples of the closure, then the newcomers."
        )
    require_square(array[:, k:], "distances among newcomers")
    whole = np.empty((k + m, k + m))
    whole[:k, :k] = closure._distances
    whole[k:], whole[:k, k:] = array, array[:, :k].T
    founders = np.concatenate([closure._founders, np.zeros(m, bool)])
    return _close(
        whole,
        founders,
        distances,
        closure.alpha,
        closure.graph,
        closure._wanted,
        device,
        threads,
        known=closure._found,
    )


def _close(
    distances: np.ndarray,
    founders: np.ndarray,
    given: ArrayLike,
    alpha: float,
    graph: Graph,
    number: str,
    device: str,
    threads: int | None,
    known: Found | None = None,
) -> Closure:
    require_choice(number, NUMBERS, "number")
    edges = fermat_weights(distances, alpha)
    if number == "float32" and not weights.fits_float32(edges):
        raise ValueError(
            f"number is 'float32', which cannot hold the weights at alpha = {alpha:g}; give 'auto' "
            "or 'float64'."
        )
    alone = np.flatnonzero(np.isfinite(distances).sum(axis=1) == 1)
    if len(distances) > 1 and alone.size:
        raise ValueError(
            f"sample {alone[0]} can be compared with no other (all its distances are infinite); "
            "leave it out."
        )
    backend = backend_for(device, threads)
    found = close_weights(
        distances,
        founders,
        [str(k) for k in range(len(distances))],
        backend,
        alpha=float(alpha),
        number=number,
        graph=graph,
        known=known,
    )
    return Closure(
        given_back(found.number.value(found.lengths), given, backend),
        float(alpha),
        graph,
        found.number.dtype,
        found.number.error_bound,
        found.statistics.indirect_share,
        found.record["continued"] is not None,
        found,
        distances,
        founders,
        number,
    )
