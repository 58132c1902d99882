"""False and true barriers of scenes whose walls are known, and the cost of finding them.

    python tests/bench/bench_barriers.py [--seeds 60] [--draws 199] [--mixtures 200] [--quick]

"any" is the share of draws with any barrier or corridor away from the scene's wall and its gap
(nominal: 0.05); "wall" is the share of the edges across the wall that are marked, "gap" that of the
edges through its gap, where genes pass and yet differences are steep. The second table is the share
of draws in which the page speaks of isolation by distance among groups that live in all places, in
shares that differ by place: without isolation (nominal: 0.05) and with. The third is the time of a
thousand permutations, and of a thousand landscapes, by number of places.
"""

from __future__ import annotations

import time

import commandline
import numpy as np
from scenes.landscapes import scene
from scenes.mixtures import draw_mixtures
from scipy.spatial.distance import cdist
from timing import print_table

from popdesic.geography.barriers import find_barriers
from popdesic.geography.genetic import genetic_distances
from popdesic.geography.isolation import rank_mantel
from popdesic.geography.measure import equally_many, isolation
from popdesic.geography.places import gabriel_edges
from popdesic.report.isolation import isolation_words

#: Scenes, and the first row of demes across which their wall stands; None without a wall.
SCENES = {"chain": None, "faint grid": None, "grid": None, "wall": 1, "closed wall": 0}


def mark(name: str, seed: int, draws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each edge is marked, whether it crosses the wall, and whether its gap."""
    drawn = scene(name, seed=seed)
    points, home = np.unique(drawn.coordinates, axis=0, return_inverse=True)
    people = drawn.genotypes.T.astype(np.float64)
    squared = cdist(people, people, "sqeuclidean") / people.shape[1]
    member = np.eye(len(points))[home.ravel()]
    sizes = member.sum(axis=0).astype(int)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    found = genetic_distances(member.T @ squared @ member, pairs)
    edges = gabriel_edges(points)
    options = {"draws": draws, "error_rate": 0.05, "rng": np.random.default_rng(seed)}
    marked = find_barriers(found.differences, cdist(points, points), sizes, edges, **options)
    first = SCENES[name]
    if first is None:
        nowhere = np.zeros(len(edges), bool)
        return np.array(marked.kinds) != "", nowhere, nowhere
    a, b = points[edges[:, 0]], points[edges[:, 1]]
    middle = points[:, 0].max() / 2
    across = (a[:, 0] < middle) != (b[:, 0] < middle)
    closed = a[:, 1] >= first
    return np.array(marked.kinds) != "", across & closed, across & ~closed


def measure(name: str, seeds: range, draws: int) -> tuple:
    """One row of the first table."""
    found = [mark(name, seed, draws) for seed in seeds]
    false = np.mean([(marked & ~wall & ~gap).any() for marked, wall, gap in found])
    shares = [[part[0][part[kind]].mean() for part in found if part[kind].any()] for kind in (1, 2)]
    return (
        *(name, len(found[0][0]), f"{false:.3f}"),
        *(f"{np.mean(share):.3f}" if share else "-" for share in shares),
    )


#: Groups that live in all places: what differs from the defaults of `draw_mixtures`.
MIXTURES: dict[str, dict] = {
    "2 groups, shares along a line": {},
    "3 groups, shares drawn by place": {"groups": 3, "places": 20, "gradient": False},
    "2 groups, F_ST 0.01, 10 places": {"places": 10, "per_place": 6, "drift": 0.05},
    "1 group, more samples along the line": {"groups": 1, "per_place": list(range(1, 24, 2))},
    "2 groups, isolation": {"isolation": 0.03},
    "3 groups, isolation": {"groups": 3, "places": 20, "gradient": False, "isolation": 0.02},
}


def called(seed: int, changes: dict) -> tuple[bool, bool]:
    """Whether the test of all pairs is significant, and that within groups too."""
    genotypes, home, group = draw_mixtures(seed, **changes)
    people = genotypes.T.astype(np.float64)
    squared = cdist(people, people, "sqeuclidean") / people.shape[1]
    rng = np.random.default_rng(seed)

    def stratum(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kept = equally_many(home[chosen]) >= 0
        chosen = chosen[kept]
        places, own = np.unique(home[chosen], return_inverse=True)
        member = np.eye(len(places))[own]
        sizes = member.sum(axis=0).astype(int)
        sums = member.T @ squared[np.ix_(chosen, chosen)] @ member
        values = genetic_distances(sums, np.outer(sizes, sizes) - np.diag(sizes)).values
        return values, np.abs(places[:, None] - places).astype(float)

    whole = isolation([stratum(np.arange(len(home)))], permutations=199, rng=rng)
    strata = [stratum(np.flatnonzero(group == k)) for k in np.unique(group)]
    within = isolation(strata, permutations=199, rng=rng)
    about = {"all": whole, "within": within, "communities": len(strata)}
    return whole["p"] <= 0.05, isolation_words(about).endswith(": isolation by distance.")


def cost(places: int) -> tuple:
    """One row of the second table."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(places, 2))
    ground = cdist(points, points)
    noise = rng.random(ground.shape)
    genetic = 0.02 * ground + 0.001 * (noise + noise.T)
    np.fill_diagonal(genetic, 0)
    sizes, draws = np.full(places, 5), 39
    times = [time.perf_counter()]
    edges = gabriel_edges(points)
    times.append(time.perf_counter())
    rank_mantel([(genetic, ground)], permutations=draws, rng=rng)
    times.append(time.perf_counter())
    find_barriers(genetic, ground, sizes, edges, draws=draws, error_rate=0.05, rng=rng)
    times.append(time.perf_counter())
    took = np.diff(times) * [1, 1000 / draws, 1000 / draws]
    return places, len(edges), *(f"{seconds:.2g} s" for seconds in took)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=60, help="draws of every scene")
    parser.add_argument("--draws", type=int, default=199, help="landscapes for each threshold")
    parser.add_argument("--places", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--mixtures", type=int, default=200, help="draws of every mixture")
    options = commandline.parse(
        parser, seeds=1, draws=39, places=[50], scenes=["chain"], mixtures=2
    )
    seeds = range(100, 100 + options.seeds)
    rows = [measure(name, seeds, options.draws) for name in options.scenes]
    print_table(f"{options.seeds} draws a scene", ("scene", "edges", "any", "wall", "gap"), rows)
    rows = []
    for name, changes in MIXTURES.items():
        found = np.array([called(seed, changes) for seed in range(options.mixtures)])
        rows.append((name, *(f"{share:.3f}" for share in found.mean(axis=0))))
    head = ("groups", "all pairs significant", "called isolation by distance")
    print_table(f"{options.mixtures} draws of mixtures", head, rows)
    head = ("places", "edges", "neighbours", "1 000 permutations", "1 000 landscapes")
    print_table("Cost", head, [cost(places) for places in options.places])


if __name__ == "__main__":
    main()
