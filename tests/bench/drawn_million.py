"""Packed genotypes of populations of a tree, drawn where they are needed, with their truth.

Genotypes come from a hash of site and person, so that a CPU and a GPU draw the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popdesic.engine.genotype_products import ALIGNED

#: Populations, F_ST between continents and within them.
POPULATIONS, CONTINENTS, FAR, NEAR = 21, 5, 0.08, 0.02
#: Sites that are drawn at a time.
SITES = 4096

DRAW_CODES = r"""
extern "C" __global__ void draw(unsigned int* words, unsigned long long* counts,
                                const unsigned int* limits, const unsigned char* labels,
                                long long n, long long row_words, long long first_site,
                                int n_pops) {
    // 16 people of one site: two chromosomes each, ALT where half a hash falls below the limit
    const long long word = (long long)blockIdx.x * 256 + threadIdx.x, site = blockIdx.y;
    if (word >= row_words) return;
    unsigned int out = 0, alt = 0;
    for (int k = 0; k < 16; ++k) {
        const long long person = 16 * word + k;
        unsigned int code = 3;
        if (person < n) {
            unsigned long long x = (first_site + site) * 0x100000000ull + person + 1;
            x *= 0x9E3779B97F4A7C15ull;
            x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
            x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
            x ^= x >> 31;
            const unsigned int limit = limits[site * n_pops + labels[person]];
            const unsigned int g = ((unsigned int)x < limit) + ((unsigned int)(x >> 32) < limit);
            alt += g;
            code = g == 2 ? 0 : g == 1 ? 2 : 3;
        }
        out |= code << (2 * k);
    }
    words[site * row_words + word] = out;
    atomicAdd(counts + site, (unsigned long long)alt);
}
"""


@dataclass(frozen=True)
class Drawn:
    """Packed genotypes, and where they come from.

    Attributes
    ----------
    rows : uint8 array, (n_sites, row_bytes)
        .bed rows, padded to ALIGNED bytes, of numpy or CuPy.
    af : float64 array, (n_sites,)
        ALT frequencies of the people drawn.
    labels : uint8 array, (n,)
        Population of each person.
    planted : float64 array, (n_sites, POPULATIONS)
        ALT frequencies of the populations.
    """

    rows: np.ndarray
    af: np.ndarray
    labels: np.ndarray
    planted: np.ndarray


def draw(n: int, n_sites: int, device: str, seed: int = 1) -> Drawn:
    """People of populations of unequal size; ancestral frequencies of 0.05 to 0.5."""
    rng = np.random.default_rng(seed)

    def drift(p: np.ndarray, fst: float, count: int) -> np.ndarray:
        found = p + np.sqrt(fst * p * (1 - p)) * rng.standard_normal((n_sites, count))
        return np.clip(found, 0.01, 0.99)

    continents = drift(rng.uniform(0.05, 0.5, (n_sites, 1)), FAR, CONTINENTS)
    home = np.arange(POPULATIONS) % CONTINENTS
    planted = drift(continents[:, home], NEAR, POPULATIONS)
    share = np.geomspace(4, 1, POPULATIONS)
    labels = rng.choice(POPULATIONS, n, p=share / share.sum()).astype(np.uint8)
    limits = np.ascontiguousarray((planted * 2.0**32).astype(np.uint32))
    row_words = -(-n // (4 * ALIGNED)) * ALIGNED // 4
    work = _draw_on_gpu if device == "gpu" else _draw_on_cpu
    rows, counts = work(limits, labels, row_words)
    return Drawn(rows, counts / (2 * n), labels, planted)


def _draw_on_gpu(limits: np.ndarray, labels: np.ndarray, row_words: int):
    import cupy

    n_sites = len(limits)
    words = cupy.empty((n_sites, row_words), np.uint32)
    counts = cupy.zeros(n_sites, np.uint64)
    kernel = cupy.RawModule(code=DRAW_CODES, options=("-std=c++17",)).get_function("draw")
    there = cupy.asarray(limits), cupy.asarray(labels)
    for first in range(0, n_sites, SITES):
        own = slice(first, min(first + SITES, n_sites))
        grid = -(-row_words // 256), own.stop - first
        arguments = words[own], counts[own], there[0][own], there[1]
        numbers = *map(np.int64, (len(labels), row_words, first)), np.int32(limits.shape[1])
        kernel(grid, (256,), (*arguments, *numbers))
    return words.view(np.uint8), cupy.asnumpy(counts).astype(np.float64)


def _draw_on_cpu(limits: np.ndarray, labels: np.ndarray, row_words: int):
    n_sites, n = len(limits), len(labels)
    codes = np.full((n_sites, 16 * row_words), 3, np.uint8)
    place = np.arange(1, n + 1, dtype=np.uint64)
    counts = np.empty(n_sites)
    for site in range(n_sites):
        x = (np.uint64(site << 32) + place) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        limit = limits[site, labels]
        g = (x.astype(np.uint32) < limit) + ((x >> np.uint64(32)).astype(np.uint32) < limit) * 1
        codes[site, :n] = np.array([3, 2, 0], np.uint8)[g]
        counts[site] = g.sum()
    quads = codes.reshape(n_sites, -1, 4) << np.array([0, 2, 4, 6], np.uint8)
    return np.bitwise_or.reduce(quads, axis=2), counts


def planted_components(drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (POPULATIONS - 1,) and vectors (POPULATIONS, POPULATIONS - 1) by population,
    without the noise of single people: entries of a population's people."""
    af, sizes = drawn.af, np.bincount(drawn.labels, minlength=POPULATIONS)
    scale = np.sqrt(2 * af * (1 - af))
    use = scale > 0
    means = 2 * (drawn.planted[use] - af[use, None]) / scale[use, None]
    root = np.sqrt(np.maximum(sizes, 1))
    values, vectors = np.linalg.eigh(root[:, None] * (means.T @ means) * root / use.sum())
    order = slice(None, 0, -1)
    return values[order], vectors[:, order] / root[:, None]
