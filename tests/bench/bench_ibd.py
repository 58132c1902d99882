"""Candidates and segments of identity by descent, beside IBIS and PLINK 1.9, with known segments.

    python tests/bench/bench_ibd.py [--device cpu|gpu] [--samples 2000] [--sites 100000]
        [--threads 2] [--rounds 3] [--ibis PATH] [--plink] [--depths] [--quick]

People on contigs of 140 cM with 150 sites a cM (about 500 000 sites a human genome): blocks of 15
sites have 8 haplotypes each, so sites predict each other; 0.1 % of all genotypes are wrong, 1 %
are missing. Person 2 k + 1 has one haplotype of person 2 k on a stretch of 3 to 20 cM of each
contig. Segments of at least 7 cM are sought. Their candidates are runs of at least 7 cM less two
windows, because a segment covers two windows in part.

Rows: candidates alone, from planes; segments (candidates and exact pass: ends, LOD, stretches of
two alleles), from planes; segments from the PLINK files that the other programs read: genotypes are
read, allele frequencies counted, and the table of segments is written. All rows run one after the
other, --rounds times; the shortest times of each are printed, wall clock and all CPUs.

Columns: site-pairs/s by the wall clock; pieces found; the share of planted segments of at least
7 cM of which half is covered; distance of their ends, median and 90 %; pieces that touch no planted
segment, a million pairs; with --ibis how often the times go into those of IBIS.

--ibis: a program built from https://github.com/williamslab/ibis; --plink adds PLINK 1.9 --genome,
which gives no segments. --depths compares both numbers of probes in a row.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import commandline
import numba
import numpy as np
from timing import print_table

from popdesic.cohort.encode import planes_in_memory
from popdesic.core.tables import open_text, write_rows
from popdesic.engine.backend import Backend
from popdesic.engine.select import select_backend
from popdesic.engine.terms import Planes
from popdesic.ibd import candidates_cpu
from popdesic.ibd.candidates import Candidates, Windows
from popdesic.ibd.cohorts import segments_table
from popdesic.ibd.definition import SegmentLimits, Segments
from popdesic.ibd.find_candidates import find_candidates
from popdesic.ibd.segments import SearchGenome, segments_between
from popdesic.ibd.windows import GeneticSites
from popdesic.io.bed import open_bed
from popdesic.io.genotypes import BED_MAGIC, pack_bed
from popdesic.population.plane_counts_cpu import count_by_site

SITES_A_CM, CONTIG_CM = 150, 140
BLOCK_SITES, BLOCK_HAPLOTYPES = 15, 8
ERRORS, MISSING = 0.001, 0.01
WINDOW_SITES, TOLERANCE, MIN_CM, MOST = 128, 1, 7.0, 10**8
#: Row of the table.
IBIS = "IBIS, segments from .bed"
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

    def judge(self, i, j, start, end) -> tuple[float, np.ndarray, int]:
        """Share of the long segments of which half is covered, distances of ends, false pieces.

        Pieces: people i and j, sites, half open. Distances in cM, of the piece that covers most.
        """
        low, high = np.minimum(i, j), np.maximum(i, j)
        own = (low % 2 == 0) & (high == low + 1)
        false, found = int((~own).sum()), np.zeros(len(self.pair), np.int64)
        most, off = found.copy(), np.zeros((len(self.pair), 2))
        by_pair: dict[int, list[int]] = {}
        for k, pair in enumerate(self.pair.tolist()):
            by_pair.setdefault(pair, []).append(k)
        for pair, left, right in zip(low[own] // 2, start[own], end[own], strict=True):
            segments = np.array(by_pair[int(pair)])
            ends = np.stack([self.start[segments], self.end[segments]], axis=1)
            shared = np.minimum(right, ends[:, 1]) - np.maximum(left, ends[:, 0])
            found[segments] += np.maximum(shared, 0)
            false += not (shared > 0).any()
            better = shared > most[segments]
            off[segments[better]] = np.abs(ends[better] - [left, right]) / SITES_A_CM
            most[segments] = np.maximum(most[segments], shared)
        length = self.end - self.start
        long = length >= MIN_CM * SITES_A_CM
        recall = float((2 * found[long] >= length[long]).mean())
        return recall, off[long & (most > 0)].ravel(), false


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
    """Rows of the printed table: shortest times of several runs, and what was found."""

    def __init__(self, truth: Truth, n_samples: int, n_sites: int) -> None:
        self.truth, self.pairs, self.n_sites = truth, n_samples * (n_samples - 1) / 2, n_sites
        self.times: dict[str, list[tuple[float, float]]] = {}
        self.found: dict[str, tuple | None] = {}

    def add(self, name: str, wall: float, cpu: float, pieces: tuple | None) -> None:
        """Times of one run; pieces as of `Truth.judge`, None if there are none to judge."""
        self.times.setdefault(name, []).append((wall, cpu))
        self.found[name] = pieces

    def shortest(self, name: str) -> tuple[float, float]:
        wall, cpu = zip(*self.times[name], strict=True)
        return min(wall), min(cpu)

    def row(self, name: str) -> tuple:
        (wall, cpu), pieces = self.shortest(name), self.found[name]
        rate = f"{self.pairs * self.n_sites / wall:.3g}"
        row = [name, f"{wall:.3f}", f"{cpu:.3f}", rate, *[""] * 5]
        if pieces is not None:
            recall, off, false = self.truth.judge(*pieces)
            ends = [f"{np.quantile(off, q):.3f}" if len(off) else "" for q in (0.5, 0.9)]
            row[4:] = len(pieces[0]), f"{recall:.4f}", *ends, f"{1e6 * false / self.pairs:.1f}"
        if IBIS in self.times:
            own = self.shortest(IBIS)
            row += [f"{own[0] / wall:.1f}", f"{own[1] / cpu:.1f}"]
        return tuple(row)

    def show(self, title: str) -> None:
        header = ["", "s", "CPU s", "site-pairs/s", "pieces", "recall >= 7 cM", "ends: median cM"]
        header += ["90 %", "false a M pairs"]
        if IBIS in self.times:
            header += ["s of IBIS / s", "CPU s / CPU s"]
        print_table(title, header, [self.row(name) for name in self.times])


def cpu_seconds() -> float:
    """Of this process and of the programs that it ran and waited for."""
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + programs.ru_utime + programs.ru_stime


def timed(work) -> tuple[float, float, object]:
    """Seconds of the wall clock, of all CPUs (programs too), and the result."""
    start, before = time.perf_counter(), cpu_seconds()
    result = work()
    return time.perf_counter() - start, cpu_seconds() - before, result


def as_segments(found: Candidates, windows: Windows) -> tuple:
    end = windows.first[found.last] + windows.sites[found.last]
    return found.i, found.j, windows.first[found.first], end


def search(backend: Backend, planes: Planes, windows: Windows, min_length: float) -> Candidates:
    limits = {"tolerance": TOLERANCE, "min_length": min_length, "most": MOST}
    return find_candidates(backend, planes, None, windows, **limits)


def genome_of(af: np.ndarray, limits: SegmentLimits) -> SearchGenome:
    """The drawn genome with these ALT frequencies, and the windows that are searched here."""
    bounds = contig_bounds(len(af))
    contig = np.repeat(np.arange(1, len(bounds) + 1), [end - first for first, end in bounds])
    site = np.concatenate([np.arange(end - first) for first, end in bounds])
    place = (site + 1) * 1_000_000 // SITES_A_CM
    sites = GeneticSites(contig.astype(str), place, site / SITES_A_CM, np.ones(len(af), bool))
    return replace(SearchGenome.of(sites, af, limits), windows=windows_of_study(len(af)))


def one_allele(found: Segments) -> tuple:
    """Segments as `Truth.judge` reads them."""
    one = found.shared == 1
    return found.a[one], found.b[one], found.first[one], found.last[one] + 1


class Ours:
    """What is timed of this package on one study."""

    def __init__(self, backend: Backend, prefix: Path, options) -> None:
        self.backend, self.prefix, self.options = backend, prefix, options
        self.windows, self.limits = windows_of_study(options.sites), SegmentLimits(min_cm=MIN_CM)
        self.least = MIN_CM - 2 * WINDOW_SITES / SITES_A_CM
        self.planes = self.read()
        self.places = {"planes": self.planes}
        if backend.name == "gpu":
            self.places["planes on the device"] = backend.keep_planes(self.planes)
        self.genome = genome_of(self.frequencies(self.planes), self.limits)
        few = Planes(self.planes.words[:64], options.sites)  # compiled
        segments_between(few, None, self.genome, self.limits, backend)

    def read(self) -> Planes:
        return planes_in_memory(open_bed(self.prefix), self.options.samples, self.options.threads)

    def frequencies(self, planes: Planes) -> np.ndarray:
        """ALT frequency of each site."""
        counts = np.zeros((3, 64 * planes.words.shape[2]), np.int32)
        sites = np.full(planes.words.shape[2], 2**64 - 1, np.uint64)
        everyone = np.arange(planes.n_samples)
        count_by_site(planes.words, sites, everyone, counts, self.options.threads)
        called = np.maximum(counts.sum(axis=0), 1)
        return ((counts[1] + 2 * counts[2]) / (2 * called))[: planes.n_sites]

    def candidates(self, planes: Planes) -> tuple:
        found = search(self.backend, planes, self.windows, self.least)
        return as_segments(found, self.windows)

    def segments(self, planes: Planes) -> tuple:
        return one_allele(segments_between(planes, None, self.genome, self.limits, self.backend))

    def segments_of_files(self) -> tuple:
        planes = self.read()
        genome = genome_of(self.frequencies(planes), self.limits)
        found = segments_between(planes, None, genome, self.limits, self.backend)
        names = [f"i{k}" for k in range(self.options.samples)]
        with open_text(self.prefix.with_suffix(".segments.tsv.gz")) as file:
            write_rows(file, segments_table(found, names, names, genome.sites))
        return one_allele(found)

    def run(self, table: Table) -> None:
        name = self.backend.name
        for place, planes in self.places.items():
            table.add(f"{name}, candidates from {place}", *timed(partial(self.candidates, planes)))
        table.add(f"{name}, segments from planes", *timed(partial(self.segments, self.planes)))
        table.add(f"{name}, segments from .bed", *timed(self.segments_of_files))

    def run_depths(self, table: Table) -> None:
        limits = TOLERANCE, self.least, MOST, self.options.threads
        for depth in (1, 2):
            arguments = self.planes, None, self.windows, *limits, depth
            wall, cpu, found = timed(partial(candidates_cpu.candidates, *arguments))
            table.add(f"probes in a row: {depth}", wall, cpu, as_segments(found, self.windows))


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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ibis", help="path of a built ibis")
    parser.add_argument("--plink", action="store_true", help="PLINK 1.9 --genome too")
    parser.add_argument("--depths", action="store_true", help="one or two probes in a row")
    options = commandline.parse(parser, samples=100, sites=6000, rounds=1)
    backend = select_backend(options.device, options.threads)
    print(backend.describe())
    plink = commandline.find_peer("plink1.9") if options.plink else None
    with tempfile.TemporaryDirectory() as folder:
        prefix, out = Path(folder) / "study", Path(folder) / "out"
        table = Table(
            draw_study(prefix, options.samples, options.sites), options.samples, options.sites
        )
        ours = Ours(backend, prefix, options)
        if options.depths:
            ours.run_depths(table)
        for _ in range(options.rounds):
            ours.run(table)
            if options.ibis:
                ibis = (options.ibis, "-bfile", prefix, "-min_l", MIN_CM, "-t", options.threads)
                wall, cpu, _ = timed(partial(run, *ibis, "-f", out))
                table.add(IBIS, wall, cpu, read_ibis(Path(f"{out}.seg")))
        if plink:
            command = (plink, "--bfile", prefix, "--genome", "--threads", options.threads)
            wall, cpu, _ = timed(partial(run, *command, "--out", out))
            table.add("PLINK 1.9 --genome", wall, cpu, None)
    table.show(f"{options.samples} people, {options.sites} sites")


if __name__ == "__main__":
    main()
