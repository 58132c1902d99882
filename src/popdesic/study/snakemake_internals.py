"""Everything that relies on private parts of Snakemake, which may change between versions.

No other module uses them. `tests/unit/study/test_snakemake_internals.py` tests that the installed
version still has them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UserError
from ..core.files import checksum_of, kept_checksum
from ..core.places import SNAKEFILE

#: Snakemake splits the names of records at the longest file name that file systems allow.
NAME_MAX = 255
#: Folders of records in .snakemake: of finished files, and of files being written.
METADATA, INCOMPLETE = "metadata", "incomplete"
#: Variables that Snakemake sets for a job's command: to its threads, and to its temporary folder.
THREAD_VARIABLES = tuple(
    f"{name}_THREADS"
    for name in ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
)
FOLDER_VARIABLES = ("TMPDIR", "TMP", "TEMPDIR", "TEMP")
#: Bytes of a result up to which it is read before its job runs again, at 10 GB/s: a file with
#: another bit may have been read by others.
READ_AGAIN = 1 << 28
#: The Slurm plugin logs this ID, and all Slurm jobs of the run have it as their name.
RUN_ID = re.compile(r"SLURM run ID: (\S+)")


# The `workflow` object in a Snakefile.


def is_module(workflow) -> bool:
    """Whether another workflow includes this Snakefile as a module."""
    return not workflow.modifier.is_main_snakefile()


def has_given_config(workflow) -> bool:
    """Whether the including workflow passes a configuration that replaces `config/config.yaml`."""
    return workflow.modifier.skip_configfile


def records_jobs(workflow) -> bool:
    """Whether this process writes the records of jobs."""
    if workflow.is_main_process:
        return True
    return _submits_at_once(workflow)


def adapt_snakemake(scripts: Path) -> None:
    """Replace what of Snakemake would plan or run needless jobs; `scripts` is their folder."""
    ignore_script_dates(scripts)
    skip_unchanged()


def ignore_script_dates(folder: Path) -> None:
    """Ignore the modification times of scripts in `folder` when deciding what to rerun.

    Snakemake compares them with the times of results, so a fresh clone of this repository would
    rerun everything. The digest of a script's code is a parameter of its rule instead
    (`code.code_of`).
    """
    from snakemake import jobs

    folder, original = folder.resolve(), getattr(jobs, "get_script_mtime", None)
    if original is None or getattr(original, "ignored", None) == folder:
        return

    def script_mtime(path: str) -> float:
        return 0.0 if folder in Path(path).resolve().parents else original(path)

    script_mtime.ignored = folder
    jobs.get_script_mtime = script_mtime


def skip_unchanged() -> None:
    """Let a run leave out jobs all of whose input comes out with the bytes that it had.

    Snakemake plans every job behind one that runs, before it is known what that one writes. Here a
    job that could start is looked at again. If its results were up to date before this run, and
    each input that the run has made again has its old checksum and panel (`core.files`),
    its results are only touched, so that dates are in order for the next plan. A dry run shows all
    jobs that may have to run.
    """
    from snakemake.logging import logger
    from snakemake.scheduling.job_scheduler import JobScheduler
    from snakemake_interface_logger_plugins.common import LogEvent

    original = getattr(JobScheduler, "run", None)
    if original is None or hasattr(original, "skips"):
        return

    def run(self, jobs, executor=None) -> None:
        flow = self.workflow
        if self.dryrun or self.touch or not flow.is_main_process or _submits_at_once(flow):
            return original(self, jobs, executor)
        before, rest = self.__dict__.setdefault("outputs_before", {}), []
        for job in jobs:
            members = list(job) if job.is_group() else [job]
            unchanged = all(flow.async_run(_is_unchanged(flow.dag, m, before)) for m in members)
            for path, forced in [(p, _is_forced(flow.dag, m)) for m in members for p in m.output]:
                # Those behind a damaged one have read what it was; a forced one may be damaged
                # (`audit --repair`).
                damaged = forced or not (unchanged or _is_whole(path))
                content = "" if damaged else _content(path)
                before.setdefault(path, (content, flow.async_run(_date(path))))
                if unchanged:
                    path.touch()
            if not unchanged:
                rest.append(job)
                continue
            with self._lock:
                self.finished_jobs += len(job)
                self.running.remove(job)
                self._free_resources(job)
            for member in members:
                words = f"Input of jobid {member.jobid} unchanged, not run ({member.rule.name})"
                about = {"event": LogEvent.JOB_FINISHED, "job_id": member.jobid}
                logger.info(words, extra=about)
            self.progress()
            flow.async_run(flow.dag.finish(job))
            self._open_jobs.release()
        return original(self, rest, executor) if rest else None

    run.skips = True
    JobScheduler.run = run


def _submits_at_once(workflow) -> bool:
    """Whether jobs are submitted before those that they wait for have ended."""
    remote = workflow.remote_execution_settings
    return bool(remote and remote.immediate_submit)


def _content(path: str) -> str:
    """Checksum, size and panel that are kept of a result; empty if they do not fit the file."""
    kept, file = kept_checksum(Path(path)), Path(path)
    fits = file.is_dir() or (file.is_file() and kept[1:2] == [str(file.stat().st_size)])
    return " ".join(kept) if fits else ""


def _is_whole(path: str) -> bool:
    """Whether a file of at most READ_AGAIN bytes has the checksum that is kept of it."""
    file = Path(path)
    if not file.is_file() or file.stat().st_size > READ_AGAIN:
        return True
    return checksum_of(file).split() == kept_checksum(file)[:2]


async def _date(path) -> float:
    """Snakemake's date of a file; infinite if it does not exist."""
    if not os.path.exists(path):  # noqa: PTH110 - the path is Snakemake's, a str
        return float("inf")
    return (await path.mtime_uncached()).local_or_storage()


