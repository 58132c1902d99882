"""Shared by the benchmarks: timing, tables, random genotypes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from popdesic.io.genotypes import BED_MAGIC, bed_row_bytes


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Shortest wall time of several runs, in seconds: the run least disturbed by other load."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def best_in_turn(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Shortest wall time of each work; runs alternate, so that other load affects all alike."""
    rounds = [[best_of(1, work) for work in works] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with columns as wide as their widest entry."""
    text = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in text) for i in range(len(header))]
    print(f"\n{title}  ({os.cpu_count()} CPUs)")
    for row in text:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def write_random_plink(prefix: Path, n_samples: int, n_sites: int, seed: int = 1) -> None:
    """Write PLINK files of random genotypes, none missing, with a random frequency per site."""
    rng = np.random.default_rng(seed)
    code = np.array([3, 2, 0], np.uint8)  # 2-bit codes of 0, 1, 2 ALT alleles
    with open(prefix.with_suffix(".bed"), "wb") as file:
        file.write(BED_MAGIC)
        for first in range(0, n_sites, 512):
            rows = min(512, n_sites - first)
            p = rng.uniform(0.05, 0.5, (rows, 1)).astype(np.float32)
            draws = rng.random((2, rows, n_samples), np.float32) < p
            codes = code[draws.sum(axis=0)]
            codes = np.pad(codes, ((0, 0), (0, -n_samples % 4))).reshape(rows, -1, 4)
            packed = (codes << np.array([0, 2, 4, 6], np.uint8)).sum(axis=2, dtype=np.uint8)
            assert packed.shape[1] == bed_row_bytes(n_samples)
            file.write(packed.tobytes())
    with open(prefix.with_suffix(".bim"), "w") as file:
        file.writelines(f"1\ts{i}\t0\t{i + 1}\tA\tG\n" for i in range(n_sites))
    with open(prefix.with_suffix(".fam"), "w") as file:
        file.writelines(f"0\ti{i}\t0\t0\t0\t-9\n" for i in range(n_samples))
