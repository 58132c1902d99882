"""Job logs: what ran and how long it took, and one sentence for an error of the user."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UserError
from .files import FULL, SHORT, TEMPORARY, carrying_panel, one_panel
from .processes import end_with_run

#: errno of a write where this user may not write.
CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
#: Bytes that are left of a folder of temporary files that is the reason of a failed write.
FULL_BELOW = 1_000_000
#: Exit status after Ctrl-C, as a shell reports it.
INTERRUPTED = 130


@contextmanager
def logged(path: str | Path, inputs: Iterable[str | Path] = ()) -> Iterator[logging.Logger]:
    """Write this job's log to `path`; report an error that the user can fix as one sentence.

    Results that the job writes carry the panel digest of its `inputs`; inputs made with different
    panels are refused.

    A `UserError` or a full disk is logged and printed to standard error as one sentence without
    traceback, and the job exits with 1; any other exception is a bug and keeps its traceback.

    The last line says how long the job took, its CPU time, and how much of that went into start-up:
    from the start of the process to here, which is mostly imports.
    """
    end_with_run()
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    warnings.simplefilter("default")
    logger = logging.getLogger("popdesic")
    started, start_up = time.perf_counter(), cpu_seconds()
    try:
        with carrying_panel(one_panel(inputs)):
            yield logger
    except UserError as error:
        logger.error("%s", error)
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except OSError as error:
        if not (sentence := blocked_write(error)):
            logger.exception("stopped after %.1f s", time.perf_counter() - started)
            raise
        logger.error("%s", sentence)
        print(f"Error: {sentence}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        logger.warning("interrupted after %.1f s", time.perf_counter() - started)
        raise SystemExit(INTERRUPTED) from None
    except BaseException:
        logger.exception("stopped after %.1f s", time.perf_counter() - started)
        raise
    else:
        seconds, cpu = time.perf_counter() - started, cpu_seconds()
        logger.info("done in %.1f s, %.2f CPU-s, %.2f of them start-up", seconds, cpu, start_up)
        if hasattr(sys.modules["__main__"], "snakemake"):  # a job, which ends here
            atexit.register(_exit_at_once)
    finally:
        root.removeHandler(handler)
        handler.close()


def _exit_at_once() -> None:
    """End a job that is done, without taking the interpreter apart.

    Deleting all modules and objects takes 0.1 CPU-seconds with pandas and 0.3 with compiled code.
    All other functions registered with `atexit` run first.
    """
    atexit.unregister(_exit_at_once)
    if getattr(sys, "last_type", None) is None:  # nothing failed after `logged`
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def cpu_seconds() -> float:
    """CPU time, user and system, of this process and the processes that it waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def blocked_write(error: OSError, *, study: bool = True) -> str | None:
    """The sentence for a write that failed for lack of space or of permission; None for others.

    `study`: what was written is part of a study.
    """
    if error.errno == errno.ENOENT and "temporary directory" in str(error):
        return (
            f"no folder for temporary files can be written ({error.strerror}); free some space in "
            "one of them, or set TMPDIR to another folder, and run again."
        )
    if error.errno in CLOSED and error.filename:
        advice = (
            "work on a copy of the study that is yours (`cp -r`)"
            if study
            else "name a file in a folder that is yours"
        )
        return (
            f"{_shown(error.filename)} cannot be written or read ({error.strerror}); {advice}, "
            "or ask the owner for permission."
        )
    short = error.errno is None and SHORT.fullmatch(str(error))
    if error.errno not in FULL and not short:
        return None
    if not error.filename and (folder := _full_temporary()):
        return (
            f"the job could not write temporary files: {folder} is full; free some space there, or "
            "set TMPDIR to another folder, and run again; no incomplete file was left behind."
        )
    where = f" {_shown(error.filename)}" if error.filename else " its results"
    return (
        f"the job could not write{where}: {error.strerror or 'no space left on the device'}"
        f"{_left(error.filename)}; free some space (or raise the quota) and run again; no "
        "incomplete file was left behind."
    )


def _full_temporary() -> str | None:
    """The folder of temporary files, if it is full and on another disk than the study."""
    try:
        folder = tempfile.gettempdir()
        apart = Path(folder).stat().st_dev != Path().stat().st_dev
        return folder if apart and shutil.disk_usage(folder).free < FULL_BELOW else None
    except OSError:
        return None


def _shown(path: str | bytes | int) -> str:
    return TEMPORARY.sub(
        r"\1\2", os.fsdecode(path) if isinstance(path, (str, bytes)) else str(path)
    )


def _left(path: str | bytes | int | None) -> str:
    """How much space is left where a file could not be written; nothing where that is unknown."""
    folder = Path(os.fsdecode(path)).parent if isinstance(path, (str, bytes)) else None
    if folder is None or not folder.is_dir():
        return ""
    return f" ({shutil.disk_usage(folder).free / 1e6:,.1f} MB are left in {folder})"


def log_counts(logger: logging.Logger, counts: dict) -> None:
    """Log one line per count."""
    for name, value in counts.items():
        logger.info("%s: %s", name, value)
