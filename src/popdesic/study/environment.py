"""Settings of a machine, which a study must not name: environment variables."""

from __future__ import annotations

import os

from ..core.errors import UserError

#: CUDA version of the CuPy that `--sdm conda` installs: 12 or 13; none if not set.
CONDA_CUDA = "POPDESIC_CONDA_CUDA"
#: GPUs of one machine that a large closure takes; one if not set.
CLOSURE_GPUS = "POPDESIC_CLOSURE_GPUS"
MOST_GPUS = 16
CUDA_VERSIONS = ("none", "12", "13")


def conda_cuda() -> str:
    """``none``, ``12`` or ``13``."""
    value = os.environ.get(CONDA_CUDA) or "none"
    if value not in CUDA_VERSIONS:
        raise UserError(f"the environment variable {CONDA_CUDA} is '{value}'; set it to 12 or 13.")
    return value


def closure_gpus() -> int:
    """How many GPUs of a machine a large closure may take."""
    value = os.environ.get(CLOSURE_GPUS) or "1"
    if not value.isdecimal() or not 1 <= int(value) <= MOST_GPUS:
        raise UserError(
            f"the environment variable {CLOSURE_GPUS} is '{value}'; set it to a whole number from "
            f"1 to {MOST_GPUS}."
        )
    return int(value)
