"""CPU triples per second for 500 sites x 4 096 samples, and what each phase of the scan takes.

    python tests/bench/bench_epistasis_cpu.py [THREADS] [MISSING_RATE ...] [--quick]

Rates are those of scans by K2. 'interaction / K2' compares scans by interaction with them, in tests
per second of CPU time, for pairs (of ten times the sites) and for triples. Best of several scans.
'structure' are two populations (F_ST 0.05) with risks of 70 and 30 %, minor alleles of 5 to 50 %:
there most sites are associated with the phenotype, and filters by information are weak.
Shares of the CPU time by phase: bit extraction of the carriers, pair tables, triples (counts,
cells, bound and exact scores). 'processor' is triples per second of CPU time, the rate of one
thread on an idle machine. bench_peers.py has BitEpi, MPI3SNP and Fiuncho beside us.
"""

import math
import time
from dataclasses import replace
from functools import partial

import commandline
import numpy as np
from oracles.epistasis import random_scan
from scenes.interactions.scenes import draw_structure

from popdesic.engine.select import select_backend
from popdesic.epistasis import scan_cpu as epistasis_cpu
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_data import ScanData
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import lr_bits, make_scan_data, score_tables

TOP = 1000
FREQUENCIES = {
    "6.7/23.7/69.6": (0.067, 0.237, 0.696),
    "10/30/60": (0.1, 0.3, 0.6),
    "thirds": (1 / 3, 1 / 3, 1 / 3),
}
STRUCTURE = "structure"
PHASES = ("extract", "pair tables", "pairs", "triples", "pair information")


def draw_scan(name: str, n_sites: int, n_samples: int, missing: float, seed: int) -> ScanData:
    """A scan by K2 of random genotypes, or of a structured population."""
    rng = np.random.default_rng(seed)
    if name != STRUCTURE:
        classes = (n_samples // 2,) * 2
        return random_scan(
            rng, n_sites, classes, missing=missing, frequencies=FREQUENCIES[name],
            tables=score_tables("k2_excess", *classes),
        )[0]  # fmt: skip
    genotypes, case, _ = draw_structure(rng, n_samples, n_sites)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    ordered = genotypes.T[:, np.argsort(case, kind="stable")]
    n_cases = int(case.sum())
    sizes = n_samples - n_cases, n_cases
    words, sites, _ = reorder_sites(lambda part: ordered[part], np.arange(n_sites), sizes[0])
    return make_scan_data(words, sites, *sizes, "k2_excess", None)


def timed_kernels(spent: dict[str, float]):
    """The scan's kernels, wrapped to add their thread's CPU time to `spent`."""

    def timed(name, kernel):
        def run(*arguments):
            started = time.thread_time()
            kernel(*arguments)
            spent[name] = spent.get(name, 0.0) + time.thread_time() - started

        return run

    kernels = [timed(*pair) for pair in zip(PHASES, epistasis_cpu.kernels(), strict=True)]
    return lambda: kernels


def best_time(scan, data, repeats: int, clock=time.perf_counter) -> float:
    scan(data, range(1), TOP)  # compiles
    times = []
    for _ in range(repeats):
        started = clock()
        scan(data, range(data.n_sites), TOP)
        times.append(clock() - started)
    return min(times)


def by_interaction(data):
    """The same scan by interaction."""
    n = data.n_samples
    total, part = score_tables("interaction", *(one.n_samples for one in data.classes))
    return replace(data, total=total, part=part, lr_bits=lr_bits("interaction", n))


def slowdown(scan, data, repeats: int) -> float:
    """CPU time of a scan by K2 over that by interaction."""
    times = [
        best_time(scan, one, repeats, time.process_time) for one in (data, by_interaction(data))
    ]
    return times[0] / times[1]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("threads", nargs="?", type=int, default=2)
    parser.add_argument("missing", nargs="*", type=float, default=[0.0, 0.01], help="rates")
    parser.add_argument("--sites", type=int, default=500)
    parser.add_argument("--samples", type=int, default=4096, help="half of them cases")
    parser.add_argument("--repeats", type=int, default=4)
    names = [*FREQUENCIES, STRUCTURE]
    parser.add_argument("--scenes", nargs="+", choices=names, default=names)
    options = commandline.parse(parser, sites=60, samples=512, repeats=1)
    threads, n_sites = options.threads, options.sites
    tests = {order: math.comb(n_sites, order) for order in (2, 3)}
    print(select_backend("cpu", threads).describe())
    wide = f"{threads} threads"
    print(
        f"{'genotypes':>14} {'missing':>8} {'pairs/s':>9} {'triples/s':>10} {wide:>10} "
        f"{'processor':>10} {'interaction / K2':>18}  shares"
    )
    for name in options.scenes:
        for missing in options.missing:
            data = draw_scan(name, n_sites, options.samples, missing, 1)
            one, many = select_backend("cpu", 1), select_backend("cpu", threads)
            pairs = tests[2] / best_time(partial(scan_pairs, many), data, options.repeats)
            rates = [
                tests[3] / best_time(partial(scan_triples, b), data, options.repeats)
                for b in (one, many)
            ]
            spent, kept = {}, epistasis_cpu.kernels
            epistasis_cpu.kernels = timed_kernels(spent)
            started = time.process_time()
            scan_triples(one, data, range(n_sites), TOP)
            processor = time.process_time() - started
            epistasis_cpu.kernels = kept
            many_pairs = draw_scan(name, 10 * n_sites, options.samples, missing, 2)
            ratios = [
                slowdown(scan, given, options.repeats)
                for scan, given in (
                    (partial(scan_pairs, one), many_pairs),
                    (partial(scan_triples, one), data),
                )
            ]
            shares = ", ".join(f"{key} {value / processor:.0%}" for key, value in spent.items())
            print(
                f"{name:>14} {missing:>8.0%} {pairs / 1e6:>8.1f}M {rates[0] / 1e6:>9.2f}M "
                f"{rates[1] / 1e6:>9.2f}M {tests[3] / processor / 1e6:>9.2f}M "
                f"{ratios[0]:>9.2f} {ratios[1]:>8.2f}  {shares}",
                flush=True,
            )


if __name__ == "__main__":
    main()
