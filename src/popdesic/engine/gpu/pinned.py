"""Host memory that a CUDA device copies from directly."""

from __future__ import annotations

import cupy
import numpy as np


def is_pinned(array: np.ndarray) -> bool:
    """Whether planes are in pinned memory, each plane of each sample contiguous."""
    if array.strides[2] != 8 or array.strides[0] != array.shape[1] * array.strides[1]:
        return False
    host = 1  # cudaMemoryTypeHost: pinned; ordinary memory is not registered at all
    try:
        return cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type == host
    except cupy.cuda.runtime.CUDARuntimeError:
        return False
