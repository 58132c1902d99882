"""Candidates of identity by descent among people who are drawn on the GPU, at full size.

    python tests/bench/bench_ibd_mosaics.py [--samples 100000] [--sites 500000] [--repeats 2]
        [--checked 2000] [--threads 4] [--exact] [--quick]

The people are like those of bench_ibd.py: contigs of 140 cM with 150 sites a cM, blocks of 15 sites
with 8 haplotypes, 0.1 % wrong and 1 % missing genotypes; person 2 k + 1 has one haplotype of person
2 k on a stretch of 3 to 20 cM of each contig. They are drawn by hashes (mosaics.cu), so that
nothing but a table of alleles and the planted stretches goes to the device, and their planes stay
there: 3 bits a genotype. Where they do not fit, the largest number of people that does is taken,
and said.

Printed: seconds to draw; seconds of the search by the wall clock, the best of --repeats;
site-pairs/s; the share of planted stretches of at least 7 cM of which half is covered; and
candidates that touch no planted stretch, a million pairs. The candidates of the first --checked
people are compared with those that the CPU finds in their planes, copied back.

--exact: all planes are copied back (3 bits a genotype of host memory), and the exact pass makes
segments of all candidates on --threads. Printed: its seconds without the copy, those of both
passes, the share of planted stretches that segments cover, and false segments.
"""

from __future__ import annotations

import time
from pathlib import Path

import commandline
import numpy as np
from bench_ibd import (
    BLOCK_HAPLOTYPES,
    BLOCK_SITES,
    CONTIG_CM,
    ERRORS,
    MIN_CM,
    MISSING,
    SITES_A_CM,
    WINDOW_SITES,
    as_segments,
    contig_bounds,
    genome_of,
    search,
    windows_of_study,
)
from timing import print_table

from popdesic.engine.select import cpu_backend, select_backend
from popdesic.engine.terms import Planes
from popdesic.ibd.candidates import Candidates
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.segments import segments_of

CONTIG_SITES, THREADS = SITES_A_CM * CONTIG_CM, 256
#: Share of the device's free memory for planes; the rest is for packed windows and candidates.
PLANES_SHARE = 0.75


def planted_stretches(n_samples: int, n_sites: int, rng) -> np.ndarray:
    """First and end site of the stretch of each pair and contig: int32 (n_pairs, n_contigs, 2)."""
    first, end = np.array(contig_bounds(n_sites)).T
    shape = (n_samples + 1) // 2, len(first)
    length = np.minimum((rng.uniform(3, 20, shape) * SITES_A_CM).astype(np.int64), end - first)
    start = first + (rng.random(shape) * (end - first - length + 1)).astype(np.int64)
    return np.ascontiguousarray(np.stack([start, start + length], axis=2), np.int32)


def allele_table(n_sites: int, rng) -> np.ndarray:
    """Bit h of a site: the allele of haplotype h of its block. uint8 (n_sites,)."""
    share = rng.uniform(0.05, 0.5, (n_sites, 1))
    bits = rng.random((n_sites, BLOCK_HAPLOTYPES)) < share
    return np.packbits(bits, axis=1, bitorder="little")[:, 0]


