"""min-plus products and closures on the CPU beside SciPy and graph-tool, in the same run.

python tests/bench/bench_minplus.py [--graph-tool /usr/bin/python3] [--quick]
python tests/bench/bench_minplus.py --closures 128 256 512   R-Kleene and Floyd-Warshall over n

graph-tool runs on the same weights, in the Python that has it: Floyd-Warshall, which takes a
fifteenth of its default (1 024 nodes). Building its graph is not timed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from scipy.sparse.csgraph import floyd_warshall
from timing import best_of, print_table

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.geodesic.closure import close_paths, insert_paths

CPUS = os.cpu_count() or 1


def bench_product(n: int, repeats: int) -> None:
    """Operations (one add and one min) per second by number type and threads."""
    rng = np.random.default_rng(1)
    rows = []
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        a = rng.integers(0, 10**6, (n, n)).astype(dtype)
        c = np.full((n, n), 10**6, dtype)
        for threads in range(1, CPUS + 1):
            backend = CpuBackend(threads)
            backend.minplus().multiply(c[:64, :64], a[:64, :64], a[:64, :64])
            seconds = best_of(repeats, lambda b=backend, c=c, a=a: b.minplus().multiply(c, a, a))
            rows.append((np.dtype(dtype).name, threads, f"{n**3 / seconds / 1e9:.1f}"))
    print_table(f"min-plus product, n = {n}", ("type", "threads", "G op/s"), rows)


GRAPH_TOOL = """
import sys, time
import numpy as np
from graph_tool import Graph
from graph_tool.topology import shortest_distance
w = np.load(sys.argv[1])
i, j = np.triu_indices(len(w), 1)
graph = Graph(directed=False)
weight = graph.new_edge_property("double")
graph.add_edge_list(np.column_stack([i, j, w[i, j]]), eprops=[weight])
start = time.perf_counter()
found = shortest_distance(graph, weights=weight, dense=True)
print(time.perf_counter() - start)
np.save(sys.argv[2], np.array([list(row) for row in found]))
"""


def graph_tool_closure(
    python: str, weights: np.ndarray, threads: int = CPUS
) -> tuple[float, np.ndarray]:
    """Seconds and lengths of graph-tool's all-pairs shortest distances."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "weights.npy"), Path(folder, "lengths.npy")
        np.save(source, weights)
        done = subprocess.run(
            [python, "-c", GRAPH_TOOL, source, target],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONNOUSERSITE": "1", "OMP_NUM_THREADS": str(threads)},
        )
        return float(done.stdout), np.load(target)


def bench_insertion(n: int, new: int, repeats: int) -> None:
    """Inserting some individuals, beside computing the whole closure again."""
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 10**6, (n, n)).astype(np.int32)
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    backend = CpuBackend(CPUS)
    scratch, partly = weights.copy(), weights.copy()
    close_paths(partly[: n - new, : n - new], backend)
    whole, inserted = [], []
    for _ in range(repeats):
        scratch = weights.copy()
        whole.append(best_of(1, lambda w=scratch: close_paths(w, backend)))
        w = partly.copy()
        inserted.append(best_of(1, lambda w=w: insert_paths(w, n - new, backend)))
        assert (w == scratch).all()
    rows = [("all again", f"{min(whole):.3f}"), (f"{new} inserted", f"{min(inserted):.3f}")]
    print_table(f"closure of {n} when {new} arrive, int32", ("way", "s"), rows)


def draw_weights(n: int) -> np.ndarray:
    """Symmetric whole numbers below a million, float64 (n, n)."""
    weights = np.random.default_rng(2).integers(1, 10**6, (n, n)).astype(np.float64)
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    return weights


def close_once(weights: np.ndarray, dtype: type, threads: int) -> np.ndarray:
    """Lengths of shortest paths by R-Kleene, in this type of numbers."""
    lengths = weights.astype(dtype)
    close_paths(lengths, CpuBackend(threads))
    return lengths


def bench_closure(n: int, repeats: int, graph_tool: str | None) -> None:
    """R-Kleene beside SciPy's Floyd-Warshall and graph-tool on the same weights."""
    weights = draw_weights(n)
    started = time.perf_counter()
    expected = floyd_warshall(weights, directed=False)
    theirs = time.perf_counter() - started
    rows = [("SciPy floyd_warshall", "float64", f"{theirs:.2f}", "1.0", "-")]
    tool = float("nan")
    if graph_tool:
        tool, found = graph_tool_closure(graph_tool, weights)
        assert (found == expected).all()
        rows.append(("graph-tool", "float64", f"{tool:.2f}", f"{theirs / tool:.2f}", "1.0"))
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        assert (close_once(weights, dtype, CPUS) == expected).all()  # and compiled
        ours = best_of(repeats, lambda dtype=dtype: close_once(weights, dtype, CPUS))
        ratios = f"{theirs / ours:.0f}", f"{tool / ours:.0f}" if graph_tool else "-"
        rows.append(("R-Kleene", np.dtype(dtype).name, f"{ours:.3f}", *ratios))
    print_table(f"closure, n = {n}", ("program", "type", "s", "x SciPy", "x graph-tool"), rows)


def bench_sizes(sizes: list[int], repeats: int) -> None:
    """Floyd-Warshall and R-Kleene in float64 with one thread, over the number of nodes.

    Seconds are those of the processor, the shortest of several runs in turn.
    """
    rows = []
    for n in sizes:
        weights = draw_weights(n)
        works = (
            lambda w=weights: floyd_warshall(w, directed=False),
            lambda w=weights: close_once(w, np.float64, 1),
        )
        assert (works[0]() == works[1]()).all()  # and compiled
        spent: list[list[float]] = [[], []]
        for _ in range(repeats):
            for work, times in zip(works, spent, strict=True):
                started = time.process_time()
                work()
                times.append(time.process_time() - started)
        theirs, ours = map(min, spent)
        rates = (f"{n**3 / seconds / 1e9:.2f}" for seconds in (theirs, ours))
        rows.append((n, f"{theirs * 1e3:.1f}", f"{ours * 1e3:.1f}", *rates, f"{theirs / ours:.1f}"))
    header = ("n", "Floyd-Warshall, ms", "R-Kleene, ms", "G op/s", "G op/s", "times as fast")
    print_table("closures, float64, one thread (n^3 operations)", header, rows)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--graph-tool", metavar="PYTHON")
    parser.add_argument("--closures", type=int, nargs="+", metavar="N")
    options = commandline.parse(parser, size=256, repeats=1)
    if options.closures:
        bench_sizes(options.closures, options.repeats)
        return
    if not options.graph_tool:
        print("graph-tool is left out: name a Python that has it (--graph-tool /usr/bin/python3).")
    bench_product(options.size, options.repeats)
    bench_closure(options.size, options.repeats, options.graph_tool)
    bench_insertion(options.size, options.size // 10, options.repeats)


if __name__ == "__main__":
    main()
