"""LD and kinship on the CPU beside PLINK, measured in the same run.

python tests/bench/bench_compare.py        LD 5 000 sites x 2 000 samples; kinship 2 000 x 30 000
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from popdesic.backend import KINSHIP
from popdesic.backend.cpu import CpuBackend
from popdesic.compare.kinship import close_pairs
from popdesic.compare.ld import correlated_pairs, founder_genotypes, r2_block, site_planes
from popdesic.encode import planes_in_memory
from popdesic.genotypes import BED_MAGIC, pack_bed
from popdesic.store import open_bed, read_fam
from timing import best_of, print_table, write_random_plink

CPUS = os.cpu_count() or 1
#: Pairs below are not written, by PLINK as by us.
MIN_R2, MIN_KINSHIP = 0.2, 0.0884


def ld_pairs(prefix: Path, backend: CpuBackend) -> tuple:
    """Pairs of all sites with r2 of at least MIN_R2, straight from a .bed file."""
    planes = site_planes(founder_genotypes([prefix]))
    ends = np.full(planes.n_samples, planes.n_samples)
    return correlated_pairs(planes, ends, backend, MIN_R2)


def ld_matrix(prefix: Path, backend: CpuBackend) -> np.ndarray:
    return r2_block(site_planes(founder_genotypes([prefix])), None, backend)


def kinship_pairs(prefix: Path, backend: CpuBackend) -> tuple:
    """Close pairs straight from a .bed file."""
    planes = planes_in_memory(open_bed(prefix), len(read_fam(prefix)), backend.threads)
    counts = dict(zip(KINSHIP.outputs, backend.bitgemm(planes, None, KINSHIP), strict=True))
    return close_pairs(counts, min_kinship=MIN_KINSHIP, min_called=1, upper=True)


def add_missing(prefix: Path, share: float) -> None:
    genotypes = founder_genotypes([prefix])
    genotypes[np.random.default_rng(2).random(genotypes.shape) < share] = -1
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())


def run(*command) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def compare(title, ours, theirs, program, repeats) -> tuple:
    """Best times, alternated so that a busy moment of the machine hits both."""
    ours()  # kernels compiled, file in the page cache
    our_times, their_times = [], []
    for _ in range(repeats):
        our_times.append(best_of(1, ours))
        if shutil.which(program):
            their_times.append(best_of(1, theirs))
    ratio = f"{min(their_times) / min(our_times):.1f}" if their_times else "-"
    peer = f"{min(their_times):.2f}" if their_times else "-"
    return title, f"{min(our_times):.2f}", peer, ratio


def main() -> None:
    backend = CpuBackend(CPUS)
    print(backend.describe())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        threads = ("--threads", CPUS)
        for missing in (0.0, 0.01):
            prefix = Path(folder) / f"ld{missing:.0%}".rstrip("%")
            write_random_plink(prefix, 2_000, 5_000)
            if missing:
                add_missing(prefix, missing)
            plink = ("plink1.9", "--bfile", prefix, *threads, "--out", Path(folder) / "p", "--r2")
            wide = (*plink, "--ld-window", 6000, "--ld-window-kb", 10**6)
            name = f"LD 5 000 sites x 2 000 samples, {missing:.0%} missing"
            rows.append(
                compare(
                    f"{name}, pairs with r2 >= {MIN_R2} (--r2)",
                    lambda p=prefix: ld_pairs(p, backend),
                    lambda c=wide: run(*c, "--ld-window-r2", MIN_R2),
                    "plink1.9",
                    5,
                )
            )
            rows.append(
                compare(
                    f"{name}, matrix (--r2 square bin)",
                    lambda p=prefix: ld_matrix(p, backend),
                    lambda c=plink: run(*c, "square", "bin"),
                    "plink1.9",
                    5,
                )
            )
        for missing in (0.0, 0.01):
            prefix = Path(folder) / f"king{missing:.0%}".rstrip("%")
            write_random_plink(prefix, 2_000, 30_000)
            if missing:
                add_missing(prefix, missing)
            king = ("plink2", "--bfile", prefix, *threads, "--out", Path(folder) / "k")
            table = ("--make-king-table", "--king-table-filter", MIN_KINSHIP)
            name = f"kinship 2 000 samples x 30 000 sites, {missing:.0%} missing"
            for words, options in (("table", table), ("matrix", ("--make-king", "square", "bin"))):
                rows.append(
                    compare(
                        f"{name} ({words})",
                        lambda p=prefix: kinship_pairs(p, backend),
                        lambda c=king, o=options: run(*c, *o),
                        "plink2",
                        5,
                    )
                )
    print_table(
        "from the .bed, in process (kernels compiled) against a PLINK process",
        ("case", "s", "PLINK s", "times as fast"),
        rows,
    )


if __name__ == "__main__":
    main()
