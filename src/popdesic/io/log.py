"""Job logs: what ran and how long it took, and one sentence for an error of the user."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import re
import resource
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UserError
from .files import carrying_panel, one_panel

#: errno of a write to a full disk, over the quota or beyond the file size limit.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
        if not (sentence := _full_disk(error)):
            logger.exception("stopped after %.1f s", time.perf_counter() - started)
            raise
        logger.error("%s", sentence)
        print(f"Error: {sentence}", file=sys.stderr)
        raise SystemExit(1) from None
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


def _full_disk(error: OSError) -> str | None:
    """Return the sentence for a write that failed for lack of space, None for other errors."""
    # numpy sets no errno: its message only counts the items written.
    short = error.errno is None and re.fullmatch(r"\d+ requested and \d+ written", str(error))
    if error.errno not in FULL and not short:
        return None
    where = f" {error.filename}" if error.filename else " its results"
    return (
        f"the job could not write{where}: {error.strerror or 'no space left on the device'}; free "
        "some space (or raise the quota) and run again; no incomplete file was left behind."
    )


def log_counts(logger: logging.Logger, counts: dict) -> None:
    """Log one line per count."""
    for name, value in counts.items():
        logger.info("%s: %s", name, value)
