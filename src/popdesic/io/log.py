"""Logs of jobs: what was done and how long it took, and one sentence for a user's error."""

from __future__ import annotations

import errno
import logging
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UserError
from .files import carrying_panel, one_panel

#: What a write says where a disk, a quota or a limit of file sizes is full.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def logged(path: str | Path, inputs: Iterable[str | Path] = ()) -> Iterator[logging.Logger]:
    """Write this job's log to `path`; end the job with one sentence where the user can mend it.

    What the job writes carries the digest of the panel that its `inputs` were made with; inputs
    of different panels are refused.

    A `UserError` goes to the log and to standard error as its sentence alone and exits with 1, and
    so does a full disk; any other exception is a defect and keeps its traceback.
    """
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    warnings.simplefilter("default")
    logger = logging.getLogger("popdesic")
    started = time.perf_counter()
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
        logger.info("done in %.1f s", time.perf_counter() - started)
    finally:
        root.removeHandler(handler)
        handler.close()


def _full_disk(error: OSError) -> str | None:
    """The sentence of an error in writing for lack of space, None for any other error."""
    # numpy says only how much it could write.
    short = error.errno is None and re.fullmatch(r"\d+ requested and \d+ written", str(error))
    if error.errno not in FULL and not short:
        return None
    where = f" {error.filename}" if error.filename else " its results"
    return (
        f"the job could not write{where}: {error.strerror or 'no space left on the device'}; make "
        "room (or raise the quota) and run again, nothing half-written has been left."
    )


def log_counts(logger: logging.Logger, counts: dict) -> None:
    """One line a count."""
    for name, value in counts.items():
        logger.info("%s: %s", name, value)
