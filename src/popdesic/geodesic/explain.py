"""The paths behind a closure, and the samples that bridge others.

The closure holds only lengths. This module recovers the paths with Dijkstra's algorithm from every
sample on the direct weights (n**3 operations on the CPU, hence optional), in the closure's
number type: in fixed point the lengths are bit-identical.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import write_json
from ..core.tables import read_table, write_npy, write_table
from .graph import Graph
from .weights import Number


def explain_geodesics(
    distances: np.ndarray,
    samples: pd.DataFrame,
    *,
    founders: np.ndarray,
    statistics: dict,
    ends: set[str],
    threads: int,
    parents_out: Path,
    hops_out: Path,
    bridges_out: Path,
) -> dict:
    """Write the paths behind a study's geodesics at one alpha.

    Parameters
    ----------
    distances : float64 array, (n, n)
        The distances that the geodesics were computed from.
    samples : DataFrame
        `sample`, `cohort`, `population` of the rows.
    founders : bool array, (n,)
    statistics : dict
        Content of the alpha's JSON file: exponent, graph and number type.
    ends : set of str
        Samples that no path may run through (geodesic.bridges: unrelated).
    parents_out : Path
        int32 (n, n): row of the sample before j on the path from i; i if the path is direct.
    hops_out : Path
        JSON: unordered pairs by number of edges of their path.
    bridges_out : Path
        TSV: samples by the number of paths through them between other samples of different
        populations, most first. If several shortest paths exist, one is counted: a direct edge
        first, then the path through the closer sample, then the earlier in sample order.
    """
    from .trees_cpu import shortest_trees

    number = Number(**statistics["number"])
    graph = Graph(**statistics["graph"])
    direct = number.store(graph.edge_weights(distances, founders, statistics["value"]))
    if "population" not in samples:  # then no path connects two populations
        samples = samples.assign(population="NA")
    labels = pd.factorize(samples.population)[0].astype(np.int64)
    # Of plain distances every path is direct: rounding alone would make others shorter.
    is_end = samples["sample"].isin(ends).to_numpy() | statistics["plain"]
    parents, hops, between = shortest_trees(np.ascontiguousarray(direct), labels, threads, is_end)
    n_between = (len(labels) ** 2 - (np.bincount(labels) ** 2).sum()) // 2
    write_npy(parents_out, parents)
    by_hops = {str(k): int(count // 2) for k, count in enumerate(hops) if k and count}
    write_json(hops_out, {"pairs_by_edges": by_hops})
    table = samples[["sample", "cohort", "population"]].copy()
    table["paths"] = between
    table["share_of_paths"] = between / max(1, n_between)
    table = table[table.paths > 0].sort_values("paths", ascending=False, kind="stable")
    write_table(bridges_out, table)
    return {"pairs": int(hops[1:].sum() // 2), "bridges": len(table)}


def rank_bridges(tables: dict[tuple[str, str], Path], out: Path) -> None:
    """Join the bridges of every space and alpha: `space`, `alpha`, `rank`, then their columns."""
    parts = []
    for (space, alpha), path in tables.items():
        table = read_table(path)
        table.insert(0, "space", space)
        table.insert(1, "alpha", alpha)
        table.insert(2, "rank", [str(rank + 1) for rank in range(len(table))])
        parts.append(table)
    write_table(out, pd.concat(parts))


def read_path(study: Path, space: str, alpha: str, start: str, end: str) -> list[str]:
    """Samples on the geodesic from `start` to `end`, both included.

    Raises
    ------
    UserError
        The geodesics were not explained, a sample is unknown, there is no path, or the matrix is
        damaged.
    """
    folder = study / "results" / "geodesic" / space
    parents_path = folder / f"parents.alpha{alpha}.npy"
    if not parents_path.is_file():
        raise UserError(
            f"{parents_path} does not exist; set geodesic.explain to true in config/config.yaml "
            "and run the workflow up to geodesic."
        )
    order = study / "results" / "distance" / "samples.tsv"
    if not order.is_file():
        raise UserError(f"{order} does not exist; run the workflow up to geodesic.")
    names = read_table(order)["sample"].tolist()
    for name in (start, end):
        if name not in names:
            raise UserError(f"results/distance/samples.tsv has no sample '{name}'.")
    damaged = "is damaged; run the workflow again with --forcerun explain_paths"
    try:
        parents = np.load(parents_path, mmap_mode="r")
    except (ValueError, EOFError, OSError):
        raise UserError(f"{parents_path} {damaged}.") from None
    if parents.shape != (len(names), len(names)) or parents.dtype.kind != "i":
        raise UserError(f"{parents_path} does not fit {order}: it {damaged}.")
    source, at = names.index(start), names.index(end)
    path = [at]
    while at != source:
        at = int(parents[source, at])
        if at < 0:
            raise UserError(f"there is no path from '{start}' to '{end}' in {parents_path}.")
        path.append(at)
        # A path visits nobody twice: a longer one is a cycle.
        if at >= len(names) or len(path) > len(names):
            raise UserError(
                f"{parents_path}: the path from '{start}' to '{end}' never ends: it {damaged}."
            )
    return [names[index] for index in reversed(path)]
