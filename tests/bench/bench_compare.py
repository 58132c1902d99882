"""LD and kinship on the CPU beside PLINK, identity and mixtures beside NumPy, in the same run.

    python tests/bench/bench_compare.py [--profiles 200000] [--searches] [--quick]

LD of 5 000 sites x 2 000 samples; kinship of 2 000 samples x 30 000 sites. Searches of 32 queries
and of 32 mixtures in profiles of 128, 256, 512 and 1 024 sites, none missing: the shapes of the
paper on portable SNP comparison (figure 8), whose database has 20 million profiles (`--profiles
20000000`, 5 GB). `--searches` does these alone. NumPy counts 4 of the 32 and is scaled.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import commandline
import numpy as np
from bench_profiles import NUMPY_QUERIES, TOP, by_numpy, timed
from timing import best_in_turn, print_table, write_random_plink

from popdesic.cohort.encode import planes_in_memory
from popdesic.cohort.site_alleles import read_cohorts
from popdesic.cohort.site_planes import read_site_planes
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.site_pairs import r2_block, r2_pairs
from popdesic.engine.terms import KINSHIP, Planes
from popdesic.io.bed import open_bed, read_fam
from popdesic.io.genotypes import BED_MAGIC, pack_bed
from popdesic.relatives.find_matches import top_matches, top_references
from popdesic.relatives.kinship import close_pairs

CPUS = os.cpu_count() or 1
#: Pairs below this are written neither by PLINK nor by us.
MIN_R2, MIN_KINSHIP = 0.2, 0.0884
#: Queries, and sites of their database (Binder et al., figure 8).
SEARCH_QUERIES, SEARCH_SITES = 32, (128, 256, 512, 1024)


def ld_pairs(prefix: Path, backend: CpuBackend) -> tuple:
    """Pairs of sites with r2 of at least MIN_R2, read from a .bed file."""
    planes = read_site_planes([prefix])(0, None)
    ends = np.full(planes.n_samples, planes.n_samples)
    return r2_pairs(backend, planes, ends, MIN_R2)


def ld_matrix(prefix: Path, backend: CpuBackend) -> np.ndarray:
    return r2_block(read_site_planes([prefix])(0, None), None, backend)


def kinship_pairs(prefix: Path, backend: CpuBackend) -> tuple:
    """Close pairs of samples, read from a .bed file."""
    planes = planes_in_memory(open_bed(prefix), len(read_fam(prefix)), backend.threads)
    counts = dict(zip(KINSHIP.outputs, backend.bitgemm(planes, None, KINSHIP), strict=True))
    return close_pairs(counts, min_kinship=MIN_KINSHIP, min_called=1, upper=True)


def add_missing(prefix: Path, share: float) -> None:
    genotypes = read_cohorts([prefix])[0](0, None)
    genotypes[np.random.default_rng(2).random(genotypes.shape) < share] = -1
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())


def run(*command) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def compare(title, ours, theirs, repeats) -> tuple:
    """A row of the table: best times, and how many times as fast we are."""
    ours()  # compile kernels, load the file into the page cache
    mine, *peer = best_in_turn(repeats, ours, *([theirs] if theirs else []))
    ratio = f"{peer[0] / mine:.1f}" if peer else "-"
    return title, f"{mine:.2f}", f"{peer[0]:.2f}" if peer else "-", ratio


def searches(n_profiles: int, backend: CpuBackend, repeats: int) -> list[tuple]:
    """Rows of identity and mixtures: SEARCH_QUERIES in a database of random people."""
    rows, rng = [], np.random.default_rng(5)
    for sites in SEARCH_SITES:
        words = np.empty((n_profiles, 2, sites // 64), np.uint64)
        for first in range(0, n_profiles, 1 << 16):
            part = words[first : first + (1 << 16)]
            one, other = rng.integers(0, 2**64, (2, len(part), sites // 64), np.uint64)
            part[:, 0], part[:, 1] = one | other, one & other
        people = words[rng.integers(0, n_profiles, (SEARCH_QUERIES, 2))]
        # ALT is seen if one of two people has it, ALT alone if both have nothing else.
        seen = np.stack([people[:, 0, 0] | people[:, 1, 0], people[:, 0, 1] & people[:, 1, 1]], 1)
        database = Planes(words, sites)
        for name, search, asked in (
            ("identity", top_matches, people[:, 0]),
            ("mixture", top_references, seen),
        ):
            mixed, queries = name == "mixture", Planes(np.ascontiguousarray(asked), sites)
            few = asked[:NUMPY_QUERIES]
            start = time.process_time()
            slow = by_numpy(few, words, mixed)
            by_array = time.process_time() - start
            best = search(backend, queries, database, TOP)
            assert (best.index[: len(few)] == slow).all(), f"other {name} matches"
            wall, cpu = min(
                timed(partial(search, backend, queries, database, TOP)) for _ in range(repeats)
            )
            rate = SEARCH_QUERIES * n_profiles * sites / cpu / 1e9
            theirs = by_array / len(few) * SEARCH_QUERIES
            row = (name, n_profiles, sites, f"{wall:.3f}", f"{cpu:.3f}", f"{rate:.0f}")
            rows.append((*row, f"{theirs:.2f}", f"{theirs / cpu:.0f}"))
    return rows


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--ld-samples", type=int, default=2_000)
    parser.add_argument("--ld-sites", type=int, default=5_000)
    parser.add_argument("--samples", type=int, default=2_000, help="of kinship")
    parser.add_argument("--sites", type=int, default=30_000, help="of kinship")
    parser.add_argument("--profiles", type=int, default=200_000, help="of searches")
    parser.add_argument("--searches", action="store_true", help="searches alone")
    parser.add_argument("--repeats", type=int, default=5)
    quick = {"ld_samples": 300, "ld_sites": 400, "samples": 200, "sites": 3_000, "repeats": 1}
    options = commandline.parse(parser, **quick, profiles=2_000)
    backend = CpuBackend(CPUS)
    print(backend.describe())
    header = ("search", "profiles", "sites", "s", "CPU-s", "10^9 genotype pairs/CPU-s")
    print_table(
        f"the best {TOP} of {SEARCH_QUERIES} queries",
        (*header, "NumPy CPU-s", "times as fast"),
        searches(options.profiles, backend, options.repeats),
    )
    if options.searches:
        return
    plink19 = commandline.find_peer("plink1.9")
    plink2 = commandline.find_peer("plink2")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        threads = ("--threads", CPUS)
        for missing in (0.0, 0.01):
            prefix = Path(folder) / f"ld{missing:.0%}".rstrip("%")
            write_random_plink(prefix, options.ld_samples, options.ld_sites)
            if missing:
                add_missing(prefix, missing)
            plink = (plink19, "--bfile", prefix, *threads, "--out", Path(folder) / "p", "--r2")
            wide = (*plink, "--ld-window", options.ld_sites + 1, "--ld-window-kb", 10**6)
            name = (
                f"LD {options.ld_sites} sites x {options.ld_samples} samples, {missing:.0%} missing"
            )
            for words, ours, command in (
                (
                    f"pairs with r2 >= {MIN_R2} (--r2)",
                    ld_pairs,
                    (*wide, "--ld-window-r2", MIN_R2),
                ),
                ("matrix (--r2 square bin)", ld_matrix, (*plink, "square", "bin")),
            ):
                rows.append(
                    compare(
                        f"{name}, {words}",
                        partial(ours, prefix, backend),
                        partial(run, *command) if plink19 else None,
                        options.repeats,
                    )
                )
        for missing in (0.0, 0.01):
            prefix = Path(folder) / f"king{missing:.0%}".rstrip("%")
            write_random_plink(prefix, options.samples, options.sites)
            if missing:
                add_missing(prefix, missing)
            king = (plink2, "--bfile", prefix, *threads, "--out", Path(folder) / "k")
            table = ("--make-king-table", "--king-table-filter", MIN_KINSHIP)
            name = (
                f"kinship {options.samples} samples x {options.sites} sites, {missing:.0%} missing"
            )
            for words, form in (("table", table), ("matrix", ("--make-king", "square", "bin"))):
                rows.append(
                    compare(
                        f"{name} ({words})",
                        partial(kinship_pairs, prefix, backend),
                        partial(run, *king, *form) if plink2 else None,
                        options.repeats,
                    )
                )
    print_table(
        "from the .bed, in process (kernels compiled) against a PLINK process",
        ("case", "s", "PLINK s", "times as fast"),
        rows,
    )


if __name__ == "__main__":
    main()
