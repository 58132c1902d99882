"""Closures on one GPU and on several, with equal bytes, and what the exchange of panels costs.

python tests/bench/bench_spread_gpu.py [--devices 2] [--sizes 8192 16384 30000] [--quick]

The time of a closure is that of the wall clock, from the first launch to the end of all devices;
the matrix is there already. "exchange" is the time of the copies of all panels alone, as the
closure makes them; NCCL's is that of broadcasts of whole panels, where CuPy finds it. Where the
machine has fewer GPUs, several parts lie on one, which tests them but is no faster.
"""

from __future__ import annotations

import functools
import itertools
import os
import time

import commandline
import cupy
import numpy as np
from timing import print_table

from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.spread_gpu import Spread
from popdesic.geodesic.closure import close_paths

#: Broadcasts do without NVLink multicast.
os.environ["NCCL_NVLS_ENABLE"] = "0"


def wait(devices: list[int]) -> None:
    for index in devices:
        with cupy.cuda.Device(index):
            cupy.cuda.Device(index).synchronize()


def timed(devices: list[int], prepare, run, repeats: int) -> float:
    """Best seconds, after one warm-up; `prepare` is not timed."""
    best = float("inf")
    for repeat in range(repeats + 1):
        prepare()
        wait(devices)
        start = time.perf_counter()
        run()
        wait(devices)
        if repeat:
            best = min(best, time.perf_counter() - start)
    return best


def draw_weights(n: int, dtype: str, groups: int) -> np.ndarray:
    """Random weights, or squared distances in some groups of points on a plane."""
    if not groups:
        w = cupy.random.randint(1, 2**28, (n, n), dtype=np.int32)
        w = cupy.minimum(w, w.T)
        cupy.fill_diagonal(w, 0)
        return w.astype(dtype, copy=False).get()
    rng = cupy.random.default_rng(1)
    points = rng.standard_normal((n, 2)) + cupy.arange(n)[:, None] * groups // n * 8
    squared = sum((points[:, a, None] - points[None, :, a]) ** 2 for a in (0, 1))
    return (squared * (2**28 / float(squared.max()))).astype(dtype).get()


def time_one(
    backend: GpuBackend, weights: np.ndarray, prune: bool, repeats: int
) -> tuple[float, np.ndarray]:
    """Seconds of the closure on one device, and the closure."""
    found = np.empty_like(weights)
    held = backend.minplus().hold(weights)
    start = held.copy()

    def prepare() -> None:
        held[...] = start

    seconds = timed([0], prepare, lambda: close_paths(held, backend, prune=prune), repeats)
    backend.minplus().fetch(held, found)
    return seconds, found


def time_all(
    backend: GpuBackend, weights: np.ndarray, prune: bool, devices: list[int], repeats: int
) -> tuple[float, float, np.ndarray]:
    """Seconds of the closure on some devices and of its copies alone, and the closure."""
    found, spread = np.empty_like(weights), Spread(weights, devices)
    close = functools.partial(close_paths, backend=backend, prune=False)
    kept = []
    for part in spread.parts:
        with part.on(part.bulk):
            kept.append(part.stored.copy())

    def prepare() -> None:
        for part, copy in zip(spread.parts, kept, strict=True):
            with part.on(part.bulk):
                part.stored[...] = copy
        wait(devices)

    seconds = timed(devices, prepare, lambda: spread.close(close, prune), repeats)
    spread.fetch(found)

    def exchange() -> None:
        for panel, part in itertools.product(range(spread.plan.panels), spread.parts):
            with part.on(part.lead):
                for other in spread.parts:
                    if other is not part:
                        spread.take(part, other, panel)

    return seconds, timed(devices, wait_for_nothing, exchange, 3), found


def wait_for_nothing() -> None:
    """Nothing to prepare."""


def measure(
    backend: GpuBackend, n: int, dtype: str, groups: int, devices: list[int], repeats: int
) -> tuple:
    """A line of the table."""
    weights, prune = draw_weights(n, dtype, groups), bool(groups)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    alone, one = time_one(backend, weights, prune, repeats)
    pool.free_all_blocks()
    together, copies, several = time_all(backend, weights, prune, devices, repeats)
    pool.free_all_blocks()
    sent = (len(devices) - 1) * n * n * weights.itemsize / copies / 1e9
    return (
        dtype,
        n,
        "pruned" if prune else "full",
        f"{alone * 1e3:.1f}",
        f"{together * 1e3:.1f}",
        f"{alone / together:.2f}",
        "equal" if np.array_equal(*(x.view(np.uint32) for x in (one, several))) else "DIFFERENT",
        f"{copies * 1e3:.1f}",
        f"{sent:.0f}",
    )


def broadcasts(devices: list[int], n: int, panel: int = 512) -> str:
    """Seconds of broadcasts of the panels of an int32 closure by NCCL, from each device in turn."""
    from cupy.cuda import nccl

    if not nccl.available or len(set(devices)) < len(devices):
        return "NCCL: not available here"
    links = nccl.NcclCommunicator.initAll(devices)
    buffers, streams = [], []
    for index in devices:
        with cupy.cuda.Device(index):
            buffers.append(cupy.ones((panel, n), np.int32))
            streams.append(cupy.cuda.Stream(non_blocking=True))

    def run() -> None:
        for turn in range(-(-n // panel)):
            nccl.groupStart()
            for link, buffer, stream in zip(links, buffers, streams, strict=True):
                at, root = buffer.data.ptr, turn % len(devices)
                link.bcast(at, buffer.size, nccl.NCCL_INT32, root, stream.ptr)
            nccl.groupEnd()

    seconds = timed(devices, wait_for_nothing, run, 3)
    return f"NCCL {nccl.get_version()}: broadcasts of all panels, n = {n}: {seconds * 1e3:.1f} ms"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*", default=[4096, 8192, 16384, 30000])
    parser.add_argument("--types", nargs="*", default=["int32", "int64", "float32", "float64"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--groups", type=int, default=32, help="of the weights of pruned closures")
    options = commandline.parse(parser, gpu=True, sizes=[512, 1500])
    there = cupy.cuda.runtime.getDeviceCount()
    devices = [part % there for part in range(options.devices)]
    backend = GpuBackend()
    print(backend.describe())
    print(f"parts on devices {devices}; copies between devices, no NCCL")
    largest = max(options.sizes)
    cases = [("int32", n, 0) for n in options.sizes]
    others = [dtype for dtype in options.types if dtype != "int32"]
    cases += [(dtype, min(16384, largest), 0) for dtype in others]
    cases.append(("int32", largest, options.groups))
    head = ("type", "n", "closure", "one, ms", "all, ms", "x", "bytes", "exchange, ms", "GB/s")
    for dtype, n, groups in cases:
        row = measure(backend, n, dtype, groups, devices, options.repeats)
        print_table(f"closure on {options.devices} GPUs", head, [row])
    print(broadcasts(devices, largest))


if __name__ == "__main__":
    main()
