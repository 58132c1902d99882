"""Communities of a study: groups that gaps between samples support, and what else was looked at.

`community` are the leaves of the tree of coarse splits (`splits`), `fine` those of trees on the
components of each community's own samples (`within`).
A study without significant principal components is one community, and so is a continuum; the JSON
file says which. The blocks of the nested stochastic block model (Peixoto 2014, 2017; graph-tool)
and the clusters of HDBSCAN are written beside them as other views: the block model cuts any
continuum into blocks, and HDBSCAN leaves many samples out. No labels are used. Communities are
numbered by size, never named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..core.files import write_json
from ..core.tables import read_table, write_table
from ..core.threads import one_blas_thread, run_tasks
from ..distance.landmarks import LandmarkRows
from ..geodesic.lengths import open_lengths
from .founders import Founders
from .geodesics import density_clusters, place_in_blocks, write_tree
from .study_splits import (
    SUBSAMPLES,
    SplitSource,
    StudySplits,
    number_by_size,
    read_splits,
    split_study,
)

#: Nearest founders that tell the block of a newcomer.
PLACED_BY = 15
#: Fewest samples of a cluster of HDBSCAN.
LEAST_CLUSTER = 10

log = logging.getLogger(__name__)


class PartitionFiles(NamedTuple):
    """What is written of communities.

    Attributes
    ----------
    partition : Path
        `sample`, `community` (shown first), `stability` (share of subsamples in which the sample
        falls into its community), `f_st` (between the halves of the last split that parts its
        community from others; NA if there is none), `between` (communities such as 1-3 that the
        sample lies between, `bridges.find_bridges`; NA if it does not), `fine`, `level0` … (the
        block model's levels, finest first), `hdbscan` (0: noise).
    about : Path
        JSON: `structure` (``one``, ``continuous`` or ``discrete``), counts, `significant`
        components and how many of these were used (`components`), the coarse `splits` with F_ST
        and gap, the F_ST from which on they are coarse (`coarse_f_st`), the structure `within` each
        of several communities (`within.structure_within`), how many samples lie
        `between` which, the clusters of `hdbscan` (None if left
        out) and the sentence if graph-tool is missing.
    tree : Path, optional
        The tree of the geodesics.
    """

    partition: Path
    about: Path
    tree: Path | None = None


@one_blas_thread  # here, so that what runs side by side cannot lift another's limit
def find_communities(
    source: SplitSource | Path,
    lengths: Path | None,
    blocks: Path | None,
    order: Path,
    *,
    methods: list[str],
    founders: Founders | None = None,
    min_cluster_size: int = LEAST_CLUSTER,
    draws: int = SUBSAMPLES,
    seed: int = 0,
    out: PartitionFiles,
    landmarks: LandmarkRows | None = None,
    threads: int = 1,
) -> dict[str, Any]:
    """Write the communities of a study.

    Parameters
    ----------
    source : SplitSource or Path
        What splits are found in, or splits that `study_splits.write_splits` wrote.
    lengths : Path, optional
        Geodesics, (n, n), of HDBSCAN and the tree. Without, HDBSCAN is left out.
    blocks : Path, optional
        Written by `block_model.fit_blocks`; may state that graph-tool is missing.
    methods : list of str
        This function handles ``hdbscan`` and ``tree``.
    founders
        As in `study_splits.split_study`.
    draws, seed : int
        Subsamples from which the stability is measured.
    landmarks : LandmarkRows, optional
        Geodesics from landmarks, in place of `lengths`: the tree is theirs.
    """
    samples = read_table(order)
    views = _views(lengths, landmarks, samples, methods, min_cluster_size, out.tree)
    if isinstance(source, Path):
        splits = read_splits(source)
        clusters, _ = run_tasks(lambda k: views[k](), zip(range(len(views))), threads)
    else:
        splits, (clusters, _) = split_study(
            source,
            samples["sample"],
            founders=founders,
            draws=draws,
            seed=seed,
            threads=threads,
            beside=views,
        )
    views = other_views(blocks, lengths, clusters, "hdbscan" in methods)
    return _write(splits, *views, samples, out)


def _views(
    lengths: Path | None,
    landmarks: LandmarkRows | None,
    samples: pd.DataFrame,
    methods: list[str],
    min_cluster_size: int,
    tree_out: Path | None,
) -> list[Callable[[], Any]]:
    """What is made of the geodesics: HDBSCAN's clusters, or None, and the tree's file."""
    matrix, names = open_lengths(lengths) if lengths else None, samples["sample"]
    rows = matrix
    if rows is None and landmarks is not None:
        rows, names = landmarks.among().matrix, names.iloc[landmarks.landmarks]
    hdbscan, tree = "hdbscan" in methods, "tree" in methods and tree_out
    return [
        lambda: density_clusters(matrix, min_cluster_size) if hdbscan else None,
        lambda: write_tree(rows, names, tree_out) if tree else None,
    ]


def _write(
    splits: StudySplits,
    told: dict[str, Any],
    found: dict[str, np.ndarray],
    samples: pd.DataFrame,
    out: PartitionFiles,
) -> dict[str, Any]:
    about = {"samples": len(samples)}
    about |= {key: splits.about[key] for key in ("significant", "components")}
    about |= told | splits.about
    table = samples[["sample"]].assign(
        community=splits.community,
        stability=splits.stability,
        f_st=splits.f_st,
        between=splits.between,
        fine=splits.fine,
    )
    table = table.assign(**found)
    write_table(out.partition, table)
    write_json(out.about, about)
    return about


def other_views(
    blocks: Path | None, lengths: Path | None, clusters: np.ndarray | None, hdbscan: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the block model and HDBSCAN found: entries of `PartitionFiles.about`, and partitions.

    `hdbscan`: whether the study asks for it; it may have no `clusters` still. Where the block model
    is that of the founders, newcomers are placed in its blocks by their geodesics (`lengths`).
    """
    about: dict[str, Any] = {}
    found: dict[str, np.ndarray] = {}
    if blocks is not None:
        with np.load(blocks) as arrays:
            model = {name: arrays[name] for name in arrays.files}
        if "missing" in model:
            about["missing"] = str(model["missing"])
            log.warning("%s", about["missing"])
        else:
            about["block_model"] = describe_model(model)
            levels = np.array([number_by_size(partition) for partition in model["levels"]])
            first = levels.shape[1]  # founders come first
            if lengths and len(matrix := open_lengths(lengths)) > first:
                placed = place_in_blocks(levels, matrix[first:][:, :first], PLACED_BY)
                levels = np.hstack([levels, placed])
            found = {f"level{number}": level for number, level in enumerate(levels)}
    if hdbscan:
        about["hdbscan"] = None if clusters is None else int(clusters.max()) + 1
    if clusters is not None:
        found["hdbscan"] = number_by_size(clusters)
    return about, found


def describe_model(model: dict[str, np.ndarray]) -> dict[str, Any]:
    """Summary of a block model: blocks and description length per level, spread of draws."""
    from sklearn.metrics import adjusted_rand_score

    draws = [len(np.unique(draw)) for draw in model["draws"][:, 0]]
    same = [adjusted_rand_score(model["levels"][0], draw) for draw in model["draws"][:, 0]]
    lengths = model["draw_lengths"]
    return {
        "graph_tool": str(model["version"]),
        "blocks": [len(np.unique(level)) for level in model["levels"]],
        "description_length": round(float(model["total"]), 3),
        "description_length_by_level": [round(float(x), 3) for x in model["lengths"]],
        "draws": len(draws),
        "blocks_of_draws": [min(draws), max(draws)] if draws else [],
        "description_length_of_draws": (
            [round(float(lengths.mean()), 3), round(float(lengths.std()), 3)] if draws else []
        ),
        "ari_with_draws": round(float(np.mean(same)), 4) if draws else None,
    }
