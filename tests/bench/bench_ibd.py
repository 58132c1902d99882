"""Candidates of identity by descent, beside IBIS and PLINK 1.9, with known segments.

    python tests/bench/bench_ibd.py [--device cpu|gpu] [--samples 2000] [--sites 100000]
        [--threads 2] [--ibis PATH] [--plink] [--depths] [--quick]

People on contigs of 140 cM with 150 sites a cM (about 500 000 sites a human genome): blocks of 15
sites have 8 haplotypes each, so sites predict each other; 0.1 % of all genotypes are wrong, 1 %
are missing. Person 2 k + 1 has one haplotype of person 2 k on a stretch of 3 to 20 cM of each
contig. Runs of at least 7 cM less two windows are searched, because a segment covers two windows
in part. Printed: seconds of the wall clock and of all CPUs, site-pairs/s by the wall clock, the
share of planted segments of at least 7 cM of which half is covered, and candidates that touch no
planted segment, a million pairs. Seconds from planes are the best of three; `from .bed`, once,
reads the same files as the other programs, whose limits are 7 cM.

--ibis: a program built from https://github.com/williamslab/ibis; it also does what our exact pass
does later. --plink adds PLINK 1.9 --genome. --depths compares both numbers of probes in a row.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import commandline
import numba
import numpy as np
from timing import print_table

from popdesic.cohort.encode import planes_in_memory
from popdesic.engine.base import Backend
from popdesic.engine.cpu import ibd
from popdesic.engine.ibd import Candidates, Windows
from popdesic.engine.select import select_backend
from popdesic.engine.terms import Planes
from popdesic.io.bed import open_bed
from popdesic.io.genotypes import BED_MAGIC, pack_bed

SITES_A_CM, CONTIG_CM = 150, 140
BLOCK_SITES, BLOCK_HAPLOTYPES = 15, 8
ERRORS, MISSING = 0.001, 0.01
WINDOW_SITES, TOLERANCE, MIN_CM, MOST = 128, 1, 7.0, 10**8
#: Sites drawn at a time: whole blocks.
CHUNK = 256 * BLOCK_SITES


@dataclass
class Truth:
    """Planted segments: pair k is people 2 k and 2 k + 1; sites, half open."""

    pair: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def draw(cls, n_samples: int, bounds: list[tuple[int, int]], rng) -> Truth:
        rows = []
        for first, last in bounds:
            for pair in range(n_samples // 2):
                length = min(int(rng.uniform(3, 20) * SITES_A_CM), last - first)
                start = int(rng.integers(first, last - length + 1))
                rows.append((pair, start, start + length))
        return cls(*np.array(rows, np.int64).reshape(-1, 3).T)

    def judge(self, i, j, start, end) -> tuple[float, int]:
        """Share of the long segments of which half is covered, and segments that are false.

        Called segments: people i and j, sites, half open.
        """
        low, high = np.minimum(i, j), np.maximum(i, j)
        own = (low % 2 == 0) & (high == low + 1)
        false, found = int((~own).sum()), np.zeros(len(self.pair), np.int64)
        by_pair: dict[int, list[int]] = {}
        for k, pair in enumerate(self.pair.tolist()):
            by_pair.setdefault(pair, []).append(k)
        for pair, left, right in zip(low[own] // 2, start[own], end[own], strict=True):
            segments = by_pair[int(pair)]
            shared = np.minimum(right, self.end[segments]) - np.maximum(left, self.start[segments])
            found[segments] += np.maximum(shared, 0)
            false += not (shared > 0).any()
        length = self.end - self.start
        long = length >= MIN_CM * SITES_A_CM
        return float((2 * found[long] >= length[long]).mean()), false


def contig_bounds(n_sites: int) -> list[tuple[int, int]]:
    size = SITES_A_CM * CONTIG_CM
    return [(first, min(first + size, n_sites)) for first in range(0, n_sites, size)]


@numba.njit(parallel=True)
def expand(of_block: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Haplotypes (blocks x sites, 2 n) from those of each block and everyone's choice."""
    n_blocks, n_sites, _ = of_block.shape
    out = np.empty((n_blocks * n_sites, chosen.shape[1]), np.int8)
    for row in numba.prange(len(out)):
        block = row // n_sites
        alleles = of_block[block, row % n_sites]
        for k in range(chosen.shape[1]):
            out[row, k] = alleles[chosen[block, k]]
    return out


