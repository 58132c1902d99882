"""Geodesics: edge weights, shortest paths, and the insertion of new samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..core.errors import UserError
from ..engine.select import backend_for
from ..geodesic import weights
from ..geodesic.graph import Graph
from ..geodesic.measure import StudyClosure as Found
from ..geodesic.measure import close_weights
from .arrays import (
    ArrayLike,
    distance_array,
    on_gpu,
    real_number,
    require_choice,
    require_square,
    thread_count,
    to_device_of,
    whole_number,
)

GRAPHS = ("complete", "knn")
DENSITIES = ("keep", "correct")
NUMBERS = ("auto", "int32", "int64", "float32", "float64")


@dataclass(frozen=True, repr=False)
class Closure:
    """The lengths of all-pairs shortest paths, as returned by `shortest_paths` and `insert`.

    Attributes
    ----------
    lengths : float64 array, (n, n)
        Length of the shortest path between two samples: the sum of its edge weights; infinite if
        there is no path. ``numpy.asarray(closure)`` returns the lengths. A CuPy array if a GPU
        computed them from a CuPy array, else a numpy array.
    alpha : float
    graph : Graph
        ``kind``, ``neighbors``, ``density``: the edges that paths may use, and their weights.
    number : str
        Number type of the computation. Fixed point (``int32``, ``int64``) gives the same bytes on
        every device, and whatever the order in which samples were inserted.
    error_bound : float
        Upper bound of the relative error of every length that is due to the number type: half a
        unit of fixed point as a share of the smallest weight above zero. Lengths of zero are exact.
    indirect_share : float
        Share of the pairs whose shortest path runs through other samples.
    continued : bool
        Whether `insert` extended an earlier closure; False if all was computed from scratch.
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

        float64 (n, n), a numpy array, in the unit of the distances that were given. With
        ``density="correct"`` the lengths themselves, which have that unit.
        """
        return self.graph.distances(np.asarray(self), self.alpha)

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
        0 or more; infinite if two samples cannot be compared. NaN is refused.
    alpha : float
        At least 1. Larger values prefer paths of many short steps to one long step.

    Returns
    -------
    float64 array, (n, n)
        A numpy array, computed on the CPU. Zero and infinity stay the same.

    Raises
    ------
    ValueError
        An argument is not valid, or a weight is too large or too small for float64.

    Examples
    --------
    >>> import popdesic
    >>> popdesic.fermat_weights([[0, 3], [3, 0]], alpha=2)
    array([[0., 9.],
           [9., 0.]])
    """
    array = distance_array(distances)
    _require_alpha(alpha)
    with np.errstate(over="ignore", under="ignore"):
        largest = array[np.isfinite(array)].max(initial=0.0)
        if not np.isfinite(largest**alpha):
            raise ValueError(
                f"the distance {largest:.6g} to the power alpha = {alpha:g} is too large for "
                "float64; give a smaller alpha, or divide all distances by a constant."
            )
        smallest = array[array > 0].min(initial=np.inf)
        if smallest**alpha < weights.LEAST_WEIGHT:
            raise ValueError(
                f"the distance {smallest:.6g} to the power alpha = {alpha:g} is too small for "
                "float64; give a smaller alpha, or multiply all distances by a constant."
            )
    return weights.power_weights(array, float(alpha))


def _require_alpha(alpha: float) -> None:
    real_number(alpha, "alpha", 1)


