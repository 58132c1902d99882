"""Statistics of populations: genotypes a second beside PLINK 1.9 and scikit-allel, and error rates.

    python tests/bench/bench_population.py [--samples 4000] [--sites 100000] [--populations 10]
        [--draws 200] [--people 300] [--tables rates nulls ancestry] [--quick]
    python tests/bench/bench_population.py --device gpu [--samples 20000] [--sites 500000]
        [--populations 10] [--quick]

One thread each. Rates are genotypes (samples x sites) by CPU-seconds, user and system, without
start-up and compilation; PLINK's are whole runs, of which it needs one a statistic. The second
table has the shares of draws with a false finding under nulls (`tests/unit/population`).
With `--device gpu` a GPU counts random planes in pinned memory, with results checked against the
CPU's, and the rate at which the same memory is copied to the device is measured in the same run.
"""

from __future__ import annotations

import argparse
import functools
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from scenes.landscapes import scene
from scenes.landscapes.inversions import genome_with_inversion
from timing import best_of, print_table

from popdesic.cohort.genotypes_cpu import pack_planes
from popdesic.engine.backend import Backend
from popdesic.engine.select import cpu_backend, select_backend
from popdesic.io.genotypes import BED_MAGIC
from popdesic.io.sites import chunks
from popdesic.population.allele_counts import PopulationCounts
from popdesic.population.allele_sums_cpu import own_sums, pair_sums
from popdesic.population.ancestry import best_fit, cross_validate, project_proportions, varies
from popdesic.population.blocks import block_starts
from popdesic.population.count_groups import count_groups as count_groups_of
from popdesic.population.differentiation import pair_table, population_tree
from popdesic.population.diversity import population_table, spectrum
from popdesic.population.f_statistics import f2_blocks, f3_screen, f4_tests
from popdesic.population.fastmixture import why_missing
from popdesic.population.group_counts import GroupCounts, fixed_point
from popdesic.population.local_structure import GENOTYPES_OF_BYTE, MOST_PEOPLE, local_table
from popdesic.population.measure import f3_limit
from popdesic.population.runs import RunLimits, runs_of_words

#: Samples and sites by device, if nothing else is said.
SIZES = {"cpu": (4000, 100_000), "gpu": (20_000, 500_000)}


