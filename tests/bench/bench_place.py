"""One genome against everyone: distances and kinship, beside only reading the planes.

    python tests/bench/bench_place.py [--samples 20000] [--sites 100000] [--threads 2]
        [--folder DIR] [--complete] [--whole [PEOPLE]] [--quick]

Writes planes of random people to DIR (a temporary folder by default), without and with missing
genotypes. Cold: the file was dropped from the page cache before (posix_fadvise); warm: it is there.
"read" reads the file in blocks of 64 MiB on one thread and does nothing with it. CPU seconds hardly
depend on what else runs. The last columns are the same by bytes for a million people at 100 000
sites; a machine keeps so many warm only if its memory holds them. The last table is the person's
place on 20 components, by the weights of sites that are stored with axes of many founders: it does
not depend on their number. Decoding the genome and finding its place on maps is not part of it.

With `--whole` the command `popdesic place` itself, on a finished study of so many people (a million
by default; `grown_study.py`) at 5 000 sites, or as many as `--sites` says. The planes are a part of
what it takes that grows with the sites; everything else is there at any number of sites.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from grown_study import write_grown_study
from timing import best_of, print_table

from popdesic.components.loading_scores import SIGNS
from popdesic.core.files import write_json
from popdesic.core.tables import read_table
from popdesic.engine.select import cpu_backend
from popdesic.engine.terms import Planes
from popdesic.io.genotypes import BED_MAGIC
from popdesic.maps.place_one import place_people
from popdesic.relatives.against_all import CHUNK_BYTES, compare_with_all

GOAL_SAMPLES, GOAL_SITES = 1_000_000, 100_000
#: Sites of a whole study.
WHOLE_SITES = 5_000
#: Samples that are drawn at a time.
DRAWN = 1000


def write_planes(folder: Path, n: int, n_sites: int, masked: bool) -> Planes:
    """Write `planes.npy` and `planes.json` of random people; return the planes of one more."""
    rng = np.random.default_rng(1)
    n_words = -(-n_sites // 512) * 8
    shape = (n, 3 if masked else 2, n_words)
    folder.mkdir(parents=True)
    last = np.zeros(n_words, np.uint64)
    last[: n_sites // 64] = ~np.uint64(0)
    if n_sites % 64:
        last[n_sites // 64] = (1 << n_sites % 64) - 1

    def draw(count: int) -> np.ndarray:
        one, other = rng.integers(0, 2**64, (2, count, n_words), np.uint64)
        planes = [one | other, one & other]
        if masked:
            planes.append(
                ~np.bitwise_and.reduce(rng.integers(0, 2**64, (4, count, n_words), np.uint64))
            )
        return np.stack(planes, axis=1) & last

    words = np.lib.format.open_memmap(folder / "planes.npy", "w+", np.dtype("<u8"), shape)
    for first in range(0, n, DRAWN):
        block = draw(min(DRAWN, n - first))
        words[first : first + len(block)] = block
    words.flush()
    names = [f"{folder.name}{k}" for k in range(n)]
    about = {"cohort": folder.name, "panel": "bench", "n_sites": n_sites, "samples": names}
    write_json(folder / "planes.json", about)
    return Planes(draw(1), n_sites)


def read(path: Path) -> None:
    """Read a file and do nothing with it."""
    block = bytearray(CHUNK_BYTES)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(block):
            pass


def drop(path: Path) -> None:
    """Drop a file from the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bench(folder: Path, options, *, masked: bool) -> None:
    query = write_planes(folder, options.samples, options.sites, masked)
    path, backend = folder / "planes.npy", cpu_backend(options.threads)
    limits = {"metric": "euclidean", "missing": "pairwise", "min_called": 1}

    def compare() -> None:
        compare_with_all(query, [folder], backend, **limits)

    n_bytes = path.stat().st_size
    more = GOAL_SAMPLES * query.words.nbytes * GOAL_SITES / options.sites / n_bytes
    rows, repeats = [], 1 if options.quick else 3
    compare()  # kernels are compiled
    for state in ("cold", "warm"):
        for name, work in (("read", lambda: read(path)), ("compare", compare)):
            times = []
            for _ in range(repeats):
                if state == "cold":
                    drop(path)
                times.append(best_of(1, work))
            seconds, cpu = min(times), time.process_time()
            work()
            cpu = time.process_time() - cpu
            row = [f"{seconds:.2f}", f"{n_bytes / seconds / 1e9:.2f}", f"{cpu:.2f}"]
            rows.append((f"{name}, {state}", *row, f"{seconds * more:.1f}", f"{cpu * more:.1f}"))
    title = f"{options.samples} people, {options.sites} sites, {n_bytes / 1e9:.2f} GB"
    goal = f"{GOAL_SAMPLES} x {GOAL_SITES}, {more * n_bytes / 1e9:.1f} GB: s"
    missing = "6 % missing" if masked else "none missing"
    print_table(f"{title}, {missing}", ("", "s", "GB/s", "CPU-s", goal, "CPU-s"), rows)


