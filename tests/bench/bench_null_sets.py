"""False findings of tests of sets, by a million null sets: shares with p at most 0.05, 1e-3, 1e-5.

    python tests/bench/bench_null_sets.py [--data ../shared/data] [--sets 1000000] [--seed 1]
        [--phenotypes 2000] [--scenes NAME ...] [--quick]

Null sets of tests/scenes/interactions/null_sets.py: sets of 4 to 10 sites (cases: 4 to 6), new
genotypes for every `--phenotypes` phenotypes, main effects of all sites, a covariate. LD is
simulated (tests/scenes/interactions/sets.py); `real` has people of real haplotypes of chromosome
22 (`--data`, kg1_chr22_564), and is left out without them. In brackets the 95 % interval (Wilson
1927); `outside`: tests whose interval lies above or below the level. p is twice the smaller of the
other two, so it may lie below.
"""

from __future__ import annotations

import time
from pathlib import Path

import commandline
import numpy as np
from bench_interactions import wilson
from scenes.interactions.null_sets import LEVELS, Counted, count_cases, count_numbers
from scenes.interactions.real_haplotypes import GROUPS, haplotypes, people
from scenes.interactions.sets import F_ST, genotypes_in_ld
from timing import print_table

TESTS = ("p", "p_quadratic", "p_pair")
#: People of a scene, and the share of cases; None: a number.
SCENES = {
    "number": (1000, None),
    "number, skewed": (1000, None),
    "number, structure": (1000, None),
    "number, real": (1000, None),
    "cases 1:1": (1000, 1 / 2),
    "cases 1:20": (2100, 1 / 21),
    "cases 1:1, structure": (1000, 1 / 2),
    "cases 1:1, real": (1000, 1 / 2),
}


def genotypes_of(scene: str, rng, n: int, sites: int, data: Path | None):
    """Genotypes int8 (n, sites) and the population of each person, 0 or 1."""
    north = np.zeros(n)
    if "real" in scene:
        found = haplotypes(data, GROUPS[int(rng.integers(len(GROUPS)))])
        first = int(rng.integers(len(found[0]) - 10 * sites))
        chosen = np.sort(rng.choice(10 * sites, sites, replace=False))
        return people(rng, found, slice(first, first + 10 * sites), n)[chosen].T, north
    frequency = rng.uniform(0.05, 0.5, sites)
    if "structure" in scene:
        north = (rng.random(n) < 0.5).astype(float)
        own = (frequency * (1 - F_ST) / F_ST, (1 - frequency) * (1 - F_ST) / F_ST)
        two = np.clip(rng.beta(*own, (2, sites)), 0.01, 0.99)
        frequency = two[north.astype(int)]
    return genotypes_in_ld(rng, n, sites, frequency), north


def counted(scene: str, options) -> Counted:
    n, share = SCENES[scene]
    rng = np.random.default_rng([options.seed, list(SCENES).index(scene)])
    sets, found = 0, np.zeros((len(TESTS), len(LEVELS)), np.int64)
    while sets < options.sets:
        sites = int(rng.integers(4, 7 if share else 11))
        genotypes, north = genotypes_of(scene, rng, n, sites, options.data)
        if share:
            one = count_cases(rng, genotypes, north, options.phenotypes, share)
        else:
            one = count_numbers(rng, genotypes, north, options.phenotypes, "skewed" in scene)
        sets, found = sets + one.sets, found + one.found
    return Counted(sets, found)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real data")
    parser.add_argument("--sets", type=int, default=1_000_000, help="null sets of each scene")
    parser.add_argument("--phenotypes", type=int, default=2000, help="of the same genotypes")
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--seed", type=int, default=1)
    options = commandline.parse(parser, sets=400, phenotypes=100)
    head = ("scene", "null sets", "level", *TESTS, "outside", "CPU s")
    for scene in options.scenes:
        if "real" in scene and options.data is None:
            continue
        start = time.process_time()
        sets, found = counted(scene, options)
        took, rows = f"{time.process_time() - start:.0f}", []
        for k, level in enumerate(LEVELS):
            ends = [wilson(int(count), sets) for count in found[:, k]]
            cells = [
                f"{count / sets:.3g} ({max(low, 0):.3g} to {high:.3g})"
                for count, (low, high) in zip(found[:, k], ends, strict=True)
            ]
            outside = [
                f"{test} {'above' if low > level else 'below'}"
                for test, (low, high) in zip(TESTS, ends, strict=True)
                if not low <= level <= high
            ]
            rows.append((scene, sets, level, *cells, ", ".join(outside) or "none", took))
        print_table("Null sets with p at most a level", head, rows)


if __name__ == "__main__":
    main()
