"""Distances on the CPU beside their peers, measured in the same run.

python tests/bench/bench_distance.py [--quick]   kernels, threads, PLINK 1.9 in process
python tests/bench/bench_distance.py --whole     also whole processes at 8 000 x 100 000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from scipy.linalg.blas import ssyrk
from timing import best_in_turn, best_of, print_table, write_random_plink

from popdesic.cohort.encode import planes_in_memory
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.terms import SQUARED, SQUARED_IBS0, Planes, Terms
from popdesic.io.bed import open_bed, read_fam

CPUS = os.cpu_count() or 1


def bed_to_matrix(prefix: Path, threads: int, terms: Terms = SQUARED) -> np.ndarray:
    """Squared distances, or the first output of other terms: int64 (n, n), from a .bed file."""
    planes = planes_in_memory(open_bed(prefix), len(read_fam(prefix)), threads)
    return CpuBackend(threads).bitgemm(planes, None, terms)[0]


def plink(prefix: Path, threads: int) -> None:
    """PLINK 1.9's allele-count distances, in its fastest output form."""
    command = ["plink1.9", "--bfile", prefix, "--distance", "square", "bin"]
    subprocess.run(
        [*command, "--threads", str(threads), "--out", prefix.with_name("plink")],
        check=True,
        capture_output=True,
    )


def bench_kernels(n_samples: int, n_sites: int, repeats: int) -> None:
    """The three forms of the product beside a float32 SYRK, by number of threads."""
    rng = np.random.default_rng(1)
    n_words = -(-n_sites // 512) * 8
    work = n_samples * (n_samples + 1) / 2 * n_sites / 1e9
    rows = []
    genotypes = np.asfortranarray(rng.integers(0, 3, (n_samples, n_sites // 8)).astype(np.float32))
    syrk = best_of(repeats, lambda: ssyrk(1.0, genotypes))
    syrk_rate = work / 8 / syrk
    for name, n_planes, terms in (
        ("no missing: u, v", 2, SQUARED),
        ("jointly called: u, v, c", 3, SQUARED),
        ("jointly called, with ibs0", 3, SQUARED_IBS0),
    ):
        words = rng.integers(0, 2**63, (n_samples, n_planes, n_words), dtype=np.uint64)
        planes = Planes(words, n_words * 64)
        for threads in range(1, CPUS + 1):
            backend = CpuBackend(threads)
            backend.bitgemm(Planes(words[:64], n_words * 64), None, terms)
            seconds = best_of(repeats, lambda b=backend, p=planes, t=terms: b.bitgemm(p, None, t))
            rate = work * (n_words * 64 / n_sites) / seconds
            rows.append((name, threads, f"{rate:.0f}", f"{rate / syrk_rate:.1f}"))
    rows.append(("float32 SYRK (OpenBLAS)", CPUS, f"{syrk_rate:.0f}", "1.0"))
    print(CpuBackend(CPUS).describe())
    print_table(
        f"{n_samples} samples x {n_sites} sites",
        ("form", "threads", "G site-pairs/s", "x SYRK"),
        rows,
    )


def bench_against_plink(n_samples: int, n_sites: int, repeats: int, whole: bool) -> None:
    """From the .bed to the int64 matrix, in this process or a new one, beside PLINK 1.9."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "data"
        write_random_plink(prefix, n_samples, n_sites)
        bed_to_matrix(prefix, CPUS)  # cache kernels, load the file into the page cache
        command = [sys.executable, __file__, "--child", prefix]

        def ours() -> None:
            if whole:
                subprocess.run(command, check=True)
            else:
                bed_to_matrix(prefix, CPUS)

        peer = commandline.find_peer("plink1.9")
        works = [ours, *([lambda: plink(prefix, CPUS)] if peer else [])]
        seconds, *theirs = best_in_turn(repeats, *works)
    work = n_samples * (n_samples + 1) / 2 * n_sites / 1e9
    rows = [("popdesic", f"{seconds:.2f}", f"{work / seconds:.0f}", "")]
    if theirs:
        ratio = theirs[0] / seconds
        rows.append(
            (
                "PLINK 1.9 --distance",
                f"{theirs[0]:.2f}",
                f"{work / theirs[0]:.0f}",
                f"popdesic is {ratio:.1f} times as fast",
            )
        )
    kind = "whole processes" if whole else "in process (kernels cached) against a PLINK process"
    print_table(
        f"{n_samples} x {n_sites}, .bed to matrix, {kind}",
        ("program", "s", "G site-pairs/s", ""),
        rows,
    )


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--sites", type=int, default=131_072)
    parser.add_argument("--bed-samples", type=int, default=2_000, help="beside PLINK")
    parser.add_argument("--bed-sites", type=int, default=30_000, help="beside PLINK")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--whole", action="store_true", help="also 8 000 x 100 000 as processes")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    small = {"samples": 128, "sites": 8192, "bed_samples": 200, "bed_sites": 3_000, "repeats": 1}
    options = commandline.parse(parser, **small)
    if options.child:
        matrix = bed_to_matrix(options.child, CPUS)
        np.save(options.child.with_name("ours.npy"), matrix)
        return
    started = time.perf_counter()
    bench_kernels(options.samples, options.sites, options.repeats)
    bench_against_plink(options.bed_samples, options.bed_sites, options.repeats, whole=False)
    if options.whole:
        bench_against_plink(8_000, 100_000, 2, whole=True)
    print(f"\n{time.perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
