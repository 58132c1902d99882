"""UMAPs of a study: of geodesics and plain distances, of everyone or in a frame, and ensembles.

Only nearest neighbours are kept in memory, never the whole matrix. They are found once for all maps
of a matrix.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..cohort.samples import describe_samples
from ..components.scaling import require_finite
from ..components.tables import (
    FEWEST,
    is_too_flat,
    is_too_small,
    no_map,
    write_embedding,
)
from ..core.errors import UserError
from ..core.files import write_json
from ..core.tables import write_table
from ..core.threads import run_tasks
from ..distance.matrix import Distances, leading_scores, rows_of_points, shared_distances
from ..engine.backend import Backend
from ..engine.needs import layout_bytes
from ..engine.select import select_backend
from ..geodesic.lengths import open_lengths, set_apart
from .frame import DISPLACEMENTS, place_among, register
from .knn import Rows
from .umap_layout import MIN_DIST, NearestRows, draw_maps, find_nearest

log = logging.getLogger("popdesic")

#: Neighbours on the map by which instability is measured, and the numbers of neighbours of the
#: ensemble's members relative to the map's.
INSTABILITY_AT = 15
NEIGHBOR_SHARES = (0.5, 2.0, 1.0)
#: (seed, neighbours) of a map.
Member = tuple[int, int]


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
    n, k = len(points), min(INSTABILITY_AT, len(points) - 1)
    own = _pairs_drawn(points, k)
    kept = np.zeros(n, np.int64)
    for member in members:
        kept += np.isin(own, _pairs_drawn(member, k)).reshape(n, k).sum(axis=1)
    return 1 - kept / (k * len(members)) if members else np.zeros(n)


def _pairs_drawn(points: np.ndarray, k: int) -> np.ndarray:
    """Numbers of the pairs of a point and one of its k nearest others, int64 (n * k,)."""
    n = len(points)
    return (np.arange(n)[:, None] * n + _drawn_neighbors(points, k)).ravel()


def _drawn_neighbors(points: np.ndarray, k: int) -> np.ndarray:
    """The k nearest others of each point on a map, int64 (n, k), without order."""
    from scipy.spatial import KDTree

    found = KDTree(points).query(points, k + 1)[1]
    # of more than k points in one place, the point itself need not be among the found
    others = found != np.arange(len(points))[:, None]
    others[others.all(axis=1), -1] = False
    return found[others].reshape(len(points), k)


def ensemble_members(*, neighbors: int, seed: int, size: int) -> list[Member]:
    """`size` other seeds; numbers of neighbours cycle through NEIGHBOR_SHARES."""
    shares = [NEIGHBOR_SHARES[i % len(NEIGHBOR_SHARES)] for i in range(size)]
    return [(seed + 1 + i, max(2, round(s * neighbors))) for i, s in enumerate(shares)]


def draw_matrix(
    rows: Rows,
    n: int,
    start: np.ndarray,
    members: Sequence[Member],
    *,
    min_dist: float = MIN_DIST,
    threads: int = 1,
    backend: Backend | None = None,
) -> list[np.ndarray]:
    """UMAPs of one matrix, float64 (n, 2) each; see `umap_layout.draw_maps`."""
    nearest = find_nearest(rows, n, max(k for _, k in members), threads)
    options = {"min_dist": min_dist, "threads": threads, "backend": backend}
    return draw_maps(nearest, start, members, **options)


def load_nearest(lists: Path, neighbors: int) -> NearestRows:
    """Nearest others from `neighbors.npz` or `neighbors.alpha{alpha}.npz`, as `find_nearest`."""
    with np.load(lists) as found:
        index, distance = found["index"], found["distance"]
    if len(index) < FEWEST:
        raise UserError(f"embedding: UMAP needs at least {FEWEST} samples, not {len(index)}.")
    k = max(2, min(neighbors, len(index))) - 1
    if k > index.shape[1]:
        raise UserError(
            f"{lists}: {neighbors} neighbours are asked for (neighbors; "
            f"embedding.ensemble doubles it), and {index.shape[1]} are listed; lower it."
        )
    require_finite(distance[:, :k])
    return NearestRows(index[:, :k].astype(np.int64), np.array(distance[:, :k]))


def draw_lengths(
    source: Path | Rows, n: int, start: np.ndarray, members: Sequence[Member], **options
) -> list[np.ndarray]:
    """`draw_matrix` of a file of all pairs, of lists of neighbours (.npz), or of rows."""
    if not isinstance(source, Path):
        return draw_matrix(source, n, start, members, **options)
    if source.suffix == ".npz":
        nearest = load_nearest(source, max(k for _, k in members))
        return draw_maps(nearest, start, members, **options)
    rows = open_lengths(source).__getitem__
    return draw_matrix(rows, n, start, members, **options)


def draw_in_frame(
    near: np.ndarray,
    among: np.ndarray,
    start: np.ndarray,
    members: Sequence[Member],
    *,
    min_dist: float = MIN_DIST,
    threads: int = 1,
    backend: Backend | None = None,
) -> list[np.ndarray]:
    """UMAPs of the founders in which all others are placed one by one, float64 (n, 2) each.

    Parameters
    ----------
    near : array, (n, n_founders)
        Lengths to the founders.
    among : bool array, (n,)
        Founders.
    """
    inner, outer = near[among], near[~among]
    options = {"min_dist": min_dist, "threads": threads, "backend": backend}
    fixed = draw_matrix(inner.__getitem__, len(inner), start[among], members, **options)

    def place(points: np.ndarray, member: Member) -> np.ndarray:
        placed = np.empty((len(near), 2))
        placed[among], placed[~among] = points, place_among(outer, points, member[1])
        return placed

    return run_tasks(place, zip(fixed, members, strict=True), threads)


def layout_backend(device: str, threads: int, n_samples: int, neighbors: int) -> Backend:
    """The backend that moves the points of maps of so many samples; the log names it."""
    need = layout_bytes(n_samples, neighbors)
    backend = select_backend(device, threads, device_bytes=need)
    log.info("device: %s", backend.describe())
    return backend


def of_space(paths: Sequence[str] | None, alphas: Sequence[str], k: int) -> dict[str, Path]:
    """Files of the k-th space by alpha, of a job's files by space and alpha; empty without any."""
    some = list(paths or [])[k * len(alphas) : (k + 1) * len(alphas)]
    return dict(zip(alphas, map(Path, some), strict=True)) if some else {}


