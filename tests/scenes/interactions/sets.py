"""Sets of sites in LD whose phenotype has no interaction, or a planted one.

Sites of a set are in LD that falls with distance, as on chromosomes: alleles of a haplotype are
those of a chain of normal variables, in which each one copies most of the one before, that are
below the quantiles of their frequencies, 5 to 50 %. Ten sites have main effects on the number, or
on the log-odds of being a case; so has one covariate.

    number               normal residuals
    number, dominance    main effects of homozygotes alone
    number, skewed       log-normal residuals, tested by normal scores
    structure            two populations (F_ST 0.05) one standard deviation apart, a covariate
    cases 1:1, 1:20      one case for each 1 or 20 controls
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri

#: Correlation of neighbours in the chain.
NEXT = 0.9
#: Share of the variance (liability) of main effects of a study without interactions.
MAIN = 0.2
#: F_ST of two populations, and the difference of their means in standard deviations.
F_ST, APART = 0.05, 1.0
NULLS = ("number", "number, dominance", "number, skewed", "structure", "cases 1:1", "cases 1:20")
#: Sites with main effects; log-odds for a standard deviation; shares of cases.
EFFECTS, ODDS = 10, 1.8
SHARES = {"cases 1:1": 1 / 2, "cases 1:20": 1 / 21}


@dataclass(frozen=True)
class SetStudy:
    """Genotypes int8 (n_people, n_sets * n_sites), sets, phenotype, covariates, transform."""

    genotypes: np.ndarray
    sets: dict[str, range]
    phenotype: np.ndarray
    covariates: np.ndarray
    transform: str = "none"


def genotypes_in_ld(rng, n: int, sites: int, frequency: np.ndarray) -> np.ndarray:
    """int8 (n, sites); `frequency`: (sites,), or (n, sites) of each person's population."""
    chain = rng.normal(size=(sites, 2, n)).astype(np.float32)
    for k in range(1, sites):
        chain[k] = NEXT * chain[k - 1] + np.sqrt(1 - NEXT**2) * chain[k]
    limits = ndtri(np.broadcast_to(frequency, (n, sites))).T
    return (chain < limits[:, None]).sum(axis=1).T.astype(np.int8)


def null_study(name: str, seed: int, n: int, sets: int, sites: int) -> SetStudy:
    """A study without interactions on the scale of the model that tests it."""
    rng = np.random.default_rng([seed, NULLS.index(name)])
    frequency = rng.uniform(0.05, 0.5, (sets, sites))
    north = np.zeros(n)
    if name == "structure":
        north = (rng.random(n) < 0.5).astype(float)
        own = (frequency * (1 - F_ST) / F_ST, (1 - frequency) * (1 - F_ST) / F_ST)
        two = np.clip(rng.beta(*own, (2, sets, sites)), 0.01, 0.99)
        frequency = np.where(north[:, None] == 1, two[0][:, None], two[1][:, None])
    genotypes = np.concatenate([genotypes_in_ld(rng, n, sites, one) for one in frequency], axis=1)
    many = min(EFFECTS, sets * sites)
    strong = genotypes[:, rng.choice(sets * sites, many, replace=False)]
    dose = strong == 2 if "dominance" in name else strong
    effect = dose.astype(float) @ rng.normal(size=many)
    effect *= np.sqrt(MAIN) / effect.std()
    age = rng.normal(size=n)
    mean = effect + 0.3 * age + APART * north
    covariates = np.column_stack([age, north]) if name == "structure" else age[:, None]
    named = {f"set{k}": range(k * sites, (k + 1) * sites) for k in range(sets)}
    if name in SHARES:
        odds = ODDS * mean
        constant = brentq(lambda c: expit(odds + c).mean() - SHARES[name], -30, 30)
        phenotype = (rng.random(n) < expit(odds + constant)).astype(float)
        return SetStudy(genotypes, named, phenotype, covariates)
    skewed = name == "number, skewed"
    noise = np.exp(rng.normal(size=n)) if skewed else rng.normal(size=n)
    return SetStudy(genotypes, named, mean + noise, covariates, "normal" if skewed else "none")


def planted_study(products: int, share: float, seed: int, n: int, sites: int) -> SetStudy:
    """A number, of whose variance some products of two sites of one set have a share.

    The products have effects of equal size and random sign, beside what main effects explain.
    """
    rng = np.random.default_rng([seed, products])
    genotypes = genotypes_in_ld(rng, n, sites, rng.uniform(0.05, 0.5, sites))
    g = genotypes - genotypes.mean(axis=0)
    first, second = np.triu_indices(sites, 1)
    chosen = rng.choice(len(first), products, replace=False)
    z = g[:, first[chosen]] * g[:, second[chosen]]
    main = np.column_stack([np.ones(n), g, genotypes == 2])
    z -= main @ np.linalg.lstsq(main, z, rcond=None)[0]
    effect = (z / z.std(axis=0)) @ rng.choice([-1.0, 1.0], products)
    effect *= np.sqrt(share / (1 - share)) / effect.std()
    phenotype = effect + rng.normal(size=n)
    return SetStudy(genotypes, {"set": range(sites)}, phenotype, np.zeros((n, 0)))
