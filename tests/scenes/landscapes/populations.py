"""Scenes of a few populations: islands, admixture, panmixia, what may disturb it. See scenes.py."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .coalescent import Epoch, draw_sites

#: Diploid individuals of an island or a source of admixture, and of a single population.
ISLAND, POPULATION = 1_000, 10_000
#: Distance of unlinked sites in base pairs, and how many chromosomes they are spread over.
SPACING, CHROMOSOMES = 300_000, 22
#: The inversion: a segment of a chromosome without known long-range LD, in base pairs.
INVERSION_CHROM, INVERSION_START, INVERSION_LENGTH = "3", 20_000_000, 4_000_000


def spread_out(n_sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Chromosome and position of unlinked sites, in order."""
    chrom = np.sort(np.arange(n_sites) % CHROMOSOMES)
    number = np.arange(n_sites) - np.searchsorted(chrom, chrom)
    return (chrom + 1).astype(str), SPACING * (number + 1).astype(np.int64)


def _two_sources(f_st: float) -> list[Epoch]:
    """Two populations that split from one so long ago that they differ by `f_st`."""
    sizes = np.full(3, float(ISLAND))
    # T_between = T_within + split, and F_ST = 1 - T_within / T_between (Slatkin 1991).
    split = 2 * ISLAND * f_st / (1 - f_st)
    return [Epoch(0, sizes), Epoch(split, sizes, moves=[(1, 0, 1.0)])]


def gradient(rng, people, f_st, sites) -> dict:
    """People with ancestry from two sources in shares from 0 to 1. Truth: difference of shares.

    The sources differ by `f_st`; the admixture is old enough for sites to be independent.
    """
    share = np.linspace(0, 1, people)
    truth = np.abs(share[:, None] - share)
    return {
        "structure": "continuous",
        "genotypes": draw_sites(_two_sources(f_st), np.zeros(people, int), sites, rng, share=share),
        "populations": np.full(people, "admixed"),
        "coordinates": np.stack([share, np.zeros(people)], axis=1),
        "true_distance": truth,
    }


def pulse(rng, per_population, f_st, share, generations, sites) -> dict:
    """Two sources, and a population founded by both `generations` ago.

    The share `share` of its ancestry is the second source's. Truth: difference of shares.
    """
    first, second = _two_sources(f_st)
    mixed = Epoch(generations, first.sizes, moves=[(2, 1, share), (2, 0, 1.0)])
    home = np.repeat([0, 1, 2], per_population)
    where = np.array([0.0, 1.0, share])[home]
    return {
        "structure": "discrete",
        "genotypes": draw_sites([first, mixed, second], home, sites, rng),
        "populations": np.array(["source0", "source1", "mixed"])[home],
        "true_distance": np.abs(where[:, None] - where),
    }


def island(rng, islands, per_island, f_st, sites) -> dict:
    """Islands that exchange migrants, each with all others alike. Truth: 0 within, 1 between.

    `f_st` is Hudson's of two islands: 1 - T_within / T_between, where T_within = 2 N d and
    T_between = T_within + (d - 1) / (2 m) generations on d islands (Slatkin 1991).
    """
    excess = 2 * ISLAND * islands * f_st / (1 - f_st)
    pairs = list(combinations(range(islands), 2))
    epochs = [Epoch(0, np.full(islands, float(ISLAND)), pairs, 1 / (2 * excess))]
    home = np.repeat(np.arange(islands), per_island)
    return {
        "structure": "discrete",
        "genotypes": draw_sites(epochs, home, sites, rng),
        "populations": np.array([f"island{d}" for d in home]),
        "true_distance": (home[:, None] != home).astype(np.float64),
    }


def panmixia(rng, people, sites, labels=1) -> dict:
    """One population, with `labels` names at random. Truth: nothing."""
    epochs = [Epoch(0, np.array([float(POPULATION)]))]
    return {
        "structure": "one",
        "genotypes": draw_sites(epochs, np.zeros(people, int), sites, rng),
        "populations": np.array([f"label{i % labels}" for i in range(people)]),
        "true_distance": np.zeros((people, people)),
    }


def inversion(rng, people, sites, inverted) -> dict:
    """One population, and an inversion on which `inverted` more sites are in perfect LD."""
    made = panmixia(rng, people, sites)
    chrom, pos = spread_out(sites)
    epochs = [Epoch(0, np.array([float(POPULATION)]))]
    tag = draw_sites(epochs, np.zeros(people, int), 1, rng, min_maf=0.3)
    at = INVERSION_START + INVERSION_LENGTH * np.arange(inverted) // inverted
    there = chrom == INVERSION_CHROM
    pos[there & (pos >= INVERSION_START)] += INVERSION_LENGTH  # nothing else lies on it
    first = int(np.flatnonzero(there)[0] + (pos[there] < INVERSION_START).sum())
    places = (
        np.insert(chrom, first, np.full(inverted, INVERSION_CHROM)),
        np.insert(pos, first, at),
    )
    genotypes = np.insert(made["genotypes"], first, np.repeat(tag, inverted, axis=0), axis=0)
    return made | {"genotypes": genotypes, "places": places}


def batches(rng, people, sites, wrong_sites, error, missing) -> dict:
    """One population genotyped in two cohorts, of which the second reads some sites badly.

    At the share `wrong_sites` of the sites, each heterozygote of the second cohort is read as
    homozygous for the REF allele with chance `error`; of all its genotypes the share `missing`
    is missing.
    """
    made = panmixia(rng, people, sites)
    genotypes, second = made["genotypes"], np.arange(people) % 2 == 1
    bad = rng.random(sites) < wrong_sites
    misread = (genotypes == 1) & second & bad[:, None] & (rng.random(genotypes.shape) < error)
    genotypes[misread] = 0
    genotypes[second & (rng.random(genotypes.shape) < missing)] = -1
    return made | {"cohorts": np.where(second, "second", "first")}
