"""Imputation by haplotype copying beside Beagle, on drawn people whose alleles are all known.

    python tests/bench/bench_copying.py [--seed 1] [--factors 1 2 3 5] [--shares 0 0.0625 0.25]
    python tests/bench/bench_copying.py --unphased [--seed 1] [--factors 1 2]
    python tests/bench/bench_copying.py --coverage 0.5 1 4 [--seed 1] [--factors 1 3]
    python tests/bench/bench_copying.py --device gpu [--haplotypes 5008] [--copied 2112]

Draws people of three populations (Gutenkunst et al. 2009, PLoS Genetics 5:e1000695), hides the
sites that an array lacks in some of them, and imputes these from the others' haplotypes. Prints
r2 of dosages by minor allele frequency and seconds with two threads, Beagle's on the same
data in the same run: with true alleles, and with 0.2 % of the array's alleles wrong and a
phase switch in one of 100 heterozygous genotypes of the reference. Beagle reads and writes its VCF
files within its seconds; our seconds are those of the computation and of the fit of the model. A
line says what `popdesic freeze` and `popdesic impute` take with the same files, and the peak memory
of each program. "left out": typed sites, each imputed from the other calls (ER2 of the command).
--factors: effective sizes, as multiples of the fitted one; --shares: posteriors that count as small
(`popdesic.copying.copying_plan`). --unphased: the targets' phase is not given. Prints switch
errors too: how often ALT is on the wrong haplotype beside the heterozygous site before. --coverage:
the targets are sequenced at these mean depths (reads by Poisson, 1 % of bases wrong), and imputed
from genotype likelihoods at all sites, beside their reads and the frequencies alone. --device
gpu: rates of the passes on a GPU beside their limit in the same run, for panels of some sizes and
--copied targets (`copying_rates_gpu.py`).
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import commandline
import msprime
import numpy as np

from popdesic.cohort.phased_targets import MIN_SHARED_SITES
from popdesic.copying import copying, copying_plan
from popdesic.copying.fit import fit_model
from popdesic.copying.founders import phase_together
from popdesic.copying.likelihoods import Likely, impute_windows
from popdesic.copying.phasing import phase_alleles
from popdesic.core.phreds import likelihoods_of_phreds, phreds_of
from popdesic.core.random_numbers import lots_of

#: Upper ends of the bins of minor allele frequency.
BINS = (0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
#: An array has one common site in each stretch of this many base pairs.
ARRAY_BP, ARRAY_MAF = 4_000, 0.01
WRONG_ALLELES, SWITCHES = 0.002, 0.01
#: Share of bases that are read wrong, and r2 at MAF above 1 % that is asked for by coverage.
WRONG_BASES, ASKED_R2 = 0.01, {0.5: 0.985, 1.0: 0.995, 4.0: 0.999}
#: Share of the founders' calls that are missing.
HIDDEN = 0.05
THREADS = 2


def demography() -> msprime.Demography:
    """Out of Africa: YRI, CEU and CHB (Gutenkunst et al. 2009, table 1), 25 years a generation."""
    past, bottleneck, split = 220e3 / 25, 140e3 / 25, 21.2e3 / 25
    found = msprime.Demography()
    found.add_population(name="YRI", initial_size=12_300)
    for name, size, rate in (("CEU", 1000, 0.004), ("CHB", 510, 0.0055)):
        found.add_population(name=name, initial_size=size * np.exp(rate * split), growth_rate=rate)
    for name, size in (("OOA", 2100), ("AMH", 12_300), ("ANC", 7300)):
        found.add_population(name=name, initial_size=size)
    for pair, rate in (
        (["CEU", "CHB"], 9.6e-5),
        (["YRI", "CHB"], 1.9e-5),
        (["CEU", "YRI"], 3e-5),
    ):
        found.set_symmetric_migration_rate(pair, rate)
    found.add_population_split(split, derived=["CEU", "CHB"], ancestral="OOA")
    found.add_symmetric_migration_rate_change(split, ["YRI", "OOA"], 25e-5)
    found.add_population_split(bottleneck, derived=["YRI", "OOA"], ancestral="AMH")
    found.add_population_split(past, derived=["AMH"], ancestral="ANC")
    found.sort_events()
    return found


def draw(options) -> tuple[np.ndarray, ...]:
    """Haplotypes of reference and targets (n, n_sites), positions, and typed sites."""
    samples = {"YRI": 0.3, "CEU": 0.4, "CHB": 0.3}
    everyone = options.people + options.targets
    drawn = msprime.sim_ancestry(
        {name: round(share * everyone) for name, share in samples.items()},
        demography=demography(),
        sequence_length=options.megabases * 1e6,
        recombination_rate=1e-8,
        random_seed=options.seed,
    )
    drawn = msprime.sim_mutations(
        drawn, rate=1.25e-8, random_seed=options.seed, model=msprime.BinaryMutationModel()
    )
    alleles = drawn.genotype_matrix().astype(np.int8)
    positions = drawn.tables.sites.position.astype(np.int64) + 1
    rng = np.random.default_rng(options.seed)
    n = alleles.shape[1] // 2
    targets = np.sort(rng.choice(n, options.targets, replace=False))
    columns = np.zeros((n, 2), bool)
    columns[targets] = True
    reference = alleles[:, ~columns.ravel()]
    count = reference.sum(axis=1)
    kept = (count >= 2) & (count <= reference.shape[1] - 2)
    kept[1:] &= np.diff(positions) > 0
    reference, truth = reference[kept].T, alleles[kept][:, columns.ravel()].T
    positions = positions[kept]
    common = rng.permutation(np.flatnonzero(frequency(reference) >= ARRAY_MAF))
    typed = common[np.unique(positions[common] // ARRAY_BP, return_index=True)[1]]
    return reference, truth, positions, np.sort(typed)


def frequency(reference: np.ndarray) -> np.ndarray:
    """Minor allele frequency by site."""
    share = reference.mean(axis=0)
    return np.minimum(share, 1 - share)


def damaged(reference: np.ndarray, array: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A reference with phase switches, and an array's alleles with errors."""
    rng = np.random.default_rng(seed + 1000)
    first, second = reference[0::2].copy(), reference[1::2].copy()
    turned = np.cumsum((first != second) & (rng.random(first.shape) < SWITCHES), axis=1) % 2 == 1
    switched = np.empty_like(reference)
    switched[0::2] = np.where(turned, second, first)
    switched[1::2] = np.where(turned, first, second)
    return switched, array ^ (rng.random(array.shape) < WRONG_ALLELES)


