"""Seconds and memory of the planes that scans read, and of a unit of a scan, at any size.

    python tests/bench/bench_scan_planes.py [--sizes 4000x100000 20000x50000] [--quick]
    python tests/bench/bench_scan_planes.py --sizes 500000x5000 --order 2 --unit 1000/2000

Sites x samples in two cohorts, half of them cases, in no order; minor alleles of 5 to 50 %, one
genotype in 200 missing at a tenth of the sites. Planes are made of .bed files and scanned from
their own file, on the CPU, each in a process of its own. The peak is what that process held at
most, above its start, with the pages of mapped files. A unit is a share of the whole scan by its
work; its rate is that of its log.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
import pandas as pd

#: Sites that are drawn at once; a study repeats the first of them, shifted among the samples.
DRAWN = 512


def draw_study(folder: Path, n_sites: int, n_samples: int) -> list[Path]:
    """Two cohorts as .bed .bim .fam; the stems."""
    rng, stems = np.random.default_rng(1), []
    sizes = [n_samples // 3, n_samples - n_samples // 3]
    frequency = rng.uniform(0.05, 0.5, DRAWN)
    missing = rng.random(DRAWN) < 0.1
    for number, n in enumerate(sizes):
        stem = folder / f"cohort{number}"
        stems.append(stem)
        codes = np.array([3, 2, 0], np.uint8)[rng.binomial(2, frequency[:, None], (DRAWN, n))]
        codes[missing[:, None] & (rng.random((DRAWN, n)) < 0.005)] = 1
        codes = np.pad(codes, ((0, 0), (0, -n % 4)))
        rows = codes[:, ::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4 | codes[:, 3::4] << 6
        with open(f"{stem}.bed", "wb") as bed:
            bed.write(b"\x6c\x1b\x01")
            for first in range(0, n_sites, DRAWN):
                part = rows[: n_sites - first]
                shifted = np.roll(part[:, :-1], first // DRAWN, axis=1)
                bed.write(np.concatenate([shifted, part[:, -1:]], axis=1).tobytes())
        lines = (f"{1 + k % 22}\ts{k}\t0\t{k + 1}\tA\tG\n" for k in range(n_sites))
        Path(f"{stem}.bim").write_text("".join(lines))
        names = (f"0 c{number}_{k} 0 0 0 -9\n" for k in range(n))
        Path(f"{stem}.fam").write_text("".join(names))
    return stems


def build(folder: Path, options: argparse.Namespace) -> None:
    """Build the planes in this process and print seconds and memory."""
    from popdesic.epistasis.reorder import build_onehot
    from popdesic.io.bed import read_fam

    stems = [folder / "cohort0", folder / "cohort1"]
    names = [name for stem in stems for name in read_fam(stem)["sample"]]
    classes = np.random.default_rng(2).integers(0, 2, len(names))
    sheet = pd.DataFrame({"sample": names, "cohort": "c", "phenotype": classes.astype(str)})
    watch = Watch()
    started = time.perf_counter()
    counts = build_onehot(
        stems, sheet, classes, strata="none", restrict=None, least=2,
        onehot_out=folder / "out/onehot.npy", sites_out=folder / "out/sites.tsv",
        samples_out=folder / "out/samples.tsv", threads=options.threads,
    )  # fmt: skip
    took = time.perf_counter() - started
    n_bytes = (folder / "out/onehot.npy").stat().st_size
    print(
        f"{counts['sites']} sites x {len(names)} samples: {n_bytes / 1e6:.0f} MB of planes in "
        f"{took:.2f} s, peak {watch.peak('VmHWM'):.0f} MB\n    {counts['genotypes']}",
        flush=True,
    )


def scan(folder: Path, options: argparse.Namespace) -> None:
    """Scan a unit in this process and print its share of the scan, rate and memory."""
    from popdesic.engine.select import cpu_backend
    from popdesic.epistasis.scan import scan_unit
    from popdesic.epistasis.scan_sites import scanner  # noqa: F401 - not part of the time
    from popdesic.epistasis.units import read_work, unit_range

    unit, n_units = map(int, options.unit.split("/"))
    work = read_work(folder / "out", options.order, "cpu")
    first, watch = unit_range(work, unit, n_units), Watch()
    started = time.perf_counter()
    counts = scan_unit(
        folder / "out", cpu_backend(options.threads), folder / "unit.npz", order=options.order,
        unit=unit, n_units=n_units, score=options.score, top=1000, min_distance_bp=0, max_r2=1.0,
        device="cpu",
    )  # fmt: skip
    took = time.perf_counter() - started
    share = work[first.start : first.stop].sum() / work.sum()
    print(
        f"    order {options.order} by {options.score}, first sites {first.start} to {first.stop}: "
        f"{counts['combinations']:.4g} combinations, {share:.3g} of the work\n"
        f"    {counts['rate']}, {took:.2f} s with reading, peak {watch.peak('VmHWM'):.0f} MB",
        flush=True,
    )


class Watch:
    """Memory of this process from now on, by Linux."""

    def __init__(self):
        self.start = self.read("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here

    def read(self, name: str) -> float:
        """MB of a line of /proc/self/status."""
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1e3

    def peak(self, name: str) -> float:
        """MB above the start."""
        return self.read(name) - self.start


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--sizes", nargs="+", default=["4000x100000", "20000x50000"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="of a study that was drawn")
    parser.add_argument("--order", type=int, choices=[2, 3], default=2)
    parser.add_argument("--unit", default="", help="of how many, as 0/100: scan it too")
    parser.add_argument("--score", default="k2")
    parser.add_argument("--step", choices=["build", "scan"], help="of such a study")
    options = commandline.parse(parser, sizes=["300x1001"], unit="0/2")
    if options.folder:
        {"build": build, "scan": scan}[options.step](options.folder, options)
        return
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            draw_study(Path(folder), *map(int, size.split("x")))
            given = ["--folder", folder, "--threads", str(options.threads), "--unit", options.unit]
            given += ["--order", str(options.order), "--score", options.score]
            for step in ("build", "scan") if options.unit else ("build",):
                command = [sys.executable, __file__, *given, "--step", step]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