def cpu(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def draw(rng: np.random.Generator, n: int, n_sites: int, k: int, missing: float):
    """Rows of a .bed file of `k` populations, their labels, and the sites."""
    labels = rng.integers(0, k, n)
    rows = []
    order = np.array([3, 2, 0, 1], np.uint8)  # codes of 0, 1, 2 ALT alleles and missing
    for first, last in chunks(n_sites, 4096):
        root = rng.uniform(0.02, 0.98, last - first)
        shift = rng.normal(0, 0.1, (last - first, k)) * np.sqrt(root * (1 - root))[:, None]
        p = np.clip(root[:, None] + shift, 0, 1)[:, labels]
        states = (rng.random(p.shape) < p).astype(np.uint8) + (rng.random(p.shape) < p)
        states[rng.random(p.shape) < missing] = 3
        codes = np.zeros((last - first, -(-n // 4) * 4), np.uint8)
        codes[:, :n] = order[states]
        four = codes.reshape(last - first, -1, 4)
        rows.append(four[..., 0] | four[..., 1] << 2 | four[..., 2] << 4 | four[..., 3] << 6)
    pos = 1 + np.arange(n_sites) * (2_800_000_000 // n_sites // 22)
    chrom = np.sort(np.arange(n_sites) % 22) + 1
    return np.concatenate(rows), labels, pd.DataFrame({"chrom": chrom.astype(str), "pos": pos})


def planes_of(rows: np.ndarray, n: int) -> np.ndarray:
    """Planes of a .bed file, as encode_cohort writes them."""
    words = np.zeros((n, 3, -(-len(rows) // 512) * 8), np.uint64)
    nothing = np.zeros(words.shape[2], np.uint64)
    pack_planes(rows, nothing, nothing, words)
    return words


def timed(name: str, work: Callable[[], object], genotypes: int, rows: list) -> object:
    """Add CPU-seconds and rate of `work` to the rows; its result."""
    wall, used = time.perf_counter(), cpu()
    found = work()
    used = cpu() - used
    rows.append((name, f"{time.perf_counter() - wall:.2f}", f"{used:.2f}", genotypes / used / 1e9))
    return found


def count_groups(
    backend: Backend, words: np.ndarray, used: np.ndarray, labels: np.ndarray, n_sites: int
) -> GroupCounts:
    """Counts of populations, as `count_cohort` has them of diploid samples."""
    values = fixed_point(np.full(64 * words.shape[2], 0.3))

    def group(first: int, part: np.ndarray, sums: np.ndarray) -> np.ndarray:
        return labels[first : first + len(part)]

    return count_groups_of(backend, words, used, values, n_sites, group, int(labels.max()) + 1)


def ours(rows: np.ndarray, labels: np.ndarray, sites: pd.DataFrame, table: list) -> None:
    n, k = len(labels), int(labels.max()) + 1
    size = n * len(rows)

    words = planes_of(rows, n)
    used = np.zeros(64 * words.shape[2], np.uint8)
    used[: len(rows)] = 1
    used = np.packbits(used, bitorder="little").view(np.uint64)

    def count() -> PopulationCounts:
        found = count_groups(cpu_backend(), words, used, labels, len(rows))
        counts = found.counts.astype(np.int32)
        called = counts.sum(axis=2, dtype=np.int32)
        alleles = np.stack([2 * called, counts[..., 1] + 2 * counts[..., 2]], axis=-1)
        names = [f"p{j:02d}" for j in range(k)]
        return PopulationCounts(names, found.sizes, np.zeros(k, int), alleles, counts)

    starts = block_starts(sites, "2 Mb")
    masked = np.zeros(len(sites), bool)

    def within(counts: PopulationCounts) -> None:
        own = own_sums(counts.alleles, counts.genotypes, masked, starts)
        population_table(counts, own, starts)
        spectrum(counts)

    def between(counts: PopulationCounts) -> None:
        sums = pair_sums(counts.alleles, counts.genotypes, masked, starts)
        pair_table(counts, sums)
        population_tree(counts.names, sums, draws=100, seed=1)

    def f_statistics(counts: PopulationCounts) -> None:
        f3_screen(counts, starts)
        f4_tests(counts, starts, [counts.names[:4]])
        f2_blocks(counts, starts)

    counts = timed("counts by population and sample", count, size, table)
    for name, work in (
        ("heterozygosity, spectra", within),
        ("F_ST (2), f2, sharing, tree", between),
        ("f3 of all triples, f4, f2 blocks", f_statistics),
    ):
        timed(name, lambda work=work: work(counts), size, table)
    spent = sum(float(row[2]) for row in table)
    table.append(("all of these", "", f"{spent:.2f}", size / max(spent, 0.01) / 1e9))
    limits, diploid = RunLimits(), np.full(n, 2)
    timed(
        "runs of homozygosity",
        lambda: runs_of_words(words, used, diploid, sites, limits, 1),
        *(size, table),
    )
    people = min(n // 4 * 4, MOST_PEOPLE)

    def read(first: int, last: int) -> np.ndarray:
        return GENOTYPES_OF_BYTE[rows[first:last, : people // 4]].reshape(last - first, people)

    name = f"local structure, {people} people"
    timed(name, lambda: local_table(read, sites, people, 200), people * len(rows), table)


def on_gpu(n: int, n_sites: int, k: int, missing: float) -> list[tuple]:
    """Rates of counts on a GPU beside the copy of the same planes from pinned memory."""
    import cupy
    import cupyx

    rng = np.random.default_rng(2)
    # A sample is one of 64 drawn rows, each shifted by some words: as random, and drawn fast.
    n_words = -(-n_sites // 64)
    drawn = rng.integers(0, 2**64, (64, 3, n_words), np.uint64, endpoint=False)
    drawn[:, 1] &= drawn[:, 0]
    drawn[:, 2] = ~np.packbits(
        rng.random((64, 64 * n_words), np.float32) < missing, axis=1, bitorder="little"
    ).view(np.uint64)
    words = cupyx.empty_pinned((n, 3, n_words), np.uint64)
    for sample in range(n):
        words[sample] = np.roll(drawn[sample % 64], sample, axis=1)
    bits = np.arange(64 * n_words) < n_sites
    used = np.packbits(bits, bitorder="little").view(np.uint64)
    labels = rng.integers(0, k, n)
    gpu, cpu_counts = select_backend("gpu", 8), select_backend("cpu", 8)
    print(gpu.describe())
    ours = count_groups(gpu, words, used, labels, n_sites)
    theirs = count_groups(cpu_counts, words, used, labels, n_sites)
    for name in ("sums", "groups", "sizes", "counts"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    part = max(1, min(n, (1 << 30) // words[0].nbytes))
    there = cupy.empty((part, 3, n_words), np.uint64)

    def copy() -> None:
        for first, last in chunks(n, part):
            there[: last - first].set(words[first:last])
        cupy.cuda.Device().synchronize()

    ordinary = np.array(words)
    found = []
    for name, work in (
        ("copy from pinned memory, nothing else", copy),
        ("counts, from pinned memory", functools.partial(count_groups, gpu, words)),
        ("counts, from ordinary memory", functools.partial(count_groups, gpu, ordinary)),
        ("counts, CPU with 8 threads", functools.partial(count_groups, cpu_counts, ordinary)),
    ):
        run = work if work is copy else functools.partial(work, used, labels, n_sites)
        seconds = best_of(5, run)
        found.append((name, seconds, words.nbytes / seconds / 1e9, n * n_sites / seconds / 1e9))
    limit = found[0][1]
    return [
        (name, f"{1e3 * s:.1f}", f"{gb:.1f}", f"{rate:.1f}", f"{limit / s:.2f}")
        for name, s, gb, rate in found
    ]


def plink(rows: np.ndarray, labels: np.ndarray, sites: pd.DataFrame, table: list) -> None:
    """Whole runs of PLINK 1.9 on the same file."""
    program = commandline.find_peer("plink1.9")
    if not program:
        return
    n = len(labels)
    with tempfile.TemporaryDirectory() as folder:
        stem = Path(folder) / "a"
        stem.with_suffix(".bed").write_bytes(BED_MAGIC + rows.tobytes())
        places = zip(sites.chrom, sites.pos, strict=True)
        bim = (f"{c}\ts{k}\t0\t{p}\tA\tG\n" for k, (c, p) in enumerate(places))
        stem.with_suffix(".bim").write_text("".join(bim))
        stem.with_suffix(".fam").write_text("".join(f"0 i{k} 0 0 0 -9\n" for k in range(n)))
        within = "".join(f"0 i{k} p{label}\n" for k, label in enumerate(labels))
        (Path(folder) / "w").write_text(within)
        for name, words in (
            ("--het", ["--het", "small-sample"]),
            ("--freq --within", ["--freq", "--within", "w"]),
            ("--fst --within, one F_ST", ["--fst", "--within", "w"]),
            ("--homozyg", ["--homozyg"]),
        ):
            wall, used = time.perf_counter(), cpu(resource.RUSAGE_CHILDREN)
            command = [program, "--bfile", "a", *words, "--threads", "1", "--out", "o"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            used = cpu(resource.RUSAGE_CHILDREN) - used
            wall = time.perf_counter() - wall
            rate = n * len(rows) / used / 1e9
            table.append((f"plink1.9 {name}", f"{wall:.2f}", f"{used:.2f}", rate))


def scikit_allel(rows: np.ndarray, labels: np.ndarray, table: list) -> None:
    """Counts of alleles and Hudson's F_ST of all pairs in scikit-allel, genotypes in memory."""
    try:
        import allel
    except ImportError:
        print("scikit-allel is left out: it is not installed (pip install scikit-allel).")
        return
    n, k = len(labels), int(labels.max()) + 1
    codes = np.stack([rows >> s & 3 for s in (0, 2, 4, 6)], axis=-1).reshape(len(rows), -1)[:, :n]
    first = np.array([1, -1, 0, 0], np.int8)[codes]
    second = np.array([1, -1, 1, 0], np.int8)[codes]
    genotypes = allel.GenotypeArray(np.stack([first, second], axis=-1))
    size = n * len(rows)
    groups = [np.flatnonzero(labels == j) for j in range(k)]

    def count() -> list:
        return [genotypes.count_alleles(subpop=group, max_allele=1) for group in groups]

    def hudson() -> None:
        for a in range(k):
            for b in range(a):
                allel.average_hudson_fst(counts[a], counts[b], 100)

    counts = timed("scikit-allel count_alleles", count, size, table)
    timed("scikit-allel average_hudson_fst, all pairs", hudson, size, table)
    pair = [groups[0], groups[1]]
    own = len(rows) * sum(map(len, pair))
    name = "scikit-allel weir_cockerham_fst, one pair"
    timed(name, lambda: allel.weir_cockerham_fst(genotypes, pair), own, table)


def nulls(draws: int) -> list[tuple]:
    """False findings where there is nothing to find."""
    rng = np.random.default_rng(5)
    n_blocks, own_sites, copies, people = 60, 20, 3, 8
    starts = np.arange(0, n_blocks * own_sites * copies + 1, own_sites * copies)

    def counts_of(frequencies: list[np.ndarray]) -> PopulationCounts:
        states = []
        for p in frequencies:
            genotypes = rng.binomial(2, np.repeat(p[:, None], people, axis=1))
            states.append([(genotypes == g).sum(axis=1) for g in range(3)])
        states = np.repeat(np.array(states, np.int32).transpose(2, 0, 1), copies, axis=0)
        states = np.ascontiguousarray(states)
        called = states.sum(axis=2, dtype=np.int32)
        alleles = np.stack([2 * called, states[..., 1] + 2 * states[..., 2]], axis=-1)
        k = len(frequencies)
        sizes = np.full(k, people)
        return PopulationCounts(list("abcdef")[:k], sizes, np.zeros(k, int), alleles, states)

    def drift(p: np.ndarray, amount: float) -> np.ndarray:
        q = p + rng.normal(0, 1, p.shape) * np.sqrt(amount * p * (1 - p))
        return np.abs(1 - np.abs(1 - q))

    beyond, any_f3, uncorrected, negative = 0, 0, 0, 0
    for _ in range(draws):
        root = rng.uniform(0.1, 0.9, n_blocks * own_sites)
        left, right = drift(root, 0.1), drift(root, 0.1)
        tips = [drift(p, 0.05) for p in (left, left, right, right)]
        test = f4_tests(counts_of(tips), starts, [list("abcd")])
        beyond += bool(abs(test.z[0]) > 3)
        screen = f3_screen(counts_of([root] * 6), starts)
        limit = f3_limit(len(screen), n_blocks)
        any_f3 += bool((screen.z_corrected < limit).any())
        uncorrected += bool((screen.z < limit).any())
        negative += int((screen.z < -3).sum())
    shares = {
        name: np.mean([_local_regions(seed, where) for seed in range(draws)])
        for name, where in (("null", None), ("inversion", (1300, 1600)))
    }
    return [
        ("windows without an inversion, any", draws, f"{shares['null']:.3f}", "at most 0.05"),
        ("windows, an inversion of six of 80", draws, f"{shares['inversion']:.3f}", "(power)"),
        ("f4 of the right tree, |z| > 3", draws, f"{beyond / draws:.4f}", "0.0039"),
        ("any f3 of 60 in one population", draws, f"{any_f3 / draws:.3f}", "0.05"),
        ("the same, skewness not corrected for", draws, f"{uncorrected / draws:.3f}", "0.05"),
        ("f3 in one population, z < -3", 60 * draws, f"{negative / 60 / draws:.4f}", "0.0020"),
    ]


def ancestry(people: int, sites: int) -> list[tuple]:
    """Proportions on a gradient beside the truth, newcomers projected; K of one population."""
    if reason := why_missing():
        print(f"Ancestry proportions are left out: {reason}.")
        return []
    drawn = scene("gradient", seed=11, people=people, sites=sites)
    founders = np.arange(people) % 4 > 0
    genotypes = drawn.genotypes[varies(drawn.genotypes[:, founders])]
    used = cpu(resource.RUSAGE_CHILDREN)
    found, _ = best_fit(genotypes[:, founders], 2, [1])
    used = cpu(resource.RUSAGE_CHILDREN) - used
    new = project_proportions(genotypes[:, ~founders], found.frequencies)
    again = project_proportions(genotypes[:, founders], found.frequencies)
    drift = np.abs(again - found.proportions).max()
    truth = drawn.coordinates[:, 0]
    r = [
        abs(np.corrcoef(q[:, 0], truth[rows])[0, 1])
        for q, rows in ((found.proportions, founders), (new, ~founders))
    ]
    null = scene("panmixia", seed=11, people=people // 2, sites=sites // 2)
    table = cross_validate(null.genotypes, range(1, 4), 3, 1)
    return [
        ("r with the truth, founders", f"{r[0]:.4f}"),
        ("r with the truth, newcomers", f"{r[1]:.4f}"),
        (
            "founders projected, largest difference",
            f"{drift:.4f}",
        ),
        ("CPU s of a fit, program's start included", f"{used:.1f}"),
        ("K of one population, of 1 to 3", str(int(table.k[table.error.argmin()]))),
    ]


def _local_regions(seed: int, inverted: tuple[int, int] | None) -> bool:
    """Whether windows of a genome show any region; half of the genomes are structured."""
    drawn = genome_with_inversion(seed, inverted=inverted, f_st=0.05 * (seed % 2))
    _, about = local_table(
        lambda a, b: drawn.genotypes[a:b], drawn.sites, drawn.genotypes.shape[1], 50
    )
    return about["regions"] > 0


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--sites", type=int)
    parser.add_argument("--populations", type=int, default=10)
    parser.add_argument("--missing", type=float, default=0.01)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--people", type=int, default=300, help="of the scenes of ancestry")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    tables = ["rates", "nulls", "ancestry"]
    parser.add_argument("--tables", nargs="+", choices=tables, default=tables)
    options = commandline.parse(parser, samples=60, sites=3000, populations=4, draws=3, people=100)
    samples, sites = SIZES[options.device]
    options.samples, options.sites = options.samples or samples, options.sites or sites
    if options.device == "gpu":
        commandline.require_gpu()
        sizes = options.samples, options.sites, options.populations
        found = on_gpu(*sizes, options.missing)
        header = ["what", "ms", "GB/s", "G genotypes/s", "of the copy"]
        print_table(f"{sizes[0]} samples x {sizes[1]} sites, {sizes[2]} populations", header, found)
        return
    if "rates" in options.tables:
        rates(options)
    if "nulls" in options.tables:
        found = [tuple(map(str, row)) for row in nulls(options.draws)]
        print_table("Nulls", ["null", "tests", "share", "by Student's t"], found)
    if "ancestry" in options.tables:
        rows = ancestry(options.people, options.people * 13)
        if rows:
            print_table(f"Ancestry, {options.people} people", ["what", "value"], rows)


def rates(options: argparse.Namespace) -> None:
    """Rates of one thread, beside those of PLINK and scikit-allel."""
    rng = np.random.default_rng(1)
    # Compile, or load what was compiled.
    small = draw(rng, 40, 2000, 4, 0.01)
    ours(*small, [])
    data = draw(rng, options.samples, options.sites, options.populations, options.missing)
    table: list[tuple] = []
    ours(*data, table)
    plink(*data, table)
    scikit_allel(data[0], data[1], table)
    shape = f"{options.samples} samples x {options.sites} sites"
    rows = [(*row[:3], f"{row[3]:.2f}") for row in table]
    header = ["what", "wall s", "CPU s", "G genotypes/CPU-s"]
    print_table(f"{shape}, {options.populations} populations", header, rows)


if __name__ == "__main__":
    main()
