"""What scans of data larger than the device take at best, for `bench_epistasis.py --device-bytes`.

Each step scans its combinations while the next block of sites is copied.
"""

from __future__ import annotations

import math
import os
import time

from scan_cases import Case

from popdesic.engine.compile_gpu import current_device
from popdesic.epistasis.blocks_gpu import BlockPlanes, size_of
from popdesic.epistasis.blocks_plan import block_loads, block_sites, block_steps
from popdesic.epistasis.scan_data import ScanData


def block_of(case: Case, data: ScanData, device_bytes: int) -> int:
    """Sites of a block on a device with so much memory."""
    return block_sites(size_of(data, case.order, device_bytes), case.n_sites, device_bytes)


def copy_seconds(data: ScanData, block: int) -> float:
    """Seconds that the first block takes to the device, alone."""
    planes, times = BlockPlanes(data, block, 1, current_device(), os.cpu_count()), []
    for _ in range(3):
        started = time.perf_counter()
        planes.send(range(min(block, data.n_sites)))
        planes.coming.result().synchronize()
        times.append(time.perf_counter() - started)
    planes.close()
    return min(times)


def least_seconds(case: Case, block: int, a_copy: float, rate: float) -> tuple[float, int]:
    """Seconds by blocks, and copies, if each step took its combinations or the next copy alone."""
    n_blocks = -(-case.n_sites // block)
    sizes = [min(block, case.n_sites - i * block) for i in range(n_blocks)]
    steps = list(block_steps(n_blocks, case.order, range(n_blocks)))
    copies = [
        0.0 if new is None else a_copy * sizes[step[new]] / block
        for step, (_, new) in zip(steps, block_loads(steps, case.order), strict=True)
    ]
    seconds = copies[0]
    for step, copy in zip(steps, [*copies[1:], 0.0], strict=True):
        ones = [sizes[i] for i in step]
        tests = math.prod(ones)
        if len(ones) == 1:
            tests = math.comb(ones[0], case.order)
        elif len(ones) < case.order:  # two sites in either block
            tests = math.comb(ones[0], 2) * ones[1] + ones[0] * math.comb(ones[1], 2)
        seconds += max(tests / rate, copy)
    return seconds, sum(copy > 0 for copy in copies)


def describe(case: Case, data: ScanData, block: int, resident: float, rate: float) -> str:
    """A line on a scan by blocks.

    Parameters
    ----------
    block : int
        Sites of a block.
    resident, rate : float
        Combinations per second with all sites on the device, and by blocks.
    """
    a_copy = copy_seconds(data, block)
    seconds, n_copies = least_seconds(case, block, a_copy, resident)
    tests = math.comb(case.n_sites, case.order)
    return (
        f"   {n_copies} copies of {block} sites, {1000 * a_copy:.1f} ms each alone: at best "
        f"{seconds:.3f} s or {tests / seconds / resident:.1%} of the rate with all sites there; "
        f"{rate * seconds / tests:.1%} of that is reached"
    )
