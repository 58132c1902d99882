"""Run a small study as one Slurm job (`popdesic run STUDY --profile slurm`).

A Slurm job of Snakemake starts Snakemake twice, and its end is noticed only when Slurm is next
asked. Where the jobs of a study take seconds, that is most of the time. So a small study is
submitted whole: one Slurm job runs Snakemake as on a machine of one's own, with the cores, the
memory and the GPU of that job.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import yaml

from ..core.errors import UserError
from ..core.limits import ONE_JOB_SAMPLES
from .resources import ONE_JOB_CORE_HOURS, START_MB, limit_minutes
from .run import (
    NO_CORES,
    find_profile,
    option_of,
    profile_file,
    require_study,
    run_study,
    snakemake_command,
)
from .slurm import QUEUE, active_jobs, call_slurm
from .snakemake_internals import Job

#: People of a study, its jobs to run, and the seconds that each is expected to take.
Expect = Callable[[Path, Sequence[str]], tuple[int, Sequence[Job], Sequence[float]]]
#: Where the output of these jobs lies in a study.
FOLDER = Path(".snakemake/one_job")
#: Most cores of such a job, and megabytes that it asks for per core.
CORES, CORE_MB = 16, 2000
#: Seconds between looks at the job's output, and between questions to Slurm whether it still runs.
LOOK_SECONDS, ASK_SECONDS = 0.5, 20.0
#: Seconds until files that another node wrote are seen here, for a job that Slurm no longer lists.
LATE_SECONDS = 10.0
#: Options of Snakemake that change neither the jobs of a run nor what they ask for.
PLAIN = {"--profile", "--cores", "-c", "--keep-going", "-k", "--rerun-incomplete", "--ri"}
#: Options of Snakemake that show something; nothing is submitted.
SHOWN = NO_CORES | {"--dry-run", "--dryrun", "-n", "--touch", "-t"}
#: Resources of a profile, and the options of sbatch that they stand for.
RESOURCES = {
    "slurm_partition": "--partition",
    "slurm_account": "--account",
    "constraint": "--constraint",
    "qos": "--qos",
    "gres": "--gres",
}
#: The same, of options of the whole profile.
OPTIONS = {"slurm-qos": "--qos", "slurm-reservation": "--reservation"}
#: What is said where a command of Slurm fails.
FAILED = "{name} failed: {reason}; correct slurm/config.yaml, or use --no-one-job."


@dataclass(frozen=True)
class Node:
    """What the largest node of a partition has, and the longest job there, in minutes."""

    cores: int = CORES
    memory: float = float("inf")
    minutes: float = float("inf")


def run_where_told(
    study: Path,
    targets: Sequence[str] = (),
    arguments: Sequence[str] = (),
    one_job: bool | None = None,
    *,
    expect: Expect,
) -> int:
    """Run a study as `run_study` does, or as one Slurm job; return the exit status.

    Parameters
    ----------
    study, targets, arguments
        Those of `run_study`.
    one_job : bool, optional
        Whether Slurm gets one job. By default it does where `arguments` name a profile of Slurm and
        no option that changes the jobs, and the study is small: at most `ONE_JOB_SAMPLES` and
        `ONE_JOB_CORE_HOURS` expected core hours.
    expect : function
        `forecast.expect`.

    Raises
    ------
    UserError
        The folder is not a study, a job of the study is still running, Slurm refuses the job or
        ends it; with `one_job`, also if there is no Slurm or no profile of it.
    """
    options = {option_of(word) for word in arguments if word.startswith("-")}
    profile = read_profile(value_of(arguments, "--profile"))
    able = profile is not None and shutil.which("sbatch") is not None
    if one_job and not able:
        raise UserError(
            "--one-job needs sbatch on PATH and a profile of Slurm (--profile slurm); run it on a "
            "login node."
        )
    unchanged = options <= PLAIN
    if not able or options & SHOWN:
        return run_study(study, targets, arguments)
    if one_job is False or not (one_job or unchanged):
        return run_study(study, targets, _within_nodes(profile, arguments))
    require_study(study)
    people, jobs, seconds = expect(study, targets)
    hours = sum(s * job.threads for s, job in zip(seconds, jobs, strict=True)) / 3600
    small = people <= ONE_JOB_SAMPLES and hours <= ONE_JOB_CORE_HOURS
    if not jobs or not (one_job or small):
        return run_study(study, targets, _within_nodes(profile, arguments, jobs))
    given = value_of(arguments, "--cores", "-c")
    cores = int(given) if given and given.isdigit() else None
    asked = ask(profile, jobs, sum(seconds) / 60, cores)
    if asked is None:
        if one_job:
            raise UserError(
                f"no node of the partition has the memory of the largest job of {study}, "
                f"{max(job.mem_mb for job in jobs) + START_MB} MB, or the profile is of several "
                "clusters; run it without --one-job."
            )
        return run_study(study, targets, _within_nodes(profile, arguments, jobs))
    number = submit(study, targets, arguments, asked)
    print(
        f"{people} samples: one Slurm job, {number}, for the whole run "
        f"({' '.join(asked)}); --no-one-job submits each job of the workflow.",
        file=sys.stderr,
        flush=True,
    )
    return follow(study, number)


def value_of(arguments: Sequence[str], *names: str) -> str | None:
    """The value of an option of a command line; None without it."""
    for k, word in enumerate(arguments):
        if option_of(word) in names:
            if "=" in word:
                return word.partition("=")[2]
            if not word.startswith("--") and len(word) > 2:
                return word[2:]
            return arguments[k + 1] if k + 1 < len(arguments) else None
    return None


def read_profile(name: str | None) -> dict | None:
    """The settings of a profile whose executor is Slurm; None of any other."""
    path = profile_file(find_profile(name)) if name else None
    if path is None:
        return None
    settings = yaml.safe_load(path.read_text("utf-8"))
    if not isinstance(settings, dict) or settings.get("executor") != "slurm":
        return None
    return settings


def _resources(profile: dict, rule: str | None) -> dict[str, str]:
    """Resources that a profile sets, for all rules and for this one."""
    found = profile.get("default-resources") or {}
    if isinstance(found, list):
        found = dict(str(word).split("=", 1) for word in found)
    of_rules = profile.get("set-resources") or {}
    own = of_rules.get(rule) or {} if isinstance(of_rules, dict) else {}
    # Snakemake evaluates texts as Python, so that texts with special characters have two quotes.
    return {name: re.sub(r"^(['\"])(.*)\1$", r"\2", str(v)) for name, v in (found | own).items()}


def ask(
    profile: dict, jobs: Sequence[Job], minutes: float, cores: int | None = None
) -> list[str] | None:
    """Options of sbatch for one job that does the work of `jobs`.

    It asks for the partition and the account of the first rule that needs a GPU, or else of all
    other rules; for as many GPUs as any job, as many cores as the widest, and for memory and time
    with a margin.

    Parameters
    ----------
    profile : dict
    jobs : sequence of Job
        At least one.
    minutes : float
        Expected minutes of all jobs, one after the other.
    cores : int, optional
        Cores, if the user sets their number.

    Returns
    -------
    list of str or None
        None if no node has the memory of the largest job, or the profile is of several clusters.
    """
    on_gpu = next((job for job in jobs if job.gpu), None)
    found = _resources(profile, on_gpu.rule if on_gpu else None)
    if {"cluster", "clusters", "slurm_cluster"} & found.keys():
        return None
    node = largest_node(found.get("slurm_partition"))
    if cores and node != Node() and cores > node.cores:
        raise UserError(
            f"--cores {cores} is more than the {node.cores} of the largest node of the partition, "
            "for which Slurm would wait in vain; lower it."
        )
    cores = cores or max(1, min(CORES, node.cores, max(job.threads for job in jobs)))
    largest = max(job.mem_mb for job in jobs)
    memory = int(min(START_MB + max(largest, CORE_MB * cores), node.memory))
    if memory < START_MB + largest:
        return None
    limit = min(limit_minutes(minutes), int(min(node.minutes, 1e9)))
    words = [f"{option}={found[name]}" for name, option in RESOURCES.items() if found.get(name)]
    words += [f"{option}={profile[name]}" for name, option in OPTIONS.items() if profile.get(name)]
    if on_gpu and not found.get("gres"):
        model = found.get("gpu_model")
        gpus = max(job.gpu for job in jobs)
        words.append(f"--gpus={model}:{gpus}" if model else f"--gpus={gpus}")
        words += ["--nodes=1"] * (gpus > 1)
    words += ["--ntasks=1", f"--cpus-per-task={cores}", f"--mem={memory}", f"--time={limit}"]
    return [*words, *shlex.split(found.get("slurm_extra", ""))]


def largest_node(partition: str | None) -> Node:
    """The node of a partition with most cores; one without limits where sinfo does not tell."""
    words = ["sinfo", "--exact", "--noheader", "--format=%c|%m|%l"]
    words += [f"--partition={partition}"] if partition else []
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        nodes = [
            Node(int(cores.strip("+ ")), float(memory.strip("+ ")), minutes_of(limit.strip()))
            for cores, memory, limit in (line.split("|") for line in done.stdout.splitlines())
        ]
    except (OSError, subprocess.CalledProcessError, ValueError):
        nodes = []
    return max(nodes, key=lambda node: (node.cores, node.memory), default=Node())


def _within_nodes(profile: dict, arguments: Sequence[str], jobs: Sequence[Job] = ()) -> list[str]:
    """Arguments of a run in which no job asks for more threads than any node has.

    Slurm would let such a job wait for ever. Threads change no result. Those of `jobs` that ask for
    more are named.
    """
    rules = profile.get("set-resources")
    asked = [_resources(profile, rule) for rule in (None, *(rules or {}))]
    of_clusters = any({"cluster", "clusters", "slurm_cluster"} & found.keys() for found in asked)
    given = "--max-threads" in map(option_of, arguments) or "max-threads" in profile
    if given or of_clusters:
        return list(arguments)
    nodes = [largest_node(name) for name in {found.get("slurm_partition") for found in asked}]
    if Node() in nodes:  # sinfo does not tell
        return list(arguments)
    cores = max(node.cores for node in nodes)
    wide = {job.rule: job.threads for job in jobs if job.threads > cores}
    if wide:
        listed = ", ".join(f"{rule} ({threads})" for rule, threads in sorted(wide.items()))
        print(
            f"No node of the profile's partitions has more than {cores} cores, so jobs that ask "
            f"for more threads get {cores}: {listed}.",
            file=sys.stderr,
            flush=True,
        )
    return [*arguments, "--max-threads", str(cores)]


def minutes_of(limit: str) -> float:
    """Minutes of a time limit as Slurm writes it: [days-]hours:minutes:seconds; else infinite."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if not found:
        return float("inf")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 1440 * days + 60 * hours + minutes + seconds / 60


