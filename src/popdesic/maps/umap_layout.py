"""UMAP (McInnes, Healy and Melville 2018) of nearest neighbours, the same bytes on any threads.

Three steps: the fuzzy graph of the neighbours (`fuzzy_graph`), a start from the first two principal
components (Kobak and Linderman 2021), and epochs that move the points (`maps.umap_epoch_cpu`).
The start gives maps of one study the same orientation, and disconnected graphs need no special
treatment.

Points move all at once, each by the sum of its forces, where umap-learn moves them edge by edge. A
sum over some twenty edges overshoots at umap-learn's first step of 1, so the steps are smaller
(STEP_FALL). tests/bench/bench_maps.py compares both over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..components.scaling import require_finite
from ..components.tables import FEWEST
from ..core.errors import UserError
from ..core.threads import run_tasks
from ..engine.backend import Backend
from .fuzzy_graph import FuzzyGraph, fuzzy_graph
from .knn import Rows, nearest_neighbors
from .lay_out import lay_out
from .layouts import FORCE_BITS, POINT_BITS, SHARE_BITS, STEP_BITS, Density, Layout, force_positions

#: Epochs as in umap-learn: of small studies, and of those above MANY samples.
EPOCHS, FEWER_EPOCHS, MANY = 500, 200, 10_000
#: Steps fall to 0 by this from epoch to epoch, so that the last ones are equal in all studies. More
#: parts groups further, less keeps more neighbours: with this value, silhouettes of labels and
#: neighbours kept are both as in umap-learn (docs/maps.md).
STEP_FALL = 0.001
#: Points drawn to repel an end of each active edge, as in umap-learn.
DRAWS = 5
#: Side of the square in which a map starts, as in umap-learn.
SIDE = 10.0
#: The start is moved at random by at most this, so that samples in one place can part.
JITTER = 0.005

#: Least distance of points in a map, in units of its spread.
MIN_DIST = 0.3


@dataclass(frozen=True)
class NearestRows:
    """Each sample's nearest others: int64 and float64 arrays (n, k), nearest first."""

    near: np.ndarray
    far: np.ndarray

    def of(self, neighbors: int) -> NearestRows:
        """Those of UMAP's n_neighbors, the sample itself included."""
        k = max(1, neighbors - 1)
        return NearestRows(self.near[:, :k], self.far[:, :k])

    def graph(self, neighbors: int, threads: int = 1) -> FuzzyGraph:
        """Graph of UMAP's n_neighbors, the sample itself included."""
        chosen = self.of(neighbors)
        return fuzzy_graph(chosen.near, chosen.far, 1 / epochs_of(len(self.near)), threads)


def epochs_of(n: int) -> int:
    return EPOCHS if n <= MANY else FEWER_EPOCHS


def find_nearest(rows: Rows, n: int, neighbors: int, threads: int = 1) -> NearestRows:
    """The `neighbors` - 1 nearest others of each sample.

    Parameters
    ----------
    rows : callable
        Distances (len(which), n) of the samples `which` to all.
    neighbors : int
        Largest n_neighbors of the maps to be drawn; at most n counts.

    Raises
    ------
    UserError
        A neighbour is infinitely far, or there are fewer than FEWEST samples.
    """
    if n < FEWEST:
        raise UserError(
            f"embedding: UMAP needs at least {FEWEST} samples, this study has {n}; "
            "add samples or read the PCA instead."
        )
    near, far = nearest_neighbors(rows, n, max(2, min(neighbors, n)) - 1, threads)
    require_finite(far)
    return NearestRows(near, far)


