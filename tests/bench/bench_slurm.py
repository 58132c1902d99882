"""A small study with and without Slurm: the wall times side by side.

python tests/bench/bench_slurm.py [--cores 2] [--repeats 1] [--every-job] [--quick] [TARGET...]

Starts the tests' own Slurm on this machine (slurm-wlm and munge must be installed), with one node
of so many cores. `popdesic tune` compiles what jobs need, as the set-up does. Then the embedded
example is run:

local     `popdesic run STUDY --cores K`
one job   `popdesic run STUDY --profile slurm`, which submits a small study as one Slurm job
every job `popdesic run STUDY --profile slurm --no-one-job`, only with `--every-job`: Snakemake
          submits each job of the workflow. The jobs ask for up to 16 cores, so that this Slurm is
          told that its node has 16.

Each row has the wall time, its ratio to the local run, the number of Slurm jobs, and whether the
results have the same bytes as those of the local run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commandline
from slurm.sandbox import Sandbox, missing_programs
from support.running import ROOT, contents, environment
from timing import print_table

from popdesic.core.errors import UserError

#: Cores of the node of a run with `--every-job`: those of the widest rule.
WIDEST = 16


def copy_example(folder: Path) -> Path:
    """A study with the inputs of the embedded example."""
    for name in ("config", "resources"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def run(study: Path, words: list[str], slurm: Sandbox) -> float:
    """Run `popdesic run` on a study; return its wall seconds."""
    log, start = study.with_suffix(".log"), time.perf_counter()
    command = [sys.executable, "-m", "popdesic", "run", str(study), *words]
    with open(log, "w") as out:
        done = subprocess.run(
            command, env=environment() | slurm.environment, stdout=out, stderr=out, check=False
        )
    if done.returncode:
        raise UserError(f"{' '.join(command[2:])} failed: {log.read_text()[-1000:]}")
    return time.perf_counter() - start


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--every-job", action="store_true")
    parser.add_argument("targets", nargs="*")
    options = commandline.parse(parser, targets=["qc"])
    if missing := missing_programs():
        raise UserError(f"{', '.join(missing)} not found; install slurm-wlm and munge.")
    profile = ["--profile", "slurm"]
    ways = {
        "local": (options.cores, ["--cores", str(options.cores)]),
        "one job": (options.cores, profile),
        "every job": (WIDEST, [*profile, "--no-one-job"]),
    }
    if not options.every_job:
        del ways["every job"]
    rows = []
    subprocess.run(
        [sys.executable, "-m", "popdesic", "tune"], stdout=subprocess.DEVNULL, check=True
    )
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(options.repeats):
            first: tuple[float, dict[str, str]] | None = None
            for way, (cores, words) in ways.items():
                place = Path(folder) / f"{way.replace(' ', '-')}.{repeat}"
                study = copy_example(place / "study")
                with Sandbox(place / "slurm", cpus=cores) as slurm:
                    seconds = run(study, [*options.targets, *words], slurm)
                    jobs = len(slurm.jobs()) if way != "local" else 0
                found = {
                    name: digest
                    for name, digest in contents(study).items()
                    if not name.startswith("report/")
                }
                first = first or (seconds, found)
                equal = "yes" if found == first[1] else "no"
                rows.append((way, f"{seconds:.1f}", f"{seconds / first[0]:.2f}", str(jobs), equal))
                shutil.rmtree(study)
    print_table("The example", ("run", "wall, s", "of local", "Slurm jobs", "same bytes"), rows)


if __name__ == "__main__":
    main()
