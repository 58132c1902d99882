"""Graph of neighbours and its blocks, and of geodesics density clusters and a tree."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.files import atomic_path
from ..core.tables import write_npz
from ..distance.neighbor_joining import neighbor_joining
from ..geodesic.lengths import Lengths
from ..io.sites import chunks
from ..maps.knn import Rows, nearest_neighbors

log = logging.getLogger(__name__)

#: Most samples for HDBSCAN, which needs the whole matrix twice in float64.
HDBSCAN_SAMPLES = 20_000
#: Values in one block of rows.
BLOCK_NUMBERS = 1 << 20
#: Most leaves of the tree, evenly spaced in sample order: neighbour joining takes n**3 steps.
TREE_LEAVES = 600


def build_neighbor_graph(
    source: Path | Rows, k: int, out: Path, among: np.ndarray | None = None
) -> int:
    """Write the graph of k nearest neighbours; return its number of edges.

    An edge found from both ends counts once. npz with `edges` int64 (n_edges, 2), each row
    ascending, rows sorted, and `n`.

    Parameters
    ----------
    source : callable or Path
        Distances of some samples to all, as of `knn.nearest_neighbors`; or `.npz` of the nearest of
        everyone.
    among : bool array, (n,), optional
        The samples of the graph, which is that of a study without others; needs rows.
    """
    if isinstance(source, Path):
        with np.load(source) as found:
            neighbors, distances = found["index"][:, :k], found["distance"][:, :k]
    else:
        which = np.flatnonzero(among)
        neighbors, distances = nearest_neighbors(
            lambda own: source(which[own])[:, which], len(which), k
        )
    n = len(neighbors)
    ends = np.stack([np.repeat(np.arange(n), neighbors.shape[1]), neighbors.ravel()], axis=1)
    ends = np.sort(ends[np.isfinite(distances.ravel())], axis=1)
    edges = np.unique(ends, axis=0)
    write_npz(out, edges=edges, n=np.int64(n))
    return len(edges)


def place_in_blocks(levels: np.ndarray, lengths: np.ndarray, k: int) -> np.ndarray:
    """Blocks of further samples: that of most of their k nearest among those of the model.

    Those that cannot be reached do not count, and ties go to the block of the nearest. A sample is
    in the blocks at all levels that its finest is in.

    Parameters
    ----------
    levels : int array, (n_levels, n_founders)
        Finest first.
    lengths : array, (m, n_founders)

    Returns
    -------
    int array, (n_levels, m)
    """
    found = np.empty((len(levels), len(lengths)), levels.dtype)
    for sample, far in enumerate(lengths):
        near = np.argsort(far, kind="stable")[:k]
        near = near[: max(1, np.isfinite(far[near]).sum())]
        own = levels[0, near]
        found[:, sample] = levels[:, near[np.argmax((own[:, None] == own).sum(axis=1))]]
    return found


def _blocks(matrix: Lengths | np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of rows."""
    n = len(matrix)
    for first, last in chunks(n, max(1, BLOCK_NUMBERS // max(n, 1))):
        yield matrix[first:last]


def _finite(rows: np.ndarray, matrix: Lengths | np.ndarray) -> np.ndarray:
    """Rows of a matrix in float64; pairs without a path get its largest finite length."""
    rows = np.array(rows, np.float64)
    without = ~np.isfinite(rows)
    if without.any():
        rows[without] = max(
            float(block.max(where=np.isfinite(block), initial=0.0)) for block in _blocks(matrix)
        )
    return rows


def density_clusters(
    matrix: Lengths | np.ndarray | None, min_cluster_size: int
) -> np.ndarray | None:
    """HDBSCAN's clusters (Campello et al. 2013), -1 for noise.

    None above HDBSCAN_SAMPLES, or without a matrix.
    """
    from sklearn.cluster import HDBSCAN

    if matrix is None:
        return None
    if len(matrix) > HDBSCAN_SAMPLES:
        log.warning("HDBSCAN is left out: more than %d samples", HDBSCAN_SAMPLES)
        return None
    whole = _finite(np.concatenate(list(_blocks(matrix))), matrix)
    size = max(2, min(min_cluster_size, len(whole) - 1))
    model = HDBSCAN(min_cluster_size=size, metric="precomputed", copy=False, n_jobs=1)
    return model.fit_predict(whole)


def write_tree(matrix: Lengths | np.ndarray, names: pd.Series, out: Path) -> None:
    """Neighbour-joining tree of at most TREE_LEAVES samples, evenly spaced in sample order."""
    n = len(names)
    leaves = np.unique(np.linspace(0, n - 1, min(n, TREE_LEAVES)).astype(np.int64))
    distances = _finite(matrix[leaves], matrix)
    tree = neighbor_joining(distances[:, leaves], list(names.iloc[leaves]))
    with atomic_path(out) as temporary:
        temporary.write_text(tree + "\n", "utf-8")
