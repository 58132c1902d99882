"""Simulate a large study on a cluster: jobs, planning time, hours, bytes, limits.

python tests/bench/bench_scaling.py [--cohorts 100] [--samples 10000] [--sites 10000000]
                                    [--gpus 32] [--cores 2048] [--listed 10000] [--quick]

Writes a study of that many cohorts whose VCFs hold one site, and times `snakemake -n` on it (CPU
time beside wall time, because machines are shared). The simulation takes Snakemake's jobs and their
order, gives each job the time at full size that follows from measured rates, and runs them on a
cluster with that many GPUs and cores, in the order in which they are ready. `--listed` is the
number of samples per cohort in the sheet.
"""

from __future__ import annotations

import heapq
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import commandline
import numpy as np
from timing import print_table

from popdesic.core.limits import DENSE_LIMIT
from popdesic.core.places import HOME
from popdesic.distance.rows import study_rows
from popdesic.study.configuration import fill_config
from popdesic.study.disk import StudySizes, forecast_disk
from popdesic.study.forecast import (
    READ_RATE,
    START_SECONDS,
    Job,
    Sizes,
    bytes_read,
    expected_seconds,
    planned_jobs,
    slurm_profile,
    submissions,
)

ROOT = Path(__file__).resolve().parents[2]
#: StudySizes per second that one job of a CPU rule processes, approximately.
GENOTYPE_RATES = {"ingest_cohort": 2e8, "encode_cohort": 2e9}
#: Pairs per second of CPU rules that read or write matrices of all pairs, where there are any.
PAIR_RATES = {"join_rows": 1e8, "compute_pcoa": 1e7, "compute_umap": 1e7}
#: Rules whose end is told, where the study has them.
TOLD = ("measure_row", "join_rows")
TOLD += ("close_paths", "define_axes", "compute_pca", "compute_umap")


def write_study(folder: Path, cohorts: int, samples: int, *, sparse: bool) -> None:
    """Write sheets of that many cohorts and samples, and VCFs of one site.

    `sparse`: whether the study at its full size has more samples than `distance.dense_limit`.
    """
    (folder / "config").mkdir(parents=True)
    (folder / "data").mkdir()
    head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
    sheet, rows = ["cohort\tgenotypes\tfounder"], ["sample\tcohort\tpopulation\tsex"]
    for c in range(cohorts):
        name = f"c{c:03d}"
        names = [f"{name}.{k}" for k in range(samples)]
        sheet.append(f"{name}\tdata/{name}.vcf\t{'yes' if c < cohorts // 2 else 'no'}")
        rows += [f"{sample}\t{name}\tP{k % 5}\t{'MF'[k % 2]}" for k, sample in enumerate(names)]
        site = "1\t100\trs1\tA\tC\t.\tPASS\t.\tGT" + "\t0/1" * samples
        text = "\n".join(["##fileformat=VCFv4.2", head + "\t".join(names), site])
        (folder / f"data/{name}.vcf").write_text(text + "\n")
    (folder / "config/cohorts.tsv").write_text("\n".join(sheet) + "\n")
    (folder / "config/samples.tsv").write_text("\n".join(rows) + "\n")
    limit = 2 if sparse else cohorts * samples
    text = f"distance: {{dense_limit: {limit}}}\n"
    text += "geodesic: {alpha: [2], space: [genotypes]}\n"
    (folder / "config/config.yaml").write_text(text)


def time_planning(folder: Path) -> tuple[float, float, float]:
    """Wall seconds until `snakemake -n` has its DAG and until it ends, and CPU seconds."""
    words = [sys.executable, "-m", "snakemake", "-n", "--cores", "1000"]
    words += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    planned = 0.0
    with subprocess.Popen(words, cwd=folder, **pipes) as process:
        for line in process.stdout:
            if line.startswith("Job stats:") and not planned:  # from here on it prints the jobs
                planned = time.perf_counter() - start
    assert process.returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return planned, time.perf_counter() - start, cpu


def seconds_at_size(job: Job, sizes: Sizes) -> float:
    """Time of a job at full size; `expected_seconds` if it runs on a GPU."""
    if rate := GENOTYPE_RATES.get(job.rule):
        computing = sizes.samples[job.wildcards["cohort"]] * sizes.n_sites / rate
    elif not sizes.sparse and (rate := PAIR_RATES.get(job.rule)):
        computing = sizes.n_samples**2 / rate
    else:
        return expected_seconds(job, sizes)
    return START_SECONDS + max(computing, bytes_read(job, sizes) / READ_RATE)


