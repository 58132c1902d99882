"""How often communities are right where the truth is known, against the goals set for them.

    python tests/bench/bench_communities.py [--draws 100] [--jobs 2] [--first-seed 1001] [--quick]
    python tests/bench/bench_communities.py --scenes --worlds 16     # the coarse level
    python tests/bench/bench_communities.py --scenes --bridges 40    # samples between communities

Every draw of a scene (tests/scenes/landscapes) goes through what the workflow does by default:
pruned axes, components by test, splits, their F_ST. What has to be said of it: one community
(panmixia, also with four labels that mean nothing), "continuous" (chain, grid, gradient and
others), or the islands themselves, with an adjusted Rand index of at least 0.95. The intervals are
those of Clopper and Pearson at 95 %. The same seeds give the same numbers with any --jobs.

--bridges N: samples called "between 1 and 3" in N scenes of sources, families and mixed people
(tests/scenes/landscapes/bridges.py): of the unmixed, and of those with a second share of at least
0.3 whose sources are communities of their own. `right`: between communities of their sources.

--worlds N: how well the communities shown first agree with the continents of N simulated worlds,
with the rule in use (an F_ST of 0.02, within shares of the deepest) and with fixed shares of the
deepest F_ST below which splits count as fine, by the number of components used. In the second
table the sites were filtered by Hardy-Weinberg proportions over everyone, which takes away those at
which continents differ most. There are families in the third and fourth table; in the third, as by
default, they do not define the axes. `fine`: how well finer groups agree with the populations.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import commandline
import numpy as np
from scenes.landscapes import scene, scores
from scenes.landscapes.bridges import bridged
from scenes.landscapes.methods import significant_scores
from scenes.landscapes.splitting import community_tree, genotypes_of
from scenes.landscapes.worlds import component_scores, world
from scipy.stats import beta
from threadpoolctl import threadpool_limits
from timing import print_table

from popdesic.communities.bridges import find_bridges
from popdesic.communities.depth import Genotypes
from popdesic.communities.splits import (
    COARSE_BETWEEN,
    COARSE_F_ST,
    MOST_COMPONENTS,
    cut_coarse,
    cut_tree,
)
from popdesic.communities.study_splits import describe_splits
from popdesic.communities.within import structure_within

MANY = {"islands": 16, "per_island": 30, "f_st": 0.02}
#: Scenes and their changes: (title, name, changes, goal).
SCENES = (
    ("panmixia", "panmixia", {}, "one"),
    ("four labels", "four labels", {}, "one"),
    ("chain", "chain", {}, "continuous"),
    ("uneven chain", "uneven", {}, "continuous"),
    ("grid", "grid", {}, "continuous"),
    ("faint grid", "faint grid", {}, "continuous"),
    ("gradient", "gradient", {}, "continuous"),
    ("islands, F_ST 0.01", "islands", {}, "islands"),
    ("islands, F_ST 0.02", "islands", {"f_st": 0.02}, "islands"),
    ("8 islands, F_ST 0.01", "islands", {"islands": 8, "per_island": 40}, "islands"),
    ("16 islands, F_ST 0.02", "islands", MANY, "islands"),
)
#: Columns of the table.
HEAD = (
    *("scene", "to be said", "said", "interval", "goal", "ARI", "least"),
    *("fine, ARI", "least", "communities", "components", "s a draw"),
)
#: What --quick draws.
QUICK = ("panmixia", "chain", "islands, F_ST 0.01")
#: Adjusted Rand index that islands need, and share of draws in which a goal has to be met.
LEAST_ARI, GOAL = 0.95, 0.95
#: Shares of the deepest F_ST, and numbers of components, that are compared on worlds.
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
COMPONENTS = (5, 10, 20, 50)
#: Default of panel.min_hwe_p; without populations in the sheet it is that over everyone.
MIN_HWE_P = 1e-6
#: Least second share of a sample that has to be called between communities.
MIXED = 0.3
#: Couples with three children in one population of each continent.
FAMILIES = 15


@dataclass(frozen=True)
class Found:
    """What was found in one draw."""

    structure: str
    communities: int
    significant: int
    ari: float
    fine: float
    seconds: float


def find(which: int, seed: int) -> Found:
    """Communities of one draw of SCENES[which]; seconds without the drawing."""
    _, name, changes, _ = SCENES[which]
    drawn = scene(name, seed, **changes)
    started = time.perf_counter()
    points = significant_scores(drawn, 1)
    genotypes = genotypes_of(drawn.genotypes, drawn.chrom, drawn.pos)
    root = community_tree(points, genotypes)
    community = cut_coarse(root)
    fine = finer(genotypes, community)
    return Found(
        describe_splits(root, points.shape[1])["structure"],
        int(community.max()) + 1,
        points.shape[1],
        scores.community_ari(community, drawn.populations),
        scores.community_ari(fine, drawn.populations),
        time.perf_counter() - started,
    )


def finer(genotypes: Genotypes, community: np.ndarray) -> np.ndarray:
    """Communities 0, 1, … with the finer groups that each has on its own components."""
    groups = np.zeros_like(community)
    if community.any():
        groups, _ = structure_within(genotypes, community + 1)
    return community * (groups.max() + 1) + groups


def is_met(goal: str, found: Found) -> bool:
    if goal == "one":
        return found.communities == 1
    if goal == "continuous":
        return found.structure == "continuous"
    return found.ari >= LEAST_ARI


def interval(hits: int, draws: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of a share (Clopper and Pearson 1934)."""
    tail = (1 - level) / 2
    low = beta.ppf(tail, hits, draws - hits + 1) if hits else 0.0
    high = beta.isf(tail, hits + 1, draws - hits) if hits < draws else 1.0
    return float(low), float(high)


