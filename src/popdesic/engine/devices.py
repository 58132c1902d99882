"""What plans need to know of a GPU, and which kernels it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.errors import UserError

#: Lowers `Device.shared_bytes`, and names the only micro-kernel of a process (docs/devices.md).
SHARED_VARIABLE, KERNEL_VARIABLE = "POPDESIC_GPU_SHARED_BYTES", "POPDESIC_GPU_KERNEL"
#: The micro-kernels, fastest first; any of them gives the same integers.
KERNELS = ("wgmma", "mma", "popc")
#: Shared memory of a thread block that the scans of each kernel need. The devices that have its
#: instructions have as much; products need less, by POPC none that a launch has to ask for.
SCAN_BYTES = {"wgmma": 227 << 10, "mma": 99 << 10, "popc": 64 << 10}


@dataclass(frozen=True)
class Device:
    """What the choice of kernels and tiles needs to know of one GPU.

    Attributes
    ----------
    capability : int
        Of NVIDIA: ten times the major number, plus the minor one. Other vendors' numbers mean
        something else: a gfx90a says 90.
    shared_bytes : int
        Most shared memory of a thread block.
    driver : int
    vendor : str
        nvidia or amd.
    """

    index: int
    name: str
    capability: int
    multiprocessors: int
    shared_bytes: int
    driver: int
    vendor: str = "nvidia"

    def has(self, capability: int) -> bool:
        """Whether it runs what NVIDIA's devices run from some compute capability on."""
        return self.vendor == "nvidia" and self.capability >= capability


def supported_kernels(device: Device) -> tuple[str, ...]:
    """The micro-kernels that exist for a device: wgmma is compute capability 9.0 alone."""
    runs = {
        "wgmma": device.has(90) and device.capability == 90,
        "mma": device.has(80),
        "popc": True,
    }
    fits = {kernel: device.shared_bytes >= SCAN_BYTES[kernel] for kernel in KERNELS}
    return tuple(k for k in KERNELS if runs[k] and (fits[k] or k == "popc"))


def scan_kernels(device: Device) -> tuple[str, ...]:
    """The micro-kernels by which a device scans; none: it has too little shared memory.

    The scans count on warps of 32 threads, which other vendors' devices do not all have.
    """
    fits = device.vendor == "nvidia" and device.shared_bytes >= SCAN_BYTES["popc"]
    return supported_kernels(device) if fits else ()


def require_scans(device: Device) -> None:
    """Refuse a device that cannot scan.

    Raises
    ------
    UserError
        It is not NVIDIA's, or has too little shared memory.
    """
    if scan_kernels(device):
        return
    reason = "is not an NVIDIA device"
    if device.vendor == "nvidia":
        reason = f"gives a thread block {device.shared_bytes} bytes of shared memory"
    raise UserError(
        f"{device.name} {reason}, and epistasis scans need an NVIDIA device with "
        f"{SCAN_BYTES['popc']} bytes"
    )


def lowered(shared_bytes: int, environment: Mapping[str, str] = os.environ) -> int:
    """The shared memory of a thread block, or less if SHARED_VARIABLE says so.

    Raises
    ------
    UserError
        The variable is no number of bytes.
    """
    given = environment.get(SHARED_VARIABLE, "")
    if not given:
        return shared_bytes
    if not given.isascii() or not given.isdigit() or int(given) == 0:
        raise UserError(
            f"{SHARED_VARIABLE} is {given!r}; give a number of bytes, such as 101376, or unset it."
        )
    return min(shared_bytes, int(given))


def named_kernel(environment: Mapping[str, str] = os.environ) -> str | None:
    """The micro-kernel that KERNEL_VARIABLE names.

    Raises
    ------
    UserError
        There is no such kernel.
    """
    given = environment.get(KERNEL_VARIABLE) or None
    if given not in (None, *KERNELS):
        raise UserError(
            f"{KERNEL_VARIABLE} is {given!r}; give {', '.join(KERNELS[:-1])} or {KERNELS[-1]}, or "
            "unset it."
        )
    return given
