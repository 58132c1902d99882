"""One job, one device: which GPU of a machine a process may use.

A scheduler that grants devices says so in CUDA_VISIBLE_DEVICES. Without one, concurrent jobs share
the machine's devices by one lock file each, held until the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from ..errors import UserError

log = logging.getLogger(__name__)

#: Variables by which schedulers mark their jobs: the devices they show are the job's own.
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
#: Seconds between two looks for a free device.
POLL_SECONDS = 1.0

#: Open lock files: closing one would give the device back.
_held: dict[Path, int] = {}


def lock_folder() -> Path:
    """Where the locks of this machine lie, shared by all of its users."""
    return Path(tempfile.gettempdir()) / "popdesic-devices"


def lease_device(
    count: int,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    patience: float = float("inf"),
) -> int:
    """The index of a device that is this process's own from now on.

    Parameters
    ----------
    count : int
        Devices that CUDA shows to this process, at least one.
    folder : Path, optional
        Where the lock files lie.
    environment : mapping
        Says whether a scheduler granted the devices, and which ones are visible.
    patience : float
        Seconds to wait for a device.

    Raises
    ------
    UserError
        None became free, or the lock files cannot be written.
    """
    visible = [name for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if visible and any(name in environment for name in SCHEDULERS):
        log.info("device %s, granted by the scheduler", visible[0])
        return 0
    names = visible[:count] if len(visible) >= count else [str(index) for index in range(count)]
    folder = folder or lock_folder()
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o1777)
    except OSError as reason:
        raise UserError(
            f"{folder}: the lock files of the GPUs cannot be kept there ({reason.strerror}); set "
            "TMPDIR to a folder that can be written."
        ) from None
    started, told = time.monotonic(), False
    while True:
        for index, name in enumerate(names):
            if _take(folder / f"{name.replace('/', '_')}.lock"):
                log.info("device %s, leased among %d", name, count)
                return index
        if time.monotonic() - started >= patience:
            raise UserError(
                f"all {count} GPUs of this machine are taken by other jobs (locks in {folder}); "
                "run fewer GPU jobs at a time (--resources gpu=N)."
            )
        if not told:
            log.info("all %d devices are taken: waiting for one", count)
            told = True
        time.sleep(POLL_SECONDS)


def _take(path: Path) -> bool:
    """Whether the lock is ours: nobody held it, or this process does already."""
    if path in _held:
        return True
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as reason:
        raise UserError(
            f"{path}: this lock file of a GPU cannot be opened ({reason.strerror}); remove it, or "
            "set TMPDIR to a folder that can be written."
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    _held[path] = descriptor
    return True
