"""min-plus products and closures on the CPU beside SciPy, measured in the same run.

python tests/bench/bench_minplus.py
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from popdesic.backend.cpu import CpuBackend
from popdesic.closure import close_paths
from scipy.sparse.csgraph import floyd_warshall
from timing import best_of, print_table

CPUS = os.cpu_count() or 1


def bench_product(n: int, repeats: int) -> None:
    """Operations (one add and one min) per second by number type and threads."""
    rng = np.random.default_rng(1)
    rows = []
    for dtype in (np.int32, np.float32, np.float64):
        a = rng.integers(0, 10**6, (n, n)).astype(dtype)
        c = np.full((n, n), 10**6, dtype)
        for threads in range(1, CPUS + 1):
            backend = CpuBackend(threads)
            backend.minplus(c[:64, :64], a[:64, :64], a[:64, :64])
            seconds = best_of(repeats, lambda b=backend, c=c, a=a: b.minplus(c, a, a))
            rows.append((np.dtype(dtype).name, threads, f"{n**3 / seconds / 1e9:.1f}"))
    print_table(f"min-plus product, n = {n}", ("type", "threads", "G op/s"), rows)


def bench_closure(n: int, repeats: int) -> None:
    """R-Kleene against SciPy's Floyd-Warshall on the same weights."""
    rng = np.random.default_rng(2)
    weights = rng.integers(1, 10**6, (n, n)).astype(np.float64)
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    backend = CpuBackend(CPUS)
    expected = None

    def scipy_closure() -> None:
        nonlocal expected
        expected = floyd_warshall(weights, directed=False)

    theirs = best_of(1, scipy_closure)
    rows = [("SciPy floyd_warshall", "float64", f"{theirs:.2f}", "1.0")]
    for dtype in (np.int32, np.float32, np.float64):
        times = []
        for _ in range(repeats + 1):
            w = weights.astype(dtype)
            times.append(best_of(1, lambda w=w: close_paths(w, backend)))
        assert (w == expected).all()
        ours = min(times[1:])
        rows.append(("R-Kleene", np.dtype(dtype).name, f"{ours:.3f}", f"{theirs / ours:.0f}"))
    print_table(f"closure, n = {n}", ("program", "type", "s", "x SciPy"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    bench_product(options.size, options.repeats)
    bench_closure(options.size, options.repeats)


if __name__ == "__main__":
    main()
