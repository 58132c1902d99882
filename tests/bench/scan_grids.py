"""Grids of sizes that papers measure scans on, each size scanned for about as long.

A size is scanned whole, or by a share and by a quarter of it (shares.py). The time of the whole
scan follows from both: what they have in common, set-up, counts once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import shares
from scan_cases import THIRDS, Case

#: Combinations a second, and combinations x samples a second, that shares are chosen by.
TESTS, PRODUCTS = 6e10, 1.5e15


@dataclass(frozen=True)
class Grid:
    """Sizes of one study: all combinations of these, half of the samples cases."""

    paper: str
    orders: tuple[int, ...]
    sites: tuple[int, ...]
    samples: tuple[int, ...]
    mixes: tuple[tuple[float, float, float], ...] = (THIRDS,)


THOUSANDS = (1000, 2000, 4000, 8000)
GRIDS = {
    "cuda-cores": Grid("CPU+GPU on CUDA cores, JSSPP 2020, figure 5", (3,), THOUSANDS, THOUSANDS),
    "tensor-episdet": Grid(
        "Tensor-Episdet, TPDS 2021, section 6.1",
        (2, 3),
        tuple(2**k for k in range(11, 16)),
        tuple(2**k for k in range(13, 19)),
    ),
    "epiclear": Grid(
        "EPIClear, ICS 2025, table 1",
        (3,),
        (4096,),
        tuple(2**k for k in range(14, 22)),
        (THIRDS, (0.3, 0.3, 0.4), (0.2, 0.2, 0.6), (0.1, 0.1, 0.8)),
    ),
    "quick": Grid("no paper", (2, 3), (256, 512), (1024, 2048)),
}


def sizes(grid: Grid) -> list[Case]:
    """The cases of a grid, samples varying fastest."""
    return [
        Case(order, n_sites, n - n // 2, n // 2, mix, math.nan, "none")
        for order, mix, n_sites, n in product(grid.orders, grid.mixes, grid.sites, grid.samples)
    ]


def seconds_of(case: Case) -> float:
    """About what a whole scan takes on one H200, without set-up."""
    tests = math.comb(case.n_sites, case.order)
    return tests * max(1 / TESTS, (case.controls + case.cases) / PRODUCTS)


def parts(case: Case, seconds: float) -> list[list[range]]:
    """First sites of each scan of a size: of a quarter of a share and the share, or of all sites.

    A share is one run, whose first sites have half of all combinations before them: each run has a
    set-up of its own.
    """
    share = seconds / seconds_of(case)
    if share >= 0.8:
        return [[range(case.n_sites)]]
    run = partial(shares.first_sites, case.n_sites, case.order, runs=1)
    return [run(share=share / 4), run(share=share)]


def whole_seconds(times: list[float], tests: list[int], whole: int) -> float:
    """Time of a scan of `whole` combinations, on the line through those of one or two scans."""
    if len(tests) == 1:
        return times[0] * whole / tests[0]
    each = (times[1] - times[0]) / (tests[1] - tests[0])
    return times[1] + each * (whole - tests[1])


def measure(
    name: str,
    seconds: float,
    load: Callable[[Case], object],
    run: Callable[[Case, object, list[range]], tuple[object, float]],
    limit: float,
    unit: str,
) -> None:
    """Print one table of a grid's sizes.

    `run` scans runs of first sites of what `load` made, and returns hits and the bit products of a
    combination; `limit` is how many of those `unit` does in a second.
    """
    grid = GRIDS[name]
    print(f"{grid.paper}: sizes; whole scans, or reckoned from a share and a quarter of it\n")
    columns = ("order", "frequencies", "sites", "samples", "scanned")
    print(f"| {' | '.join(columns)} | T combinations x samples/s | of {unit} |")
    print("|---|---|---|---|---|---|---|")
    for case in sizes(grid):
        data, spans = load(case), parts(case, seconds)
        run(case, data, spans[0])  # compiles
        times, depth = [], math.nan
        for some in spans:
            taken = []
            for _ in range(2 if len(spans) == 1 else 1):
                started = time.perf_counter()
                _, depth = run(case, data, some)
                taken.append(time.perf_counter() - started)
            times.append(min(taken))
        tests = [shares.count(case.n_sites, case.order, some) for some in spans]
        whole = math.comb(case.n_sites, case.order)
        rate, n = whole / whole_seconds(times, tests, whole), case.controls + case.cases
        rate_t = rate * n / 1e12
        mix = "/".join(f"{100 * share:.0f}" for share in case.frequencies)
        print(
            f"| {case.order} | {mix} | {case.n_sites} | {n} | {tests[-1] / whole:.1%} | "
            f"{rate_t:.{0 if rate_t >= 100 else 2}f} | {rate * depth / limit:.1%} |",
            flush=True,
        )
        del data
    print()