def _is_forced(dag, job) -> bool:
    """Whether a job has to run whatever its results are (`--forcerun`)."""
    named = job.rule in dag.forcerules or not dag.forcefiles.isdisjoint(job.output)
    return bool(dag.reason(job).forced or named)


async def _is_unchanged(dag, job, before: dict[str, tuple[str, float]]) -> bool:
    """Whether only the jobs before it are a reason to run a job, and these have changed nothing.

    `before` has content and date that the results of this run's jobs had when the run began.
    """
    known = dag.workflow.persistence
    if _is_forced(dag, job) or not job.output or job.is_checkpoint:
        return False
    if any(path in before or not _content(path) for path in job.output):  # tried again, damaged
        return False
    dates = [await _date(path) for path in job.output]
    if not known.has_metadata(job):
        return False
    changed = (known.code_changed, known.input_changed, known.software_stack_changed)
    if known.has_outdated_metadata(job) or known.params_changed(job):
        return False
    if any(any(ask(job)) for ask in changed):
        return False
    async for _ in job.outputs_older_than_script_or_notebook():
        return False
    for path in job.input:
        content, date = before.get(path) or (None, await _date(path))
        if getattr(path, "is_ancient", False):
            continue
        if date > min(dates) or (content is not None and content != (_content(path) or None)):
            return False
    return True


def before_plan(workflow, act) -> None:
    """Call a function before a run is planned whose jobs this process starts itself.

    When a Snakefile is read, Snakemake does not say yet whether there will be such a run.
    """
    original = getattr(workflow, "_prepare_dag", None)
    if original is None or not workflow.is_main_process:
        return

    def prepare(*arguments, **named):
        runs = workflow.executor_plugin is not None and workflow.local_exec
        if runs and not workflow.dryrun and not workflow.touch:
            act()
        return original(*arguments, **named)

    workflow._prepare_dag = prepare


def record_job(record, seconds: float, ended) -> None:
    """What Snakemake's benchmark of a job says, from what the system counted (`forked_jobs.Ended`).

    Snakemake looks at a job's processes twice a second, which takes 7 ms each time and misses what
    they do after the last look.
    """
    record.running_time, record.data_collected = seconds, True
    record.cpu_time = ended.microseconds / 1e6
    record.cpu_usage = 100 * record.cpu_time
    record.max_rss = ended.peak / 1024
    record.io_in, record.io_out = ended.read / 2048, ended.written / 2048


