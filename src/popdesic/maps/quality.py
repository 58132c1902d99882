"""How well each map preserves the distances it was computed from: `embedding/quality.tsv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN, describe_samples
from ..components.axes import AXES
from ..core.files import read_json
from ..core.tables import read_table, write_table
from ..core.threads import run_tasks
from ..distance.landmarks import NearDistances, read_landmarks
from ..distance.matrix import Distances, rows_of_points
from ..geodesic.lengths import open_lengths
from ..io.sites import chunks
from .agreement import ERROR, measure_agreement, standard_error

#: Samples up to which the neighbourhoods of all are measured, number of those of larger studies,
#: and the seed that draws them.
MAX_ANCHORS, DRAWN, SEED = 2_000, 1_000, 1
#: Distances on the map in memory at a time, for the silhouette.
SILHOUETTE_NUMBERS = 1 << 18


def choose_anchors(n: int, seed: int = SEED) -> np.ndarray:
    """Row numbers of all of n samples, or of DRAWN at random if they are more than MAX_ANCHORS."""
    if n <= MAX_ANCHORS:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, DRAWN, replace=False))


def measure_silhouette(
    points: np.ndarray, labels: pd.Series, threads: int = 1
) -> tuple[float, float]:
    """Mean silhouette (Rousseeuw 1987) of the labels on the map, and its standard error.

    Of the samples with a label, `choose_anchors` draws those whose silhouettes are averaged; each
    has its distances to all samples with a label. NaN if there are fewer than two labels, or a
    different label for every sample.
    """
    known = np.flatnonzero(~labels.isin(UNKNOWN).to_numpy())
    codes = np.unique(labels.to_numpy()[known].astype(str), return_inverse=True)[1]
    sizes = np.bincount(codes)
    if not 2 <= len(sizes) < len(codes):
        return float("nan"), float("nan")
    order = np.argsort(codes, kind="stable")
    codes, points = codes[order], points[known][order]
    starts = np.searchsorted(codes, np.arange(len(sizes)))
    chosen = choose_anchors(len(codes))
    widths, far = np.zeros(len(chosen)), rows_of_points(points)

    def measure(first: int, last: int) -> None:
        some, rows = chosen[first:last], np.arange(last - first)
        own = codes[some]
        sums = np.add.reduceat(far(some), starts, axis=1)
        within = sums[rows, own] / np.maximum(sizes[own] - 1, 1)
        means = sums / sizes
        means[rows, own] = np.inf
        nearest = means.min(axis=1)
        larger = np.maximum(within, nearest)
        counts = (sizes[own] > 1) & (larger > 0)
        np.divide(nearest - within, larger, out=widths[first:last], where=counts)

    rows = max(1, SILHOUETTE_NUMBERS // len(codes))
    run_tasks(measure, chunks(len(chosen), rows), threads)
    return float(widths.mean()), standard_error(widths, len(codes))


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

    Above MAX_ANCHORS samples, means are those of a random sample, and columns that end in ERROR
    have their standard errors. Without a matrix of all pairs the sample is that of the landmarks.

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
        references |= {key: open_lengths(path).__getitem__ for key, path in lengths.items()}
    drawn = {path: _points(path, stem) for *_, path, stem in maps}
    # too few samples have no UMAP
    drawn = {path: points for path, points in drawn.items() if np.isfinite(points).all()}
    maps = [found for found in maps if found[3] in drawn]
    compared = {
        path: ["distance", *[(space, alpha)] * ((space, alpha) in lengths)]
        for _, space, alpha, path, _ in maps
    }
    agreement = measure_agreement(drawn, references, compared, anchors, threads)
    table = []
    for method, space, alpha, path, _ in maps:
        silhouette, error = measure_silhouette(drawn[path], labels, threads)
        own = unstable.get(f"instability.{path.stem}")
        for reference in compared[path]:
            against = "distance" if reference == "distance" else "geodesic"
            about = {"map": method, "space": space, "alpha": alpha, "against": against}
            found = agreement[path, reference]
            errors = {key: found.pop(key) for key in list(found) if key.endswith(ERROR)}
            about |= found | {"silhouette": silhouette, "samples": len(anchors)}
            about["instability"] = np.nan if own is None else float(own.mean())
            moved = path.with_suffix(".json") if method.endswith("_refit") else None
            about["displacement"] = read_json(moved)["median_displacement"] if moved else np.nan
            about |= errors | {f"silhouette{ERROR}": error}
            table.append(about)
    result = pd.DataFrame(table)
    write_table(out, result)
    return result


def _join_instability(samples: pd.DataFrame, tables: dict[str, Path]) -> pd.DataFrame:
    joined = samples[["sample"]].copy()
    for space, path in tables.items():
        table = read_table(path)
        for column in table.columns.drop("sample"):
            joined[f"instability.umap.{space}.{column}"] = pd.to_numeric(
                table[column], errors="coerce"
            )
    return joined


def _points(path: Path, stem: str) -> np.ndarray:
    """First two axes of a map, (n_samples, 2); the second is zero if the map has only one."""
    table = read_table(path)
    points = np.zeros((len(table), 2))
    for axis in range(2):
        if f"{stem}{axis + 1}" in table:
            points[:, axis] = pd.to_numeric(table[f"{stem}{axis + 1}"], errors="coerce")
    return points
