"""UMAP of geodesics from their nearest neighbours: of everyone, or of the founders as a frame.

The layout starts from the first two principal components (Kobak and Linderman 2021), so that maps
of one study have the same orientation and disconnected graphs need no special treatment. Only the
neighbours are kept in memory, never the whole matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.samples import describe_samples
from ..distance.matrix import Distances
from ..io.errors import UserError
from ..io.files import write_json
from ..io.tables import write_table
from .frame import place_among, register
from .knn import Rows, nearest_neighbors
from .pcoa import require_finite
from .tables import write_embedding

#: Neighbours on the map by which instability is measured, and the numbers of neighbours of the
#: ensemble's members relative to the map's.
INSTABILITY_AT = 15
NEIGHBOR_SHARES = (0.5, 2.0, 1.0)
#: (seed, neighbours) to points (n, 2).
Draw = Callable[[int, int], np.ndarray]


def umap_layout(
    rows: Rows,
    n: int,
    start: np.ndarray,
    *,
    neighbors: int,
    min_dist: float,
    seed: int,
    densmap: bool = False,
) -> np.ndarray:
    """A UMAP map (McInnes et al. 2018) by umap-learn; seeded, one thread, so reruns are identical.

    Distances are divided by the median positive distance to a neighbour. This changes no
    neighbourhood, but prevents float32 underflow inside umap-learn at large alpha.

    Parameters
    ----------
    rows : callable
        Distances (len(which), n) of the samples `which` to all.
    n : int
    start : float64 array, (n, at least 1)
        The first two columns are the initial layout.
    neighbors : int
        UMAP's n_neighbors: neighbours of each sample, itself included, at most n - 1.
    densmap : bool
        Preserve local density (densMAP: Narayan, Berger and Cho 2021). Ignored if all samples have
        equally near neighbours, since there is no density to preserve.

    Returns
    -------
    float64 array, (n, 2)

    Raises
    ------
    UserError
        A neighbour is infinitely far, or there are fewer than five samples.
    """
    if n < 5:
        raise UserError(
            f"embedding: UMAP needs at least 5 samples, this study has {n}; "
            "add samples or read the PCA instead."
        )
    import umap  # compiles for seconds: import only when needed

    k = max(2, min(neighbors, n - 1))
    near, scaled = scaled_neighbors(rows, n, k - 1)
    first = np.zeros((n, 2), np.float32)
    first[:, : start.shape[1]] = start[:, :2] / (np.abs(start[:, :2]).max() or 1.0)
    model = umap.UMAP(
        n_neighbors=k,
        min_dist=min_dist,
        random_state=seed,
        n_jobs=1,
        init=first,
        precomputed_knn=(near.astype(np.int32), scaled.astype(np.float32)),
        # otherwise umap-learn ignores precomputed neighbours of small studies
        force_approximation_algorithm=True,
        densmap=densmap and not np.allclose(scaled[:, 1:], scaled[0, 1]),
    )
    return model.fit_transform(first).astype(np.float64)


def scaled_neighbors(rows: Rows, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Each sample itself, then its k `nearest_neighbors`; distances over their positive median.

    Returns
    -------
    near, scaled : int64 and float64 arrays, (n, k + 1)

    Raises
    ------
    UserError
        A neighbour is infinitely far.
    """
    near, far = nearest_neighbors(rows, n, k)
    require_finite(far)
    positive = far[far > 0]
    scaled = far / (np.median(positive) if positive.size else 1.0)
    near = np.concatenate([np.arange(n)[:, None], near], axis=1)
    return near, np.concatenate([np.zeros((n, 1)), scaled], axis=1)


def draw_in_frame(
    layout: Callable[[Rows, int, np.ndarray], np.ndarray],
    near: np.ndarray,
    among: np.ndarray,
    start: np.ndarray,
    neighbors: int,
) -> np.ndarray:
    """A map of the founders in which all others are placed one by one, float64 (n, 2).

    Parameters
    ----------
    layout : callable
        Function of distances in rows, number of samples and initial layout that returns a map.
    near : array, (n, n_founders)
        Lengths to the founders.
    among : bool array, (n,)
        Founders.
    """
    inner = near[among]
    fixed = layout(inner.__getitem__, len(inner), start[among])
    placed = np.empty((len(near), 2))
    placed[among] = fixed
    placed[~among] = place_among(near[~among], fixed, neighbors)
    return placed


