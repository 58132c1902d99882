"""Choose the backend that a job computes on."""

from __future__ import annotations

import logging
import socket

from ..core.errors import UserError
from ..core.threads import usable_cpus
from .backend import Backend
from .lease import TooFewGpusError, is_granted
from .scan_device import DRIVER

log = logging.getLogger(__name__)
#: The GPU that `backend_for` has leased, if it has.
_leased: list = []  # of GpuBackend, which is imported with CuPy


def select_backend(
    device: str,
    threads: int = 1,
    host_bytes: int | None = None,
    device_bytes: int | None = None,
    *,
    scans: bool = False,
    gpus: int = 1,
) -> Backend:
    """The backend for `device`: ``cpu``, ``gpu`` or ``auto`` (a GPU where one is usable).

    `threads` are the CPU threads of the job. `host_bytes` bounds the pinned host memory through
    which planes reach a GPU; a CPU maps its files. `device_bytes` is the memory that the job needs
    on a GPU: it shares one with other jobs if there is room for all; None takes a whole one.
    `scans`: the job scans for epistasis, which not every GPU can. `gpus`: how many GPUs it takes,
    if it finds one.
    Nothing falls back silently: ``gpu`` without a usable GPU is an error; what ``auto`` chose is
    in the backend's `describe()`, which every caller logs, and why it took no GPU is logged here.

    Raises
    ------
    UserError
        `device` is ``gpu`` and no GPU, driver or CuPy is usable here; or there are fewer than
        `gpus`, but one.
    """
    if device in ("gpu", "auto"):
        try:
            from .backend_gpu import GpuBackend

            return GpuBackend.leased(threads, host_bytes, device_bytes, scans, gpus)
        except TooFewGpusError:
            raise
        except (ImportError, UserError) as reason:
            if device == "gpu":
                raise UserError(
                    "device is 'gpu', but no GPU can be used on this machine, "
                    f"{socket.gethostname()} ({reason}); set device to 'cpu' or 'auto', or run on "
                    "a GPU node."
                ) from None
            if isinstance(reason, ImportError) and DRIVER.is_dir():
                log.warning(
                    "There is an NVIDIA GPU here, but CuPy is missing (%s), so the CPU computes; "
                    "to use the GPU: pip install --require-hashes -r requirements-gpu.txt",
                    reason,
                )
            elif is_granted():
                log.warning(
                    "The scheduler granted a GPU to this job, but none can be used on %s (%s), so "
                    "the CPU computes; ask the cluster's administrators, or set `device: gpu`: "
                    "then such jobs stop, and are repeated.",
                    socket.gethostname(),
                    reason,
                )
            else:
                log.info("No GPU can be used here (%s), so the CPU computes.", reason)
    return cpu_backend(threads)


def cpu_backend(threads: int = 1) -> Backend:
    """The CPU backend, for work that no GPU speeds up; no kernel is part of its rule's digest."""
    from .backend_cpu import CpuBackend  # numba starts slowly

    return CpuBackend(threads)


def backend_for(device: str, threads: int | None = None, *, scans: bool = False) -> Backend:
    """`select_backend` for callers of functions, who have no configuration.

    A GPU is leased at its first use and kept until the process ends (`engine.lease`).

    Raises
    ------
    ValueError
        No such device, or not one thread.
    RuntimeError
        `device` is ``gpu`` and none can be used.
    """
    if device not in ("auto", "cpu", "gpu"):
        raise ValueError(f"device is {device!r}; give 'auto', 'cpu' or 'gpu'.")
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; give at least 1, or None for all CPUs.")
    if device != "cpu" and _leased and (_leased[0].can_scan or not scans):
        return _leased[0]
    try:
        backend = select_backend(device, threads or usable_cpus(), scans=scans)
    except UserError as reason:
        raise RuntimeError(
            "device is 'gpu', but no GPU can be used here; give 'cpu' or 'auto'."
        ) from reason
    if backend.name == "gpu":
        _leased.append(backend)
    return backend
