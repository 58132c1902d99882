"""Groups by painting beside principal components, on populations that separated lately.

    python tests/bench/bench_painting.py [--seeds 11 12 13] [--null 101 140]

Draws two populations of 10 000 people each that separated 20 generations ago (F_ST 0.001), and 100
people of each, with 30 chromosomes of 5 Mb and a site in 10 kb. A line a seed: the adjusted Rand
index (Hubert and Arabie 1985) of true populations and the halves of the first principal component
of genotypes, and of true populations and groups by coancestry, with the number of groups. --null A
B: also one population for each seed from A to B, 100 people on 15 chromosomes, which must stay one
group. Phase is the true one.
"""

from __future__ import annotations

import time

import commandline
import msprime
import numpy as np

from popdesic.communities.coancestry import divide_samples
from popdesic.communities.two_means_cpu import two_means
from popdesic.copying.copying import haplotypes_of
from popdesic.copying.fit import fit_model
from popdesic.copying.painting import paint_alleles, stretch_numbers

SIZE, SPLIT, MAF, SITE_BP = 10_000, 20, 0.01, 10_000
THREADS = 2


def demography(populations: int) -> msprime.Demography:
    """One population, or two that separated."""
    found = msprime.Demography()
    names = [f"P{k}" for k in range(populations)]
    for name in (*names, "past"):
        found.add_population(name=name, initial_size=SIZE)
    found.add_population_split(SPLIT, derived=names, ancestral="past")
    return found


def draw(populations: int, people: int, chromosomes: int, seed: int):
    """Haplotypes (n, n_sites) and positions of each chromosome; people of each population."""
    rng = np.random.default_rng(seed)
    for number in range(chromosomes):
        drawn = msprime.sim_ancestry(
            {f"P{k}": people for k in range(populations)},
            demography=demography(populations),
            sequence_length=5e6,
            recombination_rate=1e-8,
            random_seed=1000 * seed + number + 1,
        )
        drawn = msprime.sim_mutations(
            *(drawn, 1.25e-8),
            random_seed=1000 * seed + number + 1,
            model=msprime.BinaryMutationModel(),
        )
        alleles = drawn.genotype_matrix().astype(np.int8)
        positions = drawn.tables.sites.position.astype(np.int64)
        share = alleles.mean(axis=1)
        common = rng.permutation(np.flatnonzero(np.minimum(share, 1 - share) >= MAF))
        kept = np.sort(common[np.unique(positions[common] // SITE_BP, return_index=True)[1]])
        yield np.ascontiguousarray(alleles[kept].T), positions[kept]


def painted(chromosomes: list) -> np.ndarray:
    """Lengths by stretch, with the numbers of the model fitted on the first chromosome."""
    lengths, model = [], None
    for alleles, positions in chromosomes:
        panel = haplotypes_of(alleles, positions * 1e-6)
        owner = np.arange(len(alleles)) // 2
        model = model or fit_model(panel, owner, threads=THREADS)
        own = owner[:, None] * 2 + np.arange(2)
        stretches = stretch_numbers(panel.cm)
        how = {"ne": model[0], "mismatch": model[1], "own": own, "threads": THREADS}
        lengths.append(paint_alleles(panel, alleles, owner, owner, stretches, **how).lengths)
    return np.concatenate(lengths)


def first_component(chromosomes: list) -> np.ndarray:
    """First principal component of genotypes, (n_samples, 1)."""
    alleles = np.concatenate([rows for rows, _ in chromosomes], axis=1)
    genotypes = alleles[0::2].astype(float) + alleles[1::2]
    share = genotypes.mean(axis=0) / 2
    scaled = (genotypes - 2 * share) / np.sqrt(2 * share * (1 - share))
    return np.linalg.eigh(scaled @ scaled.T)[1][:, -1:]


def f_st(chromosomes: list, people: int) -> float:
    """F_ST of the two populations (Hudson, as ratio of sums)."""
    alleles = np.concatenate([rows for rows, _ in chromosomes], axis=1)
    a, b = alleles[: 2 * people].mean(axis=0), alleles[2 * people :].mean(axis=0)
    within = (a * (1 - a) + b * (1 - b)) / (2 * people - 1)
    return float(((a - b) ** 2 - within).sum() / (a * (1 - b) + b * (1 - a)).sum())


def main() -> None:
    from sklearn.metrics import adjusted_rand_score

    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--null", type=int, nargs=2, metavar=("A", "B"))
    parser.add_argument("--people", type=int, default=100, help="of each population")
    parser.add_argument("--chromosomes", type=int, default=30, help="of 5 Mb, half under the null")
    options = commandline.parse(parser, people=8, chromosomes=8, seeds=[1], null=[1, 1])
    print("seed    sites   F_ST     PCA    groups' ARI   groups   seconds")
    for seed in options.seeds:
        drawn = list(draw(2, options.people, options.chromosomes, seed))
        truth = np.repeat([0, 1], options.people)
        started = time.perf_counter()
        found = divide_samples(painted(drawn))
        seconds = time.perf_counter() - started
        plain = adjusted_rand_score(truth, two_means(first_component(drawn)))
        ours = adjusted_rand_score(truth, found)
        sites = sum(len(positions) for _, positions in drawn)
        print(
            f"{seed:4}{sites:9}  {f_st(drawn, options.people):.5f}{plain:8.2f}{ours:10.2f}"
            f"{found.max() + 1:11}{seconds:12.1f}",
            flush=True,
        )
    if options.null:
        divided = []
        seeds = range(options.null[0], options.null[1] + 1)
        for seed in seeds:
            drawn = list(draw(1, options.people, options.chromosomes // 2, seed))
            if divide_samples(painted(drawn)).max():
                divided.append(seed)
        words = ", ".join(map(str, divided)) or "none"
        print(f"one population: {len(divided)} of {len(seeds)} divided (seeds: {words})")


if __name__ == "__main__":
    main()