def row_of(title: str, goal: str, found: list[Found]) -> tuple:
    """One row of the table."""
    hits, draws = sum(is_met(goal, one) for one in found), len(found)
    low, high = interval(hits, draws)
    aris, fine = [one.ari for one in found], [one.fine for one in found]
    said = {"one": "one", "continuous": "continuous", "islands": f"ARI >= {LEAST_ARI:g}"}[goal]
    return (
        *(title, said, f"{hits} of {draws}", f"{low:.3f}-{high:.3f}"),
        "yes" if hits >= GOAL * draws else "NO",
        *((f"{x:.3f}" for x in (np.mean(aris), min(aris))) if goal == "islands" else ("", "")),
        *((f"{x:.3f}" for x in (np.mean(fine), min(fine))) if goal == "islands" else ("", "")),
        f"{np.mean([one.communities for one in found]):.2f}",
        f"{np.mean([one.significant for one in found]):.1f}",
        f"{np.mean([one.seconds for one in found]):.1f}",
    )


def agree(seed: int, families: int, axes: str, min_hwe_p: float) -> np.ndarray:
    """ARI of one world, (len(COMPONENTS), 2 + len(SHARES)): of finer groups with its populations,
    of communities with its continents as in the workflow, and with every split coarse that has such
    a share of the deepest F_ST."""
    drawn = world(seed, families, min_hwe_p=min_hwe_p)
    everyone = np.ones(len(drawn.related), bool)
    unrelated = everyone if axes == "everyone" else ~drawn.related
    points = component_scores(drawn, unrelated)
    genotypes = genotypes_of(drawn.genotypes, drawn.chrom, drawn.pos, unrelated)
    found, used = np.empty((len(COMPONENTS), 2 + len(SHARES))), 0
    for row, k in zip(found, COMPONENTS, strict=True):
        if k > used:  # else there are no more than in the row before
            root = community_tree(points, genotypes, k)
            fine = finer(genotypes, cut_coarse(root))
        ways = [cut_coarse(root), *(cut_tree(root, share * root.deepest) for share in SHARES)]
        row[0] = scores.community_ari(fine, drawn.populations)
        row[1:] = [scores.community_ari(way, drawn.continents) for way in ways]
        used = k if k < points.shape[1] else COMPONENTS[-1]
    return found