def job_name(study: Path) -> str:
    """Name of a study's job in Slurm."""
    return f"popdesic-{blake2b(str(study.resolve()).encode(), digest_size=6).hexdigest()}"


def job_names(study: Path) -> list[str]:
    """Names of the jobs that ran a study whole: one or none."""
    return [job_name(study)] if (study / FOLDER).is_dir() else []


def submit(
    study: Path, targets: Sequence[str], arguments: Sequence[str], asked: Sequence[str]
) -> str:
    """Submit a study as one job; return its number."""
    if running := active_jobs(job_name(study), failed=FAILED):
        raise UserError(
            f"Slurm job {running[0]} still runs {study}; wait for its end, or stop it and "
            f"continue with `popdesic resume {study}`."
        )
    folder = study.resolve() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    asks = {option_of(word): word.partition("=")[2] for word in asked}
    own = ["--keep-going", "--rerun-incomplete", "--cores", asks["--cpus-per-task"]]
    own += ["--resources", f"mem_mb={int(asks['--mem']) - START_MB}"]
    words = snakemake_command(study, targets, [*_without(arguments), *own])
    status = f"{shlex.quote(str(folder))}/$SLURM_JOB_ID.status"
    script = f"#!/bin/sh\n{shlex.join(words)}\ncode=$?\necho $code > {status}\nexit $code\n"
    sbatch = ["sbatch", "--parsable", f"--job-name={job_name(study)}", f"--output={folder}/%j.out"]
    sbatch += ["--no-requeue", *asked]
    return call_slurm(*sbatch, failed=FAILED, script=script).strip().split(";")[0]