def shortest_paths(
    distances: ArrayLike,
    alpha: float = 1.0,
    *,
    graph: str = "complete",
    neighbors: int = 15,
    density: str = "keep",
    number: str = "auto",
    device: str = "auto",
    threads: int | None = None,
) -> Closure:
    """Shortest paths between all samples, in a graph with edge weights d^alpha.

    Exact, by blocked Floyd-Warshall on a symmetric matrix (R-Kleene; D'Alberto and Nicolau): about
    n³ / 2 additions and comparisons. In the complete graph, at ``alpha=1`` and with distances that
    obey the triangle inequality, no path is shorter than the direct edge.

    Parameters
    ----------
    distances : array-like, (n, n)
        Symmetric, zero diagonal, 0 or more; infinite if two samples cannot be compared. NaN is
        refused.
    alpha : float
        At least 1.
    graph : {'complete', 'knn'}
        ``knn``: only nearest neighbours have edges, two samples within the distance of either's
        `neighbors`-th nearest sample, and those of the minimum spanning tree. At ``alpha=1`` these
        are the geodesics of Isomap.
    neighbors : int
        At least 1; of the graph ``knn`` and of corrected weights.
    density : {'keep', 'correct'}
        With ``keep`` and ``alpha > 1``, lengths are shorter where more people were sampled.
        ``correct`` divides each distance by the radii r of its ends, their distances to their
        `neighbors`-th nearest samples: the weights are d (d / √(r r'))^(alpha - 1). Choose
        `neighbors` larger than the number of people sampled at one place. Lengths are then in the
        unit of the distances, up to a factor.
    number : {'auto', 'int32', 'int64', 'float32', 'float64'}
        Number type of the computation. ``auto`` is the narrower fixed-point type in which no length
        is off by more than 6.25e-8 of it, or else float64.
    device : {'auto', 'cpu', 'gpu'}
        ``auto`` uses a GPU if there is a usable one. In fixed point, results do not depend on it.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    Closure
        With the path ``lengths``; `insert` adds samples to it.

    Raises
    ------
    ValueError
        An argument is not valid, or a sample cannot be compared with any other.
    RuntimeError
        `device` is ``gpu`` and there is no usable GPU.

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
    neighbors = whole_number(neighbors, "neighbors")
    require_choice(density, DENSITIES, "density")
    needed = graph == "knn" or density == "correct"
    edges = Graph(graph, int(neighbors) if needed else 0, density)
    everyone = np.ones(len(array), bool)
    return _close(array, everyone, distances, alpha, edges, number, device, threads)


def insert(
    closure: Closure, distances: ArrayLike, *, device: str = "auto", threads: int | None = None
) -> Closure:
    """Add samples to a closure: m n² operations for m new samples instead of n³ / 2.

    Parameters
    ----------
    closure : Closure
        Of k samples, from `shortest_paths` or an earlier `insert`.
    distances : array-like, (m, k + m)
        From each new sample to the k samples of the closure, in their order, then to the m new
        samples (symmetric, zero diagonal); 0 or more, infinite if two cannot be compared.
    device, threads
        As in `shortest_paths`.

    Returns
    -------
    Closure
        Of all k + m samples, at the same alpha. In fixed point, it equals `shortest_paths` of all
        samples in the same number type to the last bit (in a graph ``knn``, and where weights are
        corrected for density, the samples of the first closure alone define who is near).
        Everything is computed from scratch, and ``continued`` is False, if a new sample needs
        another number type or scale, and always with floats, because their sums would depend on
        the order of insertion.

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
        raise ValueError("closure is not a result of shortest_paths or insert; give one of them.")
    array = distance_array(distances)
    k, m = len(closure), len(array)
    if array.shape[1] != k + m:
        raise ValueError(
            f"distances have the shape {array.shape}; {m} new samples and a closure of {k} samples "
            f"need ({m}, {k + m}): columns for the closure's samples, then for the new ones."
        )
    require_square(array[:, k:], "distances among new samples")
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
    _require_alpha(alpha)
    threads = thread_count(threads)
    if graph.density == "correct":
        try:
            edges = graph.edge_weights(distances, founders, float(alpha))
        except UserError:
            raise ValueError(
                f"density-corrected weights at alpha = {alpha:g} are too large or too small for "
                "float64; give a smaller alpha, or density='keep'."
            ) from None
    else:
        edges = fermat_weights(distances, alpha)
    if number == "float32" and not weights.fits_float32(edges):
        raise ValueError(
            f"number is 'float32', which cannot hold the weights at alpha = {alpha:g}; give 'auto' "
            "or 'float64'."
        )
    alone = np.flatnonzero(np.isfinite(distances).sum(axis=1) == 1)
    if len(distances) > 1 and alone.size:
        raise ValueError(
            f"sample {alone[0]} cannot be compared with any other, because all its distances are "
            "infinite; leave it out."
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
        to_device_of(given, found.number.value(found.lengths), backend),
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
