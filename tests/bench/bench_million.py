"""From packed genotypes on the device to components, nearest people and a map, checked by truth.

    python tests/bench/bench_million.py [--samples 1000000] [--sites 100000] [--components 20]
        [--neighbors 15] [--device gpu|cpu] [--threads 16] [--repeats 2] [--quick]

Draws 21 populations of a tree on the device (they are not read from files), with the frequencies of
the sites. Then, twice: sums of samples, components by passes, nearest people by Euclidean distance
on the components, the graph of UMAP and its 200 epochs. Prints wall and CPU seconds of each step,
the limits beside them, and whether both runs gave the same bytes. Kernels are compiled
before, by a small study. Checks:

- each component lies within a bound of the exact one: the residual of the matrix times it, summed
  in float64 from unpacked genotypes, over the gap to the next eigenvalue;
- shares of the components in the planted populations, and what is to be expected of so many sites;
- nearest people of 200 are those of float64 distances to everyone.

A million people at 100 000 sites take 25 GB of the device for genotypes, and 12 GB besides.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import commandline
import numpy as np
from drawn_million import POPULATIONS, Drawn, draw, planted_components
from timing import print_table

from popdesic.components.krylov import Krylov
from popdesic.components.large_pca import first_vectors
from popdesic.components.pca import with_signs
from popdesic.components.relationship_products import RelationshipProducts
from popdesic.core.random_numbers import lots_of
from popdesic.core.threads import one_blas_thread
from popdesic.distance.find_nearest import nearest_points
from popdesic.engine.backend import Backend
from popdesic.engine.genotype_products import Calls
from popdesic.engine.select import select_backend
from popdesic.maps.fuzzy_graph import FuzzyGraph, membership_strengths
from popdesic.maps.neighbor_union_cpu import unite_neighbors
from popdesic.maps.umap_layout import NearestRows, epochs_of, optimize_layout

#: Seconds asked for a million people at 100 000 sites.
LIMITS = {"components": 12, "nearest": 3, "UMAP, epochs": 1, "all": 15}
#: People whose nearest are searched by float64 distances to everyone.
CHECKED = 200
#: Sites that are unpacked to float64 at a time.
UNPACKED = 64


def synchronize(backend: Backend) -> None:
    if backend.name == "gpu":
        import cupy

        cupy.cuda.Device().synchronize()


class Clock:
    """Wall and CPU seconds of steps, in their order."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.steps = backend, {}

    def time(self, name: str, work: Callable):
        synchronize(self.backend)
        wall, cpu = time.perf_counter(), time.process_time()
        found = work()
        synchronize(self.backend)
        self.steps[name] = time.perf_counter() - wall, time.process_time() - cpu
        return found

    def all(self, names: list[str]) -> tuple[float, float]:
        return tuple(sum(self.steps[name][k] for name in names) for k in (0, 1))


@one_blas_thread
def components(relationship: RelationshipProducts, names: list[str], k: int, clock: Clock):
    """Values (k,), vectors (n, k) of the components, and the passes; seconds of the products."""
    began, spent, products = time.perf_counter(), [0.0], relationship.products
    start = first_vectors(lots_of(names), products.threads)
    drawn = time.perf_counter()

    def product(vectors):
        synchronize(clock.backend)
        before = time.perf_counter()
        found = relationship(vectors)
        synchronize(clock.backend)
        spent[0] += time.perf_counter() - before
        return found

    space = Krylov(product, start, products.columns)
    done = space.search(k)
    searched = time.perf_counter()
    values, vectors, _ = space.pairs(k)
    vectors = with_signs(vectors)
    ends = searched - drawn - spent[0], time.perf_counter() - searched
    print(
        f"  first vectors {drawn - began:.2f} s, {space.passes} passes {spent[0]:.2f}, their space "
        f"{ends[0]:.2f}, vectors to the host {ends[1]:.2f}",
        "" if done else "NOT FOUND",
    )
    return values, vectors


def run(drawn: Drawn, backend: Backend, options) -> tuple[Clock, dict]:
    clock, n = Clock(backend), len(drawn.labels)
    names = [f"S{i}" for i in range(n)]
    calls = Calls((drawn.rows,), None, (np.ones(n, bool),), drawn.af)
    products = clock.time("genotypes where they are", lambda: backend.genotype_products(calls))
    relationship = clock.time("sums of samples", lambda: RelationshipProducts(products))
    values, vectors = clock.time(
        "components", lambda: components(relationship, names, options.components, clock)
    )
    scores = vectors * np.sqrt(values)
    found = clock.time("nearest", lambda: nearest_points(backend, scores, options.neighbors))
    near = NearestRows(found.index.astype(np.int64), found.distance)
    near_ones, threads = near.of(15), backend.threads
    strengths = clock.time("UMAP, strengths", lambda: membership_strengths(near_ones.far, threads))
    least = 1 / epochs_of(n)
    united = clock.time(
        "UMAP, union", lambda: unite_neighbors(near_ones.near, strengths, least, threads)
    )
    graph = FuzzyGraph(*united)
    points = clock.time(
        "UMAP, epochs",
        lambda: optimize_layout(graph, start=scores, min_dist=0.3, seed=1, backend=backend),
    )
    clock.steps["all"] = clock.all(list(clock.steps))
    found = {"values": values, "vectors": vectors, "near": near.near, "far": near.far}
    return clock, found | {"points": points, "scores": scores}


