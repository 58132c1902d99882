"""A whole study, from PLINK files to the report: what each stage costs, and PLINK beside it.

python tests/bench/bench_study.py [--samples 4000] [--sites 300000] [--cohorts 4] [--device cpu]
                                  [--cores K] [--example | --genomes LENGTH [--min-maf SHARE]]
                                  [--folder DIR] [--warm | --set-up]
                                  [--dense-limit N] [--limit SECONDS] [--resume]
                                  [--no-peers] [--quick] [TARGET...]

Draws a study with planted structure (`drawn_study.py`), or whole genomes with their rare variants
in VCF files (`drawn_genomes.py`), or copies the embedded example, into a fresh folder and runs the
whole workflow on it as a user would. Compiled code (numba, CuPy), tuning and fonts are cached in a
folder that is empty at first; with `--set-up` `popdesic tune` fills it
before the run, as `make` does; with `--warm` the user's own caches are used. `--dense-limit` runs a
small study without matrices of all pairs, as those above `distance.dense_limit` run. With `--limit`
the run is interrupted after so many seconds; `--resume` continues it in its `--folder`, and the
table then counts what both runs did. One row a rule:

jobs      number of jobs
wall      sum of their wall times, seconds (Snakemake's benchmark files)
CPU       sum of their CPU times, user and system (the jobs' logs)
start     the part of it before a job's first step: the interpreter, Snakemake's preamble, imports
read, wrote   MB from and to the disk; `-` for jobs too short for Snakemake to see
peak      largest memory of a job, MB
busy      share of the time that the jobs held a GPU in which it worked (nvidia-smi, `-` without)

Below: the whole run's wall and CPU time, Snakemake's own share, files and MB of results, and when
PCA, first map and report were there. Many small cohorts, the way data arrive, are
`--samples 1000 --sites 20000 --cohorts 200`. PLINK's commands on the same people and sites follow.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import commandline
from drawn_genomes import write_genomes
from drawn_study import write_study
from study_costs import Row, add, busy_share, read_rows, utilisation
from timing import print_table

ROOT = Path(__file__).resolve().parents[2]
HEADER = ("rule", "jobs", "wall", "CPU", "start", "start %", "read", "wrote", "peak", "busy")
#: When these first exist is printed.
MILESTONES = {
    "PCA": "embedding/coordinates/pca.tsv",
    "first map": "embedding/coordinates/umap*.tsv",
    "report": "report/report.html",
}
#: PLINK's commands: program, package, options. `OUT` and `THREADS` are filled in.
PEERS = [
    ("plink1.9", "plink1.9", "--distance --allow-no-sex"),
    ("plink2", "plink2", "--make-king square"),
    ("plink2", "plink2", "--pca approx 20 --bad-freqs"),
    ("plink2", "plink2", "--indep-pairwise 50 5 0.2 --bad-ld"),
    ("plink2", "plink2", "--freq --hardy --missing"),
]


def children_cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def run(
    words: list[str], folder: Path, log: Path, limit: float | None = None, **variables: str
) -> tuple[int, float, float]:
    """Run a command; return its exit status, wall seconds and CPU seconds.

    After `limit` seconds it and its jobs are told to end, and waited for.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, start = children_cpu(), time.perf_counter()
    with open(log, "w") as said:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=kept | variables,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=limit is not None,  # jobs are in one group with Snakemake
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # SIGINT may be ignored (nohup, &)
            process.wait()
    return process.returncode, time.perf_counter() - start, children_cpu() - before


def caches(folder: Path) -> dict[str, str]:
    """Variables that move all caches of compiled code, tuning and fonts into a folder."""
    places = {"NUMBA_CACHE_DIR": "numba", "CUPY_CACHE_DIR": "cupy", "XDG_CACHE_HOME": "cache"}
    return {name: str(folder / place) for name, place in places.items()}


def compiled_in(folder: Path) -> set[Path]:
    """Files of compiled code in numba's cache."""
    return set((folder / "numba").rglob("*.nbc"))


