"""What ran for a report, and what it took over from earlier runs (`report/work.tsv`).

Snakemake keeps a record of each file that it made: the rule, its inputs, when it was done. From the
files of a report the records lead back to every job that it rests on. A job counts as run where it
was done after the table of the report before, so that an interrupted run, or one up to some stage,
belongs to the report that follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ..io.tables import read_table, write_table
from .snakemake_internals import read_record

COLUMNS = ["rule", "jobs_run", "jobs_reused", "seconds"]


def jobs_behind(study: Path, paths: Iterable[str]) -> list[dict]:
    """Records of the jobs that made these files and what they were made of, in data-flow order."""
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
    """Seconds that a job ran, from its benchmark; else between its first and last sign of life."""
    for log in record.get("log") or []:
        benchmark = study / "benchmarks" / Path(log).relative_to("logs").with_suffix(".tsv")
        if benchmark.is_file():
            return float(pd.read_csv(benchmark, sep="\t").s.sum())
    return max(0.0, (record.get("endtime") or 0) - (record.get("starttime") or 0))


def count_work(study: Path, paths: Iterable[str], out: Path) -> dict[str, float]:
    """Write the table of jobs that ran for `paths` and of those whose results were there.

    Parameters
    ----------
    study : Path
        Folder in which Snakemake runs.
    paths : iterable of str
        The files that the report rests on, relative to `study`, as Snakemake names them.
    out : Path
        Columns `rule`, `jobs_run`, `jobs_reused`, `seconds` (of those that ran, summed over jobs).

    Returns
    -------
    dict
        Sums of the columns.
    """
    before = read_record(study, str(out.relative_to(study) if out.is_absolute() else out))
    since = (before or {}).get("endtime") or 0.0
    rows: dict[str, dict] = {}
    for record in jobs_behind(study, paths):
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
    """The table for the report: `rows`, and the sums `run` and `reused`; None where there is none.

    Times are left out, so that the page of an equal study is equal.
    """
    path = results / "report/work.tsv"
    if not path.exists():
        return None
    table = read_table(path)[COLUMNS[:3]].astype({"jobs_run": int, "jobs_reused": int})
    sums = {"run": int(table.jobs_run.sum()), "reused": int(table.jobs_reused.sum())}
    return {"rows": table.to_dict("records"), **sums}