def simulate(jobs: list[Job], seconds: list[float], gpus: int, cores: int) -> dict[str, float]:
    """Seconds until each rule is done; jobs run in the order in which they are ready."""
    waits = [len(job.after) for job in jobs]
    follow = defaultdict(list)
    for place, job in enumerate(jobs):
        for other in job.after:
            follow[other].append(place)
    # One queue for jobs that need a GPU and one for the rest; the first of each starts or waits.
    ready: tuple[list[int], list[int]] = ([], [])
    for place, count in enumerate(waits):
        if not count:
            heapq.heappush(ready[jobs[place].gpu > 0], place)
    running: list[tuple[float, int]] = []
    ends: dict[str, float] = {}
    clock, free_gpus, free_cores = 0.0, gpus, cores
    while any(ready) or running:
        for queue in ready:
            while queue:
                job = jobs[queue[0]]
                threads = min(job.threads, cores)
                if job.gpu > free_gpus or threads > free_cores:
                    break
                place = heapq.heappop(queue)
                free_gpus, free_cores = free_gpus - job.gpu, free_cores - threads
                heapq.heappush(running, (clock + seconds[place], place))
        clock, place = heapq.heappop(running)
        ends[jobs[place].rule] = clock
        free_gpus += jobs[place].gpu
        free_cores += min(jobs[place].threads, cores)
        for other in follow[place]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready[jobs[other].gpu > 0], other)
    return ends


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--sites", type=int, default=10_000_000)
    parser.add_argument("--gpus", type=int, default=32)
    parser.add_argument("--cores", type=int, default=2048)
    parser.add_argument("--listed", type=int, default=10_000)
    parser.add_argument("--no-time", action="store_true", help="leave `snakemake -n` out")
    options = commandline.parse(parser, cohorts=4, listed=5)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "study"
        sparse = options.cohorts * options.samples > DENSE_LIMIT
        write_study(folder, options.cohorts, options.listed, sparse=sparse)
        if not options.no_time:
            planned, wall, cpu = time_planning(folder)
            print(
                f"snakemake -n: DAG after {planned:.0f} s, all jobs printed after {wall:.0f} s, "
                f"{cpu:.0f} s CPU (load of the machine {os.getloadavg()[0]:.0f})"
            )
        jobs = planned_jobs(folder)
    cohorts = {f"c{c:03d}": options.samples for c in range(options.cohorts)}
    rows = study_rows(Path("a new study"), list(cohorts), cohorts)
    by_row = {stage: found.by_row for stage, found in rows.items()}
    founders = tuple(cohorts)[: options.cohorts // 2]
    about = {"sparse": sparse, "compared": True, "founders": founders}
    sizes = Sizes(cohorts, options.sites, rows=by_row, **about)
    seconds = [seconds_at_size(job, sizes) for job in jobs]
    rows: dict[str, list[float]] = {}
    for job, took in zip(jobs, seconds, strict=True):
        if job.outputs:
            row = rows.setdefault(job.rule, [0, 0, 0, 0])
            for i, value in enumerate((1, took * job.gpu, took, bytes_read(job, sizes))):
                row[i] += value
    print_table(
        f"{options.cohorts} cohorts x {options.samples} samples x {options.sites} sites",
        ("rule", "jobs", "GPU-hours", "job-hours", "TB read"),
        [
            (rule, int(row[0]), *(f"{v:.3g}" for v in np.array(row[1:]) / [3600, 3600, 1e12]))
            for rule, row in sorted(rows.items(), key=lambda item: -item[1][2])
        ],
    )
    genotypes = StudySizes(cohorts, dict.fromkeys(cohorts, options.sites), options.sites)
    disk = forecast_disk(fill_config({}), genotypes, sparse=sparse)
    print(f"results of all stages: {sum(disk.values()) / 1e12:.3g} TB")
    real = [job for job in jobs if job.outputs]
    ends = simulate(jobs, seconds, options.gpus, options.cores)
    profile = slurm_profile(Path(), str(HOME / "slurm"))
    print(f"jobs {len(real)}, on Slurm {submissions(real, profile)}")
    for rule in TOLD:
        if rule not in ends:
            continue
        print(
            f"{options.gpus} GPUs, {options.cores} cores: {rule} done after "
            f"{ends[rule] / 3600:.1f} h"
        )


if __name__ == "__main__":
    main()
