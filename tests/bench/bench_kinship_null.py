"""False relatives among simulated unrelated people, and the share of true relatives found.

    python tests/bench/bench_kinship_null.py [--people 400] [--seeds 1] [--quick]

Unrelated people (msprime) of one population or of three, on 1, 5 and 22 regions of several sizes.
"third" and "twice" are the false pairs at the fixed limits 0.0442 and 0.354, "told" and "same" the
false pairs that are reported. The other columns are shares of true pairs reported (duplicates,
parents and children, siblings, second degree), of families simulated by gene dropping.
"""

from __future__ import annotations

import time

import commandline
from scenes.kinship import add_families, draw_people, judge, resolution_of
from timing import print_table

from popdesic.engine.select import select_backend
from popdesic.relatives.resolution import DUPLICATE, THIRD

#: Number of regions, their length in base pairs, most sites on each, whether three populations.
SCENES = [
    (1, 1e5, 3_000, False),
    (1, 1e6, 3_000, False),
    (1, 1e7, 3_000, False),
    (1, 3e7, 5_000, False),
    (5, 2e5, 500, False),
    (5, 2e5, 500, True),
    (5, 1e7, 2_000, False),
    (22, 1e5, 500, False),
    (22, 1e6, 500, False),
    (22, 1e6, 500, True),
    (22, 1e7, 1_000, False),
    (22, 3e7, 1_000, False),
]
FAMILIES = 20


def measure(scene: tuple, people: int, seed: int) -> tuple:
    """One row of the table."""
    regions, length, sites, structured = scene
    backend = select_backend("cpu", 2)
    drawn = draw_people(people, regions, length, sites=sites, seed=seed, structured=structured)
    found = resolution_of(drawn, backend)
    alone = judge(drawn, found, backend)
    families = min(FAMILIES, people // 3)
    with_families, pairs = add_families(drawn, families, seed)
    verdicts = judge(with_families, found, backend)
    shares = []
    for relation, known in pairs.items():
        told = verdicts.same if relation == "duplicate" else verdicts.related
        shares.append(f"{sum(told[i, j] for i, j in known) / len(known):.0%}")
    limit = "-" if found.smallest_kinship is None else f"{found.smallest_kinship:.3f}"
    return (
        f"{regions} x {length / 1e6:g} Mb, {'three populations' if structured else 'one'}",
        found.sites,
        "-" if found.effective_sites is None else round(found.effective_sites),
        limit,
        alone.count(alone.kinship >= THIRD),
        alone.count(alone.kinship > DUPLICATE),
        alone.count(alone.related),
        alone.count(alone.same),
        *shares,
    )


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=1, help="draws of every scene")
    parser.add_argument("--largest", type=float, default=1e12, help="base pairs of a scene")
    options = commandline.parse(parser, largest=1e6)
    scenes = [scene for scene in SCENES if scene[0] * scene[1] <= options.largest]
    started = time.perf_counter()
    seeds = range(1, options.seeds + 1)
    rows = [measure(scene, options.people, seed) for scene in scenes for seed in seeds]
    head = ("scene", "sites", "effective", "limit", "third", "twice", "told", "same")
    print_table(
        f"{options.people} unrelated people, {options.people * (options.people - 1) // 2} pairs",
        (*head, "duplicates", "parents", "siblings", "second"),
        rows,
    )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
