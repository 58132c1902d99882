"""Ask, before any job, whether the GPUs of this machine can do what a study asks of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from ..core.errors import UserError
from .lease import visible_devices

log = logging.getLogger(__name__)
#: Has a folder for each GPU where NVIDIA's driver is loaded.
DRIVER = Path("/proc/driver/nvidia/gpus")


def require_gpus(device: str, wanted: int, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse closures on more GPUs than this machine has, if it has any.

    Parameters
    ----------
    device : str
        As configured.
    wanted : int
        GPUs of one job.
    environment : mapping
        Says which devices are visible.

    Raises
    ------
    UserError
        There are fewer, but one.
    """
    if device == "cpu" or not DRIVER.is_dir():
        return
    count = len(list(DRIVER.iterdir()))
    if "CUDA_VISIBLE_DEVICES" in environment:
        count = len(visible_devices(environment))
    if 0 < count < wanted:
        raise UserError(
            f"POPDESIC_CLOSURE_GPUS is {wanted}, but this machine has {count}; set it to "
            f"{count} (if the jobs run elsewhere, hide what is here: CUDA_VISIBLE_DEVICES=)."
        )


def scan_remarks(device: str) -> list[str]:
    """Why the first GPU of this machine, if there is one, cannot run the epistasis scans.

    Parameters
    ----------
    device : str
        As configured. ``gpu`` refuses such a GPU, ``auto`` computes on the CPU.

    Raises
    ------
    UserError
        `device` is ``gpu``, and the first GPU cannot scan.
    """
    if device == "cpu" or not DRIVER.is_dir():
        return []
    try:
        from .compile_gpu import current_device
        from .devices import require_scans

        require_scans(current_device())
    except UserError as reason:
        if device == "gpu":
            raise UserError(
                f"device is 'gpu', but {reason}; set device to 'cpu' or 'auto', or "
                "use another GPU (if the jobs run elsewhere, hide this one: CUDA_VISIBLE_DEVICES=)."
            ) from None
        return [f"{reason}: the CPU computes the scans."]
    except Exception as reason:  # no CuPy, no driver: the jobs may run on other machines
        log.info("The GPU of this machine was not asked whether it can scan: %s", reason)
    return []
