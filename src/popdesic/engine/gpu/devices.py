"""What plans need to know of a CUDA device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """What the choice of kernels and tiles needs to know of one CUDA device."""

    index: int
    name: str
    capability: int
    multiprocessors: int
    shared_bytes: int
    driver: int


#: The micro-kernels, fastest first; any of them gives the same integers.
KERNELS = ("wgmma", "mma", "popc")


def supported_kernels(device: Device) -> tuple[str, ...]:
    """The micro-kernels that exist for a device: wgmma is compute capability 9.0 alone."""
    return tuple(
        kernel
        for kernel in KERNELS
        if kernel == "popc"
        or (kernel == "mma" and device.capability >= 80)
        or (kernel == "wgmma" and device.capability == 90)
    )
