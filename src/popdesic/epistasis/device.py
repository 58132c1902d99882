"""Which device scans by a score."""

from __future__ import annotations

import logging

from ..engine.base import Backend
from ..engine.select import cpu_backend, select_backend
from .options import ON_CPU, refuse_device

log = logging.getLogger(__name__)


def scan_backend(device: str, threads: int, score: str) -> Backend:
    """The backend that scans by `score`: as `select_backend`, or a CPU if no GPU can.

    Raises
    ------
    UserError
        `device` is ``gpu`` and no GPU can be used, or none ranks by this score.
    """
    refuse_device(score, device)
    if score in ON_CPU and device == "auto":
        log.info("No GPU kernel ranks by %s yet, so the CPU computes.", score)
        return cpu_backend(threads)
    return select_backend(device, threads)