def draw_maps(
    nearest: NearestRows,
    start: np.ndarray,
    members: Sequence[tuple[int, int]],
    *,
    min_dist: float = MIN_DIST,
    threads: int = 1,
    backend: Backend | None = None,
) -> list[np.ndarray]:
    """UMAPs of the same neighbours; one for each seed and number of neighbours.

    Parameters
    ----------
    nearest : Nearest
        With as many neighbours as the largest number in `members` asks for.
    start : float64 array, (n, at least 1)
        The first two columns are the initial layout, each stretched to the same length.
    members : sequence of (int, int)
        Seed and n_neighbors, the sample itself included.
    threads : int
        Changes no byte.
    backend : Backend, optional
        Of a GPU: draws one map after the other. By default the CPU, and the same bytes.

    Returns
    -------
    list of float64 arrays, (n, 2)
    """
    numbers = list(dict.fromkeys(neighbors for _, neighbors in members))
    team = max(1, threads // len(numbers))
    found = run_tasks(nearest.graph, [(k, team) for k in numbers], threads)
    graphs = dict(zip(numbers, found, strict=True))
    draw = partial(optimize_layout, start=start, min_dist=min_dist)
    tasks = [(graphs[neighbors], seed) for seed, neighbors in members]
    if backend is not None and backend.name == "gpu":
        return [draw(graph, seed=seed, backend=backend) for graph, seed in tasks]
    team = max(1, threads // len(members))
    return run_tasks(lambda graph, seed: draw(graph, seed=seed, threads=team), tasks, threads)


def fit_curve(min_dist: float) -> tuple[float, float]:
    """a and b for which 1 / (1 + a x^(2 b)) is closest to exp(-(x - min_dist)), 1 up to min_dist.

    Least squares at 300 places from 0 to 3, as in umap-learn, by Levenberg and Marquardt's method.
    `scipy.optimize.curve_fit` ends before the sixth digit, and for min_dist of 2.9 finds nothing.
    """
    x = np.linspace(0, 3, 300)[1:]
    wanted = np.where(x < min_dist, 1.0, np.exp(np.minimum(min_dist - x, 0)))

    def residuals(a: float, b: float) -> np.ndarray:
        return 1 / (1 + a * x ** (2 * b)) - wanted

    a = b = 1.0
    damping, most = 1e-3, 1e9
    off = residuals(a, b)
    while damping < most:  # no step helps any more
        power = x ** (2 * b)
        outer = -1 / (1 + a * power) ** 2
        slopes = np.stack([outer * power, outer * a * power * 2 * np.log(x)])
        normal, gradient = slopes @ slopes.T, slopes @ off
        (p, q), (_, r) = normal + damping * np.diag(np.diag(normal))
        scale = p * r - q * q
        to_a = a - (r * gradient[0] - q * gradient[1]) / scale
        to_b = b - (p * gradient[1] - q * gradient[0]) / scale
        then = residuals(to_a, to_b) if to_a > 0 else np.array([np.inf])
        if then @ then < off @ off:
            a, b, off, damping = to_a, to_b, then, damping / 10
        else:
            damping *= 10
    return round(float(a), 6), round(float(b), 6)


def force_tables(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Attraction and repulsion over squared distance, as the kernel reads them: int64 arrays."""
    squared = force_positions()
    power = squared**b
    attraction = 2 * a * b * power / squared / (1 + a * power)
    repulsion = 2 * b / ((0.001 + squared) * (1 + a * power))
    return tuple(np.rint(f * (1 << FORCE_BITS)).astype(np.int64) for f in (attraction, repulsion))


def start_points(start: np.ndarray, seed: int) -> np.ndarray:
    """Where points start: each axis from 0 to SIDE, jittered; int64 (n, 2) in the kernel's units.

    A constant or missing axis starts in the middle.
    """
    unit = 1 << POINT_BITS
    found = np.full((len(start), 2), SIDE / 2)
    for axis, values in enumerate(start.T[:2]):
        spread = np.ptp(values)
        if spread > 0:
            found[:, axis] = SIDE * ((values - values.min()) / spread)
    most = round(JITTER * unit)
    jitter = np.random.default_rng(seed).integers(-most, most + 1, found.shape)
    return np.rint(found * unit).astype(np.int64) + jitter


def optimize_layout(
    graph: FuzzyGraph,
    *,
    start: np.ndarray,
    min_dist: float,
    seed: int,
    threads: int = 1,
    backend: Backend | None = None,
    epochs: int | None = None,
    density: Density | None = None,
) -> np.ndarray:
    """Where `epochs` epochs (by default `epochs_of`) take the points, float64 (n, 2).

    Without a backend, `threads` of the CPU.
    """
    shares = np.rint(graph.weights / graph.weights.max(initial=0.0) * (1 << SHARE_BITS))
    epochs = epochs or epochs_of(len(start))
    steps = [round(STEP_FALL * (epochs - t) * (1 << STEP_BITS)) for t in range(epochs)]
    layout = Layout(
        start_points(start, seed),
        graph.starts,
        graph.ends,
        shares.astype(np.int64),
        *force_tables(*fit_curve(min_dist)),
        np.array(steps, np.int64),
        DRAWS,
        seed,
        density,
    )
    if backend is not None:
        return lay_out(backend, layout) / (1 << POINT_BITS)
    from .layouts_cpu import run_epochs  # imports numba

    return run_epochs(layout, threads) / (1 << POINT_BITS)
