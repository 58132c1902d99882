"""LD and identity search on one GPU beside their limits, in one run.

    python tests/bench/bench_compare_gpu.py [--sites 50000] [--samples 10000] [--quick]

LD: all pairs of sites, r2 in float32 on the device, none missing; the limit is 3 products at the
rate of wgmma measured in the same run. Identity: 32 queries, the best 10 of each; the limit is one
read of the database at the rate of a device copy, or a plain copy where it streams from pinned
memory. Medians of device events after a warm-up; random planes drawn on the device.
"""

from __future__ import annotations

import time

import commandline
import cupy
import cupyx
import numpy as np
from bench_bitgemm_gpu import draw_planes, measure_limits, time_events

from popdesic.engine import compile_gpu, devices, layout, variants
from popdesic.engine.site_pairs_gpu import R2Squares
from popdesic.engine.terms import Planes
from popdesic.relatives.matches_gpu import matches_of_parts, stream_parts

TERA = 1e12
BEST = 10


def bench_ld(device: devices.Device, n_sites: int, n_samples: int, repeats: int) -> None:
    if device.capability != 90:
        print("LD is left out: it runs by wgmma, on compute capability 9.0.")
        return
    limit = measure_limits(device)["wgmma"] / 3
    words = draw_planes(n_sites, n_samples, masked=False)
    padded = layout.divide_up(n_sites, layout.BLOCK_ROWS) * layout.BLOCK_ROWS
    out = cupy.empty((padded, padded), np.float32)
    count = padded // layout.BLOCK_ROWS
    blocks = cupy.asarray(variants.block_order(count, count, True))
    squares = R2Squares(words, n_samples, device)

    def whole() -> None:
        R2Squares(words, n_samples, device).compute(out, blocks, 0)

    seconds = time_events(lambda: squares.compute(out, blocks, 0), repeats)
    everything = time_events(whole, repeats)
    work = n_sites * (n_sites - 1) / 2 * n_samples
    print(f"\nLD, {n_sites} sites x {n_samples} samples, all pairs, r2 float32")
    print(f"limit of wgmma, 3 products: {limit / TERA:.0f} T site-pairs/s")
    for name, t in (("products and r2", seconds), ("with packing", everything)):
        rate = work / t
        print(f"{name}: {t * 1e3:.2f} ms, {rate / TERA:.0f} T site-pairs/s, {rate / limit:.0%}")
    check = np.random.default_rng(1).integers(0, n_sites, (200, 2))
    pairs = [(min(p), max(p)) for p in check.tolist() if p[0] != p[1]]
    host = words.get()
    bits = np.unpackbits(host.view(np.uint8), axis=2, bitorder="little")[:, :, :n_samples]
    worst = 0.0
    for i, j in pairs:
        a, b = (bits[x].sum(axis=0, dtype=np.int64) for x in (i, j))
        worst = max(worst, abs(np.corrcoef(a, b)[0, 1] ** 2 - float(out[i, j])))
    print(f"largest error of 200 r2 against float64: {worst:.1e}")


def device_copy_rate() -> float:
    """Bytes read per second while as many are written."""
    a = cupy.zeros(1 << 29, np.uint64)
    b = cupy.empty_like(a)
    seconds = time_events(lambda: cupy.copyto(b, a), 7)
    return 2 * a.nbytes / seconds


def bench_identity(device: devices.Device, n_profiles: int, repeats: int) -> None:
    read = device_copy_rate()
    print(f"\nIdentity, 32 queries x {n_profiles} profiles, best {BEST} of each, resident")
    print(f"device copy (read + write): {read / 1e12:.2f} TB/s")
    print("planes  sites  ms  of reading the database once")
    rng = np.random.default_rng(1)
    for n_planes in (1, 2, 3):
        for n_sites in (128, 256, 512, 1024):
            shape = (n_profiles, n_planes, n_sites // 64)
            words = cupy.random.randint(0, 2**32, (*shape[:2], 2 * shape[2]), np.uint32)
            words = words.view(np.uint64)
            if n_planes > 1:
                words[:, 1] &= words[:, 0]
            chosen = rng.integers(0, n_profiles, 32)
            queries = Planes(words[chosen].get(), n_sites)
            found = matches_of_parts(queries, lambda w=words: iter([(0, w)]), device, BEST)
            assert (found[:, 0] == chosen).all() or n_sites == 128 or n_planes == 3
            seconds = time_events(
                lambda q=queries, w=words: matches_of_parts(
                    q, lambda: iter([(0, w)]), device, BEST
                ),
                repeats,
            )
            floor = words.nbytes / read
            print(f"{n_planes}  {n_sites}  {seconds * 1e3:.2f}  {floor / seconds:.0%}")
            del words


def bench_streamed(device: devices.Device, n_profiles: int) -> None:
    print(f"\nIdentity, 32 queries x {n_profiles} profiles, streamed from pinned memory")
    print("planes  sites  ms  of the copy rate")
    for n_planes, n_sites in ((1, 128), (1, 1024), (2, 1024)):
        host = cupyx.empty_pinned((n_profiles, n_planes, n_sites // 64), np.uint64)
        part = np.random.default_rng(2).integers(0, 2**63, (4096, *host.shape[1:]), np.uint64)
        part[:, -1] &= part[:, 0]  # homozygotes are carriers
        for first in range(0, n_profiles, 4096):
            host[first : first + 4096] = part[: min(4096, n_profiles - first)]
        queries = Planes(np.array(host[:32]), n_sites)
        target = cupy.empty(min(host.size, 1 << 27), np.uint64)
        flat = host.reshape(-1)
        copied = time_events(lambda t=target, f=flat: t.set(f[: t.size]), 5)
        rate = target.nbytes / copied
        times = []
        for _ in range(4):
            start = time.perf_counter()
            found = matches_of_parts(queries, lambda h=host: stream_parts(h), device, BEST, 1)
            times.append(time.perf_counter() - start)
        assert (found[:, 0] == np.arange(32)).all()
        seconds = min(times[1:])
        share = host.nbytes / seconds / rate
        print(f"{n_planes}  {n_sites}  {seconds * 1e3:.1f}  {share:.0%} of {rate / 1e9:.0f} GB/s")
        del host, target


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--sites", type=int, default=50_000)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--profiles", type=int, default=20_971_520)
    parser.add_argument("--repeats", type=int, default=15)
    small = {"sites": 2048, "samples": 2048, "profiles": 1 << 17, "repeats": 3}
    options = commandline.parse(parser, gpu=True, **small)
    device = compile_gpu.current_device()
    print(device.name)
    bench_ld(device, options.sites, options.samples, options.repeats)
    cupy.get_default_memory_pool().free_all_blocks()
    bench_identity(device, options.profiles, options.repeats)
    bench_streamed(device, options.profiles)


if __name__ == "__main__":
    main()