def cell(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def print_rows(rows: dict[str, Row], samples: list[tuple[float, float]]) -> None:
    total = Row()
    lines = []
    for rule, row in [*sorted(rows.items(), key=lambda item: -item[1].cpu), ("all jobs", total)]:
        if row is not total:
            for name in ("jobs", "wall", "cpu", "start", "leases"):
                setattr(total, name, getattr(total, name) + getattr(row, name))
            for name in ("read", "wrote"):
                setattr(total, name, add(getattr(total, name), getattr(row, name)))
            total.peak = max(filter(None, (total.peak, row.peak)), default=None)
        share = f"{100 * row.start / row.cpu:.0f}" if row.cpu else "-"
        busy = busy_share(row.leases, samples)
        shown = (row.wall, row.cpu, row.start)
        lines.append(
            (
                *(rule, row.jobs, *map(cell, shown), share),
                *map(cell, (row.read, row.wrote)),
                *(cell(row.peak, 0), "-" if busy is None else f"{busy:.0%}"),
            )
        )
    print_table("seconds and MB by rule", HEADER, lines)


def print_timeline(rows: dict[str, Row], start: float) -> None:
    """Each job by its start: what ran side by side, and what the next ones waited for."""
    jobs = sorted((a, b, rule) for rule, row in rows.items() for a, b in row.spans)
    lines = [(f"{a - start:.1f}", f"{b - start:.1f}", f"{b - a:.1f}", rule) for a, b, rule in jobs]
    print_table("seconds since the start of the run", ("start", "end", "wall", "rule"), lines)


def first_time(study: Path, pattern: str, start: float) -> float | None:
    """Seconds from the start of the run until the first of these results was there."""
    ends = [path.stat().st_mtime for path in (study / "results").glob(pattern)]
    return min(ends) - start if ends else None


def run_study(study: Path, options, variables: dict[str, str]) -> None:
    """Run the workflow on a study and print what it cost."""
    words = [sys.executable, "-m", "snakemake", *options.targets]
    words += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(study)]
    words += ["--cores", str(options.cores)]
    start, log = time.time(), study / "run.log"
    if options.resume:
        run([*words, "--unlock"], study, log, **variables)
        words += ["--rerun-incomplete"]
    with utilisation() as samples:
        status, wall, cpu = run(words, study, log, options.limit, **variables)
    rows = read_rows(study)
    print_rows(rows, samples)
    if options.timeline:
        print_timeline(rows, start)
    if status:
        said = log.read_text()[-3000:]
        raise SystemExit(f"The run stopped after {wall:.1f} s (exit status {status}):\n{said}")
    own = cpu - sum(row.cpu for row in rows.values())
    print(f"whole run: {wall:.1f} s, {cpu:.1f} CPU-s; of them Snakemake itself: {own:.1f} CPU-s")
    print(results_said(study / "results"))
    for name, pattern in MILESTONES.items():
        if (seconds := first_time(study, pattern, start)) is not None:
            print(f"{name} after {seconds:.1f} s")


def results_said(results: Path) -> str:
    """Number of files and MB of results, hidden ones too, and of the folders with the most."""
    sizes: Counter[str] = Counter()
    files = 0
    for path in results.rglob("*"):
        if path.is_file():
            files += 1
            sizes[path.relative_to(results).parts[0]] += path.stat().st_size
    largest = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sizes.most_common(5))
    return f"results: {files} files, {sum(sizes.values()) / 1e6:.1f} MB ({largest})"


