"""Traits of one locus, and of two, in pedigrees of few founders whose sites tag it imperfectly.

Each study has about 600 samples: 60 families of the last of four generations of a population that
began with eight founder haplotypes of each of its chromosomes, as in heterogeneous stocks. Sites
have random alleles on the founders' haplotypes, so that no typed site has the alleles of a causal
one, which three of the eight carry and which is not typed.

    recessive    everyone with two causal alleles is a case, and 1 % of the others
    dominant     everyone with one
    additive     the odds are multiplied by four for each
    two loci     60 % of those who carry an allele of each of two typed sites, and 1 % of the others
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

FOUNDERS, GENERATIONS, COUPLES, CHILDREN = 8, 4, 60, 10
CHROMOSOMES, SITES = 8, 15
#: Chance of a crossover between neighbouring sites.
CROSSOVER = 0.02
#: Traits without and with an interaction.
NULLS, TRAITS = ("recessive", "dominant", "additive"), ("two loci",)


@dataclass(frozen=True)
class Study:
    """Genotypes int8 (n_sites, n_samples), case bool (n_samples,), contig and position of each
    site, pairs of relatives in the columns of `relatedness.related_pairs`, names of the samples."""

    genotypes: np.ndarray
    case: np.ndarray
    chrom: np.ndarray
    pos: np.ndarray
    pairs: pd.DataFrame
    names: list[str]


def draw_study(trait: str, seed: int) -> Study:
    """A study of a trait."""
    from popdesic.epistasis.relatedness import pedigree_pairs

    rng = np.random.default_rng([seed, [*NULLS, *TRAITS].index(trait)])
    couples = 2 * COUPLES
    # Founder of each haplotype of each person; the causal place is a chromosome's middle.
    people = rng.integers(0, FOUNDERS, (couples, 2, CHROMOSOMES, 1))
    people = np.repeat(people, SITES, axis=3)
    names = [f"0.{k}" for k in range(couples)]
    pedigree = [(name, "NA", "NA") for name in names]
    for generation in range(1, GENERATIONS + 1):
        mates = rng.permutation(couples).reshape(-1, 2)
        last = generation == GENERATIONS
        parents = np.repeat(mates, CHILDREN if last else 2, axis=0)
        born = [f"{generation}.{k}" for k in range(len(parents))]
        pedigree += [(c, names[a], names[b]) for c, (a, b) in zip(born, parents, strict=True)]
        people = np.stack([_gametes(rng, people[parents[:, k]]) for k in (0, 1)], axis=1)
        names = born
    alleles = rng.random((CHROMOSOMES, SITES, FOUNDERS)) < rng.uniform(0.2, 0.5, SITES)[:, None]
    place = np.arange(CHROMOSOMES)[:, None], np.arange(SITES)[None]
    genotypes = alleles[(*place, people)].sum(axis=1, dtype=np.int8)
    causal = rng.permutation(FOUNDERS)[:3]
    carried = np.isin(people[:, :, 0, SITES // 2], causal).sum(axis=1)
    if trait == "two loci":
        typed = genotypes[:, :2, SITES // 2] > 0
        case = rng.random(len(people)) < np.where(typed.all(axis=1), 0.6, 0.01)
    elif trait == "additive":
        odds = np.log(4) * carried - 2.5
        case = rng.random(len(odds)) < 1 / (1 + np.exp(-odds))
    else:
        affected = carried >= (1 if trait == "dominant" else 2)
        case = affected | (rng.random(len(affected)) < 0.01)
    pairs = pedigree_pairs(pd.DataFrame(pedigree, columns=["sample", "father", "mother"]))
    last = pairs.sample_a.str.startswith(f"{GENERATIONS}.")
    pairs = pairs[last & pairs.sample_b.str.startswith(f"{GENERATIONS}.")]
    of_sites = genotypes.reshape(len(people), -1).T
    chrom = np.repeat(np.arange(1, CHROMOSOMES + 1).astype(str), SITES)
    pos = np.tile(np.arange(1, SITES + 1) * 2_000_000, CHROMOSOMES)
    return Study(np.ascontiguousarray(of_sites), case, chrom, pos, pairs, names)


def _gametes(rng: np.random.Generator, parents: np.ndarray) -> np.ndarray:
    """One haplotype of each parent (n, 2, n_chromosomes, n_sites), recombined."""
    n, _, chromosomes, sites = parents.shape
    crossed = rng.random((n, chromosomes, sites)) < CROSSOVER
    crossed[:, :, 0] = rng.random((n, chromosomes)) < 0.5
    side = np.cumsum(crossed, axis=2) % 2
    return np.take_along_axis(parents, side[:, None], axis=1)[:, 0]
