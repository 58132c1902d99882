"""What a run says last: where the report is, how long it took, and which logs hold warnings."""

from __future__ import annotations

import time
from pathlib import Path

REPORT = Path("results/report/report.html")
#: Logs with warnings that are named.
NAMED = 3


def last_line(started: float, study: Path = Path()) -> str:
    """The last line of a run that succeeded.

    Parameters
    ----------
    started : float
        When the run began (`time.time`): older reports and logs are of earlier runs.
    """
    seconds = time.time() - started
    report = study / REPORT
    written = report.exists() and report.stat().st_mtime >= started
    subject = f"The report is {REPORT}" if written else "Done"
    return f"{subject} ({duration(seconds)}; {_warnings(study, started)})."


def duration(seconds: float) -> str:
    """Such as ``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _warnings(study: Path, started: float) -> str:
    """Number of warnings in the logs of a run, and where they are."""
    found = {}
    for log in sorted((study / "logs").rglob("*.log")):
        if log.stat().st_mtime >= started:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            if count := sum(" WARNING " in line for line in lines):
                found[str(log.relative_to(study))] = count
    if not found:
        return "no warnings"
    total = sum(found.values())
    named = list(found)[:NAMED] + (["…"] if len(found) > NAMED else [])
    return f"{total} warning{'s' * (total > 1)} in {', '.join(named)}"
