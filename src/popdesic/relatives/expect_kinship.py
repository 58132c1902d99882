"""Kinship beside expected genotypes, on the device of a backend."""

from __future__ import annotations

import numpy as np

from ..engine.backend import Backend, on_cpu
from .expected import ExpectedKinship


def expected_kinship(backend: Backend, basis: np.ndarray, n_sites: int) -> ExpectedKinship:
    """Kinship of all pairs beside expected genotypes; the same bytes from every backend."""
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from .expected_gpu import GpuExpected
        from .expected_plan import fits_expected

        if fits_expected(len(basis), n_sites, backend.device, backend.free_bytes()):
            with device_errors(f"kinships of {len(basis)} samples"):
                return GpuExpected(basis, n_sites, backend.device)
        on_cpu(f"kinships of {len(basis)} samples", "the device does not hold them")
    from .expected_cpu import CpuExpected

    return CpuExpected(basis, n_sites, backend.threads)
