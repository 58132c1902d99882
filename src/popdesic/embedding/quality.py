"""How well each map preserves the distances it was computed from: `embedding/quality.tsv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN, describe_samples
from ..distance.landmarks import NearDistances, read_landmarks
from ..distance.matrix import Distances
from ..io.files import read_json
from ..io.sites import chunks
from ..io.tables import read_table, write_table
from .agreement import measure_agreement
from .axes import AXES

#: Most samples whose neighbourhoods are measured; larger studies use evenly spaced samples.
MAX_ANCHORS = 2_000
#: Rows of distances on the map in memory at a time, for the silhouette.
SILHOUETTE_ROWS = 256


def choose_anchors(n: int) -> np.ndarray:
    """Row numbers of at most MAX_ANCHORS samples, evenly spaced in sample order."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_ANCHORS)).astype(np.int64))


def measure_silhouette(points: np.ndarray, labels: pd.Series) -> float:
    """Mean silhouette (Rousseeuw 1987) of the labels on the map, at most MAX_ANCHORS samples.

    Samples without a label are left out. NaN if there are fewer than two labels, or a different
    label for every sample.
    """

    known = ~labels.isin(UNKNOWN).to_numpy()
    chosen = np.flatnonzero(known)
    chosen = chosen[choose_anchors(len(chosen))] if len(chosen) else chosen
    codes = np.unique(labels.to_numpy()[chosen].astype(str), return_inverse=True)[1]
    sizes = np.bincount(codes)
    if not 2 <= len(sizes) < len(codes):
        return float("nan")
    order = np.argsort(codes, kind="stable")
    codes, points = codes[order], points[chosen][order]
    starts = np.searchsorted(codes, np.arange(len(sizes)))
    widths = np.zeros(len(points))
    for first, last in chunks(len(points), SILHOUETTE_ROWS):
        own, rows = codes[first:last], np.arange(last - first)
        far = np.sqrt(((points[first:last, None] - points[None]) ** 2).sum(axis=2))
        sums = np.add.reduceat(far, starts, axis=1)
        within = sums[rows, own] / np.maximum(sizes[own] - 1, 1)
        means = sums / sizes
        means[rows, own] = np.inf
        nearest = means.min(axis=1)
        larger = np.maximum(within, nearest)
        counts = (sizes[own] > 1) & (larger > 0)
        np.divide(nearest - within, larger, out=widths[first:last], where=counts)
    return float(widths.mean())


def measure_maps(
    embedding: Path,
    distances: Distances | NearDistances,
    lengths: dict[tuple[str, str], Path],
    order: Path,
    sheet: Path,
    *,
    label: str,
    refits: bool = False,
    further: Sequence[str] = (),
    instability: dict[str, Path] | None = None,
    instability_out: Path | None = None,
    out: Path,
    threads: int = 1,
) -> pd.DataFrame:
    """Quality of all maps of a study (their first two axes), with PCA and plain UMAP as references.

    Every map is compared with the plain distances between genotypes (`against` is
    ``distance``), and maps of a geodesic also with that geodesic. `umap.distance` is the UMAP of a
    space's plain distances with the same parameters, the baseline that a geodesic should beat.

    Parameters
    ----------
    distances : Distances or NearDistances
        Without a matrix of all pairs, the rows of the landmarks are compared.
    lengths : dict
        Geodesic matrix by (space, alpha); or rows of landmarks.
    label : str
        Column of the sample sheet for the silhouette; missing columns give NaN.
    refits : bool
        Whether there are maps of everyone in addition to a frame of the founders.
    further : sequence of str
        Optional kinds of map: ``densmap``, ``tsne``.
    instability : dict, optional
        Tables of `compute_umap` by space. They are joined into `instability_out`, one column
        ``instability.umap.{space}.alpha{alpha}`` each; the result has their means.
    threads : int
        Changes no byte.
    """
    samples = describe_samples(order, sheet)
    labels = samples[label] if label in samples else pd.Series(["NA"] * len(samples))
    unstable = _join_instability(samples, instability or {})
    if instability_out:
        write_table(instability_out, unstable)
    maps = [("pca", "-", "-", embedding / "pca.tsv", "PC")]
    for space in dict.fromkeys(space for space, _ in lengths):
        path = embedding / f"umap.distance.{space}.tsv"
        maps.append(("umap.distance", space, "-", path, "UMAP"))
    methods = [(method, AXES[method]) for method in ("pcoa", "umap", *further)]
    methods += [("pcoa_refit", "PCo"), ("umap_refit", "UMAP")] if refits else []
    for space, alpha in lengths:
        for method, stem in methods:
            path = embedding / f"{method}.{space}.alpha{alpha}.tsv"
            maps.append((method, space, alpha, path, stem))
    if isinstance(distances, NearDistances):
        anchors = distances.landmarks.landmarks
        references: dict = {"distance": distances.landmarks.rows}
        references |= {key: read_landmarks(path, anchors).rows for key, path in lengths.items()}
    else:
        anchors = choose_anchors(len(samples))
        references = {"distance": distances.rows}
        references |= {
            key: np.load(path, mmap_mode="r").__getitem__ for key, path in lengths.items()
        }
    drawn = {path: _points(path, stem) for *_, path, stem in maps}
    compared = {
        path: ["distance", *[(space, alpha)] * ((space, alpha) in lengths)]
        for _, space, alpha, path, _ in maps
    }
    agreement = measure_agreement(drawn, references, compared, anchors, threads)
    table = []
    for method, space, alpha, path, _ in maps:
        silhouette = measure_silhouette(drawn[path], labels)
        own = unstable.get(f"instability.{path.stem}")
        for reference in compared[path]:
            against = "distance" if reference == "distance" else "geodesic"
            about = {"map": method, "space": space, "alpha": alpha, "against": against}
            about |= agreement[path, reference]
            about |= {"silhouette": silhouette, "samples": len(anchors)}
            about["instability"] = np.nan if own is None else float(own.mean())
            moved = path.with_suffix(".json") if method.endswith("_refit") else None
            about["displacement"] = read_json(moved)["median_displacement"] if moved else np.nan
            table.append(about)
    result = pd.DataFrame(table)
    write_table(out, result)
    return result


def _join_instability(samples: pd.DataFrame, tables: dict[str, Path]) -> pd.DataFrame:
    joined = samples[["sample"]].copy()
    for space, path in tables.items():
        table = read_table(path)
        for column in table.columns.drop("sample"):
            joined[f"instability.umap.{space}.{column}"] = table[column].astype(float)
    return joined


def _points(path: Path, stem: str) -> np.ndarray:
    """First two axes of a map, (n_samples, 2); the second is zero if the map has only one."""
    table = read_table(path)
    points = np.zeros((len(table), 2))
    for axis in range(2):
        if f"{stem}{axis + 1}" in table:
            points[:, axis] = table[f"{stem}{axis + 1}"].astype(float)
    return points
