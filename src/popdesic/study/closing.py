"""What a run says last: where the report is and how many warnings there are, or why it failed."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

from ..core.log import INTERRUPTED

REPORT = Path("results/report/report.html")
#: The log of the job that writes the page: its warnings are those of the page.
PAGE_LOG = Path("logs/write_report.log")
#: Logs with warnings that are named.
NAMED = 3
#: Environment variable: the command of Popdesic that started Snakemake.
COMMAND = "POPDESIC_COMMAND"
#: What every run that did not end well says.
AGAIN = "Finished results are kept; go on with"
#: A line of a job's log (`core.log`), and what it says where a job was stopped by a fault of ours.
LINE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (\w+) (.*)")
FAULT = re.compile(r"stopped after [\d.]+ s")


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
    """Number of warnings of a run: those of the page, and of other logs, which are named."""
    found, page = {}, 0
    for log in sorted((study / "logs").rglob("*.log")):
        if log.stat().st_mtime >= started:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            if count := sum(" WARNING " in line for line in lines):
                if log == study / PAGE_LOG:
                    page = count
                else:
                    found[str(log.relative_to(study))] = count
    total = sum(found.values())
    named = list(found)[:NAMED] + (["…"] if len(found) > NAMED else [])
    parts = [f"{_count(page)} on the page"] * bool(page)
    parts += [f"{_count(total)} in {', '.join(named)}"] * bool(found)
    return " and ".join(parts) or "no warnings"


def _count(warnings: int) -> str:
    return f"{warnings} warning{'s' * (warnings > 1)}"


def say_failure_last(started: float, study: Path = Path()) -> None:
    """Let the last lines of this process say why the run failed and how it goes on.

    Snakemake ends a failed run with lines of its own, after the Snakefile's `onerror`.
    """
    if _interrupted:
        atexit.register(_end_interrupted)
        return
    text = failure(started, study, command_again())
    atexit.register(print, text, file=sys.stderr)


#: Not empty once Ctrl-C was pressed.
_interrupted: list[int] = []


def quiet_interrupts(logger: logging.Logger) -> None:
    """From Ctrl-C on, let a run print nothing but its last line (`say_failure_last`).

    Snakemake would list every job that ended with it as failed.
    """

    def interrupt(number: int, frame: object) -> None:
        _interrupted.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)
        for handler in logger.handlers:
            handler.addFilter(lambda record: not _interrupted)


def _end_interrupted() -> None:
    """End a run after Ctrl-C with one line, and with the status that shells give."""
    print(f"Interrupted. {AGAIN}: {command_again()}", file=sys.stderr)
    atexit.unregister(_end_interrupted)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def failure(started: float, study: Path, command: str) -> str:
    """Why a run failed: the first failed job's sentence, its log, and the command to go on.

    Parameters
    ----------
    started : float
        When the run began (`time.time`): older logs are of earlier runs.
    """
    logs = [log for log in (study / "logs").rglob("*.log") if log.stat().st_mtime >= started]
    logs.sort(key=lambda log: log.stat().st_mtime)
    failed = [(why, log.relative_to(study)) for log in logs if (why := _reason(log))]
    again = f"{AGAIN}: {command}"
    if not failed:
        return (
            "Error: a job ended without a reason in its log: it was killed, perhaps for lack of "
            f"memory; the lines above name it. {again}"
        )
    reason, log = failed[0]
    others = f" (and {len(failed) - 1} more jobs failed)" if len(failed) > 1 else ""
    return f"Error: {reason}\nThe log is {log}{others}. {again}"


def _reason(log: Path) -> str:
    """The error that ended a job, from its log; empty if it ended well or its log does not say."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for k, line in enumerate(lines):
        found = LINE.fullmatch(line)
        if found and found[1] == "ERROR":
            # Of a fault, the traceback follows, and its last line is the reason.
            return lines[-1] if FAULT.fullmatch(found[2]) and k + 1 < len(lines) else found[2]
    return ""


def command_again() -> str:
    """The command that started this run, to be given again."""
    return os.environ.get(COMMAND) or shlex.join(["snakemake", *sys.argv[1:]])
