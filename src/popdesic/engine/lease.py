"""Which GPU of a machine a job may use, and how many jobs share one.

A scheduler that grants devices says so in CUDA_VISIBLE_DEVICES. Without one, concurrent jobs share
the machine's devices by lock files, held until the process ends, however it ends. So do the jobs of
a workflow that runs as one job of a scheduler: they share the devices that it was granted.

The memory of a device is divided into SHARES equal shares, each with a lock. A job that knows how
much memory it needs takes so many shares, and never more memory; one that does not know takes all.
So small jobs run beside each other, and no job finds the memory taken that it counts on. Jobs that
wait stand in line: the first one holds the device's gate, and only who holds it takes shares, so
that a job that needs a whole device is not passed for ever by small ones.

Each user has their own lock files for each device, which others can read and nobody else can
delete or replace where the folder is root's and sticky, as /tmp is. A process first locks its
user's files and then looks whether another user's are locked: of two that come at once the later
one sees the other. Users who have temporary folders of their own (TMPDIR, PrivateTmp of systemd) do
not see each other's leases, and a user who wants to keep a device from others can: no lock prevents
it.
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
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from ..core.errors import UserError
from ..core.places import SHARES_DEVICES

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Variables by which schedulers mark their jobs: the devices they show are the job's own.
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
#: Seconds between two polls for a free device, randomised so that jobs do not stay in step.
POLL_SECONDS = 1.0
#: Start of the names of lock files: then device, share and number of the user whose file it is.
PREFIX = "popdesic-gpu-"
#: Name of the gate at which processes stand in line that want several devices.
LINE = "several-gate"
#: Shares of a device's memory, each with a lock: 17 GB of an H200.
SHARES = 8

#: Open lock files of shares: closing one would give the share back.
_held: dict[Path, int] = {}
#: Open lock files of gates, while this process waits.
_gates: dict[Path, int] = {}


def lock_folder() -> Path:
    """Where the locks of this machine lie, shared by all of its users."""
    return Path(tempfile.gettempdir())


def is_granted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a scheduler gave this job devices of its own, which no job beside it uses."""
    if environment.get(SHARES_DEVICES):
        return False
    return any(visible_devices(environment)) and any(name in environment for name in SCHEDULERS)


def visible_devices(environment: Mapping[str, str]) -> list[str]:
    """Names of the devices that CUDA shows; none if it shows all."""
    return [name for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]


def _grant(environment: Mapping[str, str]) -> str:
    """Start of names of devices that a scheduler granted; each of its jobs may call its own 0."""
    if not any(visible_devices(environment)):
        return ""
    found = (environment[name] for name in SCHEDULERS if name in environment)
    return next((f"{job}-" for job in found), "")


