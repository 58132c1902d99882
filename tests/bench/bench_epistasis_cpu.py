"""CPU triples a second for 500 sites x 4 096 samples, beside BitEpi's figure on the same machine.

    python tests/bench/bench_epistasis_cpu.py [threads]

BitEpi 0.81 M triples/s: measured on two cores of an EPYC (Zen 4) machine, stated, not run here.
"""

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow" / "scripts"), str(ROOT / "tests")]

from popdesic.backend import select_backend  # noqa: E402
from popdesic.scores import score_tables  # noqa: E402
from reference_epistasis import random_scan  # noqa: E402

SITES, SAMPLES, BITEPI = 500, (2048, 2048), 0.81e6
TESTS = {2: SITES * (SITES - 1) // 2, 3: SITES * (SITES - 1) * (SITES - 2) // 6}


def main(threads: int = 2, repeats: int = 3) -> None:
    backend = select_backend("cpu", threads)
    print(backend.describe())
    print(f"{'genotypes':>16} {'missing':>8} {'pairs/s':>10} {'triples/s':>10} {'of BitEpi':>10}")
    for name, frequencies in (
        ("6.7/23.7/69.6", (0.067, 0.237, 0.696)),
        ("10/30/60", (0.1, 0.3, 0.6)),
        ("thirds", (1 / 3, 1 / 3, 1 / 3)),
    ):
        for missing in (0.0, 0.01):
            data, _, _ = random_scan(
                np.random.default_rng(1), SITES, SAMPLES, missing=missing,
                frequencies=frequencies, tables=score_tables("k2", sum(SAMPLES)),
            )  # fmt: skip
            rates = []
            for order, scan in ((2, backend.scan_pairs), (3, backend.scan_triples)):
                scan(data, range(1), 1000)
                times = []
                for _ in range(repeats):
                    started = time.perf_counter()
                    scan(data, range(SITES), 1000)
                    times.append(time.perf_counter() - started)
                rates.append(TESTS[order] / min(times))
            print(
                f"{name:>16} {missing:>8.0%} {rates[0] / 1e6:>9.1f}M {rates[1] / 1e6:>9.1f}M "
                f"{rates[1] / BITEPI:>9.1f}x"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
