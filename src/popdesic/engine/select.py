"""Choose the backend that a job computes on."""

from __future__ import annotations

import logging
from pathlib import Path

from ..io.errors import UserError
from .base import Backend

log = logging.getLogger(__name__)
#: Has a folder for each GPU where NVIDIA's driver is loaded.
DRIVER = Path("/proc/driver/nvidia/gpus")


def select_backend(device: str, threads: int = 1, host_bytes: int | None = None) -> Backend:
    """The backend for `device`: ``cpu``, ``gpu`` or ``auto`` (a GPU where one is usable).

    `threads` are the CPU threads of the job. `host_bytes` bounds the pinned host memory through
    which planes reach a GPU; a CPU maps its files.
    Nothing falls back silently: ``gpu`` without a usable GPU is an error; what ``auto`` chose is
    in the backend's `describe()`, which every caller logs, and why it took no GPU is logged here.

    Raises
    ------
    UserError
        `device` is ``gpu`` and no GPU, driver or CuPy is usable here.
    """
    if device in ("gpu", "auto"):
        try:
            from .gpu.backend import GpuBackend

            return GpuBackend.leased(threads, host_bytes)
        except (ImportError, UserError) as reason:
            if device == "gpu":
                raise UserError(
                    f"config.yaml: device is 'gpu', but no GPU can be used on this machine "
                    f"({reason}); set device to 'cpu' or 'auto', or run on a GPU node."
                ) from None
            if isinstance(reason, ImportError) and DRIVER.is_dir():
                log.warning(
                    "There is an NVIDIA GPU here, but CuPy is missing (%s), so the CPU computes; "
                    "to use the GPU: pip install --require-hashes -r requirements-gpu.txt",
                    reason,
                )
            else:
                log.info("No GPU can be used here (%s), so the CPU computes.", reason)
    from .cpu.backend import CpuBackend

    return CpuBackend(threads)