def digest(found: dict) -> str:
    total = hashlib.sha256()
    for name in sorted(found):
        total.update(np.ascontiguousarray(found[name]))
    return total.hexdigest()[:16]


def images(drawn: Drawn, vectors: np.ndarray, xp) -> np.ndarray:
    """The relationship times vectors, in float64 from unpacked genotypes."""
    n, (n_sites, row_bytes) = len(vectors), drawn.rows.shape
    there, out = xp.asarray(vectors), xp.zeros(vectors.shape)
    scale = np.sqrt(2 * drawn.af * (1 - drawn.af))
    used = scale > 0
    genotype = xp.asarray(np.array([2.0, np.nan, 1.0, 0.0]))
    for first in range(0, n_sites, UNPACKED):
        own = np.arange(first, min(first + UNPACKED, n_sites))
        own = own[used[own]]
        rows = drawn.rows[own[0] : own[-1] + 1] if len(own) else drawn.rows[:0]
        rows = rows[own - own[0]] if len(own) and len(own) != len(rows) else rows
        x = xp.empty((len(own), row_bytes, 4))
        for k in range(4):
            x[:, :, k] = genotype[(rows >> 2 * k) & 3]
        x = x.reshape(len(own), -1)[:, :n]
        x -= xp.asarray(2 * drawn.af[own, None])
        x /= xp.asarray(scale[own, None])
        out += x.T @ (x @ there)
    out /= used.sum()
    return out if xp is np else out.get()


def check(drawn: Drawn, found: dict, options, xp) -> None:
    values, vectors, n = found["values"], found["vectors"], len(drawn.labels)
    start = time.perf_counter()
    residuals = np.linalg.norm(images(drawn, vectors, xp) - vectors * values, axis=0)
    gaps = np.abs(np.diff(values))
    gap = np.minimum(np.append(gaps, gaps[-1]), np.insert(gaps, 0, np.inf))
    angles = (residuals / gap)[:-1]
    print(
        f"residuals in float64 ({time.perf_counter() - start:.0f} s): components 1 to "
        f"{len(angles)} have |r| with the exact ones of at least "
        f"1 - {(angles**2 / 2).max():.1e}; largest residual "
        f"{(residuals / values).max():.1e} of its eigenvalue"
    )
    away = np.abs(vectors.T @ vectors - np.eye(len(values))).max()
    print(f"columns are orthonormal to {away:.1e}")
    planted, by_population = planted_components(drawn)
    k = min(len(values), POPULATIONS - 1)
    inside = by_population[drawn.labels]
    shares = ((inside.T @ vectors[:, :k]) ** 2).sum(axis=0)
    gamma, size = n / len(drawn.af), planted[:k]
    expected = (1 - gamma / size**2) / (1 + gamma / size)
    same = np.abs((inside[:, :k] * vectors[:, :k]).sum(axis=0))
    cells = [
        (i + 1, f"{values[i]:.1f}", f"{size[i]:.1f}", f"{shares[i]:.5f}", f"{expected[i]:.5f}",
         f"{same[i]:.5f}")
        for i in range(k)
    ]  # fmt: skip
    header = ("component", "eigenvalue", "planted", "share in populations", "expected", "|r|")
    print_table("components and planted populations", header, cells)
    # The expectation is that of endless people and sites: at the edge of the noise it is not exact.
    assert (np.abs(shares - expected) < 0.05).all(), "the components are not the planted ones"
    rows = np.linspace(0, n - 1, min(CHECKED, n)).astype(int)
    points = xp.asarray(found["scores"])
    wrong = 0
    for row in rows.tolist():
        far = xp.zeros(n)
        for axis in range(points.shape[1]):
            far += (points[:, axis] - points[row, axis]) ** 2
        far[row] = np.inf
        best = xp.sort(xp.partition(far, options.neighbors)[: options.neighbors])
        best = np.sqrt(best if xp is np else best.get())
        wrong += not np.allclose(best, found["far"][row], rtol=1e-12, atol=0)
    print(f"nearest people: {wrong} of {len(rows)} lists differ from float64 distances to everyone")
    assert not wrong


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--no-check", action="store_true")
    options = commandline.parse(parser, samples=3000, sites=3000, threads=2, device="cpu")
    backend = select_backend(options.device, options.threads)
    print(backend.describe())
    xp = np
    if options.device == "gpu":
        import cupy as xp
    run(draw(2000, 5000, options.device), backend, options)  # kernels are compiled
    start = time.perf_counter()
    drawn = draw(options.samples, options.sites, options.device)
    synchronize(backend)
    print(f"drawn in {time.perf_counter() - start:.1f} s")
    clocks, digests = [], []
    for _ in range(options.repeats):
        clock, found = run(drawn, backend, options)
        clocks.append(clock)
        digests.append(digest(found))
    rows = []
    for name in clocks[0].steps:
        cells = [f"{wall:.2f} ({cpu:.1f})" for wall, cpu in (c.steps[name] for c in clocks)]
        rows.append((name, *cells, LIMITS.get(name, "")))
    epochs = epochs_of(options.samples)
    title = f"{options.samples} people, {options.sites} sites, {epochs} epochs: s (CPU-s)"
    runs = [f"run {k + 1}" for k in range(options.repeats)]
    print_table(title, ("step", *runs, "asked, 1 000 000 x 100 000"), rows)
    print("the same bytes:", len(set(digests)) == 1, *digests)
    assert len(set(digests)) == 1
    if not options.no_check:
        check(drawn, found, options, xp)


if __name__ == "__main__":
    main()
