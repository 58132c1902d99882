"""Rare sites on one GPU beside the dense products: `bench_bitgemm_gpu.py --spectrum`.

Sites with the frequency spectrum of a neutral population (k of 2 n chromosomes with probability
proportional to 1 / k), of one that has grown (`drawn_genomes`) and of the chr22 set of the shared
data; genotypes are drawn on the device under random mating.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import cupy
import numpy as np
from bench_bitgemm_gpu import print_row
from drawn_genomes import draw_haplotypes

from popdesic.engine import layout, sources, variants
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.stream_gpu import BitgemmStream
from popdesic.engine.terms import SQUARED, Planes

#: Base pairs from which frequencies of the grown population are taken.
GROWN_LENGTH = 200_000
DRAW_BITS = """
extern "C" __global__ void draw(u64* planes, const u32* limits, i64 n_words, i64 n_sites,
                                u64 seed) {
    // one word of one sample: two chromosomes a site, each ALT where a hash falls below the limit
    const i64 at = (i64)blockIdx.x * 256 + threadIdx.x, sample = at / n_words, word = at % n_words;
    u64 u = 0, v = 0;
    for (int bit = 0; bit < 64 && word * 64 + bit < n_sites; ++bit) {
        u64 x = seed + ((u64)sample * n_sites + word * 64 + bit) * 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        x ^= x >> 31;
        const u32 limit = limits[word * 64 + bit];
        const bool first = (u32)x < limit, second = (u32)(x >> 32) < limit;
        u |= (u64)(first || second) << bit;
        v |= (u64)(first && second) << bit;
    }
    planes[(2 * sample) * n_words + word] = u;
    planes[(2 * sample + 1) * n_words + word] = v;
}
"""


def draw_spectrum(n_samples: int, frequencies: np.ndarray, seed: int) -> cupy.ndarray:
    """Planes without missing genotypes, for given ALT frequencies under random mating."""
    n_words = layout.divide_up(len(frequencies), 64)
    planes = cupy.empty((n_samples, 2, n_words), np.uint64)
    limits = cupy.asarray(np.minimum(frequencies * 2.0**32, 2.0**32 - 1).astype(np.uint32))
    source = sources.read_source(variants.PACK_FINISH.file) + DRAW_BITS
    options = variants.PACK_FINISH.options()
    function = cupy.RawModule(code=source, options=options).get_function("draw")
    arguments = (planes, limits, np.int64(n_words), np.int64(len(frequencies)), np.uint64(seed))
    function((n_samples * n_words // 256,), (256,), arguments)
    return planes


def mask_few(words: cupy.ndarray) -> cupy.ndarray:
    """The same planes with one genotype in 1024 missing."""
    masked = cupy.empty((len(words), 3, words.shape[2]), np.uint64)
    masked[:, :2] = words
    for first in range(0, len(words), 256):
        rows = masked[first : first + 256, 2]
        missing = ~cupy.zeros(rows.shape, np.uint64)
        for _ in range(10):
            draw = cupy.random.randint(0, 2**32, (len(rows), 2 * rows.shape[1]), np.uint32)
            missing &= draw.view(np.uint64)
        rows[...] = ~missing
    return masked


def real_frequencies(path: Path) -> np.ndarray:
    """ALT frequencies of the polymorphic SNPs of a VCF."""
    found = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            cells = line.split("\t")
            if line.startswith("#") or len(cells[3]) != 1 or len(cells[4]) != 1:
                continue
            calls = "".join(cell[:3] for cell in cells[9:])
            found.append(calls.count("1") / max(1, calls.count("0") + calls.count("1")))
    return np.array([f for f in found if 0 < f < 1])


def add_and_settle(stream: BitgemmStream, planes: Planes) -> None:
    stream._acc.fill(0)
    stream.add(planes)
    if stream.rare_sites:
        with stream._compute:
            stream.rare_sites.settle()
    stream._compute.synchronize()


def profile(path, planes: Planes) -> None:
    """Milliseconds of each step of the path for rare sites."""
    from popdesic.engine import rare_sites_gpu

    steps = ("to_site_major", "gather", "list_carriers", "add_pairs", "add_carriers", "launch")
    steps += ("pack_range",)
    kept = {name: getattr(rare_sites_gpu, name) for name in steps}
    spent = dict.fromkeys(steps, 0.0)

    def timed(name, function):
        def call(*args, **kwargs):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            value = function(*args, **kwargs)
            cupy.cuda.Device().synchronize()
            spent[name] += time.perf_counter() - start
            return value

        return call

    for name in steps:
        setattr(rare_sites_gpu, name, timed(name, kept[name]))
    start = time.perf_counter()
    add_and_settle(path.stream, planes)
    total = time.perf_counter() - start
    for name in steps:
        setattr(rare_sites_gpu, name, kept[name])
    print({k: round(v * 1e3, 2) for k, v in spent.items()}, f"total {total * 1e3:.2f} ms")


def run_spectrum(n: int, n_sites: int, repeats: int, shared: Path) -> None:
    """Rare sites treated separately, beside dense products: times with packing, equal results."""
    rng = np.random.default_rng(1)
    counts = np.arange(1, 2 * n)
    chances = (1 / counts) / (1 / counts).sum()
    spectra = {"neutral": rng.choice(counts, n_sites, p=chances) / (2 * n)}
    grown = [alleles.mean() for _, alleles in draw_haplotypes(n, GROWN_LENGTH, 1)]
    spectra["grown"] = rng.choice(grown, n_sites)
    vcf = shared / "kg1_chr22_564" / "kg1_chr22_dev564.vcf.gz"
    if vcf.is_file():
        spectra["chr22"] = rng.choice(real_frequencies(vcf), n_sites)
    print_row("spectrum", "", "ms dense", "ms apart", "ratio", "% pairs", "% half", "% dense")
    cases = [(name, False) for name in spectra] + [("neutral", True), ("grown", True)]
    for name, masked in cases:
        words = draw_spectrum(n, spectra[name], 7)
        if masked:
            words = mask_few(words)
        planes = Planes(words, n_sites)
        n_planes = words.shape[1]
        results, seconds, streams = [], [], []
        for apart in (False, True):
            backend = GpuBackend(rare_sites=apart)
            stream = backend.stream(n, None, n_planes, n_planes, SQUARED, n_sites)

            add_and_settle(stream, planes)
            timed = []
            for _ in range(repeats):
                start = time.perf_counter()
                add_and_settle(stream, planes)
                timed.append(time.perf_counter() - start)
            seconds.append(float(np.median(timed)))
            stream = backend.stream(n, None, n_planes, n_planes, SQUARED, n_sites)
            stream.add(planes)
            streams.append(stream)
        for (_, a), (_, b) in zip(streams[0].result_rows(), streams[1].result_rows(), strict=True):
            results.append(np.array_equal(a, b))
        path = streams[1].rare_sites
        if path is None:
            print(f"{n} x {n_sites} is too small for rare sites to go apart.")
            return
        shares = [100 * x / n_sites for x in path.used.values()]
        print_row(
            f"{n} x {n_sites}, {name}{', 0.1 % missing' if masked else ''}",
            "same integers" if all(results) else "DIFFERENT",
            *(s * 1e3 for s in seconds),
            seconds[0] / seconds[1],
            *shares,
        )
        print(path.costs)
        profile(path, planes)
        streams = stream = planes = words = path = None
        cupy.get_default_memory_pool().free_all_blocks()
