"""Populations of samples of any ploidy, drawn by msprime, whose truth is known."""

from __future__ import annotations

import msprime
import numpy as np

#: People of a population, generations since the two parted, length of the genome in base pairs.
SIZE, PARTED, LENGTH = 1_000, 1_000, 1.5e6


def mixed_ploidies(
    kinds: list[int], n: int, seed: int, *, size: int = SIZE, parted: int = PARTED
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two populations that parted `parted` generations ago, each with `n` samples of each ploidy.

    Returns
    -------
    genotypes : int8 array, (n_samples, n_sites)
        ALT alleles of biallelic sites that vary among the samples.
    ploidy, population : int64 arrays, (n_samples,)
        Samples come by population, in it by ploidy in the order of `kinds`.
    """
    demography = msprime.Demography.isolated_model([size, size])
    demography.add_population(name="root", initial_size=size)
    demography.add_population_split(time=parted, derived=[0, 1], ancestral="root")
    samples = [msprime.SampleSet(n, population=k, ploidy=p, time=0) for k in (0, 1) for p in kinds]
    trees = msprime.sim_ancestry(
        samples,
        demography=demography,
        ploidy=2,
        sequence_length=LENGTH,
        recombination_rate=3e-8,
        random_seed=seed,
    )
    trees = msprime.sim_mutations(trees, rate=1e-8, random_seed=seed, model="binary")
    nodes = [trees.individual(k).nodes for k in range(trees.num_individuals)]
    alleles = trees.genotype_matrix(samples=np.concatenate(nodes)).T
    starts = np.concatenate([[0], np.cumsum([len(own) for own in nodes])])
    genotypes = np.add.reduceat(alleles, starts[:-1], axis=0, dtype=np.int8)
    ploidy = np.tile(np.repeat(kinds, n), 2)
    population = np.repeat([0, 1], n * len(kinds))
    varies = (alleles.min(axis=0) == 0) & (alleles.max(axis=0) == 1)
    return genotypes[:, varies], ploidy, population