def fork_jobs(forks) -> None:
    """Let the jobs of scripts that run in this Python be forked (`forked_jobs.Forks`).

    They have the variables that Snakemake sets for commands. Jobs in environments of their own
    start as before, and all do if the process that forks them has ended.
    """
    from snakemake.script import PythonScript

    original = PythonScript.execute_script

    def execute(self, fname: str, edit: bool = False) -> None:
        apart = (self.conda_env, self.container_img, self.env_modules, self.shadow_dir)
        if any(apart) or edit or self.resources.get("shell_exec"):
            return original(self, fname, edit)
        variables = os.environ | dict.fromkeys(THREAD_VARIABLES, str(self.threads))
        if folder := self.resources.get("tmpdir"):
            variables |= dict.fromkeys(FOLDER_VARIABLES, str(folder))
        with contextlib.ExitStack() as opened:
            try:
                job = opened.enter_context(forks.job(fname, variables, self.threads))
            except OSError:
                return original(self, fname, edit)
            begun = time.time()
            ended = job.wait()
        if self.bench_record is not None:
            record_job(self.bench_record, time.time() - begun, ended)
        if ended.status:
            raise subprocess.CalledProcessError(ended.status, f"{sys.executable} {fname}")

    PythonScript.execute_script = execute


# Records of files.


def snakemake_path(study: Path, kind: str, result: str) -> Path:
    """Path of Snakemake's record of one kind (`metadata`, `incomplete`) for a file of the study."""
    name = _record_name(result)
    parts = [name[i : i + NAME_MAX - 1] for i in range(0, len(name), NAME_MAX - 1)]
    parts = [f"@{part}" for part in parts[:-1]] + parts[-1:]
    return (study / ".snakemake" / kind).joinpath(*parts)


def _record_name(result: str) -> str:
    return urlsafe_b64encode(result.encode()).decode()


class RecordNames:
    """The files that have a Snakemake record of one kind; the folder is listed only once."""

    def __init__(self, study: Path, kind: str):
        self.study, self.kind = study, kind
        folder = study / ".snakemake" / kind
        self.names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()

    def __contains__(self, result: str) -> bool:
        name = _record_name(result)
        if len(name) < NAME_MAX:
            return name in self.names
        return snakemake_path(self.study, self.kind, result).is_file()


def read_record(study: Path, path: str) -> dict | None:
    """Snakemake's record of a file of the study; None if it has none."""
    try:
        text = snakemake_path(study, METADATA, path).read_text("utf-8")
        return json.loads(text)
    except (OSError, json.JSONDecodeError):
        return None


def write_record(study: Path, result: str, text: str) -> None:
    """Write Snakemake's record of a result."""
    path = snakemake_path(study, METADATA, result)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without this folder, Snakemake takes the records to be of an old format.
    (study / ".snakemake" / INCOMPLETE).mkdir(exist_ok=True)
    path.write_text(text, "utf-8")


def record_of(rule: str, params: list[str]) -> str:
    """A record that has only a rule's name and its parameters."""
    from snakemake.persistence import RECORD_FORMAT_VERSION

    about = {"rule": rule, "params": params, "record_format_version": RECORD_FORMAT_VERSION}
    return json.dumps(about)


# Runs on Slurm.


def run_ids(study: Path) -> list[str]:
    """IDs of the study's Slurm runs, from Snakemake's logs; Slurm jobs have them as names."""
    logs = sorted((study / ".snakemake" / "log").glob("*.snakemake.log"))
    found = [name for log in logs for name in RUN_ID.findall(log.read_text("utf-8", "replace"))]
    return list(dict.fromkeys(found))


# The jobs of a plan.


@dataclass(frozen=True)
class Job:
    """One job of the plan; `needed` is False if its results are up to date."""

    rule: str
    wildcards: dict[str, str]
    threads: int
    mem_mb: int
    runtime: int
    gpu: int
    outputs: tuple[str, ...]
    needed: bool
    after: tuple[int, ...] = ()