@numba.njit(parallel=True)
def call(haplotypes: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Genotypes (sites, n), of which some are wrong and some missing: SplitMix64 by site."""
    out = np.empty((len(haplotypes), haplotypes.shape[1] // 2), np.int8)
    for site in numba.prange(len(out)):
        for k in range(out.shape[1]):
            z = seeds[site] + np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            chance = np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
            genotype = haplotypes[site, 2 * k] + haplotypes[site, 2 * k + 1]
            if chance < ERRORS:
                genotype = (genotype + 1) % 3
            out[site, k] = -1 if chance > 1 - MISSING else genotype
    return out


def draw_study(prefix: Path, n: int, n_sites: int) -> Truth:
    """Write PLINK files with a genetic map; the planted segments."""
    rng = np.random.default_rng(1)
    bounds = contig_bounds(n_sites)
    truth = Truth.draw(n, bounds, rng)
    with open(prefix.with_suffix(".bed"), "wb") as file:
        file.write(BED_MAGIC)
        for first in range(0, n_sites, CHUNK):
            size = min(CHUNK, n_sites - first)
            n_blocks = -(-size // BLOCK_SITES)
            share = rng.uniform(0.05, 0.5, (n_blocks, BLOCK_SITES, 1))
            of_block = rng.random((n_blocks, BLOCK_SITES, BLOCK_HAPLOTYPES)) < share
            chosen = rng.integers(0, BLOCK_HAPLOTYPES, (n_blocks, 2 * n), np.uint8)
            haplotypes = expand(of_block.astype(np.int8), chosen)[:size]
            start, end = truth.start - first, truth.end - first
            for k in np.flatnonzero((start < size) & (end > 0)):
                stretch = slice(max(start[k], 0), min(end[k], size))
                mother, child = 4 * truth.pair[k], 4 * truth.pair[k] + 2
                haplotypes[stretch, child] = haplotypes[stretch, mother]
            seeds = rng.integers(0, 2**63, size, np.uint64)
            file.write(pack_bed(call(haplotypes, seeds)).tobytes())
    with open(prefix.with_suffix(".bim"), "w") as file:
        for contig, (first, last) in enumerate(bounds):
            for site in range(first, last):
                pos = (site - first + 1) * 1_000_000 // SITES_A_CM
                centimorgan = (site - first) / SITES_A_CM
                file.write(f"{contig + 1}\ts{site}\t{centimorgan:.6f}\t{pos}\tA\tG\n")
    with open(prefix.with_suffix(".fam"), "w") as file:
        file.writelines(f"f{k}\ti{k}\t0\t0\t0\t-9\n" for k in range(n))
    return truth


def windows_of_study(n_sites: int) -> Windows:
    rows = [
        (contig, site, min(WINDOW_SITES, last - site), site - first)
        for contig, (first, last) in enumerate(contig_bounds(n_sites))
        for site in range(first, last, WINDOW_SITES)
    ]
    contig, first, n, start = np.array(rows, np.int64).T
    left, right = start / SITES_A_CM, (start + n - 1) / SITES_A_CM
    return Windows(contig, first, n, left, right, np.zeros(len(rows), bool))


class Table:
    """Rows of the printed table."""

    def __init__(self, truth: Truth, n_samples: int, n_sites: int) -> None:
        self.truth, self.pairs, self.n_sites = truth, n_samples * (n_samples - 1) / 2, n_sites
        self.rows: list[tuple] = []

    def add(self, name: str, wall: float, cpu: float, segments: tuple | None) -> None:
        rate = f"{self.pairs * self.n_sites / wall:.3g}"
        row = (name, f"{wall:.3f}", f"{cpu:.3f}", rate)
        if segments is None:
            self.rows.append((*row, "", "", ""))
            return
        recall, false = self.truth.judge(*segments)
        millions = self.pairs / 1e6
        counts = len(segments[0]), f"{recall:.4f}", f"{false / millions:.1f}"
        self.rows.append((*row, *counts))

    def show(self, title: str) -> None:
        header = "", "s", "CPU s", "site-pairs/s", "segments", "recall >= 7 cM", "false a M pairs"
        print_table(title, header, self.rows)


def timed(work) -> tuple[float, float, object]:
    """Seconds of the wall clock, of all CPUs (children too), and the result."""
    start, before = time.perf_counter(), os.times()
    result = work()
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    return time.perf_counter() - start, cpu, result


def as_segments(found: Candidates, windows: Windows) -> tuple:
    end = windows.first[found.last] + windows.sites[found.last]
    return found.i, found.j, windows.first[found.first], end


def search(backend: Backend, planes: Planes, windows: Windows, min_length: float) -> Candidates:
    limits = {"tolerance": TOLERANCE, "min_length": min_length, "most": MOST}
    return backend.candidates(planes, None, windows, **limits)


def bench_ours(table: Table, backend: Backend, prefix: Path, options) -> None:
    windows = windows_of_study(options.sites)
    least = MIN_CM - 2 * WINDOW_SITES / SITES_A_CM

    def read() -> Planes:
        return planes_in_memory(open_bed(prefix), options.samples, options.threads)

    planes = read()
    search(backend, Planes(planes.words[:64], planes.n_sites), windows, least)  # compiled
    if options.depths:
        for depth in (1, 2):
            arguments = planes, None, windows, TOLERANCE, least, MOST, options.threads, depth
            wall, cpu, found = timed(lambda run=arguments: ibd.candidates(*run))
            table.add(f"probes in a row: {depth}", wall, cpu, as_segments(found, windows))
    places = {"from planes": planes}
    if backend.name == "gpu":
        places["planes on the device"] = backend.keep_planes(planes)
    for place, there in places.items():
        runs = [timed(lambda at=there: search(backend, at, windows, least)) for _ in range(3)]
        wall, cpu, found = min(runs, key=lambda run: run[0])
        table.add(f"{backend.name}, {place}", wall, cpu, as_segments(found, windows))
    wall, cpu, found = timed(lambda: search(backend, read(), windows, least))
    table.add(f"{backend.name}, from .bed", wall, cpu, as_segments(found, windows))


def read_ibis(path: Path) -> tuple:
    """People and sites of the segments of an IBIS run."""
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    i, j = (np.array([int(line[k].split(":i")[1]) for line in lines], np.int64) for k in (0, 1))
    contig = np.array([int(line[2]) for line in lines], np.int64) - 1
    sites = [
        np.array([round(int(line[k]) * SITES_A_CM / 1e6) for line in lines], np.int64)
        + contig * SITES_A_CM * CONTIG_CM
        for k in (3, 4)
    ]
    return i, j, sites[0] - 1, sites[1]


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--ibis", help="path of a built ibis")
    parser.add_argument("--plink", action="store_true", help="PLINK 1.9 --genome too")
    parser.add_argument("--depths", action="store_true", help="one or two probes in a row")
    options = commandline.parse(parser, samples=100, sites=6000)
    backend = select_backend(options.device, options.threads)
    print(backend.describe())
    plink = commandline.find_peer("plink1.9") if options.plink else None
    with tempfile.TemporaryDirectory() as folder:
        prefix, out = Path(folder) / "study", Path(folder) / "out"
        table = Table(
            draw_study(prefix, options.samples, options.sites), options.samples, options.sites
        )
        bench_ours(table, backend, prefix, options)
        if options.ibis:
            ibis = (options.ibis, "-bfile", prefix, "-min_l", MIN_CM, "-t", options.threads)
            wall, cpu, _ = timed(lambda: run(*ibis, "-f", out))
            table.add("IBIS, from .bed", wall, cpu, read_ibis(Path(f"{out}.seg")))
        if plink:
            command = (plink, "--bfile", prefix, "--genome", "--threads", options.threads)
            wall, cpu, _ = timed(lambda: run(*command, "--out", out))
            table.add("PLINK 1.9 --genome", wall, cpu, None)
    table.show(f"{options.samples} people, {options.sites} sites")


if __name__ == "__main__":
    main()
