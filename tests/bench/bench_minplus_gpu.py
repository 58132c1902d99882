"""min-plus products, closures and insertions on a GPU, beside the limits measured in the same run.

python tests/bench/bench_minplus_gpu.py [--haplotypes FILE.npz] [--quick]

Limits are register-only loops: one fused add and min (DPX) an operation in int32; two adds and
a three-way minimum for two operations in float32 ("pairs"), and an add and a min ("separate").
"Genotype-like" weights are squared distances between mosaics of haplotypes, taken from FILE.npz
(`haplotypes`, bool (n_haplotypes, n_sites)) or from simulated populations.
"""

from __future__ import annotations

import itertools
import time

import commandline
import cupy
import numpy as np
from timing import print_table

from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.devices import Device
from popdesic.engine.terms import SQUARED, Planes
from popdesic.geodesic.closure import close_paths, insert_paths, similar_order

LIMITS = r"""
extern "C" __global__ void limit_int(int* out, int a, int rounds) {
  int c[16];
  for (int i = 0; i < 16; i++) c[i] = threadIdx.x * 7919 + i;
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 16; i++) c[i] = __viaddmin_s32(c[(i + 1) % 16], a, c[i]);
  int s = 0;
  for (int i = 0; i < 16; i++) s ^= c[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
extern "C" __global__ void limit_separate(float* out, float a, int rounds) {
  float c[16];
  for (int i = 0; i < 16; i++) c[i] = threadIdx.x * 7919 + i;
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 16; i++) c[i] = fminf(c[(i + 1) % 16] + a, c[i]);
  float s = 0;
  for (int i = 0; i < 16; i++) s += c[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
extern "C" __global__ void limit_pairs(float* out, float a, float b, int rounds) {
  int c[16];
  for (int i = 0; i < 16; i++) c[i] = __float_as_int((float)(threadIdx.x * 7919 + i));
  for (int r = 0; r < rounds / 2; r++)
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float x = __int_as_float(c[(i + 1) % 16]) + a, y = __int_as_float(c[(i + 2) % 16]) + b;
      c[i] = __vimin3_s32(c[i], __float_as_int(x), __float_as_int(y));
    }
  float s = 0;
  for (int i = 0; i < 16; i++) s += __int_as_float(c[i]);
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
"""


