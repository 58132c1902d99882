"""Distances and components of a study whose planes pass once, beside reading the planes once.

    python tests/bench/bench_together.py [--study 4000 80000000] [--study 30000 600000000]
        [--pruned 1000000] [--share 1] [--spectrum neutral|common|even] [--disk DIR] [--quick]

The planes of a study that does not fit a host: a ring of pinned memory, sent again and again. Its
sites have the frequency spectrum of a neutral population, of its sites with a MAF of 1 % or more,
or all a frequency of one half: the worst case, every site takes all products. --share computes a
part of the sites; copies and distances are scaled to all of them. The components are those of
--pruned sites: `define_axes` passes over the sites that LD pruning leaves, from packed genotypes in
host memory, until 20 components are found. They are computed alone, and by another thread while the
distances stream. --disk also times a file of 8 GB that is read once into pinned memory, after it
was dropped from the page cache. What the pruning itself takes is not part of it.
"""

from __future__ import annotations

import functools
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import commandline
import cupy
import cupyx
import numpy as np
from bench_bitgemm_gpu import time_events
from bench_pca import by_passes
from drawn_million import draw
from spectra_gpu import draw_spectrum
from timing import print_table

from popdesic.components.relationship_products import RelationshipProducts
from popdesic.engine import layout
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.genotype_products import Calls
from popdesic.engine.terms import SQUARED, Planes

#: Sites of the ring. At its end the host waits until all is sent, and kernels of the components
#: come between. In much shorter ranges rare sites are not set apart.
RING_SITES = 1 << 19
#: Bytes of the file that is read from disk, of one request, and threads.
FILE_BYTES, REQUEST_BYTES, READERS = 8 << 30, 32 << 20, 8


def frequencies(kind: str, n: int, n_sites: int) -> np.ndarray:
    if kind == "even":
        return np.full(n_sites, 0.5)
    rarest = n // 50 if kind == "common" else 1
    counts = np.arange(rarest, 2 * n - rarest + 1)
    chances = (1 / counts) / (1 / counts).sum()
    return np.random.default_rng(1).choice(counts, n_sites, p=chances) / (2 * n)


