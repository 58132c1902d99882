"""CUDA devices and scan kernels for tests of launch plans; nothing here needs a GPU."""

from __future__ import annotations

from popdesic.engine.devices import Device
from popdesic.epistasis import scan_plan

#: H100 or H200, RTX 30, RTX 20: one device for each of the micro-kernels.
HOPPER = Device(0, "H", 90, 132, 232448, 12040)
AMPERE = Device(0, "A", 86, 84, 101376, 12040)
TURING = Device(0, "T", 75, 40, 65536, 12040)


def scan_shape(
    core: scan_plan.Core,
    order: int,
    states: int,
    *,
    table: int = 0,
    wide: int = 0,
    bare: bool = False,
    lockstep: int = 0,
    parts: int | None = None,
    joint: int = 1,
    apart: int = 0,
    x_states: int = 0,
    device: Device = HOPPER,
) -> scan_plan.ScanShape:
    """How `core` is compiled for a scan; operands hold one first site each."""
    return scan_plan.scan_shape(
        core,
        order=order,
        states=states,
        table=table,
        wide=wide,
        joint=joint,
        parts=parts or ((x_states or states) if order == 3 else 1),
        bare=bare,
        lockstep=lockstep,
        device=device,
        apart=apart,
        x_states=x_states,
    )