def write_vcf(
    path: Path, alleles: np.ndarray, positions: np.ndarray, name: str, between: str = "|"
) -> None:
    """A VCF of alleles (2 n_samples, n_sites)."""
    n = len(alleles) // 2
    row = np.full((n, 4), ord(between), np.uint8)
    row[:, 3] = ord("\t")
    names = "\t".join(f"{name}{k}" for k in range(n))
    with gzip.open(path, "wb", compresslevel=1) as out:
        head = "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
        head += '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
        columns = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
        out.write(f"{head}{columns}\t{names}\n".encode())
        for site, position in enumerate(positions):
            row[:, 0] = alleles[0::2, site] + ord("0")
            row[:, 2] = alleles[1::2, site] + ord("0")
            start = f"1\t{position}\t.\tA\tC\t.\tPASS\t.\tGT\t".encode()
            out.write(start + row.tobytes()[:-1] + b"\n")


#: Runs a command and prints its peak memory in kB. A process of its own: a command that a large
#: process starts counts the memory of that process.
WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, capture_output=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def watched(*command: object) -> tuple[float, float]:
    """Seconds and peak memory, in MB, of a command."""
    started = time.perf_counter()
    words = [sys.executable, "-c", WATCH, *map(str, command)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return time.perf_counter() - started, int(done.stdout) / 1000


def by_beagle(folder: Path, reference, array, positions, typed, between: str) -> tuple:
    """Dosages (n_targets, n_sites), alleles (2 n_targets, n_sites), seconds and peak memory, MB."""
    write_vcf(folder / "reference.vcf.gz", reference, positions, "r")
    write_vcf(folder / "targets.vcf.gz", array, positions[typed], "t", between)
    return run_beagle(folder, f"ref={folder}/reference.vcf.gz")


def run_beagle(folder: Path, *further: str) -> tuple:
    """The same of the folder's `targets.vcf.gz`."""
    (folder / "map").write_text("1 . 0 1\n1 . 1000 1000000001\n")
    seconds, peak = watched(
        *("beagle", f"gt={folder}/targets.vcf.gz", f"map={folder}/map"),
        *(f"out={folder}/imputed", f"nthreads={THREADS}", "seed=1", *further),
    )
    found, alleles = [], []
    with gzip.open(folder / "imputed.vcf.gz", "rt") as file:
        for line in file:
            if line[0] != "#":
                words = line.rstrip().split("\t")
                names = words[8].split(":")
                if "DS" in names:
                    place = names.index("DS")
                    found.append([float(word.split(":")[place]) for word in words[9:]])
                alleles.append([int(word[k]) for word in words[9:] for k in (0, 2)])
    return np.array(found).T, np.array(alleles).T, seconds, peak


def by_command(folder: Path) -> str:
    """What freezing and imputing the files of `by_beagle` take."""
    ours = (sys.executable, "-m", "popdesic")
    often = ("--threads", THREADS)
    frozen = folder / "reference.npz"
    steps = {
        "freeze": ("freeze", folder / "reference.vcf.gz", "-o", frozen),
        "impute": (
            *("impute", folder / "targets.vcf.gz", "--reference", frozen),
            *("-o", folder / "ours.vcf.gz"),
        ),
    }
    said = []
    for name, step in steps.items():
        seconds, peak = watched(*ours, *step, *often)
        said.append(f"{name} {seconds:.1f} s, {peak:.0f} MB")
    return "; ".join(said)


def by_phasing(panel, array, typed, ne: float, mismatch: float, seed: int) -> tuple:
    """Alleles (2 n_targets, n_typed) of unphased targets, and seconds."""
    genotypes = array[0::2] + array[1::2]
    lots = lots_of([f"{seed} {k}" for k in range(len(genotypes))])
    started = time.perf_counter()
    found = phase_alleles(panel, typed, genotypes, lots, ne=ne, mismatch=mismatch, threads=THREADS)
    return found.reshape(array.shape), time.perf_counter() - started


def bench_founders(reference, positions, typed, options) -> None:
    """Phase the people of the reference from each other, with missing calls, beside Beagle."""
    truth = reference[: len(reference) // 2 * 2, typed]
    genotypes = truth[0::2] + truth[1::2]
    hidden = np.random.default_rng(options.seed).random(genotypes.shape) < HIDDEN
    shown = np.where(hidden, -1, genotypes).astype(np.int8)
    print(f"{len(shown)} founders, {len(typed)} sites, {HIDDEN:.0%} hidden, seed {options.seed}")

    def tell(name: str, alleles, seconds: float) -> None:
        print(switches(name, alleles, truth, seconds))
        found, true = (alleles[0::2] + alleles[1::2])[hidden], genotypes[hidden]
        r2, wrong = np.corrcoef(found, true)[0, 1] ** 2, (found != true).mean()
        print(f"{name}: hidden genotypes, r2 {r2:.4f}, {wrong:.4f} wrong", flush=True)

    if commandline.find_peer("beagle"):
        given = np.repeat(np.where(hidden, ord(".") - ord("0"), genotypes // 2), 2, axis=0)
        given[1::2] += ~hidden & (genotypes == 1)
        with tempfile.TemporaryDirectory() as folder:
            write_vcf(Path(folder) / "targets.vcf.gz", given, positions[typed], "t", "/")
            tell("Beagle", *run_beagle(Path(folder))[1:3])
    lots = lots_of([f"{options.seed} {k}" for k in range(len(shown))])
    started, used = time.perf_counter(), time.process_time()
    found = phase_together(shown, positions[typed] * 1e-6, lots, threads=THREADS)
    tell("copying", found.reshape(truth.shape), time.perf_counter() - started)
    pairs = shown.size * len(truth) / 1e6
    print(f"copying: {(time.process_time() - used) / pairs:.3f} CPU-seconds for a million pairs")


def sequenced(genotypes: np.ndarray, coverage: float, seed: int) -> np.ndarray:
    """Phreds (n_targets, n_sites, 3) of reads at a mean depth."""
    rng = np.random.default_rng(seed)
    chance = np.array([WRONG_BASES, 0.5, 1 - WRONG_BASES])
    reads = rng.poisson(coverage, genotypes.shape)
    alt = rng.binomial(reads, chance[genotypes])
    logs = alt[..., None] * np.log10(chance) + (reads - alt)[..., None] * np.log10(1 - chance)
    return phreds_of(-10 * logs)


def bench_coverage(reference, truth, positions, options) -> None:
    """Impute targets from reads at all sites, at each coverage."""
    genotypes, share = truth[0::2].astype(int) + truth[1::2], frequency(reference)
    lots = lots_of([f"{options.seed} {k}" for k in range(len(genotypes))])
    panel = copying.haplotypes_of(reference, positions * 1e-6)
    ne, mismatch = fit_model(panel, np.arange(panel.n_haplotypes) // 2, threads=THREADS)
    print(f"fitted size {ne:.0f}, mismatch {mismatch:.2g}")
    every, alt = np.ones(len(positions), bool), reference.mean(axis=0)
    prior = np.stack([(1 - alt) ** 2, 2 * alt * (1 - alt), alt**2], axis=1)
    for coverage in options.coverage:
        phreds = sequenced(genotypes, coverage, options.seed)
        weights = likelihoods_of_phreds()[phreds] * prior
        alone = (weights[..., 1] + 2 * weights[..., 2]) / weights.sum(axis=2)
        print(line(f"{coverage:g}x, reads and frequencies", alone, truth, share, every, 0.0))
        for multiple in options.factors:
            given = Likely(np.arange(len(positions)), phreds, np.zeros(len(lots), bool), lots)
            started, used = time.perf_counter(), time.process_time()
            how = {"ne": multiple * ne, "mismatch": mismatch, "threads": THREADS}
            found = impute_windows(panel, given, **how)
            seconds = time.perf_counter() - started
            spent = (time.process_time() - used) / len(genotypes)
            dosages = copying.allele_share(found).sum(axis=1)
            print(line(f"{coverage:g}x, {multiple:g} x", dosages, truth, share, every, seconds))
            pairs = dosages[:, share > 0.01].ravel(), genotypes[:, share > 0.01].ravel()
            asked = f", asked {ASKED_R2[coverage]}" if coverage in ASKED_R2 else ""
            print(f"  MAF > 1 %: r2 {np.corrcoef(*pairs)[0, 1] ** 2:.4f}{asked}; ", end="")
            called = (2 * found.astype(int) >= copying_plan.DOSE_UNITS).astype(np.int8)
            print(f"{spent:.1f} CPU-seconds a target", flush=True)
            print(switches("  phase", called.reshape(truth.shape), truth, seconds), flush=True)


def switches(name: str, alleles, truth, seconds: float) -> str:
    """Switch errors of alleles (2 n_targets, n_typed) at sites that are truly heterozygous."""
    wrong = pairs = 0
    for k in range(0, len(truth), 2):
        true = truth[k] != truth[k + 1]
        both = true & (alleles[k] != alleles[k + 1])
        straight = alleles[k, both] == truth[k, both]
        wrong += int((straight[1:] != straight[:-1]).sum())
        pairs += max(int(both.sum()) - 1, 0)
    said = f"{name}: {wrong} switches of {pairs}, {wrong / max(pairs, 1):.5f}"
    return f"{said:<93}{seconds:9.1f}"


def by_copying(panel, array, typed, ne: float, mismatch: float) -> tuple[np.ndarray, float]:
    """Dosages (n_targets, n_sites) and seconds."""
    started = time.perf_counter()
    found = copying.impute_alleles(panel, typed, array, ne=ne, mismatch=mismatch, threads=THREADS)
    seconds = time.perf_counter() - started
    shares = copying.allele_share(found)
    return shares[0::2] + shares[1::2], seconds


def by_leaving_out(panel, array, typed, ne: float, mismatch: float, n_sites: int) -> tuple:
    """Dosages (n_targets, n_sites) at the typed sites, each from the others, and seconds."""
    few = copying.Haplotypes(panel.bits[typed], panel.n_haplotypes, panel.cm[typed])
    whole = slice(0, len(typed))
    started = time.perf_counter()
    found = copying.leave_out_alleles(few, array, whole, ne=ne, mismatch=mismatch, threads=THREADS)
    seconds = time.perf_counter() - started
    shares = np.zeros((len(array), n_sites), np.float32)
    shares[:, typed] = copying.allele_share(found)
    return shares[0::2] + shares[1::2], seconds


def line(name: str, dosages, truth, share, untyped, seconds: float) -> str:
    """r2 by bin, and seconds."""
    true, words = truth[0::2].astype(int) + truth[1::2], []
    for low, high in pairwise(BINS):
        sites = untyped & (share > low) & (share <= high)
        x, y = dosages[:, sites].ravel(), true[:, sites].ravel()
        known = x.size > 1 and x.std() > 0 and y.std() > 0
        words.append(f"{np.corrcoef(x, y)[0, 1] ** 2:7.4f}" if known else "      –")
    return f"{name:<30}{''.join(words)}{seconds:9.1f}"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--megabases", type=float, default=10.0)
    parser.add_argument("--people", type=int, default=2000, help="of the reference")
    parser.add_argument("--targets", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--factors", type=float, nargs="+", default=[1.0])
    parser.add_argument("--shares", type=float, nargs="+", default=[copying_plan.SMALL_SHARE])
    parser.add_argument("--unphased", action="store_true", help="hide the targets' phase")
    parser.add_argument("--founders", action="store_true", help="phase the people of the reference")
    parser.add_argument("--coverage", type=float, nargs="+", help="mean depths of the targets")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--haplotypes", type=int, nargs="+", default=[1000, 5008, 20_000, 65_536])
    parser.add_argument("--copied", type=int, default=2112, help="targets on a GPU")
    parser.add_argument("--cells", type=int, default=20_000_000_000, help="of a panel on a GPU")
    small = {"haplotypes": [100], "copied": 3, "cells": 30_000}
    options = commandline.parse(parser, megabases=0.2, people=40, targets=4, **small)
    if options.device == "gpu":
        from copying_rates_gpu import bench_rates

        commandline.require_gpu()
        bench_rates(options)
        return
    peer = commandline.find_peer("beagle")
    reference, truth, positions, typed = draw(options)
    if options.founders:
        bench_founders(reference, positions, typed, options)
        return
    share, untyped = frequency(reference), np.ones(len(positions), bool)
    untyped[typed] = False
    print(
        f"{len(reference)} haplotypes, {len(positions)} sites, {len(typed)} typed, "
        f"{options.targets} targets, seed {options.seed}"
    )
    print("r2 by MAF up to".ljust(30) + "".join(f"{end:7.1%}" for end in BINS[1:]) + "  seconds")
    if options.coverage:
        bench_coverage(reference, truth, positions, options)
        return
    small = [untyped & (share > a) & (share <= b) for a, b in pairwise(BINS)]
    print("sites".ljust(30) + "".join(f"{sites.sum():7}" for sites in small))
    clean = (reference, np.ascontiguousarray(truth[:, typed]))
    for what, (panel_alleles, array) in (
        ("clean", clean),
        ("errors", damaged(*clean, options.seed)),
    ):
        if peer:
            with tempfile.TemporaryDirectory() as folder:
                between = "/" if options.unphased else "|"
                found = by_beagle(Path(folder), panel_alleles, array, positions, typed, between)
                few = len(typed) < MIN_SHARED_SITES
                ours = "popdesic refuses so few sites" if few else by_command(Path(folder))
            print(f"{what}, files to files: Beagle {found[2]:.1f} s, {found[3]:.0f} MB; {ours}")
            print(line(f"{what}, Beagle", found[0], truth, share, untyped, found[2]), flush=True)
            if options.unphased:
                print(switches(f"{what}, Beagle", found[1][:, typed], truth[:, typed], found[2]))
        panel = copying.haplotypes_of(panel_alleles, positions * 1e-6)
        started = time.perf_counter()
        ne, mismatch = fit_model(panel, np.arange(panel.n_haplotypes) // 2, threads=THREADS)
        fitted = f"fitted size {ne:.0f}, mismatch {mismatch:.2g}"
        print(f"{what}, {fitted}".ljust(93) + f"{time.perf_counter() - started:9.1f}")
        for multiple in options.factors:
            given = array
            if options.unphased:
                found = by_phasing(panel, array, typed, multiple * ne, mismatch, options.seed)
                given, name = found[0], f"{what}, {multiple:g} x"
                print(switches(name, given, truth[:, typed], found[1]), flush=True)
            found = by_leaving_out(panel, given, typed, multiple * ne, mismatch, len(positions))
            shown = truth.copy()
            shown[:, typed] = given
            name = f"{what}, {multiple:g} x, left out"
            print(line(name, found[0], shown, share, ~untyped, found[1]), flush=True)
            for least in options.shares:
                copying.SMALL_SHARE = least
                found = by_copying(panel, given, typed, multiple * ne, mismatch)
                name = f"{what}, {multiple:g} x, small {least:.3g}"
                print(line(name, found[0], truth, share, untyped, found[1]), flush=True)


if __name__ == "__main__":
    main()
