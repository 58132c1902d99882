"""How well each map preserves the distances it was computed from: `embedding/quality.tsv`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN, describe_samples
from ..distance.matrix import Distances
from ..io.files import read_json
from ..io.tables import read_table, write_table
from .axes import AXES

#: Neighbourhood sizes for recall, and for trustworthiness and continuity.
RECALL_AT, TRUST_AT = (5, 15, 50), 15
#: Most samples whose neighbourhoods are measured; larger studies use evenly spaced samples.
MAX_ANCHORS = 2_000
Rows = Callable[[np.ndarray], np.ndarray]


def choose_anchors(n: int) -> np.ndarray:
    """Row numbers of at most MAX_ANCHORS samples, evenly spaced in sample order."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_ANCHORS)).astype(np.int64))


def measure_map(points: np.ndarray, rows: Rows, anchors: np.ndarray) -> dict[str, float]:
    """Agreement of a map with distances.

    Trustworthiness and continuity as defined by Venna and Kaski (2001), with k = TRUST_AT:
    samples that are neighbours only on the map lower trustworthiness, neighbours that the map
    separates lower continuity. Recall is the share of the k nearest by distance that
    are among the k nearest on the map. Each is a mean over the anchors; neighbours come from all
    samples. Ties are broken by sample order.

    Parameters
    ----------
    points : float64 array, (n_samples, n_axes)
    rows : callable
        Distances (len(which), n_samples) of the samples `which` to all.
    anchors : int array
        Rows whose neighbourhoods are measured.

    Returns
    -------
    dict
        `trustworthiness`, `continuity`, `recall_{k}`, `rank_correlation` (Spearman, all pairs of
        an anchor and another sample); NaN if the study is too small for k, or if all
        distances or all points are equal.
    """
    from scipy.stats import rankdata

    n = len(points)
    recalled = dict.fromkeys(RECALL_AT, 0)
    intruders = lost = 0
    correlations = []
    for anchor in anchors:
        others = np.delete(np.arange(n), anchor)
        far = rows(np.array([anchor]))[0][others]
        drawn = np.sqrt(((points[others] - points[anchor]) ** 2).sum(axis=1))
        far_order, drawn_order = np.argsort(far, kind="stable"), np.argsort(drawn, kind="stable")
        far_rank, drawn_rank = _ranks(far_order), _ranks(drawn_order)
        for k in RECALL_AT:
            recalled[k] += int((far_rank[drawn_order[:k]] <= k).sum())
        intruders += int(np.maximum(far_rank[drawn_order[:TRUST_AT]] - TRUST_AT, 0).sum())
        lost += int(np.maximum(drawn_rank[far_order[:TRUST_AT]] - TRUST_AT, 0).sum())
        correlations.append(_correlation(rankdata(far), rankdata(drawn)))
    scale = len(anchors) * TRUST_AT * (2 * n - 3 * TRUST_AT - 1) / 2
    fits = n / 2 > TRUST_AT
    found = {
        "trustworthiness": 1 - intruders / scale if fits else np.nan,
        "continuity": 1 - lost / scale if fits else np.nan,
    }
    for k in RECALL_AT:
        found[f"recall_{k}"] = recalled[k] / (k * len(anchors)) if k < n - 1 else np.nan
    found["rank_correlation"] = float(np.mean(correlations)) if correlations else np.nan
    return found


def _ranks(order: np.ndarray) -> np.ndarray:
    """Rank of each sample, from 1."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / norm) if norm > 0 else np.nan


def measure_silhouette(points: np.ndarray, labels: pd.Series) -> float:
    """Mean silhouette of the labels on the map; samples without a label are left out.

    NaN if there are fewer than two labels, or a different label for every sample.
    """
    from sklearn.metrics import silhouette_score

    known = ~labels.isin(UNKNOWN).to_numpy()
    chosen = np.flatnonzero(known)
    chosen = chosen[choose_anchors(len(chosen))] if len(chosen) else chosen
    names = labels.to_numpy()[chosen]
    if not 2 <= len(set(names)) < len(names):
        return float("nan")
    return float(silhouette_score(points[chosen], names))


def measure_maps(
    embedding: Path,
    distances: Distances,
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
) -> pd.DataFrame:
    """Quality of all maps of a study (their first two axes), with PCA and plain UMAP as references.

    Every map is compared with the plain distances between genotypes (`against` is
    ``distance``), and maps of a geodesic also with that geodesic. `umap.distance` is the UMAP of a
    space's plain distances with the same parameters, the baseline that a geodesic should beat.

    Parameters
    ----------
    lengths : dict
        Geodesic matrix by (space, alpha).
    label : str
        Column of the sample sheet for the silhouette; missing columns give NaN.
    refits : bool
        Whether there are maps of everyone in addition to a frame of the founders.
    further : sequence of str
        Optional kinds of map: ``densmap``, ``tsne``.
    instability : dict, optional
        Tables of `compute_umap` by space. They are joined into `instability_out`, one column
        ``instability.umap.{space}.alpha{alpha}`` each; the result has their means.
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
    anchors = choose_anchors(len(samples))
    table = []
    for method, space, alpha, path, stem in maps:
        points = _points(path, stem)
        references = {"distance": distances.rows}
        if (space, alpha) in lengths:
            geodesic = np.load(lengths[space, alpha], mmap_mode="r")
            references["geodesic"] = geodesic.__getitem__
        silhouette = measure_silhouette(points, labels)
        own = unstable.get(f"instability.{path.stem}")
        for against, rows in references.items():
            about = {"map": method, "space": space, "alpha": alpha, "against": against}
            measured = measure_map(points, rows, anchors)
            about |= measured | {"silhouette": silhouette, "samples": len(anchors)}
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
