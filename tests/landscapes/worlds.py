"""Worlds of continents and their populations, on which the level of communities was chosen.

The rule that decides which splits are continents (`communities.splits.COARSE_DEPTH`) and how many
components it sees were chosen on these worlds, never on real people. `bench_communities.py
--worlds` measures the choice again. Frequencies drift from an ancestor to its descendants as in
Balding and Nichols (1995), by amounts that give F_ST as published for human continents (0.05 to
0.25) and for populations within one (0.002 to 0.01).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import populations

#: Drift from parent to child: (child, parent, F). The first descends from all humans' ancestor.
LINEAGES = (
    ("AFR", "root", 0.03),
    ("OUT", "root", 0.08),
    ("WEST", "OUT", 0.012),
    ("EUR", "WEST", 0.018),
    ("SAS", "WEST", 0.018),
    ("EAS", "OUT", 0.06),
    ("NAT", "EAS", 0.06),
    ("OCE", "OUT", 0.12),
)
#: Continents that not every world has, with the chance that it is there. AMR is admixed.
SOMETIMES = {"SAS": 0.65, "AMR": 0.65, "OCE": 0.2}
#: Sites drawn, fewest and most populations of a continent, and people of a population.
SITES, POPULATIONS, PEOPLE = 6_000, (1, 5), (30, 110)
#: Commonest allele frequency that is left out.
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


def world(seed: int, families: int = 0, sites: int = SITES) -> World:
    """Draw a world; the same arguments give the same people.

    `families`: in the first population of each continent so many couples have three children each,
    who are there as well.
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
