"""Nearest people, nearest points and relatives of large studies, without all pairs in memory.

    python tests/bench/bench_neighbors.py [--device cpu|gpu] [--samples 2000] [--sites 10000]
        [--neighbors 50] [--cohorts 4] [--points 4000] [--components 20] [--quick]

Random planes, without and with missing genotypes (6 %), in which every hundredth person has half
of the genotypes of the one before. For nearest people and what comparisons of
cohorts look at (relatives, mixtures, best matches), also by rows of cohorts as the jobs of a study
find them: seconds, T site-pairs/s, and the same beside the products of
the same tiles alone, which nothing can undercut; then what a million people at 100 000 sites would
take, by the number of pairs. For points on components: the same by pairs of points. Planes are on
the device before the clock starts; a GPU also prints how long they take to get there from host
memory. Best of three after a warm-up.
"""

from __future__ import annotations

from itertools import pairwise

import commandline
import numpy as np
from timing import best_of, print_table

from popdesic.distance.find_nearest import nearest_between, nearest_points, nearest_samples
from popdesic.distance.nearest import Measure, Nearest, tiles_of_pairs
from popdesic.distance.nearest_cpu import SIDE
from popdesic.distance.neighbor_lists_cpu import merge_lists
from popdesic.distance.neighbors import measure_of
from popdesic.engine.backend import Backend
from popdesic.engine.plane_parts import PlaneParts
from popdesic.engine.select import select_backend
from popdesic.engine.terms import KINSHIP, Planes, Terms
from popdesic.relatives.screen import Screen, Screened
from popdesic.relatives.screen_pairs import screen_pairs

GOAL_SAMPLES, GOAL_SITES = 1_000_000, 100_000
#: Third degree (Manichaikul et al. 2010).
SCREEN = Screen(0.0442, 0.02, 100, 100, 0.02, 0.05)


