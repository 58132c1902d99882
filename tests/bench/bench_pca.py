"""PCA by passes over packed genotypes, beside eigh of the matrix of all pairs.

python tests/bench/bench_pca.py [--samples 4000] [--sites 50000] [--components 20]
    [--populations 21] [--device cpu|gpu] [--threads 2] [--no-matrix] [--noise] [--quick]

Draws populations of an F_ST of 0.05 (--populations gives one component less), and prints wall and
CPU seconds of the axes by passes (reading, sums of samples, all passes), with --noise those of the
test of how many components there are; then those of the matrix and its eigenvectors, |r| of both
sets of vectors and the relative difference of the eigenvalues; the rate of one pass, and how long
the device, or one thread with memcpy, takes to copy the packed genotypes once. A million people at
100 000 sites (--samples 1000000 --sites 100000 --device gpu --threads 16 --no-matrix) take 27 GB of
host memory and 80 GB of the device's, of which 50 are the copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import commandline
import numpy as np
import pandas as pd

from popdesic.components.eigen import leading_eigenpairs
from popdesic.components.krylov import COLUMNS, Krylov
from popdesic.components.large_pca import first_vectors, significant_axes_of_many
from popdesic.components.relationship import relationship_among
from popdesic.components.relationship_products import RelationshipProducts
from popdesic.core.random_numbers import lots_of
from popdesic.core.threads import one_blas_thread
from popdesic.engine.genotype_products import Calls
from popdesic.engine.select import cpu_backend, select_backend
from popdesic.io.genotypes import unpack_bed

FST = 0.05
#: Sites drawn at a time, and most genotypes of them, which take 20 bytes each meanwhile.
CHUNK, CHUNK_GENOTYPES = 2048, 1 << 30
#: Code of each genotype in a .bed file.
CODES = np.array([3, 2, 0], np.uint8)


def drawn(n: int, n_sites: int, populations: int, xp) -> tuple[np.ndarray, np.ndarray]:
    """.bed rows (n_sites, row_bytes) and ALT frequencies; `xp` is numpy or CuPy."""
    rng = xp.random.default_rng(1)
    label = xp.arange(-(-n // 4) * 4) % populations
    rows = np.empty((n_sites, len(label) // 4), np.uint8)
    af = np.empty(n_sites)
    codes = xp.asarray(CODES)
    step = max(1, min(CHUNK, CHUNK_GENOTYPES // len(label)))
    for first in range(0, n_sites, step):
        count = min(step, n_sites - first)
        old = 0.05 + 0.45 * rng.random((count, 1))
        new = old + xp.sqrt(FST * old * (1 - old)) * rng.standard_normal((count, populations))
        p = xp.clip(new, 0.01, 0.99).astype(xp.float32)[:, label]
        genotypes = (rng.random(p.shape, dtype=xp.float32) < p).astype(xp.uint8)
        genotypes += rng.random(p.shape, dtype=xp.float32) < p
        found = codes[genotypes].reshape(count, -1, 4)
        packed = found[:, :, 0] | found[:, :, 1] << 2 | found[:, :, 2] << 4 | found[:, :, 3] << 6
        mean = genotypes[:, :n].mean(axis=1) / 2
        rows[first : first + count] = packed if xp is np else packed.get()
        af[first : first + count] = mean if xp is np else mean.get()
    return rows, af


def timed(label: str, work: Callable):
    """Result of `work`, whose wall and CPU seconds are printed."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{label:<58} {wall:9.2f} s {cpu:9.2f} CPU-s", flush=True)
    return found


@one_blas_thread
def by_passes(relationship: RelationshipProducts, names, k: int) -> Krylov:
    products = relationship.products
    start = first_vectors(lots_of(names), products.threads)
    space = Krylov(relationship, start, products.columns)
    if not space.search(k):
        print("some components have not been found")
    return space