def planned_jobs(study: Path, targets: Iterable[str] = ()) -> list[Job]:
    """All jobs of Snakemake's plan for a study; nothing is run.

    Returns
    -------
    list of Job
        In an order in which they can run. `after` are the positions in this list of the jobs that
        a job waits for.

    Raises
    ------
    UserError
        Snakemake cannot plan the study; quotes its error message.
    """
    from snakemake.api import SnakemakeApi
    from snakemake.settings import types as settings
    from snakemake.settings.enums import Quietness

    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            quiet = settings.OutputSettings(quiet={Quietness.ALL}, dryrun=True)
            with SnakemakeApi(quiet) as api:
                workflow = api.workflow(
                    resource_settings=settings.ResourceSettings(cores=1 << 20),
                    snakefile=SNAKEFILE,
                    workdir=study,
                )
                plan = workflow.dag(dag_settings=settings.DAGSettings(targets=set(targets)))
                plan.execute_workflow(
                    executor="dryrun", execution_settings=settings.ExecutionSettings(lock=False)
                )
                # Private, because Snakemake's API does not give access to the jobs.
                return _read_jobs(workflow._workflow.dag)
    except UserError:
        raise
    except Exception as error:
        words = " ".join((str(error) or output.getvalue()[-500:]).split())
        raise UserError(f"Snakemake cannot plan {study}: {words}") from None


def _read_jobs(dag) -> list[Job]:
    places: dict[object, int] = {}
    jobs: list[Job] = []

    def add(job) -> int:
        waiting = [(job, iter(dag.dependencies[job]))]
        while waiting:
            current, rest = waiting[-1]
            following = next((other for other in rest if other not in places), None)
            if following is not None:
                waiting.append((following, iter(dag.dependencies[following])))
                continue
            waiting.pop()
            if current not in places:
                places[current] = len(jobs)
                jobs.append(_read_job(dag, current, places))
        return places[job]

    for job in dag.jobs:
        add(job)
    return jobs


def _read_job(dag, job, places: dict) -> Job:
    asked = job.resources
    return Job(
        rule=job.rule.name,
        wildcards=dict(job.wildcards_dict),
        threads=int(job.threads),
        mem_mb=int(asked.get("mem_mb", 0)),
        runtime=int(asked.get("runtime", 0)),
        gpu=int(asked.get("gpu", 0)),
        outputs=tuple(map(str, job.output)),
        needed=bool(dag.needrun(job)),
        after=tuple(sorted(places[other] for other in dag.dependencies[job])),
    )


# The jobs of a run.

#: Jobs of a rule whose own resources are asked for before the run; further ones take the last's.
ASKED = 100


@dataclass(frozen=True)
class RunStep:
    """A job of a run: Snakemake's number of it, and the numbers of those that it waits for."""

    number: int
    rule: str
    stage: str
    runtime: int = 0
    benchmark: str = ""
    after: tuple[int, ...] = ()


def running_steps(workflow) -> list[RunStep]:
    """Jobs of a run that make files and have not finished, from the `workflow` of a Snakefile.

    The stage of a job is the name of the file that its rule is in.
    """
    dag, asked, steps = workflow.dag, {}, []
    for job in dag.needrun_jobs():
        if job.output:
            rule = job.rule.name
            runtimes = asked.setdefault(rule, [])
            if len(runtimes) < ASKED:
                runtimes.append(_whole(job.resources.get("runtime")))
            steps.append(
                RunStep(
                    number=dag.jobid(job),
                    rule=rule,
                    stage=Path(str(job.rule.snakefile)).stem,
                    runtime=runtimes[-1],
                    benchmark=str(job.benchmark or ""),
                    after=tuple(dag.jobid(other) for other in dag.dependencies[job]),
                )
            )
    return steps


def _whole(value: object) -> int:
    """A resource as a number; 0 where it is unknown before other jobs have run."""
    return int(value) if isinstance(value, (int, float)) else 0


def progress_quietness() -> object:
    """What a log record carries that `--quiet progress` leaves out."""
    from snakemake.settings.enums import Quietness

    return Quietness.PROGRESS