def run_peers(prefix: Path, cores: int) -> None:
    """Time PLINK's commands on all people."""
    lines = []
    for program, package, text in PEERS:
        if not commandline.find_peer(program, package):
            continue
        out = prefix.with_name("peer")
        words = [program, "--bfile", str(prefix), *text.split(), "--threads", str(cores)]
        log = prefix.with_name("peer.txt")
        status, wall, cpu = run([*words, "--out", str(out)], prefix.parent, log)
        if status:
            error = re.search(r"^Error: (.*)", log.read_text(), re.M)
            print(f"{program} {text} stopped: {error[1] if error else f'exit status {status}'}")
        else:
            lines.append((f"{program} {text}", f"{wall:.1f}", f"{cpu:.1f}"))
        for path in prefix.parent.glob("peer.*"):
            path.unlink()
    if lines:
        print_table("PLINK on the same people and sites", ("command", "wall", "CPU"), lines)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("targets", nargs="*", help="stages or files (default: everything)")
    parser.add_argument("--samples", type=int, default=4_000)
    parser.add_argument("--sites", type=int, default=300_000)
    parser.add_argument("--cohorts", type=int, default=4)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--example", action="store_true", help="the embedded example")
    parser.add_argument("--genomes", type=int, metavar="LENGTH", help="base pairs of whole genomes")
    parser.add_argument("--min-maf", type=float, help="panel.min_maf of whole genomes")
    parser.add_argument("--folder", type=Path, help="where the study is kept (default: deleted)")
    parser.add_argument("--warm", action="store_true", help="use the user's caches")
    parser.add_argument("--set-up", action="store_true", help="fill the caches before the run")
    parser.add_argument("--no-peers", action="store_true", help="leave PLINK's commands out")
    parser.add_argument("--timeline", action="store_true", help="when each job ran")
    parser.add_argument("--dense-limit", type=int, help="distance.dense_limit of the study")
    parser.add_argument("--limit", type=float, help="seconds after which the run is interrupted")
    parser.add_argument("--resume", action="store_true", help="continue the run of --folder")
    few = ["distance", "results/embedding/coordinates/pca.tsv"]
    sizes = {"samples": 40, "sites": 300, "cohorts": 2}
    options = commandline.parse(parser, **sizes, warm=True, targets=few)
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = options.folder or Path(temporary)
        study, whole = folder / "study", None
        if study.exists() and not options.resume:
            raise SystemExit(f"Error: {study} exists already; remove it or name another --folder.")
        start = time.perf_counter()
        if options.resume:
            if not study.exists():
                raise SystemExit(f"Error: there is no {study} to continue; leave out --resume.")
        elif options.example:
            for name in ("config", "resources/example"):
                shutil.copytree(ROOT / name, study / name)
        elif options.genomes:
            n_sites = write_genomes(
                study,
                *(options.samples, options.genomes, options.cohorts),
                device=options.device,
                min_maf=options.min_maf,
            )
            print(
                f"{options.samples} people x {n_sites} sites of whole genomes in "
                f"{options.cohorts} cohorts; drawn in {time.perf_counter() - start:.1f} s",
                flush=True,
            )
        else:
            sizes = (options.samples, options.sites, options.cohorts)
            whole = write_study(
                study,
                *sizes,
                device=options.device,
                threads=options.cores,
                together=not options.no_peers,
            )
            print(
                "{} people x {} sites in {} cohorts, device: {}; drawn in {:.1f} s".format(
                    *sizes, options.device, time.perf_counter() - start
                ),
                flush=True,
            )
        if options.dense_limit is not None and not options.resume:
            with open(study / "config/config.yaml", "a") as file:
                file.write(f"distance: {{dense_limit: {options.dense_limit}}}\n")
        variables = {} if options.warm else caches(Path(temporary))
        if options.set_up:
            words = [sys.executable, "-m", "popdesic", "tune"]
            status, wall, cpu = run(words, folder, folder / "set-up.log", **variables)
            said = (folder / "set-up.log").read_text().strip()
            print(f"set-up: {wall:.1f} s, {cpu:.1f} CPU-s, exit status {status}: {said[-200:]}")
        before = compiled_in(Path(temporary))
        run_study(study, options, variables)
        if variables:
            new = Counter(path.parent.name for path in compiled_in(Path(temporary)) - before)
            said = ", ".join(f"{name.split('_')[0]} {count}" for name, count in new.items())
            print(f"functions that jobs compiled, by folder: {said or 'none'}")
        if whole and not options.no_peers:
            run_peers(whole, options.cores)


if __name__ == "__main__":
    main()
