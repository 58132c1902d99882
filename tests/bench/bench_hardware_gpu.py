"""What the units of a GPU do, clock by clock, and each kernel's rate beside what follows from it.

    python tests/bench/bench_hardware_gpu.py [--samples 16384] [--sites 262144] [--nodes 8192]
    python tests/bench/bench_hardware_gpu.py --grid   rates of distances over samples and sites

Latency: clocks of one step of a chain in which every step waits for the one before it.
Throughput: instructions of a warp that a multiprocessor starts in a clock, with eight chains in
each of 32 warps. `warps` compares one chain a warp with the smaller of warps / latency and
throughput. `multiprocessors` runs the loop on some of them. The last table is the model: work of
a kernel, with its padding, through the unit that limits it, beside the measured kernel
(docs/devices.md).
"""

from __future__ import annotations

import bench_minplus_gpu
import commandline
import cupy
import numpy as np
from bench_bitgemm_gpu import Problem, draw_planes, measure_limits, site_pairs, time_events
from hardware_plan import (
    OPERATIONS,
    SOURCE,
    UNROLLED,
    defines_of,
    rate_of_warps,
    work_of_minplus,
    work_of_products,
)
from timing import print_table

from popdesic.engine import devices, tune_gpu, variants
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.terms import SQUARED

WARPS, CHAINS = 32, 8


def load(operation: str, chains: int, name: str = "chains") -> cupy.RawKernel:
    options = ("-std=c++17", *defines_of(operation, chains))
    return cupy.RawModule(code=SOURCE, options=options).get_function(name)


def run_chains(function, blocks: int, warps: int, rounds: int) -> tuple[float, float]:
    """Clocks of the slowest block, and seconds."""
    out, clocks = cupy.zeros(blocks * warps * 32, np.uint32), cupy.zeros(blocks, np.int64)
    given = (out, clocks, np.uint32(0x9E3779B9), np.uint32(0x7F4A7C15), np.int32(rounds))
    seconds = time_events(lambda: function((blocks,), (warps * 32,), given), 5)
    return float(clocks.max()), seconds