def draw_ring(kind: str, n: int, host_bytes: int, n_sites: int) -> Planes:
    """Planes of some sites in pinned memory; distances read them again and again."""
    part = max(1, min(n_sites, 4 * host_bytes // n) // layout.STAGE_BITS) * layout.STAGE_BITS
    ring = cupyx.empty_pinned((n, 2, part // 64), np.uint64)
    step = max(1, (1 << 28) // (n * 16)) * layout.STAGE_BITS // 64
    every = frequencies(kind, n, part)
    for first in range(0, part // 64, step):
        own = slice(first, min(first + step, part // 64))
        ring[:, :, own] = draw_spectrum(n, every[64 * own.start : 64 * own.stop], first).get()
    return Planes(ring, part)


class Distances:
    """Squared distances of everyone over the sites of a study, streamed from the ring."""

    def __init__(self, backend: GpuBackend, ring: Planes, n_sites: int) -> None:
        self.backend, self.ring, self.n_sites = backend, ring, n_sites
        self.products, self.streamed = "", 0.0

    def run(self) -> None:
        """All sums; `streamed`: seconds of what grows with the number of sites."""
        stream = self.backend.stream(self.ring.n_samples, None, 2, 2, SQUARED, self.n_sites)
        start, done = time.perf_counter(), 0
        while done < self.n_sites:
            sites = min(self.ring.n_sites, self.n_sites - done)
            stream.add(Planes(self.ring.words, sites))
            done += sites
        stream._compute.synchronize()
        self.streamed = time.perf_counter() - start
        for _ in stream.result_rows():
            pass
        way = "rare sites apart" if stream.rare_sites else "all sites dense"
        self.products = f"{stream.variant.label}, {way}"


class Components:
    """20 components of packed genotypes in host memory."""

    def __init__(self, backend: GpuBackend, n: int, n_sites: int) -> None:
        drawn = draw(n, n_sites, "gpu")
        rows = cupyx.empty_pinned(drawn.rows.shape, np.uint8)
        drawn.rows.get(out=rows)
        self.backend, self.passes = backend, 0
        who = np.arange(4 * rows.shape[1]) < n
        self.calls = Calls((rows,), None, (who,), drawn.af)
        self.names = [f"S{i}" for i in range(n)]

    def run(self) -> None:
        with cupy.cuda.Stream(non_blocking=True):
            relationship = RelationshipProducts(self.backend.genotype_products(self.calls))
            self.passes = by_passes(relationship, self.names, 20).passes
            cupy.cuda.get_current_stream().synchronize()


def seconds_of(work) -> float:
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    work()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start


def at_once(one, other) -> None:
    thread = threading.Thread(target=one)
    thread.start()
    other()
    thread.join()


def disk_rate(folder: Path) -> float:
    """Bytes a second of a file that is read once into pinned memory."""
    pinned = [cupyx.empty_pinned(REQUEST_BYTES, np.uint8) for _ in range(READERS)]
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        block = np.random.default_rng(1).integers(0, 256, REQUEST_BYTES, np.uint8).tobytes()
        for _ in range(FILE_BYTES // REQUEST_BYTES):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        def read(reader: int) -> None:
            for first in range(reader * REQUEST_BYTES, FILE_BYTES, READERS * REQUEST_BYTES):
                os.preadv(file.fileno(), [memoryview(pinned[reader])], first)

        start = time.perf_counter()
        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(read, range(READERS)))
        return FILE_BYTES / (time.perf_counter() - start)


def bench(n: int, n_sites: int, options) -> tuple:
    backend = GpuBackend(threads=options.threads)
    computed = max(1, int(n_sites * options.share))
    host_bytes = options.host_bytes or n * RING_SITES // 4
    ring = draw_ring(options.spectrum, n, host_bytes, computed)
    sent = cupy.empty(ring.words.shape, np.uint64)
    copy = time_events(functools.partial(sent.set, ring.words), 3, 1) * n_sites / ring.n_sites
    sent = None
    cupy.get_default_memory_pool().free_all_blocks()
    small = Distances(backend, ring, 2 * ring.n_sites)
    small.run()  # kernels are compiled, ways are measured
    distances = Distances(backend, ring, computed)
    pca = Components(backend, n, options.pruned)
    cupy.get_default_memory_pool().free_all_blocks()
    pca.run()
    alone, streamed = seconds_of(distances.run), distances.streamed
    components = seconds_of(pca.run)
    together = seconds_of(lambda: at_once(pca.run, distances.run))
    # What streams is scaled to all sites; the components are computed once whatever the share.
    scaled = alone + streamed * (n_sites / computed - 1)
    both = scaled + max(0.0, together - alone)
    about = f"{distances.products}; ring of {ring.n_sites} sites, {pca.passes} passes"
    print(f"{n} x {n_sites}: {about}", flush=True)
    cells = (copy, scaled, components, scaled + components, both)
    sizes = f"{n} x {n_sites}", f"{n * n_sites / 4e9:.0f}"
    ratios = f"{(scaled + components) / copy:.2f}", f"{both / copy:.2f}"
    return (*sizes, *(f"{x:.2f}" for x in cells), *ratios)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--study", type=int, nargs=2, action="append", metavar=("N", "SITES"))
    parser.add_argument("--pruned", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--spectrum", choices=("neutral", "common", "even"), default="neutral")
    parser.add_argument("--host-bytes", type=int, help="of the ring (default: by its sites)")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--disk", type=Path, help="folder on the disk to be read")
    small = {"study": [[512, 1 << 20]], "pruned": 5000, "host_bytes": 1 << 26}
    options = commandline.parse(parser, gpu=True, **small)
    print(GpuBackend().describe())
    rows = [
        bench(*study, options)
        for study in options.study or [(4000, 80_000_000), (30_000, 600_000_000)]
    ]
    header = (
        *("people x sites", "GB", "planes read once, s", "distances", "components"),
        *("one after the other", "at once", "ratio", "ratio"),
    )
    title = f"{options.spectrum} spectrum, {options.share:g} of the sites computed"
    print_table(f"{title}, components of {options.pruned} sites", header, rows)
    if options.disk:
        rate = disk_rate(options.disk)
        print(f"from disk: {rate / 1e9:.2f} GB/s with {READERS} readers")


if __name__ == "__main__":
    main()
