"""Paths from every node along edges beside the dense closure and SciPy, by share of edges.

    python tests/bench/bench_sparse_paths.py [--sizes 2000 5000] [--repeats 3] [--quick]

Graphs of nearest neighbours (`geodesic.graph: knn`) of random points in 8 dimensions, with weights
d^1.5. "share" is the share of pairs with an edge, as `measure.close_all` counts it. SciPy's
dijkstra works in float64 on one CPU; it runs from every tenth source, and its time is multiplied by
ten. The last table has the share at which paths along edges and the dense closure take equally
long, on a straight line between the logarithms of the two nearest measurements, beside the limit in
use (`measure.SPARSE_SHARE`). Last come approximate geodesics (`neighbor_paths`, float64), with the
search for neighbours and the check of their error, beside SciPy's paths on the same graph.
"""

from __future__ import annotations

import os

import commandline
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import pdist, squareform
from timing import best_of, print_table

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.minplus import infinity
from popdesic.geodesic import measure
from popdesic.geodesic.graph import Graph, longest_paths
from popdesic.geodesic.neighbors import APPROXIMATE_NEIGHBORS, neighbor_paths
from popdesic.geodesic.weights import choose_number

CPUS = os.cpu_count() or 1
DIMENSIONS, ALPHA = 8, 1.5
#: SciPy runs from every so many-th source.
SOURCES = 10


def time_closure(direct: np.ndarray, backend: CpuBackend, repeats: int, limit: float):
    """Seconds and lengths of `close_all` if paths along edges are used up to this share."""
    found = np.empty(0)

    def close() -> None:
        nonlocal found
        found, _ = measure.close_all(direct, backend)

    used = measure.SPARSE_SHARE
    measure.SPARSE_SHARE = dict.fromkeys(used, limit)
    try:
        return best_of(repeats, close), found
    finally:
        measure.SPARSE_SHARE = used


def time_scipy(direct: np.ndarray, repeats: int) -> float:
    joined = direct < infinity(direct.dtype)
    graph = csr_array((direct[joined].astype(float), np.nonzero(joined)), direct.shape)
    rows = np.arange(0, len(direct), SOURCES)
    return SOURCES * best_of(repeats, lambda: dijkstra(graph, indices=rows))


def crossing(shares: list[float], ratios: list[float]) -> str:
    """Share at which `ratios` falls below 1, for shares in ascending order."""
    x, y = np.log(shares), np.log(ratios)
    if y[0] <= 0:
        return f"below {shares[0]:.4f}"
    if (y > 0).all():
        return f"above {shares[-1]:.4f}"
    after = int(np.flatnonzero(y <= 0)[0])
    before = after - 1
    place = x[before] + (x[after] - x[before]) * y[before] / (y[before] - y[after])
    return f"{np.exp(place):.4f}"


def bench(n: int, neighbors: list[int], repeats: int) -> list[tuple]:
    """Print the times for n samples; return the crossings, one a number type."""
    distances = squareform(pdist(np.random.default_rng(n).normal(size=(n, DIMENSIONS))))
    everyone = np.ones(n, bool)
    backend = CpuBackend(CPUS)
    rows, ratios, shares = [], {"int32": [], "int64": []}, []
    for name in ratios:  # compiles
        near = np.array([[0, 1], [1, 0]], name)
        time_closure(near, backend, 1, 0.0)
        time_closure(near, backend, 1, 1.0)
    for k in neighbors:
        weights = Graph("knn", k).edge_weights(distances, everyone, ALPHA)
        longest = longest_paths(weights, everyone)
        shares.append(float(np.isfinite(weights).mean()))
        theirs = float("nan")
        for name, ratio in ratios.items():
            direct = choose_number(weights, everyone, name, longest).store(weights)
            if name == "int32":
                theirs = time_scipy(direct, repeats)
            dense, expected = time_closure(direct, backend, repeats, 0.0)
            ours, found = time_closure(direct, backend, repeats, 1.0)
            assert found.tobytes() == expected.tobytes(), "the two closures differ"
            ratio.append(dense / ours)
            cells = (f"{dense:.2f}", f"{ours:.2f}", f"{theirs:.2f}")
            ratio_cells = (f"{dense / ours:.2f}", f"{theirs / ours:.1f}")
            rows.append((k, f"{shares[-1]:.4f}", name, *cells, *ratio_cells))
    head = ("neighbours", "share", "type", "dense s", "edges s", "SciPy s", "x dense", "x SciPy")
    print_table(f"closure of {n}, seconds, best of {repeats}", head, rows)
    return [
        (n, name, crossing(shares, ratio), measure.SPARSE_SHARE[name])
        for name, ratio in ratios.items()
    ]


def bench_approximate(n: int, repeats: int) -> tuple:
    """Seconds of approximate geodesics of n samples and of SciPy's paths."""
    distances = squareform(pdist(np.random.default_rng(n).normal(size=(n, DIMENSIONS))))
    graph = Graph("knn", APPROXIMATE_NEIGHBORS)
    direct = graph.edge_weights(distances, np.ones(n, bool), ALPHA)
    weights = distances**ALPHA
    ours = best_of(repeats, lambda: neighbor_paths(weights, APPROXIMATE_NEIGHBORS, CPUS))
    theirs = time_scipy(direct, repeats)
    return n, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 5000])
    parser.add_argument("--neighbors", type=int, nargs="+", default=[2, 4, 8, 16, 32])
    parser.add_argument("--repeats", type=int, default=3)
    options = commandline.parse(parser, sizes=[300], neighbors=[2, 8], repeats=1)
    rows = [row for n in options.sizes for row in bench(n, options.neighbors, options.repeats)]
    head = ("samples", "type", "share at which both take as long", "limit in use")
    print_table("paths along edges are faster below", head, rows)
    rows = [bench_approximate(n, options.repeats) for n in options.sizes]
    print_table("approximate geodesics", ("samples", "s", "SciPy s", "x SciPy"), rows)


if __name__ == "__main__":
    main()
