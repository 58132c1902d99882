"""Compile the CUDA sources in `kernels/` for the current device."""

from __future__ import annotations

import dataclasses
import functools

import cupy

from .devices import Device, lowered
from .layout import KernelSource
from .sources import read_source


@functools.cache
def load_function(
    source: KernelSource, function: str, defines: tuple[tuple[str, int], ...], capability: int
) -> cupy.RawKernel:
    """Compile one kernel (NVRTC, then CuPy's cache on disk) for the current device."""
    options = source.options(defines)
    if capability == 90 and not cupy.cuda.runtime.is_hip:
        options += ("-arch=sm_90a",)
    module = cupy.RawModule(code=read_source(source.file), options=options)
    return module.get_function(function)


def current_device() -> Device:
    """The device that the calling thread uses.

    Raises
    ------
    UserError
        `devices.SHARED_VARIABLE` is no number of bytes.
    """
    found = _describe_device(cupy.cuda.runtime.getDevice())
    return dataclasses.replace(found, shared_bytes=lowered(found.shared_bytes))


@functools.cache  # asking takes a millisecond
def _describe_device(index: int) -> Device:
    found = cupy.cuda.runtime.getDeviceProperties(index)
    return Device(
        index,
        found["name"].decode(),
        found["major"] * 10 + found["minor"],
        found["multiProcessorCount"],
        found.get("sharedMemPerBlockOptin") or found["sharedMemPerBlock"],
        cupy.cuda.runtime.driverGetVersion(),
        "amd" if cupy.cuda.runtime.is_hip else "nvidia",
    )
