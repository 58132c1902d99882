"""Rates of the exhaustive scans on a GPU beside EPIClear, Tensor-Episdet and the card's limits.

Run from the repository's root on a machine with an NVIDIA GPU:
    PYTHONPATH=workflow/scripts:tests python3 tests/bench/bench_epistasis.py [--quick]
"""

from __future__ import annotations

import argparse
import time

import cupy
import numpy as np
from popdesic.backend.base import OneHot, ScanData
from popdesic.backend.epistasis_gpu import Scanner
from popdesic.backend.kernels import Device
from popdesic.scores import score_tables

THIRDS, TENTHS, WTCCC = (1 / 3, 1 / 3, 1 / 3), (0.1, 0.2, 0.7), (0.067, 0.237, 0.696)
#: order, sites, controls, cases, frequencies, what is asked (T combinations x samples / s), peer.
CASES = {
    "a": (3, 4096, 131072, 131072, THIRDS, 1160, 290),
    "b": (3, 8192, 131072, 131072, THIRDS, 1800, 456),
    "c": (3, 8192, 131072, 131072, TENTHS, 2600, 659),
    "d": (3, 8192, 3072, 2048, WTCCC, 160, 32),
    "e": (3, 16384, 3072, 2048, WTCCC, 190, 38),
    "p": (2, 32768, 32768, 32768, THIRDS, 1000, 34),
}

DRAW = r"""
extern "C" __global__ void draw(unsigned* words, long long n, int n_words, int n_samples,
                                unsigned first, unsigned second, unsigned missing, int n_states,
                                unsigned seed) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long site = i / n_words; int w = (int)(i % n_words);
    unsigned a = 0, b = 0, m = 0;
    for (int k = 0; k < 32; ++k) {
        if (w * 32 + k >= n_samples) break;
        unsigned long long z = (i * 32 + k + 1) * 0x9E3779B97F4A7C15ull + seed;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        unsigned v = (unsigned)(z >> 32);
        if ((unsigned)z < missing) m |= 1u << k;
        else if (v < first) a |= 1u << k;
        else if (v - first < second) b |= 1u << k;
    }
    words[(site * n_states) * n_words + w] = a;
    words[(site * n_states + 1) * n_words + w] = b;
    if (n_states == 3) words[(site * 3 + 2) * n_words + w] = m;
}
"""


def draw(n_sites: int, n_samples: int, frequencies, missing: float, seed: int) -> cupy.ndarray:
    n_words, n_states = -(-n_samples // 64) * 2, 3 if missing else 2
    words = cupy.empty((n_sites, n_states, n_words), np.uint32)
    first, second, left_out = (np.uint32(f * 2**32) for f in (*frequencies[:2], missing))
    n = n_sites * n_words
    sizes = np.int64(n), np.int32(n_words), np.int32(n_samples)
    cupy.RawKernel(DRAW, "draw")(
        (-(-n // 256),),
        (256,),
        (words, *sizes, first, second, left_out, np.int32(n_states), np.uint32(seed)),
    )
    return words.view(np.uint64)


def make(order, n_sites, n0, n1, frequencies, missing=0.0, score="k2") -> ScanData:
    classes = tuple(
        OneHot(draw(n_sites, n, frequencies, missing, 7 + c), n) for c, n in enumerate((n0, n1))
    )
    tables = score_tables(score, n0 + n1)
    return ScanData(classes, *tables, np.arange(n_sites, dtype=np.int32))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="abcdep")
    parser.add_argument("--kernels", default="wgmma")
    parser.add_argument("--clusters", default="1")
    parser.add_argument("--unroll", default="2")
    parser.add_argument("--share", type=float, default=1.0, help="of the first sites to scan")
    arguments = parser.parse_args()
    device = Device.current()
    for name in arguments.cases:
        order, n, n0, n1, frequencies, asked, peer = CASES[name]
        data = make(order, n, n0, n1, frequencies)
        for kernel in arguments.kernels.split(","):
            for cluster in map(int, arguments.clusters.split(",")):
                for unroll in map(int, arguments.unroll.split(",")):
                    stop = max(1, int(n * arguments.share))
                    tests = (
                        n * (n - 1) // 2
                        if order == 2
                        else sum((n - x - 1) * (n - x - 2) // 2 for x in range(stop))
                    )
                    for turn in range(2):
                        cupy.cuda.get_current_stream().synchronize()
                        started = time.perf_counter()
                        scanner = Scanner(data, order, 1000, None, device, kernel, cluster, unroll)
                        scan = scanner.pairs if order == 2 else scanner.triples
                        hits = scan(range(n if order == 2 else stop))
                        seconds = time.perf_counter() - started
                        del scanner
                    rate = tests * (n0 + n1) / seconds / 1e12
                    print(
                        f"{name} {n}x{n0 + n1} {kernel} c{cluster} u{unroll}: {seconds:.3f} s "
                        f"{rate:.0f} T, {tests / seconds / 1e9:.2f} G/s, asked {asked}, peer {peer} "
                        f"best {hits.cost[0]}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
