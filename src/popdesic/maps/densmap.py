"""densMAP (Narayan, Berger and Cho 2021): a UMAP that preserves local densities.

The optimiser is that of UMAP (`umap_layout`). In the last epochs a further force moves points so
that the radii of neighbourhoods on the map follow those among the samples
(`maps.umap_epoch_cpu`). Constants are those of umap-learn.
"""

from __future__ import annotations

import numpy as np

from ..core.errors import UserError
from ..engine.backend import Backend
from .fuzzy_graph import FuzzyGraph, fuzzy_graph
from .knn import Rows
from .layouts import FORCE_BITS, RADIUS_BITS, SPREAD_BITS, Density, force_positions
from .umap_layout import FEWEST, NearestRows, epochs_of, find_nearest, fit_curve, optimize_layout

#: Epochs in addition to those of a UMAP, and the share of all, the last, that the density takes
#: part in.
MORE_EPOCHS, DENSE_SHARE = 200, 0.3
#: Weight of the correlation of densities (lambda).
WEIGHT = 2.0
#: What is added to a squared radius, in squares of the median distance to neighbours.
LEAST = 1e-8


def require_samples(n: int, name: str, key: str) -> None:
    """Refuse one of `embedding.further_maps` of too few samples."""
    if n < FEWEST:
        raise UserError(
            f"embedding.further_maps: {name} needs at least {FEWEST} samples, this study has {n}; "
            f"remove {key} or add samples."
        )


def local_radii(nearest: NearestRows, graph: FuzzyGraph, threads: int = 1) -> np.ndarray:
    """Logarithm of each sample's mean squared distance to its neighbours, float64 (n,).

    The mean is weighted by the edges of the graph; the unit is the median distance to neighbours.
    """
    from .neighbor_union_cpu import edge_lengths  # imports numba

    if not len(graph.ends):
        return np.zeros(len(nearest.near))
    positive = nearest.far[nearest.far > 0]
    scale = np.median(positive) if positive.size else 1.0
    found = edge_lengths(nearest.near, nearest.far, graph.starts, graph.ends, threads) / scale
    weighted = np.add.reduceat(graph.weights * found**2, graph.starts[:-1])
    return np.log(LEAST + weighted / np.add.reduceat(graph.weights, graph.starts[:-1]))


def density_tables(a: float, b: float) -> list[np.ndarray]:
    """The tables of `Density`, in its order: int64 arrays."""
    squared = force_positions()
    power = squared**b
    phi = 1 / (1 + a * power)
    scaled = (
        (phi, FORCE_BITS),
        (phi * squared, SPREAD_BITS),
        (np.log(squared), RADIUS_BITS),
        (phi * (1 - b * (1 - phi)), FORCE_BITS),
        (phi * phi * a * b * power / squared, FORCE_BITS),
    )
    return [np.rint(values * (1 << bits)).astype(np.int64) for values, bits in scaled]


def density_of(
    nearest: NearestRows, graph: FuzzyGraph, *, min_dist: float, epochs: int, threads: int = 1
) -> Density | None:
    """The density term of a map; None where all samples have equally near neighbours."""
    radii = local_radii(nearest, graph, threads)
    spread = radii.std()
    if spread < 1e-6:
        return None
    whole = np.rint((radii - radii.mean()) / spread * (1 << RADIUS_BITS)).astype(np.int64)
    tables = density_tables(*fit_curve(min_dist))
    # umap-learn adds each edge to the sums of phi from both ends: its P and Q are half of ours
    strength = WEIGHT / 2 * graph.weights.sum() / graph.weights.max() / len(radii)
    first = next(t for t in range(epochs) if (t + 1) / epochs > 1 - DENSE_SHARE)
    return Density(whole, *tables, float(strength), first)


def densmap_layout(
    rows: Rows,
    n: int,
    start: np.ndarray,
    *,
    neighbors: int,
    min_dist: float,
    seed: int,
    threads: int = 1,
    backend: Backend | None = None,
) -> np.ndarray:
    """A densMAP, float64 (n, 2), the same bytes on any threads and devices.

    Local density is not preserved if all samples have equally near neighbours, since there is none.

    Parameters
    ----------
    rows : callable
        Distances (len(which), n) of the samples `which` to all.
    n : int
    start : float64 array, (n, at least 1)
        The first two columns are the initial layout.
    neighbors : int
        UMAP's n_neighbors: neighbours of each sample, itself included, at most n.

    Raises
    ------
    UserError
        A neighbour is infinitely far, or there are fewer than five samples.
    """
    require_samples(n, "densMAP", "densmap")
    nearest = find_nearest(rows, n, neighbors, threads)
    return draw_densmap(
        nearest, start, min_dist=min_dist, seed=seed, threads=threads, backend=backend
    )


def draw_densmap(
    nearest: NearestRows,
    start: np.ndarray,
    *,
    min_dist: float,
    seed: int,
    threads: int = 1,
    backend: Backend | None = None,
) -> np.ndarray:
    """A densMAP of all of some neighbours, float64 (n, 2)."""
    epochs = epochs_of(len(start)) + MORE_EPOCHS
    graph = fuzzy_graph(nearest.near, nearest.far, 1 / epochs, threads)
    density = density_of(nearest, graph, min_dist=min_dist, epochs=epochs, threads=threads)
    return optimize_layout(
        graph,
        start=start,
        min_dist=min_dist,
        seed=seed,
        threads=threads,
        backend=backend,
        epochs=epochs,
        density=density,
    )
