"""Penetrance models of two sites, studies drawn from them, and statistics of all their pairs."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, gammaln

from popdesic.epistasis.interaction import degrees_of_freedom, interaction_statistics
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.power import cell_probabilities, interaction_power
from popdesic.epistasis.priority import correction_factors, ranks_of_main_effects, strength_of
from popdesic.epistasis.scores import scale_bits, score_tables, table_cost
from popdesic.epistasis.single_sites import SiteTests

#: Log-odds of the models by numbers of minor alleles, for an effect of 1: both sites beyond
#: additivity. `product` is the model of multiplicative interaction, `threshold` the threshold model
#: of Marchini, Donnelly & Cardon (2005, Nat Genet 37:413), `xor` raises the risk of carriers of
#: exactly one of the two minor alleles.
COUNTS = np.arange(3)
CARRIES = COUNTS > 0
PATTERNS = {
    "xor": (CARRIES[:, None] ^ CARRIES).astype(float),
    "threshold": (CARRIES[:, None] & CARRIES).astype(float),
    "product": np.multiply.outer(COUNTS, COUNTS).astype(float),
}
MODELS = (*PATTERNS, "pure")
#: Log-odds without minor alleles, and the largest effect: odds ratios of 1 to 30.
BASE, LARGEST = -1.0, float(np.log(30))
#: Share of cases of a pure model.
PREVALENCE = 0.3


@dataclass(frozen=True)
class Model:
    """Probabilities of the nine genotype combinations of two sites: float64 (2, 9).

    `cells`: among controls and among cases; `without`: the same of the model of the same main
    effects and the same genotypes that has no interaction. `power`: what the test of the
    interaction should have (`epistasis.power`).
    """

    name: str
    maf: float
    cells: np.ndarray
    without: np.ndarray
    power: float


def pure_penetrance(maf: float, heritability: float, rng: np.random.Generator) -> np.ndarray | None:
    """Penetrances (9,) of two sites without any effect of one of them, or None if there are none.

    Random deviations are made orthogonal to the sites and scaled to the heritability, as GAMETES
    does for two sites (Urbanowicz et al. 2012, BioData Min 5:16). None if no penetrance between 0
    and 1 has so much.
    """
    share = np.array([(1 - maf) ** 2, 2 * maf * (1 - maf), maf**2])
    both = np.outer(share, share)
    for _ in range(2000):
        deviation = rng.normal(size=(3, 3)) / np.sqrt(both)
        deviation -= (deviation @ share)[:, None]
        deviation -= share @ deviation
        variance = (both * deviation**2).sum()
        wanted = heritability * PREVALENCE * (1 - PREVALENCE)
        risk = PREVALENCE + deviation * np.sqrt(wanted / variance)
        if risk.min() >= 0 and risk.max() <= 1:
            return risk.ravel()
    return None


def without_interaction(cells: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """The model of the same genotypes and main effects in a study of these sizes: (2, 9).

    By iterative proportional fitting to the margins of each pair of site, site and class.
    """
    counts = (np.array(sizes)[:, None] / sum(sizes) * cells).reshape(2, 3, 3)
    fitted = np.ones_like(counts)
    for _ in range(5000):
        for axis in range(3):
            want, have = (x.sum(axis=axis, keepdims=True) for x in (counts, fitted))
            fitted = fitted * np.divide(want, have, out=np.zeros_like(have), where=have > 0)
    fitted = fitted.reshape(2, 9)
    return fitted / fitted.sum(axis=1, keepdims=True)


def tuned(name: str, maf: float, sizes: tuple[int, int], tests: int, power: float = 0.6) -> Model:
    """The model with that power at the level 0.05 / tests, or with the largest effect allowed."""
    alpha = 0.05 / tests

    def cells_of(effect: float) -> np.ndarray | None:
        if name == "pure":
            risk = pure_penetrance(maf, effect, np.random.default_rng([7, round(1000 * maf)]))
        else:
            risk = expit(BASE + effect * PATTERNS[name]).ravel()
        return None if risk is None else cell_probabilities([maf, maf], risk)

    def missing_power(effect: float) -> float:
        return power - interaction_power(cells_of(effect), *sizes, alpha)

    most = LARGEST
    if name == "pure":  # the largest heritability that some drawn model can have
        most = 0.4
        while cells_of(most) is None:
            most *= 0.9
    effect = most
    if missing_power(most) < 0:
        effect = brentq(missing_power, most * 1e-3, most, xtol=1e-4 * most)
    cells = cells_of(effect)
    found = interaction_power(cells, *sizes, alpha)
    return Model(name, maf, cells, without_interaction(cells, sizes), found)


def draw_study(
    cells: np.ndarray, sizes: tuple[int, int], n_sites: int, rng: np.random.Generator
) -> np.ndarray:
    """Minor allele counts, int8 (n_sites, n_people), controls first; the model's sites are 0, 1.

    The others are independent of it and of each other, of MAF 0.05 to 0.5.
    """
    chosen = np.concatenate(
        [rng.choice(9, n, p=part) for n, part in zip(sizes, cells, strict=True)]
    )
    maf = rng.uniform(0.05, 0.5, (n_sites - 2, 1))
    others = rng.binomial(2, maf, (n_sites - 2, sum(sizes)))
    return np.concatenate([[chosen // 3, chosen % 3], others]).astype(np.int8)


def pair_tables(genotypes: np.ndarray, n_controls: int) -> np.ndarray:
    """Tables of all pairs (i, j), i < j, of sites without missing genotypes: int64 (n, 2, 9)."""
    n_sites = len(genotypes)
    states = (genotypes[:, None] == COUNTS[:, None]).reshape(3 * n_sites, -1).astype(np.float32)
    first, second = np.triu_indices(n_sites, 1)
    tables = []
    for part in (states[:, :n_controls], states[:, n_controls:]):
        counts = (part @ part.T).reshape(n_sites, 3, n_sites, 3)
        tables.append(counts[first, :, second].reshape(-1, 9))
    return np.rint(np.stack(tables, axis=1)).astype(np.int64)


def statistics(tables: np.ndarray, sizes: tuple[int, int]) -> dict[str, np.ndarray]:
    """What our scores, and K2 without centring, say of tables (n, 2, 9): the larger the better."""
    by_class = tables.swapaxes(0, 1)
    unit = 2.0 ** scale_bits(sum(sizes))
    found = {"LR": interaction_statistics(tables)}
    for name, score in (("K2", "k2_excess"), ("MI", "mutual_information")):
        found[name] = -table_cost(by_class, *score_tables(score, *sizes)) / unit
    n = tables.sum(axis=1)
    found["raw K2"] = (gammaln(tables + 1.0).sum(axis=1) - gammaln(n + 2.0)).sum(axis=1)
    return found


@functools.cache
def _freedom(there: bytes) -> int:
    """Degrees of freedom of a table of two sites with these combinations of genotypes."""
    one = np.frombuffer(there, bool).astype(np.int64).reshape(3, 3)
    return degrees_of_freedom(np.stack([one, one]))


def by_p(genotypes: np.ndarray, tables: np.ndarray, n_controls: int) -> dict[str, np.ndarray]:
    """-ln p of the first pairs, as `interaction_test` has it: the larger the better.

    `p`, and `prior`, for which p is multiplied by its correction (`epistasis.priority`) over that
    of Bonferroni. `tables`: of all pairs of the sites, or of the first ones.
    """
    n_sites, n = genotypes.shape
    null = fit_null((np.arange(n) >= n_controls).astype(float), np.empty((n, 0)), "logistic")
    ranks = ranks_of_main_effects(strength_of(SiteTests(null).test(genotypes)))
    last = np.maximum(*(ranks[one] for one in np.triu_indices(n_sites, 1)))[: len(tables)]
    freedom = np.array([_freedom(table.tobytes()) for table in tables.sum(axis=1) > 0])
    p = -stats.chi2.logsf(interaction_statistics(tables), np.maximum(freedom, 1))
    p[freedom == 0] = 0.0
    tests = n_sites * (n_sites - 1) / 2
    return {"p": p, "prior": p - np.log(correction_factors(last, n_sites, 2) / tests)}