def write_axes(folder: Path, n: int, n_sites: int) -> tuple[Path, Path]:
    """Genotypes of a random person, a stem, and axes of n founders, without meaning, an .npz."""
    rng = np.random.default_rng(1)
    stem, axes = folder / "one", folder / "axes.npz"
    stem.with_suffix(".bed").write_bytes(
        BED_MAGIC + rng.choice(np.array([0, 2, 3], np.uint8), n_sites).tobytes()
    )
    stem.with_suffix(".fam").write_text("0 one 0 0 0 -9\n")
    stem.with_suffix(".bim").write_text("".join(f"1 s{i} 0 {i + 1} A G\n" for i in range(n_sites)))
    np.savez(
        axes,
        values=np.linspace(100, 3, 30),
        vectors=rng.normal(size=(n, 30)) / np.sqrt(n),
        trace=np.array(float(n)),
        k=np.array(20),
        samples=np.array([f"everyone{i}" for i in range(n)]),
        sites=np.arange(n_sites),
        af=np.full(n_sites, 0.5),
        weights=rng.normal(size=(n_sites, 30 + SIGNS)).astype(np.float32),
    )
    return stem, axes


def bench_axes(folder: Path, options) -> None:
    one, axes = write_axes(folder, options.samples, options.sites)
    rows, backend = [], cpu_backend(options.threads)

    def place() -> None:
        place_people([], one, axes, backend)

    place()  # kernels are compiled
    for state in ("cold", "warm"):
        if state == "cold":
            drop(axes)
        cpu = time.process_time()
        seconds = best_of(1, place)
        cpu = time.process_time() - cpu
        rows.append((state, f"{seconds:.3f}", f"{cpu:.3f}"))
    title = f"place on 20 components of {options.samples} people, {options.sites} sites"
    print_table(title, ("", "s", "CPU-s"), rows)


def bench_whole(folder: Path, options) -> None:
    """`popdesic place` on a finished study."""
    study, threads = folder / "study", options.threads
    start = time.perf_counter()
    person = write_grown_study(study, options.whole, options.sites or WHOLE_SITES, threads)
    n = len(read_table(study / "results/distance/samples.tsv"))
    print(f"study of {n} people: {time.perf_counter() - start:.0f} s")
    words = [sys.executable, "-m", "popdesic", "place", str(person), "--study", str(study)]
    words += ["--out", str(folder / "place")]
    rows = []
    for state in ("cold", "warm", "warm"):
        if state == "cold":
            for path in filter(Path.is_file, study.rglob("*")):
                drop(path)
        before = os.times()
        start = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        cpu = after[2] + after[3] - before[2] - before[3]
        rows.append((state, f"{time.perf_counter() - start:.2f}", f"{cpu:.2f}"))
    print_table(f"popdesic place, {n} people", ("", "s", "CPU-s"), rows)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--sites", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--complete", action="store_true", help="leave missing genotypes out")
    parser.add_argument(
        "--whole", type=int, nargs="?", const=GOAL_SAMPLES, metavar="PEOPLE", help="the command"
    )
    options = commandline.parse(parser, samples=300, sites=3000)
    print(cpu_backend(options.threads).describe())
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        if options.whole:
            bench_whole(Path(scratch), options)
            return
        options.sites = options.sites or GOAL_SITES
        for masked in (False,) if options.complete else (False, True):
            bench(Path(scratch) / ("masked" if masked else "complete"), options, masked=masked)
        bench_axes(Path(scratch), options)


if __name__ == "__main__":
    main()