def of_matrix(rows: np.ndarray, af: np.ndarray, n: int, k: int, options):
    """Values and vectors of the matrix of all pairs: float64, on the GPU in one product a chunk."""
    if options.device == "cpu":

        def read(first: int, last: int) -> np.ndarray:
            return unpack_bed(rows[first:last], n)

        matrix = relationship_among(read, [n], af, options.threads)
        return one_blas_thread(leading_eigenpairs)(matrix, k)
    import cupy

    matrix = cupy.zeros((n, n))
    for first in range(0, len(af), CHUNK):
        part = slice(first, first + CHUNK)
        genotypes = cupy.asarray(unpack_bed(rows[part], n)).astype(np.float64)
        p = cupy.asarray(af[part])[:, None]
        genotypes = (genotypes - 2 * p) / cupy.sqrt(2 * p * (1 - p))
        matrix += genotypes.T @ genotypes
    values, vectors = cupy.linalg.eigh(matrix / len(af))
    return values[::-1][:k].get(), vectors[:, ::-1][:, :k].get()


def copy_rate(rows: np.ndarray, device: str) -> float:
    """Seconds to copy the packed genotypes once, where the passes read them."""
    if device == "cpu":
        target = np.empty_like(rows)
        start = time.perf_counter()
        np.copyto(target, rows)
        return time.perf_counter() - start
    import cupy

    source = cupy.asarray(rows)
    target = cupy.empty_like(source)
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    cupy.copyto(target, source)
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--sites", type=int, default=50_000)
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--populations", type=int, default=21)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-matrix", action="store_true", help="leave out the matrix")
    parser.add_argument("--noise", action="store_true", help="test the components too")
    options = commandline.parse(parser, samples=300, sites=3000, components=5, populations=6)
    n, k = options.samples, options.components
    backend = select_backend(options.device, options.threads)
    print(f"{n} samples, {options.sites} sites; {backend.describe()}")
    xp = np
    if options.device == "gpu":
        import cupy as xp
    rows, af = timed("drawn", lambda: drawn(n, options.sites, options.populations, xp))
    if xp is not np:
        xp.get_default_memory_pool().free_all_blocks()
    names = [f"S{i}" for i in range(n)]
    calls = Calls((rows,), None, (np.ones(n, bool),), af)
    small = Calls((rows[:64],), None, (np.ones(n, bool),), af[:64])
    RelationshipProducts(backend.genotype_products(small))(np.ones((n, 1)))  # compiled, warm
    products = timed(
        "packed genotypes to where they are read", lambda: backend.genotype_products(calls)
    )
    relationship = timed("called genotypes and squares", lambda: RelationshipProducts(products))
    space = timed(f"{k} components by passes", lambda: by_passes(relationship, names, k))
    print(f"  {space.passes} passes of {COLUMNS} vectors")
    vectors = relationship.products.columns.put(space.pairs(COLUMNS)[1])
    timed("one pass", lambda: relationship.products.columns.get(relationship(vectors)))
    print(f"{'copying the packed genotypes once':<58} {copy_rate(rows, options.device):9.4f} s")
    if options.noise:
        sites = pd.DataFrame({"chrom": "1", "pos": np.arange(len(af)) * (3_000_000_000 // len(af))})
        _, tests, noise = timed(
            "axes, draws of noise and tests",
            lambda: significant_axes_of_many(
                relationship, sites, "auto", names=names, backend=cpu_backend(options.threads)
            ),
        )
        print(f"  {tests.count} significant; limit {noise.limit:.5f}, shift {noise.shift:.2f}")
    if not options.no_matrix:
        values, exact = timed("matrix and eigenvectors", lambda: of_matrix(rows, af, n, k, options))
        own, found, _ = space.pairs(k)
        r = np.abs((found * exact).sum(axis=0))
        off = np.abs(own / values - 1).max()
        print(f"smallest |r| of {k} components 1 - {1 - r.min():.1e}, eigenvalues {off:.1e}")


if __name__ == "__main__":
    main()
