"""Products of sets on a CUDA device, by CuPy's own functions (`set_numbers.py`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import cupy

from ..engine.stream_gpu import device_errors
from .set_products import Arrays


def gpu_arrays(index: int) -> Arrays:
    """Arrays of the device with this number; one set at a time uses it."""
    lock = threading.Lock()

    @contextmanager
    def use() -> Iterator[None]:
        with lock, cupy.cuda.Device(index), device_errors("tests of sets"):
            yield

    return Arrays(cupy, cupy.asarray, cupy.asnumpy, use)
