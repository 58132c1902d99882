"""Studies without any interaction on the scale of log-odds: what a calibrated test must not find.

Each has 1 000 people at 60 unlinked sites with minor alleles from 5 to 50 %.

    nothing                  cases at random
    one main effect          one site doubles the odds per allele
    two additive             two sites do
    three additive           three sites do
    structure, strata        two populations (F_ST 0.05) with risks of 70 % and 30 %; people know
                             theirs
    structure, components    the same; two principal components of 500 further sites are known
    structure, unadjusted    the same; nothing is known
    siblings                 250 families of four siblings; half of the liability is inherited
    families                 200 families of two parents and three children, with the same
    siblings, unadjusted     as siblings, but the test takes people for unrelated

Two further ones have an interaction, of minor alleles of 30 % (`PLANTED`):

    planted pair, triple     the odds of people who are heterozygous at one of the first two sites
                             (or at all three, or at one of them) are `PLANTED_ODDS` times as high
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

PEOPLE, SITES = 1000, 60
#: Sites of which components are computed.
FURTHER_SITES = 500
#: Odds ratios of planted interactions.
PLANTED_ODDS = {2: 2.5, 3: 3.5}
#: Share of the liability that is inherited.
HERITABILITY = 0.5


@dataclass(frozen=True)
class Study:
    """Genotypes int8 (n_people, n_sites), liability of each person, and what a test may know.

    People whose liability is above `least` are cases; `with_cases` takes those of the largest.
    design: columns to adjust for, float64 (n_people, n_columns). pairs: relatives (first, second,
    kinship), float64 (n_pairs, 3).
    """

    genotypes: np.ndarray
    liability: np.ndarray
    design: np.ndarray = field(default_factory=lambda: np.zeros((PEOPLE, 0)))
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    least: float = 0.0

    @property
    def case(self) -> np.ndarray:
        return self.liability > self.least

    def with_cases(self, n: int) -> Study:
        """The same people, of whom n are cases."""
        return replace(self, least=float(np.sort(self.liability)[-n - 1]))


def frequencies(rng: np.random.Generator, n_sites: int = SITES) -> np.ndarray:
    return rng.uniform(0.05, 0.5, n_sites)


def logistic(rng: np.random.Generator, odds: np.ndarray) -> np.ndarray:
    """Liabilities above 0 with the log-odds `odds`, for the same uniform numbers."""
    uniform = rng.random(len(odds))
    return odds - np.log(uniform / (1 - uniform))


def additive(rng: np.random.Generator, effects: int) -> Study:
    """Independent sites, the first few of which double the odds per allele."""
    genotypes = rng.binomial(2, frequencies(rng), (PEOPLE, SITES)).astype(np.int8)
    odds = math.log(2) * genotypes[:, :effects].sum(axis=1)
    return Study(genotypes, logistic(rng, odds - odds.mean()))


def planted(rng: np.random.Generator, order: int) -> Study:
    """Independent sites, the first two or three of which interact."""
    p = frequencies(rng)
    p[:order] = 0.3
    genotypes = rng.binomial(2, p, (PEOPLE, SITES)).astype(np.int8)
    odd = (genotypes[:, :order] == 1).sum(axis=1) % 2
    odds = math.log(PLANTED_ODDS[order]) * odd
    return Study(genotypes, logistic(rng, odds - odds.mean()))


def draw_structure(
    rng: np.random.Generator, n_people: int, n_sites: int, fst: float = 0.05
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two populations by the model of Balding and Nichols (1995) that differ in risk.

    Returns genotypes int8 (n_people, n_sites), case bool (n_people,), population 0 or 1.
    """
    p, a = frequencies(rng, n_sites), (1 - fst) / fst
    of_population = rng.beta(a * p, a * (1 - p), (2, n_sites))
    population = np.arange(n_people) % 2
    genotypes = rng.binomial(2, of_population[population]).astype(np.int8)
    return genotypes, rng.random(n_people) < np.where(population, 0.7, 0.3), population


def structured(rng: np.random.Generator, known: str) -> Study:
    """People of `draw_structure`."""
    genotypes, _, population = draw_structure(rng, PEOPLE, SITES + FURTHER_SITES)
    liability = logistic(rng, np.where(population, 1, -1) * math.log(7 / 3))
    design = np.zeros((PEOPLE, 0))
    if known == "strata":
        design = population[:, None].astype(float)
    elif known == "components":
        further = genotypes[:, SITES:].astype(float)
        further = (further - further.mean(axis=0)) / np.maximum(further.std(axis=0), 0.01)
        design = np.linalg.svd(further, full_matrices=False)[0][:, :2]
    return Study(genotypes[:, :SITES], liability, design)


def draw_families(
    rng: np.random.Generator, parents: bool, children: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nuclear families with a heritable background that none of the sites explains.

    Returns genotypes int8 (n_people, n_sites), the liability float64 (n_people,) of variance 1, and
    related pairs as in `Study`.
    """
    size = children + 2 * parents
    families = PEOPLE // size
    p = frequencies(rng)
    haplotypes = rng.random((families, 2, 2, SITES)) < p  # family, parent, haplotype
    values = rng.normal(size=(families, 2)) * math.sqrt(HERITABILITY)
    members, inherited = [], []
    if parents:
        members += [haplotypes[:, k].sum(axis=1) for k in (0, 1)]
        inherited += [values[:, k] for k in (0, 1)]
    for _ in range(children):
        passed = rng.integers(0, 2, (families, 2, 1, SITES))
        members.append(np.take_along_axis(haplotypes, passed, axis=2).sum(axis=(1, 2)))
        within = rng.normal(size=families) * math.sqrt(HERITABILITY / 2)
        inherited.append(values.mean(axis=1) + within)
    genotypes = np.stack(members, axis=1).reshape(-1, SITES).astype(np.int8)
    liability = np.stack(inherited, axis=1).ravel()
    liability = liability + rng.normal(size=len(liability)) * math.sqrt(1 - HERITABILITY)
    pairs = [
        (size * family + a, size * family + b, 0.25)
        for family in range(families)
        for b in range(size)
        for a in range(b)
        if not (parents and (a, b) == (0, 1))
    ]
    return genotypes, liability, np.array(pairs)


def related(rng: np.random.Generator, parents: bool, children: int, known: bool = True) -> Study:
    """Families of `draw_families`, half of whose members are cases."""
    genotypes, liability, pairs = draw_families(rng, parents, children)
    empty = np.zeros((len(genotypes), 0))
    return Study(genotypes, liability, empty, pairs if known else np.zeros((0, 3)))


SCENES: dict[str, Callable[[np.random.Generator], Study]] = {
    "nothing": partial(additive, effects=0),
    "one main effect": partial(additive, effects=1),
    "two additive": partial(additive, effects=2),
    "three additive": partial(additive, effects=3),
    "structure, strata": partial(structured, known="strata"),
    "structure, components": partial(structured, known="components"),
    "structure, unadjusted": partial(structured, known="nothing"),
    "siblings": partial(related, parents=False, children=4),
    "families": partial(related, parents=True, children=3),
    "siblings, unadjusted": partial(related, parents=False, children=4, known=False),
    "planted pair": partial(planted, order=2),
    "planted triple": partial(planted, order=3),
}
PLANTED = ("planted pair", "planted triple")
#: Scenes in which the test is not told what it needs: it may find too much.
UNADJUSTED = tuple(name for name in SCENES if "unadjusted" in name)


def draw_study(name: str, seed: int) -> Study:
    """A study of a scene."""
    return SCENES[name](np.random.default_rng([list(SCENES).index(name), seed]))
