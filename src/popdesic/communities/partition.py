"""Communities of a study: groups that gaps between samples support, and what else was looked at.

`community` and `fine` are the leaves of the tree of supported splits (`splits`), coarse and all.
A study without significant principal components is one community, and so is a continuum; the JSON
file says which. The blocks of the nested stochastic block model (Peixoto 2014, 2017; graph-tool)
and the clusters of HDBSCAN are written beside them as other views: the block model cuts any
continuum into blocks, and HDBSCAN leaves many samples out. No labels are used. Communities are
numbered by size, never named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..cohort.samples import describe_samples
from ..distance.landmarks import LandmarkRows
from ..engine.threads import one_blas_thread, run_forked
from ..io.files import read_json, write_json
from ..io.tables import write_table
from .agreement import agreement
from .depth import measure_depths, open_genotypes
from .geodesics import density_clusters, write_tree
from .splits import (
    MOST_COMPONENTS,
    Split,
    cut_coarse,
    cut_tree,
    join_depths,
    least_coarse_depth,
    split_samples,
)
from .stability import draw_subsamples, measure_stability
from .within import structure_within

log = logging.getLogger(__name__)

#: Samples that are split first, so that the code that splits them is loaded.
LOADED_ON = 60


def number_by_size(labels: np.ndarray) -> np.ndarray:
    """Labels renumbered 1, 2, … from the largest group on; ties in order of first appearance.

    Negative labels (no group) become 0.
    """
    found, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts, found < 0))
    place = np.empty(len(found), np.int64)
    place[order] = np.arange(1, len(found) + 1)
    place[found < 0] = 0
    return place[inverse]


@one_blas_thread  # here, so that what runs side by side cannot lift another's limit
def find_communities(
    scores: Path,
    axes: Path,
    lengths: Path | None,
    blocks: Path | None,
    order: Path,
    sheet: Path,
    *,
    genotypes: list[Path],
    definition: Path,
    unrelated: Path | None,
    methods: list[str],
    min_cluster_size: int,
    draws: int,
    seed: int,
    partition_out: Path,
    agreement_out: Path,
    about_out: Path,
    tree_out: Path | None = None,
    landmarks: LandmarkRows | None = None,
    threads: int = 1,
) -> dict[str, Any]:
    """Write the communities of a study and their agreement with its labels.

    Parameters
    ----------
    scores, axes : Path
        `embedding/pca.npy`, and `embedding/axes.json`, which says how many components are
        `significant`. The scores may have more components, or fewer if the study asks for few: the
        first MOST_COMPONENTS of the significant ones among them define the communities.
    lengths : Path, optional
        Geodesics, (n, n), of HDBSCAN and the tree. Without, HDBSCAN is left out.
    blocks : Path, optional
        Written by `block_model.fit_blocks`; may state that graph-tool is missing.
    genotypes, definition, unrelated
        As in `depth.open_genotypes`: F_ST tells which splits are deep.
    methods : list of str
        This function handles ``hdbscan`` and ``tree``.
    draws, seed : int
        Subsamples from which the stability is measured.
    landmarks : LandmarkRows, optional
        Geodesics from landmarks, in place of `lengths`: the tree is theirs.
    partition_out : Path
        `sample`, `community` (shown first), `stability` (share of subsamples in which the sample
        falls into its community), `f_st` (between the halves of the last split that parts its
        community from others; NA if there is none), `fine`, `level0` … (the block
        model's levels, finest first), `hdbscan` (0: noise).
    agreement_out : Path
        ARI and AMI of every partition with every label column.
    about_out : Path
        JSON: `structure` (``one``, ``continuous`` or ``discrete``), counts, `significant`
        components and how many of these were used (`components`), the `splits` with F_ST and gap,
        the F_ST from which on they are coarse (`coarse_f_st`), the structure `within` each of
        several communities (`within.structure_within`), the clusters of `hdbscan` (None if left
        out) and the sentence if graph-tool is missing.
    """
    matrix = np.load(lengths, mmap_mode="r") if lengths else None
    samples = describe_samples(order, sheet)
    significant = int(read_json(axes)["significant"])
    points = np.load(scores)[:, : min(significant, MOST_COMPONENTS)]
    about: dict[str, Any] = {
        "samples": len(samples),
        "significant": significant,
        "components": points.shape[1],
    }
    n = len(samples)
    opened = open_genotypes(genotypes, definition, unrelated, samples["sample"])
    drawn = draw_subsamples(n, draws, seed)

    hdbscan, rows, names = "hdbscan" in methods, matrix, samples["sample"]
    if rows is None and landmarks is not None:
        rows, names = landmarks.among().matrix, names.iloc[landmarks.landmarks]
    sets = [np.arange(n), *drawn]
    tasks: list[Callable[[], Any]] = [  # the longest first
        lambda: density_clusters(matrix, min_cluster_size) if hdbscan else None,
        *(partial(split_samples, points[own]) for own in sets),
        lambda: write_tree(rows, names, tree_out) if "tree" in methods and tree_out else None,
    ]
    if threads > 1:
        # What several copies of this process need is loaded once.
        import sklearn.cluster  # noqa: F401

        split_samples(points[:: max(1, n // LOADED_ON)])
    clusters, *trees, _ = run_forked(lambda k: tasks[k](), zip(range(len(tasks))), threads)
    root, *others = measure_depths(trees, opened, sets, threads)
    told, found = other_views(blocks, clusters, hdbscan)
    about |= told
    community, fine = number_by_size(cut_coarse(root)), number_by_size(cut_tree(root))
    about |= describe_splits(root, significant)
    about |= {"communities": int(community.max()), "fine": int(fine.max())}
    # The whole says it already where there is one community.
    about["within"] = []
    if community.max() > 1:
        about["within"] = structure_within(opened, community, fine, threads)
    stability = measure_stability(points, community, drawn, [cut_coarse(tree) for tree in others])
    table = samples[["sample"]].assign(
        community=community, stability=stability, f_st=join_depths(root).round(5), fine=fine
    )
    table = table.assign(**found)
    write_table(partition_out, table)
    write_table(agreement_out, agreement(table, samples))
    write_json(about_out, about)
    return about


def other_views(
    blocks: Path | None, clusters: np.ndarray | None, hdbscan: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the block model and HDBSCAN found: entries of `about_out`, and partitions.

    `hdbscan`: whether the study asks for it; it may have no `clusters` still.
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
            for level, partition in enumerate(model["levels"]):
                found[f"level{level}"] = number_by_size(partition)
    if hdbscan:
        about["hdbscan"] = None if clusters is None else int(clusters.max()) + 1
    if clusters is not None:
        found["hdbscan"] = number_by_size(clusters)
    return about, found


def describe_splits(root: Split, significant: int) -> dict[str, Any]:
    """Kind of structure, and the evidence for each split or, without any, against one."""
    splits = [node for node in root.walk() if node.halves]
    kind = "discrete" if splits else "continuous" if significant else "one"
    shown = splits or ([root] if root.gap else [])
    return {
        "structure": kind,
        "coarse_f_st": round(least_coarse_depth(root), 5) if splits else None,
        "splits": [
            {
                "samples": len(node.members),
                "halves": [len(half.members) for half in node.halves],
                "f_st": round(node.depth, 5) if splits else None,
                "dip": round(node.gap.dip, 5),
                "p": round(node.gap.p, 6),
                "width": round(node.gap.width, 4),
            }
            for node in shown
        ],
    }


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