def plain_of_space(
    store: str,
    space: str,
    scores: Path,
    pcs: int | str,
    folder: Path,
    *,
    graph: Path,
    n_sites: int,
    **distance: Any,
) -> Distances | np.ndarray | Path | Rows:
    """The plain distances of a space, as `compute_umap` takes them.

    Parameters
    ----------
    store : {'dense', 'near'}
        Near: the lists of the nearest beside the scores or in `folder`.
    space : {'pcs', 'ibd', 'genotypes'}
    scores, pcs
        Of the space ``pcs``: as `matrix.leading_scores` takes them.
    folder, n_sites, distance
        Of the space ``genotypes``: attributes of `matrix.Distances`.
    graph : Path
        Of the space ``ibd``: `ibd/graph.npz`.
    """
    if store == "near":
        return (scores.parent if space == "pcs" else folder) / "neighbors.npz"
    if space == "pcs":
        return leading_scores(scores, pcs)
    if space == "ibd":
        return set_apart(shared_distances(graph))[0].__getitem__
    return Distances(folder, n_sites=n_sites, **distance)


class UmapSettings(NamedTuple):
    """What decides a UMAP; `ensemble`: extra maps per geodesic for the table of instability."""

    neighbors: int
    seed: int
    ensemble: int


class FounderFrame(NamedTuple):
    """What stable mode knows of founders and writes of everyone.

    Attributes
    ----------
    lengths : dict
        Lengths to the founders, (n, n_founders), by alpha.
    founders : set of str
        The founder cohorts.
    refits : dict
        Output paths of the maps of everyone (each with a JSON of the displacements beside it).
    """

    lengths: dict[str, Path]
    founders: set[str]
    refits: dict[str, Path]