def timed(run, repeats: int = 3, prepare=lambda: None) -> float:
    """Best seconds by device events, after one warm-up; `prepare` is not timed."""
    best = float("inf")
    for repeat in range(repeats + 1):
        prepare()
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        if repeat:
            best = min(best, cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return best


def measure_limits(device: Device) -> dict[str, float]:
    module = cupy.RawModule(code=LIMITS, options=("-std=c++17",))
    blocks, threads, rounds = device.multiprocessors * 8, 256, 4096
    out = cupy.empty(blocks * threads, np.int32)
    found = {}
    for name, arguments in (
        ("limit_int", (np.int32(1), np.int32(rounds))),
        ("limit_separate", (np.float32(1), np.int32(rounds))),
        ("limit_pairs", (np.float32(1), np.float32(2), np.int32(rounds))),
    ):
        function = module.get_function(name)
        seconds = timed(lambda f=function, a=arguments: f((blocks,), (threads,), (out, *a)))
        found[name] = blocks * threads * rounds * 16 / seconds
    return found


def draw_weights(n: int, dtype) -> cupy.ndarray:
    w = cupy.random.randint(1, 2**28, (n, n), dtype=np.int32)
    w = cupy.minimum(w, w.T)
    cupy.fill_diagonal(w, 0)
    return w.astype(dtype, copy=False)


def bench_products(backend: GpuBackend, limits: dict[str, float], sizes: list[int]) -> None:
    rows = []
    for dtype, limit in (
        ("int32", "limit_int"),
        ("float32", "limit_pairs"),
        ("int64", None),
        ("float64", None),
    ):
        for n in sizes if limit else sizes[1:2]:
            a, c = draw_weights(n, dtype), draw_weights(n, dtype)
            for symmetric in (False, True):
                seconds = timed(
                    lambda a=a, c=c, s=symmetric: backend.minplus().multiply(c, a.T, a, symmetric=s)
                )
                rate = n**3 / (1 + symmetric) / seconds
                share = f"{rate / limits[limit]:.0%}" if limit else "-"
                rows.append(
                    (dtype, n, "half" if symmetric else "full", f"{rate / 1e12:.2f}", share)
                )
            del a, c
            cupy.get_default_memory_pool().free_all_blocks()
    print_table("min-plus product", ("type", "n", "product", "T op/s", "of limit"), rows)


def bench_closures(backend: GpuBackend, sizes) -> None:
    rows = []
    for dtype in ("int32", "float32"):
        for n in sizes:
            w = backend.minplus().hold(draw_weights(n, dtype).get())
            start = w.copy()
            seconds = timed(
                lambda w=w: close_paths(w, backend, prune=False),
                2,
                lambda w=w, start=start: w.__setitem__(slice(None), start),
            )
            rate = n**3 / 2 / seconds
            rows.append((dtype, n, f"{seconds * 1e3:.1f}", f"{rate / 1e12:.2f}"))
            del w, start
            cupy.get_default_memory_pool().free_all_blocks()
    print_table("closure of random weights", ("type", "n", "ms", "T op/s"), rows)


def close_plain(w: cupy.ndarray, backend: GpuBackend) -> None:
    """R-Kleene by recursion over quadrants, without use of symmetry: n**3 operations."""
    n = len(w)
    if n <= 128:
        backend.minplus().close_block(w)
        return
    half = n // 256 * 128
    a, b, c, d = w[:half, :half], w[:half, half:], w[half:, :half], w[half:, half:]
    close_plain(a, backend)
    backend.minplus().multiply(b, a, b.copy())
    backend.minplus().multiply(c, c.copy(), a)
    backend.minplus().multiply(d, c, b)
    close_plain(d, backend)
    backend.minplus().multiply(b, b.copy(), d)
    backend.minplus().multiply(c, d, c.copy())
    backend.minplus().multiply(a, b, c)


def close_by_squaring(w: cupy.ndarray, backend: GpuBackend) -> None:
    """Repeated min-plus squaring until paths of n - 1 edges are covered: n**3 log2 n operations."""
    for _ in range(max(1, (len(w) - 1).bit_length())):
        before = w.copy()
        backend.minplus().multiply(w, before.T, before)


def bench_baselines(backend: GpuBackend, n: int) -> None:
    start = backend.minplus().hold(draw_weights(n, "int32").get())
    results, rows = [], []
    for name, close in (
        ("symmetric panels", lambda w: close_paths(w, backend, prune=False)),
        ("plain R-Kleene", lambda w: close_plain(w, backend)),
        ("repeated squares", lambda w: close_by_squaring(w, backend)),
    ):
        w = start.copy()
        seconds = timed(
            lambda w=w, close=close: close(w), 2, lambda w=w: w.__setitem__(slice(None), start)
        )
        results.append(w)
        rows.append((name, f"{seconds * 1e3:.1f}"))
    assert all((w == results[0]).all() for w in results)
    print_table(f"closure of random weights, int32, n = {n}", ("method", "ms"), rows)


def bench_insertion(backend: GpuBackend, old: int, new: int) -> None:
    rows = []
    pad = -old % 128
    for dtype in ("int32", "float32"):
        w = draw_weights(old + pad + new, dtype)
        w = backend.minplus().hold(w.get())
        close_paths(w[: old + pad, : old + pad], backend, prune=False)
        start = w.copy()
        seconds = timed(
            lambda w=w: insert_paths(w, old + pad, backend),
            2,
            lambda w=w, start=start: w.__setitem__(slice(None), start),
        )
        rows.append((dtype, old, new, f"{seconds * 1e3:.1f}"))
        del w, start
        cupy.get_default_memory_pool().free_all_blocks()
    print_table("insertion", ("type", "closed", "new", "ms"), rows)


def mosaics(haplotypes: np.ndarray, n: int, rng, segment: int) -> np.ndarray:
    """Genotypes (n, n_sites) of individuals whose haplotypes copy segments of the given ones."""
    n_haplotypes, n_sites = haplotypes.shape
    genotypes = np.zeros((n, n_sites), np.int8)
    for start in range(0, n_sites, segment):
        stop = min(n_sites, start + segment)
        for _ in range(2):
            genotypes[:, start:stop] += haplotypes[rng.integers(0, n_haplotypes, n), start:stop]
    return genotypes


def simulated_haplotypes(rng) -> np.ndarray:
    """400 haplotypes of four populations (Balding and Nichols, F = 0.1), 16 384 sites."""
    ancestral = rng.uniform(0.05, 0.95, 16384)
    scale = (1 - 0.1) / 0.1
    drawn = [rng.beta(ancestral * scale, (1 - ancestral) * scale) for _ in range(4)]
    return np.concatenate([rng.random((100, 16384)) < p for p in drawn])


def component_distances(genotypes: np.ndarray, k: int = 8) -> np.ndarray:
    """Squared distances by the first k principal components (randomised SVD), float64 (n, n)."""
    x = cupy.asarray(genotypes, np.float32)
    x -= x.mean(axis=0)
    x /= cupy.maximum(x.std(axis=0), 1e-3)
    basis = cupy.random.default_rng(1).standard_normal((x.shape[1], k + 10), dtype=np.float32)
    for _ in range(4):
        basis, _ = cupy.linalg.qr(x.T @ (x @ basis))
    u, s, _ = cupy.linalg.svd(x @ basis, full_matrices=False)
    scores = (u * s)[:, :k].astype(np.float64)
    norms = (scores**2).sum(axis=1)
    squared = norms[:, None] + norms - 2 * scores @ scores.T
    del x
    result = cupy.maximum(squared, 0).get()
    np.fill_diagonal(result, 0)
    return result


def bench_pruning(backend: GpuBackend, source: str | None, n: int) -> None:
    rng = np.random.default_rng(3)
    if source:
        with np.load(source) as stored:
            haplotypes = np.unpackbits(stored["haplotypes"], axis=1, count=int(stored["n_sites"]))
            labels = stored["labels"]
    else:
        haplotypes, labels = simulated_haplotypes(rng), np.repeat(np.arange(4), 100)
    kinds = np.unique(labels)
    genotypes = np.concatenate(
        [
            mosaics(haplotypes[labels == kind], n // len(kinds) + (i < n % len(kinds)), rng, 200)
            for i, kind in enumerate(kinds)
        ]
    )
    words = np.zeros((n, 2, -(-genotypes.shape[1] // 64) * 8), np.uint8)
    for plane in (0, 1):
        bits = np.packbits(genotypes > plane, axis=1, bitorder="little")
        words[:, plane, : bits.shape[1]] = bits
    squared = backend.bitgemm(Planes(words.view(np.uint64), genotypes.shape[1]), None, SQUARED)[0]
    rows = []
    spaces = {"genotypes": squared, "pcs": component_distances(genotypes)}
    for space, alpha in itertools.product(spaces, (2, 4, 8)):
        weights = spaces[space].astype(np.float64) ** (alpha / 2)
        weights = np.rint(weights * (2**28 / weights.max())).astype(np.int32)
        start_order = time.perf_counter()
        order = similar_order(weights)
        ordering = time.perf_counter() - start_order
        held = backend.minplus().hold(weights[np.ix_(order, order)])
        start = held.copy()
        for prune in (False, True):
            work = None

            def run(prune=prune, held=held):
                nonlocal work
                work = close_paths(held, backend, prune=prune)

            seconds = timed(run, 2, lambda held=held, s=start: held.__setitem__(slice(None), s))
            indirect = float((held < start).mean())
            rows.append(
                (
                    space,
                    alpha,
                    "pruned" if prune else "full",
                    f"{seconds * 1e3:.1f}",
                    f"{work.skipped_share:.2%}",
                    f"{indirect:.2%}",
                    f"{ordering:.2f}",
                )
            )
        del held, start
        cupy.get_default_memory_pool().free_all_blocks()
    print_table(
        f"closure of {n} mosaics, {genotypes.shape[1]} sites",
        (
            "space",
            "alpha",
            "closure",
            "ms",
            "work skipped",
            "indirect pairs",
            "ordering on the host, s",
        ),
        rows,
    )


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--haplotypes")
    parser.add_argument("--mosaics", type=int, default=30000)
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[1024, 2048, 4096, 8192, 16384, 30000]
    )
    parser.add_argument("--products", type=int, nargs="*", default=[2048, 8192, 16384])
    parser.add_argument("--baseline", type=int, default=8192, help="size closed in three ways")
    parser.add_argument("--insertion", type=int, nargs=2, default=(29000, 1000))
    small = {"mosaics": 512, "sizes": [256, 1024], "products": [512, 1024], "baseline": 1024}
    options = commandline.parse(parser, gpu=True, **small, insertion=(896, 128))
    backend = GpuBackend()
    print(backend.describe())
    limits = measure_limits(backend.device)
    print_table(
        "limits, T op/s",
        ("int32 DPX", "float32 separate", "float32 pairs"),
        [tuple(f"{v / 1e12:.2f}" for v in limits.values())],
    )
    bench_products(backend, limits, options.products)
    bench_closures(backend, options.sizes)
    bench_baselines(backend, options.baseline)
    bench_insertion(backend, *options.insertion)
    bench_pruning(backend, options.haplotypes, options.mosaics)


if __name__ == "__main__":
    main()