def shares_of(need: int | None, total: int) -> int:
    """Shares of a device of `total` bytes that a job takes which needs `need` bytes."""
    if need is None:
        return SHARES
    return min(SHARES, max(1, -(-need * SHARES // max(total, 1))))


class TooFewGpusError(UserError):
    """A job asks for more GPUs than there are."""

    def __init__(self, wanted: int, count: int) -> None:
        super().__init__(
            f"POPDESIC_CLOSURE_GPUS is {wanted}, but the job finds {count} GPU"
            f"{'s' * (count != 1)} here; set it to {count}, or run on a machine with {wanted}."
        )


def lease_device(
    count: int,
    *,
    shares: Callable[[int], int] = lambda _: SHARES,
    folder: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    patience: float = float("inf"),
) -> int:
    """The index of a device that is this process's own from now on, in whole or in part.

    Parameters
    ----------
    count : int
        Devices that CUDA shows to this process, at least one.
    shares : function
        Shares that the process takes of the device with some index; by default all.
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
    if is_granted(environment):
        log.info("device %s, granted by the scheduler", visible_devices(environment)[0])
        return 0
    names, folder = _names(count, environment), folder or lock_folder()

    def take() -> int | None:
        return _take_one(folder, names, shares)

    index = _wait_for(take, folder, count, patience)
    log.info(
        "device %s, leased among %d (%d of %d shares)", names[index], count, shares(index), SHARES
    )
    return index


def lease_devices(
    count: int,
    wanted: int,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    patience: float = float("inf"),
) -> list[int]:
    """The indices of several whole devices that are this process's own from now on.

    Processes that want several devices stand in line, and only the first one takes devices. So no
    two wait for each other's.

    Parameters
    ----------
    count, folder, environment, patience
        As for `lease_device`.
    wanted : int
        How many devices.

    Raises
    ------
    TooFewGpusError
        CUDA shows fewer.
    UserError
        They did not become free, or the lock files cannot be written.
    """
    if count < wanted:
        raise TooFewGpusError(wanted, count)
    if is_granted(environment):
        log.info("%d devices, granted by the scheduler", wanted)
        return list(range(wanted))
    names, folder = _names(count, environment), folder or lock_folder()
    taken: list[int] = []

    def take() -> list[int] | None:
        line = _lock_path(folder, LINE)
        if line not in _gates:
            _gates.update(_lock_free(folder, [line]))
        if line not in _gates:
            return None
        for index, name in enumerate(names):
            if len(taken) < wanted and index not in taken and _take(folder, name, SHARES, SHARES):
                taken.append(index)
        return taken if len(taken) == wanted else None

    try:
        _wait_for(take, folder, count, patience)
    except UserError:
        for path in (path for index in taken for path in _locks(folder, names[index])):
            os.close(_held.pop(path))
        raise
    log.info("devices %s, leased among %d", ", ".join(names[index] for index in taken), count)
    return sorted(taken)


def _names(count: int, environment: Mapping[str, str]) -> list[str]:
    """Names of the devices in those of lock files."""
    visible = visible_devices(environment)
    names = visible[:count] if len(visible) >= count else [str(index) for index in range(count)]
    return [f"{_grant(environment)}{name}".replace("/", "_") for name in names]


def _wait_for(take: Callable[[], T | None], folder: Path, count: int, patience: float) -> T:
    """What `take` gives as soon as it gives something; the gates are left then."""
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
    try:
        while True:
            found = take()
            if found is not None:
                return found
            if time.monotonic() - started >= patience:
                raise UserError(
                    f"all {count} GPUs of this machine are taken by other jobs (locks in "
                    f"{folder}); run fewer GPU jobs at a time (--resources gpu=N)."
                )
            if not told:
                log.info("the %d devices are taken: waiting", count)
                told = True
            time.sleep(POLL_SECONDS * random.uniform(0.5, 1.5))
    finally:
        while _gates:
            os.close(_gates.popitem()[1])


def _take_one(folder: Path, devices: list[str], shares: Callable[[int], int]) -> int | None:
    """A device of which so many shares are ours: held already, of an idle device, or of any."""
    for index, device in enumerate(devices):
        if sum(path in _held for path in _locks(folder, device)) >= shares(index):
            return index
    for least in (SHARES, 0) if len(devices) > 1 else (0,):
        for index, device in enumerate(devices):
            if _take(folder, device, shares(index), least):
                return index
    return None


def _locks(folder: Path, device: str) -> list[Path]:
    """Our lock files of a device's shares."""
    return [_lock_path(folder, f"{device}-{share}") for share in range(SHARES)]


def _take(folder: Path, device: str, shares: int, least: int) -> bool:
    """Whether so many shares of the device could be taken, if at least `least` are free."""
    own = _locks(folder, device)
    held = [path for path in own if path in _held]
    gate = _lock_path(folder, f"{device}-gate")
    if gate not in _gates:
        _gates.update(_lock_free(folder, [gate]))
    if gate not in _gates:
        return False
    locked = _lock_free(folder, [path for path in own if path not in _held])
    enough = len(held) + len(locked) >= max(shares, least)
    for number, (path, descriptor) in enumerate(locked.items()):
        if enough and len(held) + number < shares:
            os.utime(descriptor)  # so that a cleaner of temporary files does not remove it
            _held[path] = descriptor
        else:
            os.close(descriptor)
    return enough


def _lock_path(folder: Path, name: str) -> Path:
    return folder / f"{PREFIX}{name}.{os.getuid()}.lock"


def _lock_free(folder: Path, paths: list[Path]) -> dict[Path, int]:
    """Lock those of our files that are free, and whose counterparts of other users are, too."""
    locked: dict[Path, int] = {}
    try:
        for path in paths:
            descriptor = _open_own(path)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A cleaner of temporary files may have removed it before it was locked.
                if os.path.samestat(os.fstat(descriptor), path.lstat()):
                    locked[path] = descriptor
                    continue
            except (BlockingIOError, FileNotFoundError):
                pass
            os.close(descriptor)
    except OSError as reason:
        _close(locked)
        raise UserError(
            f"{path}: this lock file of a GPU cannot be opened ({reason.strerror}); remove it, or "
            "set TMPDIR to a folder that can be written."
        ) from None
    try:
        for other in _others(folder, locked):
            if _is_locked(other):
                _close(locked, _lock_path(folder, _share_of(other)))
    except OSError as reason:  # the folder cannot be listed
        _close(locked)
        raise UserError(
            f"{folder}: the lock files of the GPUs cannot be read there ({reason.strerror}); set "
            "TMPDIR to a folder that can be read and written."
        ) from None
    return locked


def _close(locked: dict[Path, int], *paths: Path) -> None:
    """Give back some of the locked files (all if none is named)."""
    for path in paths or list(locked):
        if path in locked:
            os.close(locked.pop(path))


def _share_of(path: Path) -> str:
    """Device and share in the name of a lock file."""
    return path.name.removeprefix(PREFIX).rsplit(".", 2)[0]


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


def _others(folder: Path, own: Iterable[Path]) -> list[Path]:
    """Lock files of other users for the same devices and shares as some of ours."""
    shares = {_share_of(path): path for path in own}
    name = re.compile(re.escape(PREFIX) + r".+\.\d+\.lock")
    return [
        path
        for path in folder.iterdir()
        if name.fullmatch(path.name)
        and _share_of(path) in shares
        and path != shares[_share_of(path)]
    ]


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
