"""Studies of a number without any interaction, and the scan of their pairs.

Each has 1 000 people at 60 unlinked sites with minor alleles from 5 to 50 %.

    two additive             two sites add 1.5 standard deviations per allele
    heavy tails              the number follows a t distribution with 1.5 degrees of freedom
    structure                two populations (F_ST 0.05) that differ by 3 standard deviations; the
                             population is a covariate
    siblings                 250 families of four siblings; half of the variance is inherited
    families                 200 families of two parents and three children, with the same
    siblings, unadjusted     as siblings, but the test takes people for unrelated
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.families import family_model
from popdesic.epistasis.null_model import fit_null, residual_levels
from popdesic.epistasis.relatedness import Relatives
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.residual_scan import describe_residual_hits
from popdesic.epistasis.scan_data import OneHot, ResidualData
from popdesic.epistasis.scan_sites import scan_residual_pairs

from .scenes import PEOPLE, SITES, draw_families, draw_structure, frequencies

#: Standard deviations of the number for each allele of an additive site, between two populations.
EFFECT, BETWEEN = 1.5, 3.0


@dataclass(frozen=True)
class NumberStudy:
    """Genotypes int8 (n_people, n_sites), a number for each person, and what a test may know.

    design: columns of the null model, float64 (n_people, n_columns). pairs: relatives (first,
    second, kinship), float64 (n_pairs, 3), first < second.
    """

    genotypes: np.ndarray
    response: np.ndarray
    design: np.ndarray = field(default_factory=lambda: np.zeros((PEOPLE, 0)))
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))


def additive(rng: np.random.Generator) -> NumberStudy:
    genotypes = rng.binomial(2, frequencies(rng), (PEOPLE, SITES)).astype(np.int8)
    effects = EFFECT * genotypes[:, :2].sum(axis=1)
    return NumberStudy(genotypes, effects + rng.normal(size=PEOPLE))


def heavy_tails(rng: np.random.Generator) -> NumberStudy:
    genotypes = rng.binomial(2, frequencies(rng), (PEOPLE, SITES)).astype(np.int8)
    return NumberStudy(genotypes, rng.standard_t(1.5, PEOPLE))


def structured(rng: np.random.Generator) -> NumberStudy:
    """The populations of `draw_structure`, which differ in their mean."""
    genotypes, _, population = draw_structure(rng, PEOPLE, SITES)
    response = BETWEEN * population + rng.normal(size=PEOPLE)
    return NumberStudy(genotypes, response, population[:, None].astype(float))


def related(
    rng: np.random.Generator, parents: bool, children: int, known: bool = True
) -> NumberStudy:
    genotypes, liability, pairs = draw_families(rng, parents, children)
    empty = np.zeros((len(genotypes), 0))
    return NumberStudy(genotypes, liability, empty, pairs if known else np.zeros((0, 3)))


SCENES: dict[str, Callable[[np.random.Generator], NumberStudy]] = {
    "two additive": additive,
    "heavy tails": heavy_tails,
    "structure": structured,
    "siblings": partial(related, parents=False, children=4),
    "families": partial(related, parents=True, children=3),
    "siblings, unadjusted": partial(related, parents=False, children=4, known=False),
}


def draw_study(name: str, seed: int) -> NumberStudy:
    """A study of a scene."""
    return SCENES[name](np.random.default_rng([list(SCENES).index(name), seed, 1]))


def scan_numbers(study: NumberStudy, top: int, transform: str = "normal") -> pd.DataFrame:
    """The best pairs, ranked and tested as results/epistasis/pairs.tsv is."""
    n = len(study.response)
    null = fit_null(study.response, study.design, "linear", transform=transform)
    families, residuals = None, null.residuals
    if len(study.pairs):
        first, second = study.pairs[:, :2].astype(np.int64).T
        families = family_model(null, Relatives(first, second, study.pairs[:, 2]))
    if families is not None:
        residuals = families.weigh(residuals, null.used & families.counts)
    levels, variance = residual_levels(null, 1, residuals)
    words, sites, _ = reorder_sites(
        lambda part: study.genotypes.T[part], np.arange(study.genotypes.shape[1]), n
    )
    rank = sites["rank"].to_numpy(np.int32)
    data = ResidualData(OneHot(words, n), levels, variance, rank)
    hits = scan_residual_pairs(CpuBackend(1), data, range(len(rank)), top)
    tests = math.comb(len(rank), 2)
    sites = sites.assign(site=sites["rank"])
    return describe_residual_hits(
        hits, words, sites, null, 2.0**20, tests, named=("site",), families=families
    )


def family_wise(name: str, seed: int, top: int, level: float = 0.05) -> bool:
    """Whether a study of a scene has a hit with p_interaction at or below the level."""
    return bool(scan_numbers(draw_study(name, seed), top).p_interaction.min() <= level)
