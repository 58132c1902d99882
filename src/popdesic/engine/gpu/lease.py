"""One job, one device: which GPU of a machine a process may use.

A scheduler that grants devices says so in CUDA_VISIBLE_DEVICES. Without one, concurrent jobs share
the machine's devices by lock files, held until the process ends, however it ends.

Each user has their own lock file for each device, which others can read and nobody else can
delete or replace where the folder is root's and sticky, as /tmp is. A process first locks its
user's file and then looks whether another user's is locked: of two that come at once the later one
sees the other. Users who have temporary folders of their own (TMPDIR, PrivateTmp of systemd) do not
see each other's leases, and a user who wants to keep a device from others can: no lock prevents it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import re
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from ...io.errors import UserError

log = logging.getLogger(__name__)

#: Variables by which schedulers mark their jobs: the devices they show are the job's own.
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
#: Seconds between two polls for a free device, randomised so that jobs do not stay in step.
POLL_SECONDS = 1.0
#: Names of lock files: of a device, and of the user whose file it is.
PREFIX = "popdesic-gpu-"

#: Open lock files: closing one would give the device back.
_held: dict[Path, int] = {}


def lock_folder() -> Path:
    """Where the locks of this machine lie, shared by all of its users."""
    return Path(tempfile.gettempdir())


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
            if _take(folder, name.replace("/", "_")):
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
        time.sleep(POLL_SECONDS * random.uniform(0.5, 1.5))


def _take(folder: Path, device: str) -> bool:
    """Whether the device is ours: it was free, or this process holds it already."""
    path = folder / f"{PREFIX}{device}.{os.getuid()}.lock"
    if path in _held:
        return True
    try:
        descriptor = _open_own(path)
    except OSError as reason:
        raise UserError(
            f"{path}: this lock file of a GPU cannot be opened ({reason.strerror}); remove it, or "
            "set TMPDIR to a folder that can be written."
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A cleaner of temporary files may have removed it before it was locked.
        ours = os.path.samestat(os.fstat(descriptor), path.lstat())
        if ours and not any(_is_locked(other) for other in _others(folder, device, path)):
            os.utime(descriptor)  # so that a cleaner does not remove it
            _held[path] = descriptor
            return True
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as reason:  # the folder cannot be listed
        raise UserError(
            f"{folder}: the lock files of the GPUs cannot be read there ({reason.strerror}); set "
            "TMPDIR to a folder that can be read and written."
        ) from None
    os.close(descriptor)
    return False


def _open_own(path: Path) -> int:
    """Open this user's lock file, made where there is none, readable for all whatever the umask."""
    try:
        # Without O_CREAT first: Linux refuses it for files of others in sticky folders.
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o644)
        except FileExistsError:  # another process of this user was quicker
            return _open_own(path)
    about = os.fstat(descriptor)
    if about.st_uid != os.getuid() or not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise PermissionError(0, "it is another user's or no plain file")
    os.fchmod(descriptor, 0o644)
    return descriptor


def _others(folder: Path, device: str, own: Path) -> list[Path]:
    """Lock files of other users for a device."""
    name = re.compile(re.escape(f"{PREFIX}{device}.") + r"\d+\.lock")
    return [path for path in folder.iterdir() if name.fullmatch(path.name) and path != own]


def _is_locked(path: Path) -> bool:
    """Whether the user whose file this is holds the device.

    A file that cannot be read is not locked yet: its user makes it readable first. A file whose
    owner is not the user in its name counts as unlocked.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or str(about.st_uid) != path.name.split(".")[-2]:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
