"""Ask, before any job, whether the GPU of this machine can run the epistasis scans."""

from __future__ import annotations

import logging
from pathlib import Path

from ..io.errors import UserError

log = logging.getLogger(__name__)
#: Has a folder for each GPU where NVIDIA's driver is loaded.
DRIVER = Path("/proc/driver/nvidia/gpus")


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
        from .gpu.compile import current_device
        from .gpu.devices import require_scans

        require_scans(current_device())
    except UserError as reason:
        if device == "gpu":
            raise UserError(
                f"config.yaml: device is 'gpu', but {reason}; set device to 'cpu' or 'auto', or "
                "use another GPU (if the jobs run elsewhere, hide this one: CUDA_VISIBLE_DEVICES=)."
            ) from None
        return [f"{reason}: the CPU computes the scans."]
    except Exception as reason:  # no CuPy, no driver: the jobs may run on other machines
        log.info("The GPU of this machine was not asked whether it can scan: %s", reason)
    return []
