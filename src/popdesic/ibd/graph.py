"""The graph of who shares segments with whom, for the block model and for geodesics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.tables import read_table, write_npz

#: Weight of a pair that shares no more than the shortest segment: weights are positive.
LEAST_WEIGHT = 1e-3


def build_graph(pairs: Path, order: Path, min_cm: float, out: Path) -> int:
    """Write the graph of all pairs that share `min_cm` or more; return its number of edges.

    A segment at the limit may be a little shorter (`segments.LIKELY_SHARE`). Pairs that share less
    than `min_cm` have no edge: their weights would all be the least one, which looks like a group.

    The weight of an edge is the natural logarithm of the pair's total length in units of the
    shortest segment. Totals of relatives exceed others a hundred times; their logarithms spread
    nearly exponentially, as the block model assumes.

    The length of an edge is -log2(2 x kinship), the degree of relationship that the shared length
    stands for: 0 for one person twice, 1 for parent and child, one more for each halving. Degrees
    add up along the lines of a pedigree, so lengths of paths do.

    Parameters
    ----------
    pairs : Path
        `ibd/pairs.tsv`; of its columns the names, `total_cM` and `kinship` are read.
    order : Path
        `distance/samples.tsv`: numbers of the samples.
    min_cm : float
        Shortest segment.
    out : Path
        npz with `edges` int64 (n_edges, 2), each row ascending, rows sorted; `weights` and
        `lengths` float64 (n_edges,); `n`.
    """
    names = read_table(order)["sample"]
    place = {name: k for k, name in enumerate(names)}
    table = read_table(pairs)
    ends = np.array([table[side].map(place) for side in ("sample1", "sample2")], np.int64).T
    edges = np.sort(ends.reshape(-1, 2), axis=1)
    total = table.total_cM.astype(np.float64).to_numpy()
    rows = np.lexsort((edges[:, 1], edges[:, 0]))
    rows = rows[total[rows] >= min_cm]
    weights = np.maximum(np.log(total[rows] / min_cm), LEAST_WEIGHT)
    kinship = table.kinship.astype(np.float64).to_numpy()[rows]
    lengths = np.maximum(-np.log2(2 * kinship), 0.0)
    n = np.int64(len(names))
    write_npz(out, edges=edges[rows], weights=weights, lengths=lengths, n=n)
    return len(rows)