def _without(arguments: Sequence[str]) -> list[str]:
    """Arguments without those that are of the cluster: its profile, and the number of cores."""
    kept, skipped = [], False
    for word in arguments:
        if skipped:
            skipped = False
        elif option_of(word) in ("--profile", "--cores", "-c"):
            skipped = word in ("--profile", "--cores", "-c")
        else:
            kept.append(word)
    return kept


def follow(study: Path, number: str) -> int:
    """Print a job's output while it runs; return its exit status.

    Ctrl-C cancels the job, as Snakemake cancels its jobs. If this process ends in another way, the
    job continues.
    """
    folder = study.resolve() / FOLDER
    output, status = folder / f"{number}.out", folder / f"{number}.status"
    shown, asked, gone, cancelled = 0, time.monotonic(), None, False
    while True:
        try:
            ended = status.is_file() and status.read_text().strip().isdigit()
            shown += _show(output, shown)
            if ended:
                code = int(status.read_text())
                status.unlink()
                return 130 if cancelled else code
            if gone is not None and time.monotonic() - gone > LATE_SECONDS:
                break
            if gone is None and time.monotonic() - asked > ASK_SECONDS:
                asked = time.monotonic()
                gone = None if _is_listed(number) else asked
            time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            subprocess.run(["scancel", number], check=False)
            asked, cancelled = 0.0, True
    if cancelled:
        return 130
    raise UserError(
        f"Slurm ended job {number} of {study} ({_state(number)}) before the run was finished; "
        f"`popdesic resume {study} --no-one-job` continues it with jobs that ask for more memory "
        "and time when they are repeated."
    )


def _show(output: Path, start: int) -> int:
    """Print a file from a position on; return the number of bytes."""
    try:
        with open(output, "rb") as file:
            file.seek(start)
            data = file.read()
    except FileNotFoundError:
        return 0
    if data:
        sys.stderr.write(data.decode("utf-8", "replace"))
        sys.stderr.flush()
    return len(data)


def _is_listed(number: str) -> bool:
    """Whether Slurm has the job among those that have not ended; also if it does not answer."""
    words = [*QUEUE, f"--jobs={number}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return "Invalid job id" not in done.stderr
    return bool(done.stdout.strip())


def _state(number: str) -> str:
    """What Slurm says of a job that has ended."""
    words = ["scontrol", "--oneliner", "show", "job", number]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"\bJobState=(\S+)", done.stdout)
    return found[1] if found else "it no longer lists the job"