def draw_planes(n: int, n_sites: int, masked: bool, xp) -> Planes:
    """Random planes of n people, every hundredth half like the one before; `xp`: numpy, CuPy."""
    n_words = -(-n_sites // 64)
    xp.random.seed(1)

    def bits():
        return xp.random.randint(0, 2**32, (n, 2 * n_words), np.uint32).view(np.uint64)

    words = xp.empty((n, 3 if masked else 2, n_words), np.uint64)
    one, other = bits(), bits()  # haplotypes of even frequencies: unrelated people have kinship 0
    words[:, 0], words[:, 1] = one | other, one & other
    if masked:
        words[:, 2] = bits() | bits() | bits() | bits()
    halves = words[:-1:100, :2, : n_words // 2]
    words[1::100, :2, : n_words // 2] = halves[: len(words[1::100])]
    if n_sites % 64:
        words[:, :, -1] &= np.uint64((1 << n_sites % 64) - 1)
    return Planes(words, n_sites)


def products(backend: Backend, planes: PlaneParts, terms: Terms) -> None:
    """The products of all tiles, where the backend leaves them."""
    if backend.name == "cpu":
        for rows, columns in tiles_of_pairs(planes.n_samples, SIDE):
            b = None if rows == columns else planes.block(*columns)
            backend.bitgemm(planes.block(*rows), b, terms)
        return
    import cupy

    from popdesic.distance.nearest_plan import ordered_tiles
    from popdesic.engine.tiles_gpu import TileSums

    tiles = TileSums(backend, planes)
    for rows, columns in ordered_tiles(planes.n_samples, tiles.side(terms)):
        tiles.multiply(rows, columns, terms)
    cupy.cuda.Device().synchronize()


def cohorts_of(planes: PlaneParts, n_cohorts: int) -> tuple[list[Planes], list[int]]:
    """Planes of cohorts of equal size, and their bounds."""
    (whole,) = planes.parts
    bounds = np.linspace(0, planes.n_samples, n_cohorts + 1).astype(int).tolist()
    return [Planes(whole.words[a:b], whole.n_sites) for a, b in pairwise(bounds)], bounds


def nearest_by_rows(
    backend: Backend, planes: PlaneParts, measure: Measure, k: int, n_cohorts: int
) -> Nearest:
    """The nearest samples as the jobs of a study find them: by rows of cohorts, joined on the host.

    A row has its own cohort on the device; here the others are there too.
    """
    parts, bounds = cohorts_of(planes, n_cohorts)
    found = Nearest.empty(planes.n_samples, k)

    def merge(lists: Nearest, own: int, other: int) -> None:
        mine = slice(bounds[own], bounds[own + 1])
        some = Nearest(found.index[mine], found.distance[mine], found.called[mine])
        merge_lists(some, lists, bounds[other], backend.threads)

    for row, own in enumerate(parts):
        merge(nearest_samples(backend, PlaneParts.of([own]), measure, k), row, row)
        for column, other in enumerate(parts[:row]):
            of_other, of_own = nearest_between(backend, other, own, measure, k)
            merge(of_other, column, row)
            merge(of_own, row, column)
    return found


def screened_by_rows(backend: Backend, planes: PlaneParts, n_cohorts: int) -> list[Screened]:
    """Pairs to look at again and best matches, as the jobs of a study find them."""
    parts = cohorts_of(planes, n_cohorts)[0]
    found = []
    for row, own in enumerate(parts):
        found.append(screen_pairs(backend, own, None, SCREEN, 1))
        found += [screen_pairs(backend, other, own, SCREEN, 1) for other in parts[:row]]
    return found


def upload_seconds(backend: Backend, planes: PlaneParts) -> float:
    """Seconds for planes in host memory to get to the device."""
    from popdesic.engine.tiles_gpu import upload

    host = PlaneParts.of([Planes(part.words.get(), part.n_sites) for part in planes.parts])
    return best_of(1, lambda: upload(backend, host))


def bench_people(backend: Backend, options, *, masked: bool, xp) -> None:
    n, n_sites, k = options.samples, options.sites, options.neighbors
    planes = PlaneParts.of([draw_planes(n, n_sites, masked, xp)])
    measure = measure_of("euclidean", n_sites, 1)
    pairs = n * (n - 1) / 2
    more = GOAL_SAMPLES * (GOAL_SAMPLES - 1) / 2 * GOAL_SITES / (pairs * n_sites)
    repeats = 1 if options.quick else 3
    rows, found = [], {}

    def timed(name: str, work, alone: float | None = None) -> float:
        found[name] = work()  # kernels are compiled and chosen
        seconds = best_of(repeats, work)
        share = "" if alone is None else f"{alone / seconds:.0%}"
        rate = pairs * n_sites / seconds / 1e12
        rows.append((name, f"{seconds:.3f}", f"{rate:.3g}", share, f"{seconds * more:.0f}"))
        return seconds

    alone = timed("products: distance, called", lambda: products(backend, planes, measure.terms))
    timed(f"{k} nearest", lambda: nearest_samples(backend, planes, measure, k), alone)
    name, n_cohorts = f"{k} nearest, by rows of {options.cohorts} cohorts", options.cohorts
    timed(name, lambda: nearest_by_rows(backend, planes, measure, k, n_cohorts), alone)
    assert np.array_equal(found[name].index, found[f"{k} nearest"].index)
    alone = timed("products: kinship", lambda: products(backend, planes, KINSHIP))
    name = "relatives, mixtures, best matches"
    whole = planes.parts[0]
    timed(name, lambda: screen_pairs(backend, whole, None, SCREEN, 1), alone)
    timed(
        f"{name}, by rows of {n_cohorts} cohorts",
        lambda: screened_by_rows(backend, planes, n_cohorts),
        alone,
    )
    title = f"{n} people, {n_sites} sites, {'6 % missing' if masked else 'none missing'}"
    goal = f"{GOAL_SAMPLES} x {GOAL_SITES}, s (extrapolated)"
    print_table(title, ("", "s", "T site-pairs/s", "of products alone", goal), rows)
    n_pairs = len(found["relatives, mixtures, best matches"].rows)
    print(f"pairs: {n_pairs}, of {len(range(1, n, 100))} planted")
    if backend.name == "gpu":
        seconds = upload_seconds(backend, planes)
        print(f"planes to the device: {planes.n_bytes / seconds / 1e9:.1f} GB/s")


def bench_points(backend: Backend, options) -> None:
    n, m, k = options.points, options.components, 15
    rng = np.random.default_rng(3)
    centres = 4 * rng.normal(size=(26, m))
    points = centres[rng.integers(0, 26, n)] + rng.normal(size=(n, m))
    nearest_points(backend, points[:1000], k)
    seconds = best_of(1 if options.quick else 3, lambda: nearest_points(backend, points, k))
    million = seconds * (GOAL_SAMPLES / n) ** 2
    row = f"{seconds:.3f}", f"{n * n / 2 / seconds / 1e9:.3g}", f"{million:.1f}"
    header = ("s", "G pairs/s", f"{GOAL_SAMPLES} points, s (extrapolated)")
    print_table(f"{k} nearest of {n} points on {m} components", header, [row])


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--sites", type=int, default=10_000)
    parser.add_argument("--neighbors", type=int, default=50)
    parser.add_argument("--cohorts", type=int, default=4)
    parser.add_argument("--points", type=int, default=4000)
    parser.add_argument("--components", type=int, default=20)
    options = commandline.parse(parser, samples=300, sites=500, points=300)
    backend = select_backend(options.device, options.threads)
    print(backend.describe())
    xp = np
    if options.device == "gpu":
        import cupy as xp
    bench_points(backend, options)
    for masked in (False, True):
        bench_people(backend, options, masked=masked, xp=xp)


if __name__ == "__main__":
    main()
