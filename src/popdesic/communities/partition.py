"""Communities from geodesics: blocks of the neighbour graph joined by geodesics, and HDBSCAN.

The nested stochastic block model (Peixoto 2014, 2017; graph-tool) finds the finest groups that
the k-nearest-neighbour graph supports: `level0`. The graph does not show how far apart two
groups without a common edge are, so its upper levels can join distant groups (they are still
written and scored). Here the blocks are joined by the energy distance of their geodesics, and the
tree is cut twice without using labels: `community`, shown first, at the largest mean silhouette of
the geodesics, and `fine`, at the largest modularity of the graph. Communities are numbered by
size, never named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from ..cohort.samples import UNKNOWN, describe_samples
from ..distance.neighbor_joining import neighbor_joining
from ..embedding.knn import BLOCK_NUMBERS, nearest_neighbors
from ..io.files import atomic_path, write_json
from ..io.sites import chunks
from ..io.tables import read_table, write_npz, write_table

log = logging.getLogger(__name__)

#: Most communities (the number of colours), and most fine communities.
MOST_COARSE, MOST_FINE = 12, 40
#: Most samples for HDBSCAN, which needs the whole matrix twice in float64.
HDBSCAN_SAMPLES = 20_000
#: Most leaves of the tree, evenly spaced in sample order: neighbour joining takes n**3 steps.
TREE_LEAVES = 600
#: Columns of the sheet with more labels than this are not compared.
MOST_LABELS = 100


def build_graph(lengths: Path, k: int, out: Path) -> int:
    """Write the k-nearest-neighbour graph of the geodesics; return its number of edges.

    An edge found from both ends counts once. npz with `edges` int64 (n_edges, 2), each row
    ascending, rows sorted, and `n`.
    """
    matrix = np.load(lengths, mmap_mode="r")
    n = len(matrix)
    neighbors, distances = nearest_neighbors(matrix.__getitem__, n, k)
    ends = np.stack([np.repeat(np.arange(n), neighbors.shape[1]), neighbors.ravel()], axis=1)
    ends = np.sort(ends[np.isfinite(distances.ravel())], axis=1)
    edges = np.unique(ends, axis=0)
    write_npz(out, edges=edges, n=np.int64(n))
    return len(edges)


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


def _blocks(matrix: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers and float64 rows; pairs without a path get the largest finite length."""
    n = len(matrix)
    farthest = 0.0
    bounds = list(chunks(n, max(1, BLOCK_NUMBERS // max(n, 1))))
    for first, last in bounds:
        block = matrix[first:last]
        farthest = max(farthest, float(block.max(where=np.isfinite(block), initial=0.0)))
    for first, last in bounds:
        block = np.array(matrix[first:last], np.float64)
        block[~np.isfinite(block)] = farthest
        yield np.arange(first, last), block


def sum_to_groups(matrix: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """float64 (n, n_groups): sum of each sample's geodesics to the members of each group.

    `groups` are 0 … n_groups - 1, none empty.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    sums = np.empty((len(groups), len(starts)))
    for which, block in _blocks(matrix):
        sums[which] = np.add.reduceat(block[:, order], starts, axis=1)
    return sums


def mean_silhouette(sums: np.ndarray, groups: np.ndarray) -> float:
    """Mean silhouette (Rousseeuw 1987) of all samples, from `sum_to_groups`.

    A sample alone in its group counts 0, as in scikit-learn.
    """
    sizes = np.bincount(groups)
    own = sums[np.arange(len(groups)), groups] / np.maximum(sizes[groups] - 1, 1)
    others = sums / sizes
    others[np.arange(len(groups)), groups] = np.inf
    nearest = others.min(axis=1)
    wider = np.maximum(own, nearest)
    score = np.where(wider > 0, (nearest - own) / np.where(wider > 0, wider, 1.0), 0.0)
    score[sizes[groups] == 1] = 0.0
    return float(score.mean())


def energy_tree(sums: np.ndarray, groups: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Join groups step by step by their energy distance (Székely and Rizzo 2005).

    The distance between groups of n and m samples is n m / (n + m) * (2 D_ab - D_aa - D_bb), with D
    the mean geodesics between and within groups. A few outlying samples therefore weigh little;
    the mean alone would separate them first. The closest pair is joined; ties by order.

    Parameters
    ----------
    sums : float64 array, (n, n_groups)
        From `sum_to_groups`.
    groups : int array, (n,)

    Yields
    ------
    count, merged : int and int array, (n_groups,)
        Number of groups left, and the group (0 …) that each initial group belongs to.
    """
    n_groups = sums.shape[1]
    total = np.zeros((n_groups, n_groups))
    np.add.at(total, groups, sums)
    sizes = np.bincount(groups).astype(np.float64)
    merged = np.arange(n_groups)
    alive = np.arange(n_groups)
    yield n_groups, merged
    while len(alive) > 1:
        size = sizes[alive]
        mean = total[np.ix_(alive, alive)] / np.outer(size, size)
        within = np.diag(mean)
        apart = np.outer(size, size) / (size[:, None] + size)
        apart *= mean + mean.T - within[:, None] - within
        np.fill_diagonal(apart, np.inf)
        first, second = sorted(alive[list(divmod(int(apart.argmin()), len(alive)))])
        total[first] += total[second]
        total[:, first] += total[:, second]
        sizes[first] += sizes[second]
        merged = np.where(merged == second, first, merged)
        alive = alive[alive != second]
        yield len(alive), np.searchsorted(alive, merged)


def modularity(edges: np.ndarray, groups: np.ndarray) -> float:
    """Modularity (Newman 2004) of a partition of an unweighted graph."""
    inside = (groups[edges[:, 0]] == groups[edges[:, 1]]).mean()
    ends = np.bincount(groups[edges.ravel()])
    return float(inside - ((ends / ends.sum()) ** 2).sum())


@dataclass(frozen=True)
class Joined:
    """Two cuts of the tree of blocks; group numbers (n,) each."""

    coarse: np.ndarray
    fine: np.ndarray
    #: Mean silhouette of the geodesics, and modularity of the graph, by number of groups.
    silhouettes: dict[int, float]
    modularities: dict[int, float]


def join_groups(matrix: np.ndarray, groups: np.ndarray, edges: np.ndarray) -> Joined:
    """Join blocks by their geodesics; cut at the best silhouette and the best modularity.

    Parameters
    ----------
    matrix : float array, (n, n)
        Geodesics; may be memory-mapped.
    groups : int array, (n,)
        0 … n_groups - 1, none empty.
    edges : int array, (n_edges, 2)
        The nearest-neighbour graph.

    Returns
    -------
    Joined
        2 … MOST_COARSE coarse and 2 … MOST_FINE fine groups, never fewer fine than coarse groups;
        a single group if there is only one block.
    """
    silhouettes: dict[int, float] = {}
    modularities: dict[int, float] = {}
    cuts: dict[int, np.ndarray] = {}
    if groups.max() > 0:
        sums = sum_to_groups(matrix, groups)
        for count, merged in energy_tree(sums, groups):
            if not 2 <= count <= MOST_FINE:
                continue
            cuts[count] = merged[groups]
            modularities[count] = modularity(edges, cuts[count]) if len(edges) else 0.0
            if count <= MOST_COARSE:
                silhouettes[count] = mean_silhouette(sums @ np.eye(count)[merged], cuts[count])
    if not silhouettes:
        return Joined(np.zeros_like(groups), np.zeros_like(groups), {}, {})
    coarse = max(silhouettes, key=lambda count: (silhouettes[count], -count))
    finer = {count: value for count, value in modularities.items() if count >= coarse}
    fine = max(finer, key=lambda count: (finer[count], -count))
    return Joined(cuts[coarse], cuts[fine], silhouettes, modularities)


def membership(draws: np.ndarray, communities: np.ndarray) -> np.ndarray:
    """Share of sampled partitions that keep each sample in its community, float64 (n,).

    In every draw, a block is assigned to the community of most of its members (ties: the first),
    so labels of draws need not be matched. NaN without draws.

    Parameters
    ----------
    draws : int array, (n_draws, n)
        Blocks at the finest level.
    communities : int array, (n,)
    """
    agrees = np.zeros(len(communities))
    _, own = np.unique(communities, return_inverse=True)
    for draw in draws:
        _, block = np.unique(draw, return_inverse=True)
        table = np.zeros((block.max() + 1, own.max() + 1), np.int64)
        np.add.at(table, (block, own), 1)
        agrees += table.argmax(axis=1)[block] == own
    return agrees / len(draws) if len(draws) else np.full(len(communities), np.nan)


def density_clusters(matrix: np.ndarray, min_cluster_size: int) -> np.ndarray | None:
    """HDBSCAN's clusters (Campello et al. 2013), -1 for noise; None above HDBSCAN_SAMPLES."""
    if len(matrix) > HDBSCAN_SAMPLES:
        log.warning("HDBSCAN is left out: more than %d samples", HDBSCAN_SAMPLES)
        return None
    whole = np.concatenate([block for _, block in _blocks(matrix)])
    size = max(2, min(min_cluster_size, len(whole) - 1))
    model = HDBSCAN(min_cluster_size=size, metric="precomputed", copy=False, n_jobs=1)
    return model.fit_predict(whole)


def find_communities(
    lengths: Path,
    graph: Path,
    blocks: Path | None,
    order: Path,
    sheet: Path,
    *,
    methods: list[str],
    min_cluster_size: int,
    partition_out: Path,
    agreement_out: Path,
    about_out: Path,
    tree_out: Path | None = None,
) -> dict[str, Any]:
    """Write the communities of a study and their agreement with its labels.

    Parameters
    ----------
    lengths : Path
        Geodesics, (n, n).
    graph : Path
        Written by `build_graph`.
    blocks : Path, optional
        Written by `block_model.fit_blocks`; may state that graph-tool is missing. HDBSCAN's
        clusters (noise is one of them) are then joined instead; with too many samples for HDBSCAN,
        everyone is in one community.
    methods : list of str
        This function handles ``hdbscan`` and ``tree``.
    partition_out : Path
        `sample`, `community` (shown first), `probability` (share of sampled partitions that agree),
        `fine`, `level0` … (graph-tool's nested levels, finest first), `hdbscan` (0: noise).
    agreement_out : Path
        ARI and AMI of every partition with every label column.
    about_out : Path
        JSON: counts, description lengths, silhouettes, and the sentence if graph-tool is missing.
    """
    matrix = np.load(lengths, mmap_mode="r")
    samples = describe_samples(order, sheet)
    about: dict[str, Any] = {"samples": len(samples)}
    found: dict[str, np.ndarray] = {}
    start, draws = None, np.empty((0, len(samples)), np.int64)
    if blocks is not None:
        with np.load(blocks) as arrays:
            model = {name: arrays[name] for name in arrays.files}
        if "missing" in model:
            about["missing"] = str(model["missing"])
            log.warning("%s", about["missing"])
        else:
            start, draws = model["levels"][0], model["draws"][:, 0]
            about["block_model"] = describe_model(model)
            for level, partition in enumerate(model["levels"]):
                found[f"level{level}"] = number_by_size(partition)
    if "hdbscan" in methods or start is None:
        clusters = density_clusters(matrix, min_cluster_size)
        if clusters is not None:
            found["hdbscan"] = number_by_size(clusters)
            start = found["hdbscan"] if start is None else start
    if start is None:
        start = np.zeros(len(samples), np.int64)
        about["missing"] = (
            f"communities: {len(samples)} samples are more than HDBSCAN takes ({HDBSCAN_SAMPLES}), "
            "and there is no block model, so all are shown as one community; install graph-tool "
            "(Debian's python3-graph-tool, conda's graph-tool) and have blockmodel in "
            "communities.methods."
        )
        log.warning("%s", about["missing"])
    _, groups = np.unique(start, return_inverse=True)
    with np.load(graph) as arrays:
        joined = join_groups(matrix, groups, arrays["edges"])
    community, fine = number_by_size(joined.coarse), number_by_size(joined.fine)
    about["made_from"] = next((name for name in ("level0", "hdbscan") if name in found), "nothing")
    about |= {"communities": int(community.max()), "fine": int(fine.max())}
    for name, scores in (
        ("silhouettes", joined.silhouettes),
        ("modularities", joined.modularities),
    ):
        about[name] = {str(count): round(score, 6) for count, score in sorted(scores.items())}
    table = samples[["sample"]].assign(
        community=community, probability=membership(draws, community), fine=fine, **found
    )
    write_table(partition_out, table)
    write_table(agreement_out, agreement(table, samples))
    if "tree" in methods and tree_out:
        write_tree(matrix, samples["sample"], tree_out)
    write_json(about_out, about)
    return about


def describe_model(model: dict[str, np.ndarray]) -> dict[str, Any]:
    """Summary of a block model: blocks and description length per level, spread of draws."""
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


def agreement(partition: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Adjusted Rand index and adjusted mutual information of partitions with labels.

    Samples without a label are left out; HDBSCAN's noise is one more group. Columns of the sheet
    with one label, more than MOST_LABELS labels, or more labels than half the samples are skipped.

    Returns
    -------
    DataFrame
        `label`, `partition`, `samples`, `labels`, `groups`, `noise`, `ari`, `ami`.
    """
    rows = []
    for column in (c for c in samples.columns if c != "sample"):
        known = ~samples[column].isin(UNKNOWN).to_numpy()
        labels = samples[column].to_numpy()[known]
        if not 2 <= len(set(labels)) <= min(MOST_LABELS, len(labels) // 2):
            continue
        for name in partition.columns.drop(["sample", "probability"]):
            groups = partition[name].to_numpy()[known]
            rows.append(
                {
                    "label": column,
                    "partition": name,
                    "samples": len(labels),
                    "labels": len(set(labels)),
                    "groups": len(set(groups) - {0}),
                    "noise": int((groups == 0).sum()),
                    "ari": adjusted_rand_score(labels, groups),
                    "ami": adjusted_mutual_info_score(labels, groups),
                }
            )
    columns = ["label", "partition", "samples", "labels", "groups", "noise", "ari", "ami"]
    return pd.DataFrame(rows, columns=columns)


def write_tree(matrix: np.ndarray, names: pd.Series, out: Path) -> None:
    """Neighbour-joining tree of at most TREE_LEAVES samples, evenly spaced in sample order."""
    n = len(names)
    leaves = np.unique(np.linspace(0, n - 1, min(n, TREE_LEAVES)).astype(np.int64))
    distances = np.concatenate([block[np.isin(which, leaves)] for which, block in _blocks(matrix)])
    tree = neighbor_joining(distances[:, leaves], list(names.iloc[leaves]))
    with atomic_path(out) as temporary:
        temporary.write_text(tree + "\n", "utf-8")


def load_partition(path: Path) -> pd.DataFrame:
    """`communities/partition.tsv`: integers except `sample` (text) and `probability` (float64)."""
    table = read_table(path)
    table["probability"] = pd.to_numeric(table.probability, errors="coerce")
    whole = table.columns.drop(["sample", "probability"])
    table[whole] = table[whole].astype(np.int64)
    return table
