"""Genotypes of populations with known structure, small enough for unit tests."""

from __future__ import annotations

import msprime
import numpy as np
import pandas as pd

from popdesic.cohort.prune import pruned
from popdesic.cohort.site_planes import site_planes
from popdesic.components.relationship import alt_frequency, relationship_among
from popdesic.engine.select import cpu_backend


def populations(
    rng: np.random.Generator, k: int, fst: float, n: int, sites: int
) -> tuple[np.ndarray, np.ndarray]:
    """Unlinked sites of `k` populations of equal size (Balding and Nichols 1995).

    Returns
    -------
    genotypes : int8 array, (n, sites)
    label : int array, (n,)
    """
    common = rng.uniform(0.05, 0.95, sites)
    if k > 1:
        scale = (1 - fst) / fst
        af = rng.beta(scale * common, scale * (1 - common), (k, sites))
    else:
        af = common[None]
    label = np.arange(n) % k
    return rng.binomial(2, af[label]).astype(np.int8), label


def linked_genotypes(seed: int, n: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Coalescent genotypes of one population on a chromosome, LD pruned: int8 (n, sites), sites.

    20 Mb, recombination 1e-8 a base pair, Ne 5 000, minor allele frequency at least 5 %.
    """
    trees = msprime.sim_ancestry(
        n,
        sequence_length=2e7,
        recombination_rate=1e-8,
        population_size=5e3,
        random_seed=seed + 1,
    )
    trees = msprime.sim_mutations(
        trees, rate=2e-9, model=msprime.BinaryMutationModel(), random_seed=seed + 1
    )
    alleles = trees.genotype_matrix()
    genotypes = (alleles[:, ::2] + alleles[:, 1::2]).astype(np.int8)
    af = alt_frequency(genotypes)
    common = (af >= 0.05) & (af <= 0.95)
    sites = pd.DataFrame({"chrom": "1", "pos": trees.tables.sites.position[common].astype(int) + 1})
    r2 = max(0.2, 10.83 / n)
    removed = pruned(site_planes(genotypes[common]), sites, (5e5, "bp", 1, r2), cpu_backend(1))
    return genotypes[common][~removed].T, sites[~removed].reset_index(drop=True)


def relationship_of(genotypes: np.ndarray, af: np.ndarray | None = None) -> np.ndarray:
    """Relationship of all samples (n, sites), with their own frequencies by default."""
    af = alt_frequency(genotypes.T) if af is None else af
    return relationship_among(lambda a, b: genotypes[:, a:b].T, [len(genotypes)], af)