def draw_planes(n_samples: int, n_sites: int, planted: np.ndarray, alleles: np.ndarray):
    """Planes of the people, uint64 (n_samples, 3, n_words), on the device."""
    import cupy

    source = (Path(__file__).parent / "mosaics.cu").read_text()
    kernel = cupy.RawKernel(source, "draw", options=("--std=c++17",))
    n_words = -(-n_sites // 64)
    words = cupy.empty((n_samples, 3, n_words), np.uint64)
    kernel(
        (-(-n_samples * n_words // THREADS),),
        (THREADS,),
        (
            *(words, np.int64(n_samples), np.int32(n_words), np.int32(n_sites)),
            *map(np.int32, (BLOCK_SITES, CONTIG_SITES, planted.shape[1])),
            *(cupy.asarray(alleles), cupy.asarray(planted)),
            *map(np.uint32, (ERRORS * 2**32, (1 - MISSING) * 2**32)),
        ),
    )
    cupy.cuda.Device().synchronize()
    return words


def judge(i, j, begin, end, planted: np.ndarray, n_sites: int) -> tuple[float, int]:
    """Share of the long planted stretches that are half covered, and pieces that are false.

    Pieces are candidates or segments of the pairs (i, j), from site begin to before site end.
    """
    own = (i % 2 == 0) & (j == i + 1)
    begin, end = begin[own], end[own]
    starts = np.array([first for first, _ in contig_bounds(n_sites)])
    pair, contig = i[own] // 2, np.searchsorted(starts, begin, side="right") - 1
    start, stop = planted[pair, contig].T.astype(np.int64)
    shared = np.maximum(np.minimum(end, stop) - np.maximum(begin, start), 0)
    covered = np.zeros(planted.shape[:2], np.int64)
    np.add.at(covered, (pair, contig), shared)
    length = planted[:, :, 1].astype(np.int64) - planted[:, :, 0]
    long = length >= MIN_CM * SITES_A_CM
    return float((2 * covered >= length)[long].mean()), int((~own).sum() + (shared == 0).sum())


def exact_pass(words, found: Candidates, planted, alleles, wall: float, threads: int) -> None:
    """Segments of all candidates, from planes in host memory; prints its table."""
    n_sites, limits = len(alleles), SegmentLimits(min_cm=MIN_CM)
    # Allele frequencies are those among the haplotypes of a block.
    genome = genome_of(np.bitwise_count(alleles) / BLOCK_HAPLOTYPES, limits)
    planes = Planes(words.get(), n_sites)
    few = Candidates(*(column[:1] for column in found))
    segments_of(few, planes, planes, genome, limits, threads)  # compiled
    begin, before = time.perf_counter(), time.process_time()
    all_segments = segments_of(found, planes, planes, genome, limits, threads)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - before
    one = all_segments.shared == 1
    i, j, first, last = (getattr(all_segments, name)[one] for name in ("a", "b", "first", "last"))
    recall, false = judge(i, j, first, last + 1, planted, n_sites)
    row = (
        *(len(found.i), len(i), f"{seconds:.2f}", f"{cpu:.1f}"),
        *(f"{1e6 * cpu / max(len(found.i), 1):.1f}", f"{wall + seconds:.2f}", f"{recall:.4f}"),
        false,
    )
    header = ["candidates", "segments", "s", "CPU s", "CPU us a candidate"]
    header += ["s with the candidates", "recall >= 7 cM", "false"]
    print_table(f"The exact pass, {threads} threads", header, [row])


def among_first(found: Candidates, n: int) -> np.ndarray:
    """Candidates of the first n people, int64 (n_found, 4)."""
    here = (found.i < n) & (found.j < n)
    return np.stack([column[here] for column in found], axis=1).astype(np.int64)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--sites", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--checked", type=int, default=2000, help="people compared with the CPU")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--exact", action="store_true", help="segments of all candidates too")
    options = commandline.parse(parser, gpu=True, samples=400, sites=25_000, checked=200, repeats=1)
    backend = select_backend("gpu", options.threads)
    print(backend.describe())
    bytes_a_person = 24 * -(-options.sites // 64)
    room = int(PLANES_SHARE * backend.free_bytes()) // bytes_a_person
    n = min(options.samples, room)
    if n < options.samples:
        gigabytes = options.samples * bytes_a_person / 1e9
        print(f"{options.samples} people need {gigabytes:.1f} GB of planes; {n} are drawn.")
    rng = np.random.default_rng(1)
    begin = time.perf_counter()
    planted, alleles = planted_stretches(n, options.sites, rng), allele_table(options.sites, rng)
    words = draw_planes(n, options.sites, planted, alleles)
    drawn = time.perf_counter() - begin
    windows = windows_of_study(options.sites)
    least = MIN_CM - 2 * WINDOW_SITES / SITES_A_CM
    search(backend, Planes(words[:64], options.sites), windows, least)  # compiled
    seconds = []
    for _ in range(options.repeats):
        begin = time.perf_counter()
        found = search(backend, Planes(words, options.sites), windows, least)
        seconds.append(time.perf_counter() - begin)
    recall, false = judge(*as_segments(found, windows), planted, options.sites)
    checked = min(options.checked, n)
    few = Planes(words[:checked].get(), options.sites)
    expected = search(cpu_backend(options.threads), few, windows, least)
    ours, theirs = among_first(found, checked), among_first(expected, checked)
    pairs, wall = n * (n - 1) / 2, min(seconds)
    row = (
        *(n, options.sites, f"{words.nbytes / 1e9:.1f}", f"{drawn:.1f}", f"{wall:.3f}"),
        *(f"{pairs * options.sites / wall:.3g}", len(found.i), f"{recall:.4f}"),
        *(f"{false / pairs * 1e6:.2f}", f"{len(ours)} of {len(theirs)}"),
    )
    header = ["people", "sites", "GB of planes", "s to draw", "s", "site-pairs/s", "candidates"]
    header += ["recall >= 7 cM", "false a M pairs", f"first {checked} people: found on the CPU too"]
    print_table("Candidates among people drawn on the GPU", header, [row])
    if options.exact:
        exact_pass(words, found, planted, alleles, wall, options.threads)
    if not np.array_equal(ours, theirs):
        raise SystemExit("Error: the GPU's candidates are not those of the CPU.")


if __name__ == "__main__":
    main()
