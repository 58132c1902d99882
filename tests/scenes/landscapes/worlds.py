"""Worlds of continents and their populations, on which the level of communities was chosen.

The rule that decides which splits are continents (`communities.splits.COARSE_F_ST`) and how many
components it sees were chosen on these worlds, never on real people. `bench_communities.py
--worlds` measures the choice again. Frequencies drift from an ancestor to its descendants as in
Balding and Nichols (1995), by amounts that give F_ST as published for human continents and for
populations within one (0.002 to 0.01).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.components.noise_null import significant_axes
from popdesic.components.relationship import alt_frequency, relationship_among, relationship_to

from . import populations

#: Drift from parent to child: (child, parent, F). Hudson's F_ST of two populations is about half
#: the sum of F on the way from one to the other. It is as in 1000 Genomes (Bhatia et al. 2013: CEU
#: and YRI 0.14, CHB and YRI 0.16, CEU and CHB 0.11), and 0.035 for Europe and South Asia.
LINEAGES = (
    ("AFR", "root", 0.05),
    ("OUT", "root", 0.145),
    ("WEST", "OUT", 0.045),
    ("EUR", "WEST", 0.035),
    ("SAS", "WEST", 0.035),
    ("EAS", "OUT", 0.135),
    ("NAT", "EAS", 0.15),
    ("OCE", "OUT", 0.25),
)
#: Continents that not every world has, with the chance that it is there. AMR is admixed.
SOMETIMES = {"SAS": 0.65, "AMR": 0.65, "OCE": 0.2}
#: Sites drawn, fewest and most populations of a continent, and people of a population.
SITES, POPULATIONS, PEOPLE = 6_000, (1, 5), (30, 110)
#: Rarer sites are left out.
MIN_MAF = 0.05
#: Chance that people of Africa have ancestors from Europe (the admixed of two continents).
ADMIXED_AFRICA = 0.3


@dataclass(frozen=True, eq=False)
class World:
    """People of a few continents.

    Attributes
    ----------
    genotypes : int8 array, (n_sites, n)
        Unlinked, none missing.
    chrom, pos : arrays, (n_sites,)
    continents, populations : str arrays, (n,)
    related : bool array, (n,)
        Children of others that are there.
    """

    genotypes: np.ndarray
    chrom: np.ndarray
    pos: np.ndarray
    continents: np.ndarray
    populations: np.ndarray
    related: np.ndarray


def drift(rng: np.random.Generator, af: np.ndarray, f_st: float) -> np.ndarray:
    """Frequencies in a population that has drifted from one with frequencies `af`."""
    scale = (1 - f_st) / f_st
    return np.clip(rng.beta(np.maximum(af * scale, 1e-3), np.maximum((1 - af) * scale, 1e-3)), 0, 1)


def world(seed: int, families: int = 0, sites: int = SITES, min_hwe_p: float = 0.0) -> World:
    """Draw a world; the same arguments give the same people.

    `families`: in the first population of each continent so many couples have three children each,
    who are there as well. `min_hwe_p`: sites whose Hardy-Weinberg p over everyone is less are left
    out, as by the default filter where no populations are known. That takes away most sites at
    which continents differ, so that their F_ST falls by up to a half, while that of populations
    within one hardly changes.
    """
    rng = np.random.default_rng([seed, *b"world"])
    af = {"root": rng.beta(0.8, 0.8, sites)}
    for name, parent, f_st in LINEAGES:
        af[name] = drift(rng, af[parent], f_st)
    present = [
        "AFR",
        "EUR",
        "EAS",
        *(c for c, chance in SOMETIMES.items() if rng.random() < chance),
    ]
    genotypes, continents, names, related = [], [], [], []
    for continent in present:
        for number in range(rng.integers(POPULATIONS[0], POPULATIONS[1] + 1)):
            n = int(rng.integers(*PEOPLE))
            own = rng.binomial(2, _frequencies(rng, af, continent, n)).astype(np.int8)
            children = 3 * min(families, n // 2) if number == 0 else 0
            if children:
                couple = np.repeat(np.arange(children // 3), 3)
                own = np.concatenate([own, _children(rng, own[2 * couple], own[2 * couple + 1])])
            genotypes.append(own)
            continents += [continent] * len(own)
            names += [f"{continent}{number}"] * len(own)
            related += [False] * n + [True] * children
    found = np.concatenate(genotypes).T
    maf = found.mean(axis=1) / 2
    found = found[np.minimum(maf, 1 - maf) >= MIN_MAF]
    if min_hwe_p:
        p = hwe_exact(*((found == count).sum(axis=1) for count in range(3)))
        found = found[p >= min_hwe_p]
    places = populations.spread_out(len(found))
    return World(found, *places, np.array(continents), np.array(names), np.array(related))


def _frequencies(rng, af: dict[str, np.ndarray], continent: str, n: int) -> np.ndarray:
    """ALT frequencies of each of n people of a population, (n, n_sites) or (1, n_sites)."""
    if continent == "AMR":
        share = np.clip(rng.normal(rng.uniform(0.3, 0.7), 0.15, n), 0.02, 0.98)[:, None]
        return share * drift(rng, af["NAT"], 0.005) + (1 - share) * drift(rng, af["EUR"], 0.003)
    if continent == "AFR" and rng.random() < ADMIXED_AFRICA:
        share = np.clip(rng.normal(rng.uniform(0.1, 0.3), 0.06, n), 0, 1)[:, None]
        return share * af["EUR"] + (1 - share) * drift(rng, af["AFR"], 0.006)
    amounts = [0.003, 0.006, 0.01] if continent == "AFR" else [0.002, 0.004, 0.006, 0.01]
    return np.broadcast_to(drift(rng, af[continent], rng.choice(amounts)), (n, len(af["root"])))


def _children(rng, mothers: np.ndarray, fathers: np.ndarray) -> np.ndarray:
    return (rng.binomial(1, mothers / 2) + rng.binomial(1, fathers / 2)).astype(np.int8)


def component_scores(drawn: World, unrelated: np.ndarray, threads: int = 1) -> np.ndarray:
    """Scores on the significant components whose axes some people define, as in the workflow.

    Parameters
    ----------
    unrelated : bool array, (n,)
        Who defines the axes; the others are projected.

    Returns
    -------
    float64 array, (n, k)
    """
    n = int(unrelated.sum())
    genotypes = drawn.genotypes[:, unrelated]
    af = alt_frequency(genotypes)

    def read(first: int, last: int) -> np.ndarray:
        return genotypes[first:last]

    relationship = relationship_among(read, [n], af, threads)
    sites = pd.DataFrame({"chrom": drawn.chrom, "pos": drawn.pos})
    axes, tests, _ = significant_axes(relationship, read, [n], af, sites, "auto", threads=threads)
    rows = np.empty((0, n)), np.empty(0)
    if not unrelated.all():

        def read_all(first: int, last: int) -> np.ndarray:
            return drawn.genotypes[first:last]

        rows = relationship_to(read_all, [len(unrelated)], unrelated, af, threads)
    return axes.place(unrelated, *rows)[:, : tests.count]
