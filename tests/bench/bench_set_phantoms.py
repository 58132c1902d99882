"""Phantoms of sets: how often one untyped additive site makes a set look like an interaction.

    python tests/bench/bench_set_phantoms.py ../shared/data [--replicates 60] [--people 1500]
        [--share 0.15] [--product] [--seed 1] [--quick]

Each replicate is a study of people made of real haplotypes of chromosome 22
(tests/scenes/interactions/real_haplotypes.py). A set has up to eight typed sites within 50 kb of
one common site, which is not typed and has a share of the variance of a number; nothing interacts.
With --product it is the product of two sites of the set that has this share instead. The region
is all typed sites within 500 kb. Rows are shares of studies, with 95 % intervals (Wilson):

    p              p of the set at most 0.05
    conditional    so is p given the best sites of the region
    untyped        so are these two and p among draws of an untyped site (set_phantoms.py)
    not told       p and conditional are, but no site of the region can play the untyped one
"""

from __future__ import annotations

from pathlib import Path

import commandline
import numpy as np
from bench_interactions import wilson
from scenes.interactions.real_haplotypes import GROUPS, haplotypes, people
from timing import print_table

from popdesic.epistasis.phantoms import REGION_BP
from popdesic.epistasis.set_phantoms import explain_set
from popdesic.epistasis.sets import prepare_sets, set_p_values

LEVEL, NEAR_BP, SITES = 0.05, 50_000, 8
NAMES = ("p", "conditional", "untyped", "not told")


def replicate(options, seed: int) -> tuple[bool, ...] | None:
    """Whether a study counts for each of `NAMES`; None if fewer than three sites are near."""
    rng = np.random.default_rng([options.seed, seed])
    found = haplotypes(options.data, GROUPS[seed % len(GROUPS)])
    pos = found[0]
    inside = np.flatnonzero((pos > pos[0] + 600_000) & (pos < pos[-1] - 600_000))
    untyped = int(rng.choice(inside))
    first, last = np.searchsorted(pos, pos[untyped] + np.array([-REGION_BP, REGION_BP]))
    genotypes = people(rng, found, slice(first, last), options.people)
    distance = np.abs(pos[first:last] - pos[untyped])
    near = np.flatnonzero((distance <= NEAR_BP) & (distance > 0))
    if len(near) < 3:
        return None
    own = np.sort(rng.choice(near, min(SITES, len(near)), replace=False))
    rest = np.setdiff1d(np.arange(last - first), np.append(own, untyped - first))
    cause = genotypes[untyped - first].astype(float)
    noise = rng.normal(size=options.people)
    if options.product:
        two = genotypes[rng.choice(own, 2, replace=False)].astype(float)
        cause = np.prod(two - two.mean(axis=1, keepdims=True), axis=0)
    effect = np.sqrt(options.share / (1 - options.share))
    number = effect * (cause - cause.mean()) / cause.std() + noise
    tests = prepare_sets(number, np.zeros((options.people, 0)), "linear", "none", True)
    places = np.arange(len(own))
    if not set_p_values(tests.scores(genotypes[own].T, places))["p"] <= LEVEL:
        return False, False, False, False
    left = explain_set(tests, genotypes[own].T, (places, None), genotypes[rest].T)
    conditional = left.conditional <= LEVEL
    untold = conditional and bool(np.isnan(left.untyped))
    return True, conditional, conditional and left.untyped <= LEVEL, untold


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder of the real data, with kg1_chr22_564")
    parser.add_argument("--replicates", type=int, default=60)
    parser.add_argument("--people", type=int, default=1500)
    parser.add_argument("--share", type=float, default=0.15, help="of the variance")
    parser.add_argument("--product", action="store_true", help="an interaction, no untyped site")
    parser.add_argument("--seed", type=int, default=1)
    options = commandline.parse(parser, replicates=3, people=300)
    studies = [replicate(options, seed) for seed in range(options.replicates)]
    found = np.array([one for one in studies if one is not None], bool)
    rows = []
    for name, column in zip(NAMES, found.T, strict=True):
        low, high = wilson(int(column.sum()), len(column))
        rows.append((name, len(column), f"{column.mean():.3f} ({max(low, 0):.3f} to {high:.3f})"))
    cause = "a product" if options.product else "an untyped site"
    title = f"{options.people} people, {cause} with {options.share:g} of the variance"
    print_table(title, ("test", "studies", f"share at {LEVEL:g}"), rows)


if __name__ == "__main__":
    main()
