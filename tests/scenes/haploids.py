"""Haploid samples whose ancestors are known at every site: clones, crosses, strangers."""

from __future__ import annotations

from typing import NamedTuple

import msprime
import numpy as np


class Haploids(NamedTuple):
    """Samples of one population.

    alleles: int8 (n_samples, n_sites), 0, 1 or -1. ancestors: int64 of that shape, whose allele a
    sample has; two samples are identical by descent where it is the same.
    """

    alleles: np.ndarray
    ancestors: np.ndarray
    af: np.ndarray
    positions: np.ndarray
    contigs: np.ndarray
    cm: np.ndarray
    kinds: list[str]

    def shared(self, one: int, two: int) -> np.ndarray:
        return self.ancestors[one] == self.ancestors[two]


def haploids(
    seed: int,
    strangers: int = 12,
    sites: int = 1200,
    contigs: int = 6,
    errors: float = 0.001,
    missing: float = 0.02,
    block: int = 1,
    drawn: tuple[np.ndarray, np.ndarray] | None = None,
) -> Haploids:
    """Contigs of 100 cM, at 74 cM a megabase.

    Blocks of more than one site have eight haplotypes each, so that sites predict each other. Or
    the strangers are `drawn`: alleles (strangers, sites) and cM (contigs, sites of one).

    Samples 0 to strangers - 1 are strangers. Two clones of the first follow; four progeny of the
    second and third; two of the first of these four and the fourth stranger.
    """
    rng = np.random.default_rng(seed)
    each = sites // contigs
    cm = np.sort(rng.uniform(0, 100, (contigs, each)), axis=1)
    af = rng.uniform(0.05, 0.5, sites)
    founders = (rng.random((strangers, sites)) < af).astype(np.int8)
    if block > 1:
        few = (rng.random((8, sites)) < af).astype(np.int8)
        af = few.mean(axis=0)
        chosen = rng.integers(0, 8, (strangers, -(-sites // block))).repeat(block, axis=1)
        founders = np.take_along_axis(few, chosen[:, :sites], axis=0)
    if drawn:
        founders, cm = drawn
        af = founders.mean(axis=0)
    ancestors = [np.full(sites, k) for k in range(strangers)]
    kinds = ["stranger"] * strangers

    def cross(one: int, two: int) -> np.ndarray:
        begins = rng.random(contigs) < 0.5
        first = np.zeros((contigs, each), bool)
        for contig in range(contigs):
            breaks = np.sort(rng.uniform(0, 100, rng.poisson(1)))
            first[contig] = (np.searchsorted(breaks, cm[contig]) + begins[contig]) % 2
        return np.where(first.ravel(), ancestors[one], ancestors[two])

    ancestors += [ancestors[0], ancestors[0]]
    kinds += ["clone", "clone"]
    sibling = len(kinds)
    ancestors += [cross(1, 2) for _ in range(4)]
    ancestors += [cross(sibling, 3) for _ in range(2)]
    kinds += ["sibling"] * 4 + ["next"] * 2
    whose = np.array(ancestors)
    alleles = np.take_along_axis(founders, whose, axis=0)
    alleles = np.where(rng.random(alleles.shape) < errors, 1 - alleles, alleles)
    alleles = np.where(rng.random(alleles.shape) < missing, -1, alleles).astype(np.int8)
    names = np.repeat([f"c{k}" for k in range(contigs)], each)
    places = cm.ravel() / 74 * 1e6
    positions = (np.round(places) if drawn else places).astype(np.int64)
    return Haploids(alleles, whose, af, positions, names, cm.ravel(), kinds)


#: Contigs of the scenes by msprime and shortest true segment, in cM; haploids of the population.
LENGTH, SHORTEST, SIZE = 50, 2, 4_000


def coalescent_haploids(
    seed: int, strangers: int = 24, sites: int = 6000, contigs: int = 3
) -> tuple[Haploids, np.ndarray]:
    """The scene of `haploids` with strangers of one population by msprime, in LD as it makes it.

    Sites have a minor allele frequency of at least 5 % among the strangers.

    Returns
    -------
    scene : Haploids
    shared : float64 array, (strangers, strangers)
        Share of the genome that two strangers have from one ancestor in segments of SHORTEST or
        more, whenever it lived.
    """
    rng = np.random.default_rng(seed)
    each, bp = sites // contigs, round(LENGTH / 74 * 1e6)
    parts, cm, shared = [], [], np.zeros((strangers, strangers))
    for contig in range(contigs):
        options = {"random_seed": 1000 * seed + contig + 1}
        trees = msprime.sim_ancestry(
            strangers,
            ploidy=1,
            population_size=SIZE,
            sequence_length=bp,
            recombination_rate=74e-8,
            **options,
        )
        found = trees.ibd_segments(min_span=bp * SHORTEST / LENGTH, store_pairs=True)
        for (one, two), own in found.items():
            shared[[one, two], [two, one]] += own.total_span / bp / contigs
        mutated = msprime.sim_mutations(trees, rate=4e-7, model="binary", **options)
        alleles = mutated.genotype_matrix().T.astype(np.int8)
        af = alleles.mean(axis=0)
        common = np.flatnonzero(np.minimum(af, 1 - af) >= 0.05)
        chosen = np.sort(rng.choice(common, each, replace=False))
        parts.append(alleles[:, chosen])
        cm.append(mutated.tables.sites.position[chosen] * 74e-6)
    drawn = np.concatenate(parts, axis=1), np.array(cm)
    return haploids(seed, strangers, sites, contigs, drawn=drawn), shared
