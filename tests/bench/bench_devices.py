"""Tiles of one large study on 1, 2, 4 ... GPUs of a machine, one process and lease per GPU.

python tests/bench/bench_devices.py [--samples 30000] [--sites 8388608] [--passes 8] [--quick]

Every process leases a device as the workflow's jobs do, draws the planes of all samples there
(not timed), waits for the others, and computes its share of the upper triangle of tiles; int64
results are copied to the host. The planes of `sites` sites are multiplied `passes` times, to
simulate a study of sites x passes sites, which no device could hold. Time ends with the last
process. Numbers of devices that the machine does not have are left out.
"""

from __future__ import annotations

import multiprocessing
import time

import commandline
from timing import print_table


def work(options, n_devices: int, rank: int, start, done) -> None:
    """One process: its share of the tiles, on its own device."""
    import cupy
    import numpy as np

    from popdesic.engine.select import select_backend
    from popdesic.engine.terms import SQUARED, Planes

    backend = select_backend("gpu")
    cupy.random.seed(1)
    n_words, n_sites = options.sites // 64, options.sites * options.passes
    size = options.samples // options.blocks
    blocks = []
    for _ in range(options.blocks):
        drawn = cupy.empty((size, 2, n_words), np.uint64)
        for first in range(0, size, 128):
            part = drawn[first : first + 128]
            low = cupy.random.randint(0, 2**63 - 1, part.shape, dtype=np.int64)
            part[...] = low.view(np.uint64)
            part[:, 1] &= part[:, 0]  # hom is a subset of carrier
        blocks.append(Planes(drawn, options.sites))
    tiles = [(i, j) for i in range(options.blocks) for j in range(i, options.blocks)]
    # tiles on the diagonal cost half: deal them first, so that all processes get as many of each
    tiles.sort(key=lambda tile: tile[0] == tile[1], reverse=True)
    share = tiles[rank::n_devices]
    total = 0

    def product(i: int, j: int) -> int:
        same = i == j
        stream = backend.stream(size, None if same else size, 2, 2, SQUARED, n_sites)
        for _ in range(options.passes):
            stream.add(blocks[i], None if same else blocks[j])
        return int(stream.result()[0, 0, -1])

    product(0, 0)
    product(0, 1)  # compile and choose kernels
    cupy.cuda.Device().synchronize()
    start.wait()
    for tile in share:
        total += product(*tile)
    done.put((rank, backend.device.index, time.time(), total))


def measure(options, n_devices: int) -> tuple[float, list[int], int]:
    """Seconds from the common start to the last result, the devices, and a checksum."""
    context = multiprocessing.get_context("spawn")
    start, done = context.Barrier(n_devices + 1), context.Queue()
    processes = [
        context.Process(target=work, args=(options, n_devices, rank, start, done))
        for rank in range(n_devices)
    ]
    for process in processes:
        process.start()
    start.wait()
    began = time.time()
    results = [done.get() for _ in processes]
    for process in processes:
        process.join()
    return (
        max(end for _, _, end, _ in results) - began,
        sorted(device for _, device, _, _ in results),
        sum(total for *_, total in results),
    )


def count_devices() -> int:
    import cupy

    return cupy.cuda.runtime.getDeviceCount()


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=30000)
    parser.add_argument("--sites", type=int, default=8 << 20)
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--devices", type=int, nargs="*", default=[1, 2, 4])
    small = {"samples": 1536, "sites": 1 << 16, "passes": 2, "blocks": 3}
    options = commandline.parse(parser, gpu=True, **small)
    here = count_devices()
    for n_devices in options.devices:
        if n_devices > here:
            print(f"{n_devices} GPUs are left out: this machine has {here}.")
    numbers = [n for n in options.devices if n <= here]
    pairs = options.samples**2 / 2
    rows, first, checksum = [], None, None
    for n_devices in numbers:
        seconds, devices, total = measure(options, n_devices)
        assert len(set(devices)) == n_devices, "two jobs on one device"
        assert checksum in (None, total), "the sums depend on the number of devices"
        first, checksum = first or seconds, total
        rate = pairs * options.sites * options.passes / seconds / 1e12
        rows.append((n_devices, f"{seconds:.2f}", f"{rate:.0f}", f"{first / seconds:.2f}", devices))
    print_table(
        f"{options.samples} samples x {options.sites * options.passes} sites, no missing",
        ("GPUs", "s", "T site-pairs/s", "x one GPU", "devices"),
        rows,
    )


if __name__ == "__main__":
    main()
