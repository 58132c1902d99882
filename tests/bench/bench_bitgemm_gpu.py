"""Bit-GEMM on one GPU: every micro-kernel beside its limit and its peers, in one run.

    python tests/bench/bench_bitgemm_gpu.py [--samples 16384] [--sites 1048576] [--quick]
    python tests/bench/bench_bitgemm_gpu.py --sweep      tile parameters and splits
    python tests/bench/bench_bitgemm_gpu.py --instances  three published instances, streamed
    python tests/bench/bench_bitgemm_gpu.py --spectrum   rare sites beside the dense products
    python tests/bench/bench_bitgemm_gpu.py --ploidy     distances of ploidy 2, 4 and 6

Times are medians of device events after a warm-up, on random planes drawn on the device. `kernel`
is the products only; `+ pack` adds packing the stored planes and clearing the accumulators.
A site-pair is one site of one pair of different samples: n (n - 1) / 2 * sites of them. The
limits are loops without memory traffic (wgmma on shared memory, mma.sync and POPC on registers).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path

import commandline
import cupy
import cupyx
import numpy as np

from popdesic.engine import (
    bitgemm_gpu,
    devices,
    layout,
    sources,
    tune_gpu,
    tune_plan,
    variants,
)
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.terms import ALLELES, PRODUCT, SQUARED, SQUARES, Planes, Terms

TERA = 1e12

LIMIT_WGMMA = """
extern "C" __global__ void __launch_bounds__(256, 1) limit(int* out, int rounds, u32 seed) {
    extern __shared__ u8 shared[];
    const u32 base = ((u32)__cvta_generic_to_shared(shared) + 1023) & ~1023u;
    u32* words = reinterpret_cast<u32*>(shared + (base - (u32)__cvta_generic_to_shared(shared)));
    u32 x = seed + threadIdx.x * 2654435761u + blockIdx.x;
    for (int i = threadIdx.x; i < SLOT_BYTES / 4; i += 256) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        words[i] = x;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    int d[N_ACC];
    #pragma unroll
    for (int j = 0; j < N_ACC; ++j) d[j] = 0;
    const u32 a = base + threadIdx.x / WARPGROUP * CONSUMER_ROWS * STAGE_BYTES;
    const u32 b = base + A_BYTES;
    for (int r = 0; r < rounds; ++r) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        #pragma unroll
        for (int q = 0; q < 4; ++q)
            multiply_256<0>(d, describe(a + q * K_STEP_BYTES), describe(b + q * K_STEP_BYTES));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int sum = 0;
    #pragma unroll
    for (int j = 0; j < N_ACC; ++j) sum += d[j];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
"""
LIMIT_MMA = """
extern "C" __global__ void __launch_bounds__(256) limit(int* out, int rounds, u32 seed) {
    int d[8][4] = {};
    u32 a[8][4], b[2];
    u32 x = seed + threadIdx.x * 2654435761u + blockIdx.x;
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 4; ++j) x ^= x << 13, x ^= x >> 17, x ^= x << 5, a[i][j] = x;
    b[0] = x * 2654435761u, b[1] = ~x;
    for (int r = 0; r < rounds; ++r)
        #pragma unroll
        for (int i = 0; i < 8; ++i) multiply(d[i], a[i], b[0], b[1]);
    int sum = 0;
    for (int i = 0; i < 8; ++i) sum += d[i][0] + d[i][1] + d[i][2] + d[i][3];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
"""
LIMIT_POPC = """
extern "C" __global__ void __launch_bounds__(256) limit(int* out, int rounds, unsigned int seed) {
    unsigned int x[8];
    for (int i = 0; i < 8; ++i) x[i] = seed + threadIdx.x * 2654435761u + i * 40503u + blockIdx.x;
    for (int r = 0; r < rounds; ++r)
        #pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = __popc(x[i]) + seed;
    unsigned int sum = 0;
    for (int i = 0; i < 8; ++i) sum += x[i];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
"""


def time_events(action: Callable[[], object], repeats: int, warm_up: int = 2) -> float:
    """Median seconds of `action` on the current stream, by device events."""
    seconds = []
    for _ in range(warm_up + repeats):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        action()
        stop.record()
        stop.synchronize()
        seconds.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return float(np.median(seconds[warm_up:]))


def measure_limits(device: devices.Device) -> dict[str, float]:
    """Limits of this device: bit-MAC/s of wgmma and mma.sync, POPC instructions/s."""
    out = cupy.zeros(device.multiprocessors * 8 * 256, np.int32)
    limits = {}
    cases = {
        "wgmma": (
            LIMIT_WGMMA,
            1,
            20_000,
            2 * 4 * 64 * 256 * 256,
        ),
        "mma": (
            LIMIT_MMA,
            2,
            60_000,
            8 * 8 * 16 * 8 * 256,
        ),
        "popc": (LIMIT_POPC, 8, 20_000, 256 * 8),
    }
    for name, (text, blocks, rounds, work) in cases.items():
        if name not in devices.supported_kernels(device):
            continue
        kernel, _ = variants.MICRO_KERNELS[name]
        source = text if name == "popc" else sources.read_source(kernel.file) + text
        variant = tune_plan.variants_to_measure(device, name)[-1]  # of wgmma: clusters of one
        defines = variants.defines_of(variant, layout.Pass(()), True)
        options = kernel.options(defines)
        if device.capability == 90:
            options = (*options, "-arch=sm_90a")
        function = cupy.RawModule(code=source, options=options).get_function("limit")
        shared = variants.SLOT_BYTES + 1024 if name == "wgmma" else 0
        if shared:
            function.max_dynamic_shared_size_bytes = shared
        grid = device.multiprocessors * blocks
        arguments = (out, np.int32(rounds), np.uint32(12345))
        action = functools.partial(function, (grid,), (256,), arguments, shared_mem=shared)
        seconds = time_events(action, 5)
        limits[name] = grid * rounds * work / seconds
    return limits


def draw_planes(n_samples: int, n_sites: int, masked: bool) -> cupy.ndarray:
    """Random planes on the device, (n_samples, 2 or 3, n_words): u, v a subset of u, c 94 % set."""
    n_words = layout.divide_up(n_sites, 64)

    def bits() -> cupy.ndarray:
        return cupy.random.randint(0, 2**32, (n_samples, 2 * n_words), np.uint32).view(np.uint64)

    planes = cupy.empty((n_samples, 3 if masked else 2, n_words), np.uint64)
    planes[:, 0] = bits()
    planes[:, 1] = planes[:, 0] & bits()
    if masked:
        planes[:, 2] = bits() | bits()
        planes[:, 2] |= bits() | bits()
    if n_sites % 64:
        planes[:, :, -1] &= np.uint64((1 << n_sites % 64) - 1)
    return planes


class Problem:
    """One block of samples with itself, packed on the device for one variant."""

    def __init__(self, device, variant, words, n_sites: int, terms: Terms) -> None:
        self.device, self.variant, self.words, self.n_sites = device, variant, words, n_sites
        n = len(words)
        self.plan = tune_plan.plan_for(variant, terms, words.shape[1] == 2)
        self.padded = layout.divide_up(n, layout.BLOCK_ROWS) * layout.BLOCK_ROWS
        n_stages = layout.divide_up(n_sites, layout.STAGE_BITS)
        self.packed = cupy.empty(layout.packed_bytes(n, len(self.plan.letters), n_stages), np.uint8)
        self.counts = cupy.zeros((n, 3), np.uint64)
        self.acc = cupy.zeros((self.plan.n_slots, self.padded, self.padded), np.int32)
        blocks = self.padded // layout.BLOCK_ROWS
        self.blocks = cupy.asarray(variants.block_order(blocks, blocks, True))
        given = self.packed, self.packed, self.acc, self.blocks
        self.work = bitgemm_gpu.Launch(*given, n_stages, True)
        self.pack()

    def pack(self) -> None:
        bitgemm_gpu.pack_range(
            self.words,
            0,
            self.words.shape[2],
            self.n_sites,
            self.plan.letters,
            self.packed,
            self.counts,
            self.device.capability,
        )

    def multiply(self, splits: int | None = None) -> None:
        bitgemm_gpu.launch(self.variant, self.device, self.plan, self.work, splits)

    def pack_and_multiply(self) -> None:
        self.acc.fill(0)
        self.pack()
        self.multiply()


def site_pairs(n: int, n_sites: int) -> float:
    return n * (n - 1) / 2 * n_sites


def time_cublas_int8(n: int, n_sites: int, repeats: int) -> float:
    """Seconds of cuBLAS for the full square X.X^t of int8 genotypes, int32 sums."""
    x = cupy.empty((n, n_sites), np.int8)
    for first in range(0, n, 256):
        bits = cupy.random.randint(0, 2**32, (len(x[first : first + 256]), n_sites // 4), np.uint32)
        x[first : first + 256] = (bits.view(np.int8) & 1) + (bits.view(np.int8) >> 1 & 1)
    c = cupy.zeros((n, n), np.int32)
    one, zero = np.array(1, np.int32), np.array(0, np.int32)
    from cupy_backends.cuda.libs import cublas

    handle = cupy.cuda.device.get_cublas_handle()
    cuda_r_8i, cuda_r_32i, compute_32i = 3, 10, 72
    return time_events(
        lambda: cublas.gemmEx(
            handle,
            cublas.CUBLAS_OP_T,
            cublas.CUBLAS_OP_N,
            n,
            n,
            n_sites,
            one.ctypes.data,
            x.data.ptr,
            cuda_r_8i,
            n_sites,
            x.data.ptr,
            cuda_r_8i,
            n_sites,
            zero.ctypes.data,
            c.data.ptr,
            cuda_r_32i,
            n,
            compute_32i,
            -1,
        ),
        repeats,
        1,
    )


def time_float32(n: int, n_sites: int, repeats: int) -> float:
    """Seconds of CuPy for X.X^t in float32."""
    x = cupy.random.randint(0, 3, (n, n_sites), np.int8).astype(np.float32)
    c = cupy.empty((n, n), np.float32)
    return time_events(lambda: cupy.matmul(x, x.T, out=c), repeats, 1)


def print_row(case: str, kernel: str, *numbers: object) -> None:
    cells = [f"{x:>10.1f}" if isinstance(x, float) else f"{x!s:>10}" for x in numbers]
    print(f"{case:<34} {kernel:<34}", *cells, flush=True)


def run_cases(
    device: devices.Device, n: int, n_sites: int, second: tuple[int, int], repeats: int
) -> None:
    limits = measure_limits(device)
    for name, limit in limits.items():
        print(f"limit of {name}: {limit / TERA:.2f} T {'POPC' if name == 'popc' else 'bit-MAC'}/s")
    best_popc = None
    int8 = None
    try:
        int8 = time_cublas_int8(n, n_sites, 3)
        print(
            f"cuBLAS int8, full square: {int8 * 1e3:.1f} ms, {n * n * n_sites / int8 / TERA:.0f} "
            f"T MAC/s"
        )
    except Exception as reason:
        print(f"cuBLAS int8 did not run: {reason}")
    few = min(n_sites, 32768)
    float32 = time_float32(n, few, 2) * n_sites / few
    print(
        f"CuPy float32, full square, scaled from {few} sites: {float32 * 1e3:.0f} ms, "
        f"{n * n * n_sites / float32 / TERA:.1f} T MAC/s"
    )
    cupy.get_default_memory_pool().free_all_blocks()
    print_row(
        "case",
        "micro-kernel",
        "ms kernel",
        "ms + pack",
        "T pairs/s",
        "T + pack",
        "% limit",
        "x int8",
        "x float32",
        "x popc",
    )
    for masked, samples, sites in ((False, n, n_sites), (True, n, n_sites), (False, *second)):
        words = draw_planes(samples, sites, masked)
        case = f"{samples} x {sites}{' with missing' if masked else ''}"
        main = (samples, sites) == (n, n_sites)
        timed = []
        for kernel in reversed(devices.supported_kernels(device)):
            shape = variants.ShapeClass.of(samples, samples, sites, True, not masked)
            variant = tune_gpu.choose_variant(device, SQUARED, shape, kernel)
            problem = Problem(device, variant, words, sites, SQUARED)
            slow = kernel == "popc"
            alone = time_events(problem.multiply, 2 if slow else repeats, 1 if slow else 2)
            packed = time_events(problem.pack_and_multiply, 1 if slow else repeats, 1)
            timed.append((kernel, variant.label, problem.plan.n_products, alone, packed))
            problem = None
            cupy.get_default_memory_pool().free_all_blocks()
        best_popc = next(alone for kernel, _, _, alone, _ in timed if kernel == "popc")
        for kernel, label, products, alone, packed in reversed(timed):
            rate = site_pairs(samples, sites) / alone
            own = limits[kernel] * (32 if kernel == "popc" else 1) / products
            print_row(
                case,
                label,
                alone * 1e3,
                packed * 1e3,
                rate / TERA,
                site_pairs(samples, sites) / packed / TERA,
                100 * rate / own,
                int8 / alone if main and int8 else "-",
                float32 / alone if main else "-",
                best_popc / alone,
            )
        del words
        cupy.get_default_memory_pool().free_all_blocks()


def run_sweep(
    device: devices.Device, n: int, n_sites: int, second: tuple[int, int], repeats: int
) -> None:
    """Every variant, and wgmma over splits, on one shape."""
    for masked, samples, sites in ((False, n, n_sites), (False, *second)):
        words = draw_planes(samples, sites, masked)
        for variant in tune_plan.variants_to_measure(device):
            problem = Problem(device, variant, words, sites, SQUARED)
            slow = variant.kernel == "popc"
            if slow and samples != n:
                continue
            for splits in (None,) if slow else (None, 1, 2, 4, 8, 11, 22, 32):
                action = functools.partial(problem.multiply, splits)
                seconds = time_events(action, 1 if slow else repeats, 1)
                print_row(
                    f"{samples} x {sites}",
                    f"{variant.label} splits={splits}",
                    seconds * 1e3,
                    site_pairs(samples, sites) / seconds / TERA,
                )
            if variant.kernel == "wgmma":
                seconds = time_events(problem.pack, repeats)
                print_row("", "packing", seconds * 1e3)
            action = problem = None
            cupy.get_default_memory_pool().free_all_blocks()
        del words
        cupy.get_default_memory_pool().free_all_blocks()


def run_instances(host_bytes: int, shrink: int) -> None:
    """The published instances, end to end, streamed repeatedly from a ring of pinned buffers."""
    backend = GpuBackend(host_bytes=host_bytes)
    print_row("instance", "variant", "s total", "s copies", "s products", "T pairs/s", "GB sent")
    for samples, sites in ((4000, 80_000_000), (2000, 3_000_000_000), (30_000, 600_000_000)):
        n, n_sites = samples // shrink, sites // shrink**2
        part = min(
            n_sites, (host_bytes // (2 * n * 2)) * 8 // layout.STAGE_BITS * layout.STAGE_BITS
        )
        host = cupyx.empty_pinned((n, 2, part // 64), np.uint64)
        for first in range(0, n, 256):
            rows = host[first : first + 256]
            rows[...] = draw_planes(len(rows), part, False).get()
        sent = cupy.empty(host.shape, np.uint64)
        copy = time_events(functools.partial(sent.set, host), 2, 1) * n_sites / part
        there = Planes(sent, part)
        start = time.perf_counter()
        stream = backend.stream(n, None, 2, 2, SQUARED, n_sites)
        stream.add(there)
        stream._compute.synchronize()
        start = time.perf_counter()
        stream.add(there)
        stream._compute.synchronize()
        products = (time.perf_counter() - start) * n_sites / part
        stream = sent = there = None
        cupy.get_default_memory_pool().free_all_blocks()
        start = time.perf_counter()
        stream = backend.stream(n, None, 2, 2, SQUARED, n_sites)
        done = 0
        while done < n_sites:
            sites = min(part, n_sites - done)
            stream.add(Planes(host, sites))
            done += sites
        stream.result()
        seconds = time.perf_counter() - start
        print_row(
            f"{n} x {n_sites}",
            stream.variant.label,
            seconds,
            copy,
            products,
            site_pairs(n, n_sites) / seconds / TERA,
            n * 2 * n_sites / 8 / 1e9,
        )
        stream = host = None
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def run_ploidies(backend: GpuBackend, n: int, n_sites: int, repeats: int) -> None:
    """Distances of polyploids: products of layers with planes on the device, packing counted."""
    planes = Planes(draw_planes(n, n_sites, True), n_sites)

    @functools.cache
    def seconds_of(terms: Terms, same: bool) -> float:
        stream = backend.stream(n, None if same else n, 3, 3, terms, n_sites)
        stream.add(planes, None if same else planes)  # compiled
        stream._compute.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            stream.add(planes, None if same else planes)
        stream._compute.synchronize()
        return (time.perf_counter() - start) / repeats

    print_row("case", "distances", "ms", "T pairs/s", "of diploid")
    for squared in (False, True):
        diploid = None
        for ploidy in (2, 4, 6):
            layers = range(ploidy // 2)
            if not squared:
                seconds = len(layers) * seconds_of(ALLELES, True)
            else:
                pairs = len(layers) * (len(layers) - 1) // 2
                seconds = seconds_of(SQUARED, True) + pairs * seconds_of(PRODUCT, False)
                seconds += (len(layers) - 1) * seconds_of(SQUARES, True)
            diploid = diploid or seconds
            rate = site_pairs(n, n_sites) / seconds / TERA
            kind = f"ploidy {ploidy}, {'squared' if squared else 'absolute'} differences"
            print_row(f"{n} x {n_sites}", kind, seconds * 1e3, rate, f"{diploid / seconds:.2f}")


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=16_384)
    parser.add_argument("--sites", type=int, default=1 << 20)
    parser.add_argument(
        "--second",
        type=int,
        nargs=2,
        default=(2000, 1 << 22),
        help="samples and sites of one more case",
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--instances", action="store_true")
    parser.add_argument("--shrink", type=int, default=1, help="of the instances, in each direction")
    parser.add_argument("--spectrum", action="store_true")
    parser.add_argument("--ploidy", action="store_true")
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"))
    parser.add_argument("--host-bytes", type=int, default=4 << 30)
    small = {"samples": 2048, "sites": 1 << 17, "second": (500, 1 << 18), "repeats": 3}
    options = commandline.parse(parser, gpu=True, **small, shrink=20, host_bytes=1 << 27)
    backend = GpuBackend()
    print(backend.describe())
    if options.sweep:
        run_sweep(backend.device, options.samples, options.sites, options.second, options.repeats)
    elif options.spectrum:
        from spectra_gpu import run_spectrum

        run_spectrum(options.samples, options.sites, options.repeats, options.shared)
    elif options.ploidy:
        run_ploidies(backend, options.samples, options.sites, options.repeats)
    elif options.instances:
        run_instances(options.host_bytes, options.shrink)
    else:
        run_cases(backend.device, options.samples, options.sites, options.second, options.repeats)


if __name__ == "__main__":
    main()