def count_bridges(seed: int) -> np.ndarray:
    """Of one scene: unmixed and called, unmixed, mixed and called, and rightly so, mixed."""
    drawn = bridged(seed)
    points = component_scores(drawn, ~drawn.related)[:, :MOST_COMPONENTS]
    genotypes = genotypes_of(drawn.genotypes, drawn.chrom, drawn.pos, ~drawn.related)
    community = cut_coarse(community_tree(points, genotypes)) + 1
    found = find_bridges(points, community, ~drawn.related)
    called, shares = np.array([len(own) > 0 for own in found]), drawn.shares
    unmixed, source = shares.max(axis=1) == 1, shares.argmax(axis=1)
    home = [
        int(np.bincount(community[unmixed & (source == s)]).argmax())
        for s in range(shares.shape[1])
    ]
    alone = np.array([home.count(own) == 1 for own in home])
    second = np.sort(shares, axis=1)[:, -2]
    mixed = (second >= MIXED) & ((shares <= 0.05) | alone).all(axis=1)
    right = np.array(
        [
            bool(own) and {*own} <= {home[s] for s in np.flatnonzero(row > 0.1)}
            for own, row in zip(found, shares, strict=True)
        ]
    )
    counted = called & unmixed, unmixed, called & mixed, right & mixed, mixed
    return np.array([one.sum() for one in counted])


def show_bridges(scenes: int, first: int, run: Callable) -> None:
    wrong, unmixed, called, right, mixed = sum(
        run(count_bridges, [(first + i,) for i in range(scenes)])
    )
    rows = [
        ("unmixed", unmixed, wrong, f"{wrong / unmixed:.4f}", "", "<= 0.005"),
        ("mixed", mixed, called, f"{called / mixed:.3f}", f"{right / mixed:.3f}", ">= 0.9"),
    ]
    print_table(
        f"samples called between communities, {scenes} scenes from seed {first} on",
        ("samples", "number", "called", "share", "right", "goal"),
        rows,
    )


def show_worlds(worlds: int, first: int, run: Callable) -> None:
    for title, *options in (
        ("unrelated people", 0, "unrelated", 0.0),
        ("unrelated people, sites filtered by HWE over everyone", 0, "unrelated", MIN_HWE_P),
        ("families, axes from the unrelated", FAMILIES, "unrelated", 0.0),
        ("families, axes from everyone", FAMILIES, "everyone", 0.0),
    ):
        found = np.array(run(agree, [(first + i, *options) for i in range(worlds)]))
        rows = [
            (f"at most {k}", *(f"{m:.3f} ({least:.2f})" for m, least in zip(*two, strict=True)))
            for k, *two in zip(COMPONENTS, found.mean(axis=0), found.min(axis=0), strict=True)
        ]
        print_table(
            f"ARI with the continents, {worlds} worlds from seed {first} on, mean (least), {title}",
            ("components", "fine", "as in use", *(f"{share:g}" for share in SHARES)),
            rows,
        )
    print(
        f"In use: F_ST of at least {COARSE_F_ST:g}, which stays between {COARSE_BETWEEN[0]:g} and "
        f"{COARSE_BETWEEN[1]:g} of the deepest, and at most {MOST_COMPONENTS} components."
    )


def start() -> None:
    """In each process: one thread, so that sums have one order."""
    threadpool_limits(1)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--draws", type=int, default=100, help="draws of every scene")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--first-seed", type=int, default=1001)
    parser.add_argument("--scenes", nargs="*", default=[title for title, *_ in SCENES])
    parser.add_argument("--worlds", type=int, default=0, help="simulated worlds to judge levels on")
    parser.add_argument("--bridges", type=int, default=0, help="scenes of mixed people")
    options = commandline.parse(parser, draws=1, scenes=QUICK)
    unknown = set(options.scenes) - {title for title, *_ in SCENES}
    if unknown:
        titles = ", ".join(repr(title) for title, *_ in SCENES)
        raise SystemExit(f"Error: no scene {min(unknown)!r}; there are {titles}.")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context, initializer=start) as pool:

        def run(work: Callable, arguments: Iterable[tuple]) -> list:
            return [future.result() for future in [pool.submit(work, *one) for one in arguments]]

        started = time.perf_counter()
        seeds = range(options.first_seed, options.first_seed + options.draws)
        asked = [i for i, (title, *_) in enumerate(SCENES) if title in options.scenes]
        found = run(find, [(i, seed) for i in asked for seed in seeds])
        rows = []
        for number, i in enumerate(asked):
            own = found[number * options.draws : (number + 1) * options.draws]
            rows.append(row_of(SCENES[i][0], SCENES[i][3], own))
        if rows:
            print_table(f"communities, seeds {seeds[0]} to {seeds[-1]}", HEAD, rows)
        if options.bridges:
            show_bridges(options.bridges, options.first_seed, run)
        if options.worlds:
            show_worlds(options.worlds, options.first_seed, run)
        print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
