"""Host memory that a CUDA device copies from directly."""

from __future__ import annotations

from collections import deque

import cupy
import numpy as np

#: Pinned memory that kernels still read, with the events after which they do not.
_READING: deque[tuple[cupy.cuda.Event, object]] = deque()


def is_pinned(array: np.ndarray) -> bool:
    """Whether planes are in pinned memory, each plane of each sample contiguous."""
    if array.strides[2] != 8 or array.strides[0] != array.shape[1] * array.strides[1]:
        return False
    host = 1  # cudaMemoryTypeHost: pinned; ordinary memory is not registered at all
    try:
        return cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type == host
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def read_by_kernel(array: np.ndarray) -> cupy.ndarray:
    """A device copy that does not wait behind queued uploads: a kernel reads pinned memory.

    The host does not wait for it, and may change `array` at once.
    """
    while _READING and _READING[0][0].done:
        _READING.popleft()
    memory = cupy.cuda.alloc_pinned_memory(max(1, array.nbytes))
    pinned = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    pinned[...] = array
    view = cupy.cuda.UnownedMemory(memory.ptr, max(1, array.nbytes), memory)
    pointer = cupy.cuda.MemoryPointer(view, 0)
    out = cupy.ndarray(array.shape, array.dtype, pointer) + array.dtype.type(0)
    _READING.append((cupy.cuda.get_current_stream().record(), memory))
    return out
