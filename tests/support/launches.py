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
    split_cells: int = 0,
    sites_only: bool = False,
    lockstep: int = 0,
    parts: int | None = None,
    operand_sites: int = 1,
    split_accumulators: int = 0,
    x_states: int = 0,
    device: Device = HOPPER,
) -> scan_plan.ScanShape:
    """How `core` is compiled for a scan; operands hold one first site each."""
    return scan_plan.scan_shape(
        core,
        order=order,
        states=states,
        table=table,
        split_cells=split_cells,
        operand_sites=operand_sites,
        parts=parts or ((x_states or states) if order > 2 else 1),
        sites_only=sites_only,
        lockstep=lockstep,
        device=device,
        split_accumulators=split_accumulators,
        x_states=x_states,
    )