def measure_units(device: devices.Device, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Of each operation: latency in clocks, instructions a clock, instructions a second."""
    found = {}
    for name, (_, least) in OPERATIONS.items():
        if not device.has(least):
            continue
        clocks, _ = run_chains(load(name, 1), 1, 1, rounds)
        latency = clocks / rounds / UNROLLED
        full, seconds = run_chains(load(name, CHAINS), device.multiprocessors, WARPS, rounds)
        done = WARPS * CHAINS * UNROLLED * rounds
        found[name] = latency, done / full, done * device.multiprocessors / seconds
    return found


def measure_memory(megabytes: int, steps: int) -> list[tuple]:
    """Rows of latencies and rates of memory."""
    rows = []
    for name, size in (("L2", 4 << 20), ("memory", megabytes << 20)):
        line = 32  # words: one word of every 128 bytes is visited
        n = size // (4 * line)
        order = np.random.default_rng(1).permutation(n).astype(np.uint32)
        following = np.zeros(n, np.uint32)
        following[order] = np.roll(order, -1)
        words = cupy.zeros((n, line), np.uint32)
        words[:, 0] = cupy.asarray(following) * np.uint32(line)
        out, clocks = cupy.zeros(1, np.uint32), cupy.zeros(1, np.int64)
        load("shared", 1, "chase")((1,), (1,), (words, out, clocks, np.int32(steps)))
        rows.append((f"{name}, {size >> 20} MB", f"{int(clocks[0]) / steps:.0f} clocks"))
        del words
    source = cupy.zeros(megabytes << 20, np.uint8)
    target = cupy.empty_like(source)
    seconds = time_events(lambda: cupy.copyto(target, source), 5)
    rows.append(
        ("copy in memory, read and written", f"{2 * source.nbytes / seconds / 1e9:.0f} GB/s")
    )
    return rows


def model_of_products(device, units, n: int, n_sites: int) -> list[tuple]:
    limits = measure_limits(device)
    words, rows = draw_planes(n, n_sites, False), []
    for kernel in devices.supported_kernels(device):
        shape = variants.ShapeClass.of(n, n, n_sites, True, True)
        variant = tune_gpu.choose_variant(device, SQUARED, shape, kernel)
        problem = Problem(device, variant, words, n_sites, SQUARED)
        seconds = time_events(problem.multiply, 5)
        if kernel == "wgmma":  # its loop has a shape of its own (bench_bitgemm_gpu.py)
            bits, throughput = 1, limits["wgmma"]
        elif kernel == "mma":
            bits, throughput = OPERATIONS["mma"][0], units["mma"][2]
        else:
            bits, throughput = 32 * 32, units["popc"][2]
        work = work_of_products(n, n_sites, problem.plan.n_products, bits)
        measured = work.counted / seconds
        rows.append(row_of(f"distances, {kernel}", work.rate(throughput), measured))
        del problem
        cupy.get_default_memory_pool().free_all_blocks()
    return rows


def model_of_minplus(backend: GpuBackend, units, n: int) -> list[tuple]:
    limits = {
        "int32": 32 * units["min_add"][2],
        "float32": bench_minplus_gpu.measure_limits(backend.device)["limit_pairs"],
    }
    rows, work = [], work_of_minplus(n)
    for dtype, limit in limits.items():
        a, c = (bench_minplus_gpu.draw_weights(n, dtype) for _ in range(2))
        seconds = bench_minplus_gpu.timed(
            lambda a=a, c=c: backend.minplus().multiply(c, a.T, a, symmetric=False)
        )
        rows.append(row_of(f"min-plus, {dtype}", work.rate(limit), work.counted / seconds))
    return rows


def run_grid(device: devices.Device, n: int, n_sites: int) -> None:
    """T site-pairs/s, packing counted, of sizes up to these: samples down, sites across."""
    columns, rows = [n_sites >> shift for shift in (8, 6, 4, 2, 0)], []
    kernel = devices.supported_kernels(device)[0]
    for samples in [n >> shift for shift in (5, 4, 3, 2, 1, 0)]:
        rates = []
        for sites in columns:
            shape = variants.ShapeClass.of(samples, samples, sites, True, True)
            variant = tune_gpu.choose_variant(device, SQUARED, shape, kernel)
            words = draw_planes(samples, sites, False)
            problem = Problem(device, variant, words, sites, SQUARED)
            seconds = time_events(problem.pack_and_multiply, 5)
            rates.append(f"{site_pairs(samples, sites) / seconds / 1e12:.3g}")
            del problem, words
            cupy.get_default_memory_pool().free_all_blocks()
        rows.append((samples, *rates))
    title = f"distances by {kernel}, T site-pairs/s: samples down, sites across"
    print_table(title, ("", *columns), rows)


def row_of(name: str, predicted: float, measured: float) -> tuple:
    return (
        *(name, f"{predicted / 1e12:.2f}", f"{measured / 1e12:.2f}"),
        f"{measured / predicted - 1:+.0%}",
    )


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=16384)
    parser.add_argument("--sites", type=int, default=262_144)
    parser.add_argument("--nodes", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--megabytes", type=int, default=1024)
    options = commandline.parse(
        parser, gpu=True, samples=1024, sites=16384, nodes=1024, rounds=50, megabytes=64
    )
    backend = GpuBackend()
    device = backend.device
    print(backend.describe())
    if options.grid:
        run_grid(device, options.samples, options.sites)
        return
    units = measure_units(device, options.rounds)
    print_table(
        "units of a multiprocessor",
        ("operation", "latency, clocks", "warp instructions a clock", "T results/s of the card"),
        [
            (name, f"{latency:.1f}", f"{clock:.3f}", f"{second * OPERATIONS[name][0] / 1e12:.2f}")
            for name, (latency, clock, second) in units.items()
        ],
    )
    rows = []
    for name, (latency, most, _) in units.items():
        chain = load(name, 1)
        for warps in (1, 4, 8, 16, WARPS):
            clocks, _ = run_chains(chain, device.multiprocessors, warps, options.rounds)
            measured = warps * UNROLLED * options.rounds / clocks
            predicted = rate_of_warps(warps, latency, most)
            rows.append(
                (
                    *(name, warps, f"{predicted:.3f}", f"{measured:.3f}"),
                    f"{measured / predicted - 1:+.0%}",
                )
            )
    header = ("operation", "warps", "predicted", "measured", "off")
    print_table("warps: instructions a clock with one chain a warp", header, rows)
    rows, done = [], WARPS * CHAINS * UNROLLED * options.rounds * 32 / 1e12
    chains = load("popc", CHAINS)
    for part in (8, 4, 2, 1):
        blocks = max(1, device.multiprocessors // part)
        _, seconds = run_chains(chains, blocks, WARPS, options.rounds)
        rate = done * blocks / seconds
        rows.append((blocks, f"{rate:.3f}", f"{1e3 * rate / blocks:.2f}"))
    print_table("multiprocessors: POPC", ("number", "T/s", "G/s of one"), rows)
    print_table("memory", ("", ""), measure_memory(options.megabytes, 20 * options.rounds))
    print_table(
        "model: T site-pairs/s of distances, T op/s of min-plus",
        ("kernel", "predicted", "measured", "off"),
        [
            *model_of_products(device, units, options.samples, options.sites),
            *model_of_minplus(backend, units, options.nodes),
        ],
    )


if __name__ == "__main__":
    main()