def measure_instability(points: np.ndarray, members: list[np.ndarray]) -> np.ndarray:
    """How much of each sample's neighbourhood on the map depends on chance and parameters.

    Parameters
    ----------
    points : float64 array, (n, 2)
        The map.
    members : list of float64 arrays, (n, 2)
        The same map with other seeds and numbers of neighbours.

    Returns
    -------
    float64 array, (n,)
        Share of the INSTABILITY_AT nearest on the map that are not among the nearest in a member,
        averaged over the members: 0 if nothing changes, near 1 if a position is meaningless.
    """
    k = min(INSTABILITY_AT, len(points) - 1)
    own = _drawn_neighbors(points, k)
    lost = np.zeros(len(points))
    for member in members:
        other = _drawn_neighbors(member, k)
        lost += [1 - len(a & b) / k for a, b in zip(own, other, strict=True)]
    return lost / max(1, len(members))


def _drawn_neighbors(points: np.ndarray, k: int) -> list[set[int]]:
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(n_neighbors=k).fit(points)
    return [set(row) for row in model.kneighbors(return_distance=False).tolist()]


def draw_ensemble(draw: Draw, *, neighbors: int, seed: int, size: int) -> list[np.ndarray]:
    """The map with `size` other seeds; numbers of neighbours cycle through NEIGHBOR_SHARES."""
    shares = [NEIGHBOR_SHARES[i % len(NEIGHBOR_SHARES)] for i in range(size)]
    return [draw(seed + 1 + i, max(2, round(s * neighbors))) for i, s in enumerate(shares)]


def compute_umap(
    lengths: dict[str, Path],
    plain: Distances | np.ndarray,
    scores: Path,
    order: Path,
    sheet: Path,
    *,
    neighbors: int,
    min_dist: float,
    seed: int,
    ensemble: int,
    tables: dict[str, Path],
    instability_out: Path | None = None,
    frame: dict[str, Path] | None = None,
    founders: set[str] | None = None,
    refits: dict[str, Path] | None = None,
) -> None:
    """UMAPs of the geodesics of one space, and of its plain distances as the baseline.

    Parameters
    ----------
    lengths : dict
        Geodesics (n, n) by alpha.
    plain : Distances or float64 array
        Plain distances of the space; or points (n, k) whose Euclidean distances are used.
    scores : Path
        `embedding/pca.npy`, the initial layouts.
    ensemble : int
        Extra maps per geodesic for `instability_out`, a table of `sample` and one column per alpha.
    tables : dict
        Output paths, by alpha and ``plain``.
    frame, founders, refits : optional
        In stable mode: lengths to the founders (n, n_founders) by alpha, the founder cohorts, and
        output paths of the maps of everyone (each with a JSON of the displacements beside it).
    """
    samples = describe_samples(order, sheet)
    start = np.load(scores)[:, :2]
    n = len(samples)
    options = {"min_dist": min_dist}
    rows = plain.rows if isinstance(plain, Distances) else rows_of_points(plain)
    points = umap_layout(rows, n, start, neighbors=neighbors, seed=seed, **options)
    write_embedding(tables["plain"], samples, points, "UMAP")
    unstable = samples[["sample"]].copy()
    for alpha, path in lengths.items():
        matrix = np.load(path, mmap_mode="r")

        def draw(seed: int, neighbors: int, matrix=matrix) -> np.ndarray:
            return umap_layout(
                matrix.__getitem__, n, start, neighbors=neighbors, seed=seed, **options
            )

        everyone = draw
        if frame:
            among = samples.cohort.isin(founders).to_numpy()
            to_founders = np.load(frame[alpha], mmap_mode="r")

            def draw(seed: int, neighbors: int, among=among, near=to_founders) -> np.ndarray:
                layout = partial(umap_layout, neighbors=neighbors, seed=seed, **options)
                return draw_in_frame(layout, near, among, start, neighbors)

        points = draw(seed, neighbors)
        write_embedding(tables[alpha], samples, points, "UMAP")
        members = draw_ensemble(draw, neighbors=neighbors, seed=seed, size=ensemble)
        if members:
            unstable[f"alpha{alpha}"] = measure_instability(points, members)
        if refits:
            moved, about = register(everyone(seed, neighbors), points, among)
            write_embedding(refits[alpha], samples, moved, "UMAP")
            write_json(refits[alpha].with_suffix(".json"), about)
    if instability_out:
        write_table(instability_out, pd.DataFrame(unstable))


def rows_of_points(points: np.ndarray) -> Rows:
    """Euclidean distances between points, (n, k), as a function of rows."""

    def rows(which: np.ndarray) -> np.ndarray:
        found = np.zeros((len(which), len(points)))
        for axis in range(points.shape[1]):
            found += (points[which, axis][:, None] - points[None, :, axis]) ** 2
        return np.sqrt(found)

    return rows
