"""False interactions: how often the best pair of a study passes Bonferroni's limit in vain.

    python tests/bench/bench_interactions.py [--replicates 400] [--jobs 2] [--order 2] [--quick]

Each replicate is a study of 1 000 people at 60 sites without any interaction between two sites on
the scale of log-odds. All its pairs (triples) are scanned by interaction; 'passes' is the share of
replicates in which the p of the best one times the number of tests is at most 0.05, with its 95 %
interval (Wilson). Scenes:

    nothing          cases at random
    one main effect  one site doubles the odds per allele
    two additive     two sites do
    structure        two populations (F_ST 0.05) with risks of 70 % and 30 %, not corrected for
    untyped site     typed sites of 200 kb (msprime); the causal one among them is not typed and
                     triples the odds per allele, so that pairs of its neighbours tag it together
"""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import commandline
import msprime
import numpy as np
from timing import print_table

import popdesic

PEOPLE, SITES = 1000, 60
LEVEL = 0.05


def frequencies(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.05, 0.5, SITES)


def draw_case(rng: np.random.Generator, odds: np.ndarray) -> np.ndarray:
    """Cases of log-odds `odds`, shifted so that half of the people are cases on average."""
    return rng.random(len(odds)) < 1 / (1 + np.exp(odds.mean() - odds))


def additive(rng: np.random.Generator, effects: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent sites, the first few of which double the odds per allele."""
    genotypes = rng.binomial(2, frequencies(rng), (PEOPLE, SITES))
    return genotypes, draw_case(rng, math.log(2) * genotypes[:, :effects].sum(axis=1))


def structured(rng: np.random.Generator, fst: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Two populations by the model of Balding and Nichols (1995) that differ in risk."""
    p, a = frequencies(rng), (1 - fst) / fst
    of_population = rng.beta(a * p, a * (1 - p), (2, SITES))
    population = np.arange(PEOPLE) % 2
    genotypes = rng.binomial(2, of_population[population])
    return genotypes, rng.random(PEOPLE) < np.where(population, 0.7, 0.3)


def tagged(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sites in LD around a causal site that is left out."""
    seed = int(rng.integers(1, 2**31))
    trees = msprime.sim_ancestry(
        PEOPLE, population_size=1e4, sequence_length=2e5, recombination_rate=1e-8, random_seed=seed
    )
    trees = msprime.sim_mutations(trees, rate=2e-8, random_seed=seed, model="binary")
    haplotypes = trees.genotype_matrix()
    share = haplotypes.mean(axis=1)
    common = haplotypes[np.minimum(share, 1 - share) >= 0.05]
    chosen = rng.choice(len(common), min(len(common), SITES + 1), replace=False)
    genotypes = (common[chosen, ::2] + common[chosen, 1::2]).T
    return genotypes[:, 1:], draw_case(rng, math.log(3) * genotypes[:, 0])


SCENES = {
    "nothing": partial(additive, effects=0),
    "one main effect": partial(additive, effects=1),
    "two additive": partial(additive, effects=2),
    "structure": structured,
    "untyped site": tagged,
}


def passes(order: int, scene: str, replicate: int) -> bool:
    """Whether the best combination of one study passes."""
    rng = np.random.default_rng([order, list(SCENES).index(scene), replicate])
    genotypes, case = SCENES[scene](rng)
    best = popdesic.scan(genotypes, case, order=order, top=1, device="cpu", threads=1)
    return float(best.lr_p[0]) * math.comb(genotypes.shape[1], order) <= LEVEL


def wilson(found: int, n: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, found / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return centre - half, centre + half


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--order", type=int, choices=(2, 3), default=2)
    options = commandline.parse(parser, replicates=3, jobs=1)
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for scene in SCENES:
            work = partial(passes, options.order, scene)
            found = sum(pool.map(work, range(options.replicates), chunksize=8))
            low, high = wilson(found, options.replicates)
            share = found / options.replicates
            rows.append((scene, options.replicates, f"{share:.3f}", f"{low:.3f} to {high:.3f}"))
    title = f"Best of order {options.order} by interaction, Bonferroni at {LEVEL}"
    print_table(title, ("scene", "studies", "passes", "95 % interval"), rows)


if __name__ == "__main__":
    main()
