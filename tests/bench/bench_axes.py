"""The stages that define the axes of the PCA and measure LD, alone, and the seconds of their parts.

python tests/bench/bench_axes.py [--samples 4000] [--sites 300000] [--cohorts 4]
    [--device cpu|gpu] [--threads 8] [--stage axes|ld|both] [--repeats 2] [--folder F] [--functions]
    [--processes N] [--launcher mpiexec] [--quick]

Draws the study of bench_study.py as genotypes on a panel of all its sites, and runs each stage as
its rule does. The first run of a process loads code and starts the device. Prints wall and CPU
seconds, the parts, and a digest of the results, which must be the same everywhere. --functions
prints where the calling thread spends its time. With --processes, so many of MPI, each
with --threads, share the stage of the axes, and the memory of each is printed.
"""

from __future__ import annotations

import cProfile
import functools
import hashlib
import logging
import pstats
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from drawn_study import draw_people, write_plink

from popdesic.cohort.long_range_ld import regions_of
from popdesic.components.axes_together import define_together
from popdesic.components.define_axes import define_axes
from popdesic.core.log import cpu_seconds
from popdesic.engine.select import select_backend
from popdesic.io.bed import read_fam
from popdesic.relatives.ld_scan import LdOptions, measure_ld
from popdesic.relatives.options import ld_options
from popdesic.study.configuration import fill_config

UNRELATED, SHEET = "unrelated.tsv", "samples.tsv"


def draw(folder: Path, options) -> tuple[list[Path], Path]:
    """Stems of the cohorts' genotypes, and the panel; beside it, who is unrelated."""
    panel = folder / "sites.tsv"
    prefixes = [folder / f"c{number:02d}" for number in range(options.cohorts)]
    if panel.exists():
        return prefixes, panel
    people = draw_people(options.samples, options.cohorts, np.random.default_rng([1]))
    write_plink(people, options.sites, prefixes, None, 1, options.threads)
    related = {*people.children[:, 0].tolist(), *people.duplicates[:, 0].tolist()}
    with open(folder / UNRELATED, "w") as file:
        file.write("sample\tunrelated\n")
        for place, name in enumerate(people.names):
            file.write(f"{name}\t{'no' if place in related else 'yes'}\n")
    with open(folder / SHEET, "w") as file:
        file.write("sample\tcohort\tpopulation\n")
        for prefix in prefixes:
            for name in read_fam(prefix)["sample"]:
                file.write(f"{name}\t{prefix.name}\t{prefix.name}\n")
    with open(f"{prefixes[0]}.bim") as sites, open(panel, "w") as file:
        file.write("# panel drawn, \n")
        file.write("\t".join(("chrom", "pos", "id", "ref", "alt", "af", "mode", "n_called")) + "\n")
        for line in sites:
            chrom, name, _, pos, alt, ref = line.split()
            file.write(f"{chrom}\t{pos}\t{name}\t{ref}\t{alt}\t0.3\t0\t1\n")
    return prefixes, panel


def run_axes(folder: Path, prefixes: list[Path], panel: Path, backend, options) -> list[Path]:
    out = [folder / name for name in ("axes.npz", "axes.json", "loadings.tsv")]
    arguments = {
        "prefixes": prefixes,
        "panel": panel,
        "unrelated": panel.parent / UNRELATED,
        "components": "auto",
        "pcs": "auto",
        "ld_prune": settings()["embedding"]["ld_prune"],
        "regions": regions_of("any"),
        "out": {"axes": out[0], "about": out[1], "loadings": out[2]},
        "threads": options.threads,
    }
    if options.processes:
        define_together(options.launcher, options.processes, arguments)
    else:
        define_axes(**arguments, backend=backend)
    return out


def run_ld(folder: Path, prefixes: list[Path], panel: Path, backend, options) -> list[Path]:
    files = ("pairs.tsv.gz", "decay.tsv", "by.tsv", "region.npz", "prune.in", "prune.out")
    keys = ("pairs", "decay", "populations", "region", "kept", "removed")
    out = {key: folder / name for key, name in zip(keys, files, strict=True)}
    measure_ld(
        prefixes,
        [],
        panel,
        panel.parent / UNRELATED,
        panel.parent / SHEET,
        out,
        backend,
        LdOptions(**ld_options(settings())),
    )
    return list(out.values())


@functools.cache
def settings() -> dict:
    """Of a study whose configuration has no key."""
    return fill_config({})


STAGES = {"axes": run_axes, "ld": run_ld}


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--sites", type=int, default=300_000)
    parser.add_argument("--cohorts", type=int, default=4)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--stage", choices=(*STAGES, "both"), default="both")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the drawn genotypes are kept")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--processes", type=int, default=0, help="of MPI; 0: this one alone")
    parser.add_argument("--launcher", default="mpiexec")
    options = commandline.parse(parser, samples=1100, sites=3000, cohorts=2, threads=2, repeats=1)
    logging.basicConfig(level=logging.INFO, format="  %(message)s")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        prefixes, panel = draw(folder, options)
        settings()
        start = time.perf_counter()
        backend = select_backend(options.device, options.threads)
        print(f"{backend.name} ready after {time.perf_counter() - start:.2f} s", flush=True)
        for repeat in range(options.repeats):
            for stage in STAGES if options.stage == "both" else [options.stage]:
                profile = cProfile.Profile()
                wall, cpu = time.perf_counter(), cpu_seconds()
                if options.functions and repeat == options.repeats - 1:
                    profile.enable()
                out = STAGES[stage](Path(temporary), prefixes, panel, backend, options)
                profile.disable()
                wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
                digest = hashlib.sha256(b"".join(path.read_bytes() for path in out[:2]))
                print(f"{stage}: {wall:.2f} s, {cpu:.2f} CPU-s, {digest.hexdigest()[:16]}")
                if options.functions and repeat == options.repeats - 1:
                    pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()
