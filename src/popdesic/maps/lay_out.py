"""A map laid out on the device of a backend."""

from __future__ import annotations

import numpy as np

from ..engine.backend import Backend, on_cpu
from .layouts import Layout


def lay_out(backend: Backend, layout: Layout) -> np.ndarray:
    """Points of a map after all epochs, int64 (n, 2); the same from every backend."""
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from .layouts_gpu import lay_out as on_gpu
        from .layouts_plan import fits_layout

        if fits_layout(layout, backend.device, backend.free_bytes()):
            with device_errors(f"a map of {len(layout.points)} points"):
                return on_gpu(layout, backend.device)
        on_cpu(f"a map of {len(layout.points)} points", "the device cannot lay it out")
    from .layouts_cpu import run_epochs

    return run_epochs(layout, backend.threads)