def compute_umap(
    lengths: dict[str, Path],
    plain: Distances | np.ndarray | Path | Rows | None,
    scores: Path,
    order: Path,
    sheet: Path,
    settings: UmapSettings,
    *,
    tables: dict[str, Path],
    components: int | None = None,
    instability_out: Path | None = None,
    frame: FounderFrame | None = None,
    threads: int = 1,
    backend: Backend | None = None,
) -> None:
    """UMAPs of the geodesics of one space, and of its plain distances, the baseline, if given.

    Parameters
    ----------
    lengths : dict
        Geodesics (n, n) by alpha, or the nearest by geodesic of everyone (.npz).
    plain : Distances, float64 array, Path or callable, optional
        Plain distances of the space; or points (n, k) whose Euclidean distances are used; or the
        nearest of everyone (.npz); or rows, as `knn.Rows`.
    scores : Path
        `embedding/pca.npy`, the initial layouts.
    settings : UmapSettings
    tables : dict
        Output paths, by alpha and ``plain``.
    components : int, optional
        Components whose distances these are, in the space of components.
    instability_out : Path, optional
        Table of `sample` and one column per alpha.
    frame : FounderFrame, optional
        In stable mode.
    threads : int
        Changes no byte.
    backend : Backend, optional
        Moves the points. By default the CPU; the bytes are the same from every backend.

    A map that fewer than FEWEST samples or FEWEST_COMPONENTS components define has missing
    coordinates, and the log says so.
    """
    samples = describe_samples(order, sheet)
    start = np.load(scores)[:, :2]
    n, (neighbors, seed, ensemble) = len(samples), settings
    among = samples.cohort.isin(frame.founders if frame else ()).to_numpy()
    refits = frame.refits if frame else None
    if is_too_small("UMAP", among.sum() if frame else n) or is_too_flat("UMAP", components):
        return _write_undrawn(
            samples, lengths, tables, instability_out if ensemble else None, refits
        )
    options = {"threads": threads, "backend": backend}
    first = (seed, neighbors)
    members = [first, *ensemble_members(neighbors=neighbors, seed=seed, size=ensemble)]
    if plain is not None:
        source = plain.rows if isinstance(plain, Distances) else plain
        source = rows_of_points(plain) if isinstance(plain, np.ndarray) else source
        points = draw_lengths(source, n, start, [first], **options)[0]
        write_embedding(tables["plain"], samples, points, "UMAP")
    unstable = samples[["sample"]].copy()
    for alpha, path in lengths.items():
        if frame:
            near = np.load(frame.lengths[alpha], mmap_mode="r")
            points, *others = draw_in_frame(near, among, start, members, **options)
        else:
            points, *others = draw_lengths(path, n, start, members, **options)
        write_embedding(tables[alpha], samples, points, "UMAP")
        if others:
            unstable[f"alpha{alpha}"] = measure_instability(points, others)
        if refits:
            refit = draw_lengths(path, n, start, [first], **options)[0]
            moved, about = register(refit, points, among)
            write_embedding(refits[alpha], samples, moved, "UMAP")
            write_json(refits[alpha].with_suffix(".json"), about)
    if instability_out:
        write_table(instability_out, pd.DataFrame(unstable))


def _write_undrawn(
    samples: pd.DataFrame,
    alphas: Iterable[str],
    tables: dict[str, Path],
    instability_out: Path | None,
    refits: dict[str, Path] | None,
) -> None:
    """The files of `compute_umap` where no map is drawn: coordinates and measures are missing."""
    for path in (*tables.values(), *(refits or {}).values()):
        write_embedding(path, samples, no_map(len(samples)), "UMAP")
    for path in (refits or {}).values():
        write_json(path.with_suffix(".json"), dict.fromkeys(DISPLACEMENTS))
    if instability_out:
        unstable = {f"alpha{alpha}": np.nan for alpha in alphas}
        write_table(instability_out, samples[["sample"]].assign(**unstable))
