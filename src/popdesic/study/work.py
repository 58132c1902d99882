"""Count the jobs that ran for a report and those reused from earlier runs (`report/work.tsv`).

Snakemake records the rule, the inputs and the end time of each file that it makes. Starting from
the report's files, these records lead back to every job that contributed to it. A job counts as run
if it ended after the previous report's table was written. The jobs of an interrupted run, or of a
run up to an earlier stage, thus count for the next report.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ..core.tables import read_table, write_table
from .snakemake_internals import read_record

COLUMNS = ["rule", "jobs_run", "jobs_reused", "seconds"]


def contributing_jobs(study: Path, paths: Iterable[str]) -> list[dict]:
    """Records of all jobs that these files depend on, inputs before outputs."""
    jobs: dict[tuple, dict] = {}
    seen: set[str] = set()
    waiting = [(str(path), False) for path in paths][::-1]
    records: dict[str, dict] = {}
    while waiting:
        path, ready = waiting.pop()
        if ready:
            record = records[path]
            jobs.setdefault((record["rule"], *(record.get("log") or [path])), record)
        elif path not in seen:
            seen.add(path)
            if record := read_record(study, path):
                records[path] = record
                waiting.append((path, True))
                waiting += [(str(name), False) for name in reversed(record.get("input") or [])]
    return list(jobs.values())


def seconds_of(study: Path, record: dict) -> float:
    """Run time of a job in seconds: its benchmark, or the end minus the start in its record."""
    for log in record.get("log") or []:
        benchmark = study / "benchmarks" / Path(log).relative_to("logs").with_suffix(".tsv")
        if benchmark.is_file():
            return float(pd.read_csv(benchmark, sep="\t").s.sum())
    return max(0.0, (record.get("endtime") or 0) - (record.get("starttime") or 0))


def count_work(study: Path, paths: Iterable[str], out: Path) -> dict[str, float]:
    """Write the table of jobs that ran for `paths` and of jobs whose results were reused.

    Parameters
    ----------
    study : Path
        Folder in which Snakemake runs.
    paths : iterable of str
        The files that the report is made from, relative to `study`, as Snakemake names them.
    out : Path
        TSV with columns `rule`, `jobs_run`, `jobs_reused`, `seconds` (sum over the jobs that ran).

    Returns
    -------
    dict
        Sums of the columns.
    """
    before = read_record(study, str(out.relative_to(study) if out.is_absolute() else out))
    since = (before or {}).get("endtime") or 0.0
    rows: dict[str, dict] = {}
    for record in contributing_jobs(study, paths):
        row = rows.setdefault(
            record["rule"], {"rule": record["rule"]} | dict.fromkeys(COLUMNS[1:], 0)
        )
        if (record.get("endtime") or 0) > since:
            row["jobs_run"] += 1
            row["seconds"] += seconds_of(study, record)
        else:
            row["jobs_reused"] += 1
    table = pd.DataFrame(list(rows.values()), columns=COLUMNS)
    write_table(out, table)
    return table.sum(numeric_only=True).to_dict()


def work_section(results: Path) -> dict | None:
    """The table for the report: `rows`, and the sums `run` and `reused`; None if it is missing.

    Times are left out, so that two runs of the same study give the same page.
    """
    path = results / "report/work.tsv"
    if not path.exists():
        return None
    table = read_table(path)[COLUMNS[:3]].astype({"jobs_run": int, "jobs_reused": int})
    sums = {"run": int(table.jobs_run.sum()), "reused": int(table.jobs_reused.sum())}
    return {"rows": table.to_dict("records"), **sums}
