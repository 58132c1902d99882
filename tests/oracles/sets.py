"""Interactions of sets by their definition: all products at once, regressions of statsmodels.

Tails come from Ruben's (1962, Ann Math Stat 33:542) mixture of chi-squares, whose terms are all
positive, so that small tails keep their digits; nothing is inverted.
"""

from __future__ import annotations

import itertools

import numpy as np
import statsmodels.api as sm
from scipy import special, stats


def ruben(weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Scale and shares of the mixture: sum w_k chi2_1 is scale * chi2 of len(w) + 2k degrees."""
    weights = np.asarray(weights, float)
    scale = weights.min()
    terms = int(40 + 40 * weights.max() / scale)
    assert terms < 50_000, "weights are too uneven for this mixture"
    left = 1 - scale / weights
    powers = np.array([(left**k).sum() for k in range(1, terms)])
    shares = np.zeros(terms)
    shares[0] = np.sqrt(scale / weights).prod()
    for k in range(1, terms):
        shares[k] = powers[:k] @ shares[k - 1 :: -1] / (2 * k)
    assert abs(shares.sum() - 1) < 1e-11
    return scale, shares


def tail(weights: np.ndarray, x: float) -> float:
    """P(sum of w_k chi2_1 > x), all weights above 0."""
    scale, shares = ruben(weights)
    degrees = len(weights) + 2 * np.arange(len(shares))
    return float(shares @ stats.chi2.sf(x / scale, degrees))


def ratio_tail(weights: np.ndarray, ratio: float, freedom: int) -> float:
    """P(sum of w_k chi2_1 > ratio * chi2 of all `freedom` variables, the same ones among them)."""
    shifted = np.asarray(weights, float) - ratio
    above, below = shifted[shifted > 0], -shifted[shifted < 0]
    if not len(above):
        return 0.0
    below = np.append(below, np.full(freedom - len(weights), ratio))
    scale, shares = ruben(above)
    under, parts = ruben(below)
    found = 0.0
    for k in np.flatnonzero(shares > 1e-16):
        d1, d2 = len(above) + 2 * k, len(below) + 2 * np.arange(len(parts))
        found += shares[k] * float(parts @ stats.f.sf(under * d2 / (scale * d1), d1, d2))
    return found


def minor_counts(genotypes: np.ndarray) -> np.ndarray:
    """Minor-allele counts, float64, the most frequent genotype where missing (the lower of two)."""
    found = []
    for column in np.asarray(genotypes).T:
        column = column.copy()
        counts = [(column == c).sum() for c in range(3)]
        column[column < 0] = int(np.argmax(counts))
        found.append(2 - column if column.mean() > 1 else column)
    return np.array(found, float).T


def alt_counts(genotypes: np.ndarray) -> np.ndarray:
    """ALT counts of the same genotypes."""
    minor, called = minor_counts(genotypes), np.where(genotypes < 0, np.nan, genotypes)
    same = np.nansum(np.abs(minor - called), axis=0) == 0
    return np.where(same, minor, 2 - minor)


def score_parts(g, response, covariates, pairs, *, binary: bool, dominance: bool = True):
    """U, V and third cumulants of U of the listed pairs of columns of counts `g`; r'r and degrees
    of freedom. U of cases and controls is that of residuals with Firth's correction."""
    z = np.column_stack([g[:, i] * g[:, j] for i, j in pairs])
    return parts_of(z, main_effects(g, covariates, dominance), response, binary)


def main_effects(g, covariates, dominance: bool):
    """Columns of a null model, the constant first."""
    main = [g, (g == 2)[:, (g == 2).any(axis=0)]] if dominance else [g]
    return np.column_stack([np.ones(len(g)), covariates, *main])


def parts_of(z, design, response, binary: bool):
    """As of `score_parts`, of columns z under a null model."""
    family = sm.families.Binomial() if binary else sm.families.Gaussian()
    fit = sm.GLM(response, design, family=family).fit(tol=1e-14)
    residuals = response - fit.fittedvalues
    root, cubes = np.ones(len(z)), np.zeros(len(z))
    if binary:
        p = fit.fittedvalues
        half = np.sqrt(p * (1 - p))[:, None] * design
        leverage = np.diag(half @ np.linalg.pinv(half))
        root = np.sqrt(p * (1 - p) / (1 - leverage))
        cubes = (1 - 2 * p) * root**2
        residuals = residuals + leverage * (0.5 - p)
    left = root[:, None] * z
    weighted = root[:, None] * design
    left = left - weighted @ np.linalg.lstsq(weighted, left, rcond=None)[0]
    freedom = len(z) - np.linalg.matrix_rank(design)
    left = left / root[:, None]
    size = float(residuals @ residuals)
    return left.T @ residuals, (left * root[:, None] ** 2).T @ left, cubes @ left**3, size, freedom


def set_tests(genotypes, response, covariates, pairs, *, binary: bool, dominance: bool = True):
    """P of the quadratic, burden and pair tests of the listed pairs of columns of `genotypes`.

    No column and no product is left out, but those of main effects that have no minor homozygote.
    """
    g = minor_counts(genotypes)
    kind = {"binary": binary, "dominance": dominance}
    u, v, third, size, freedom = score_parts(g, response, covariates, pairs, **kind)
    scale = np.array([1 / (g[:, i].std() * g[:, j].std()) for i, j in pairs])
    return tests_of_scores(u, v, third, scale, None if binary else (size, freedom))


def independent(columns):
    """Those that do not follow from columns before them, such as the square of two values."""
    sizes = np.abs(np.linalg.qr(columns / np.linalg.norm(columns, axis=0), "r").diagonal())
    return columns[:, sizes > 1e-9]


def spread_of_environment(response, covariates, e):
    """Standard deviations of residuals, by a gamma model of their squares with a log link."""
    columns = sm.add_constant(covariates)
    rest = response - columns @ np.linalg.lstsq(columns, response, rcond=None)[0]
    x = independent(np.column_stack([np.ones(len(e)), e - e.mean(), (e - e.mean()) ** 2]))
    family = sm.families.Gamma(sm.families.links.Log())
    fitted = sm.GLM(rest**2, x, family=family).fit(tol=1e-14, maxiter=500).fittedvalues
    return np.sqrt(fitted / np.exp(np.log(fitted).mean()))


def environment_tests(genotypes, response, covariates, e, *, binary: bool, dominance: bool = True):
    """The same of the products of each site with an environment."""
    g = minor_counts(genotypes)
    outside = np.column_stack([covariates, e, e**2, covariates * e[:, None]])
    design = main_effects(g, outside, dominance)
    root = np.ones(len(e)) if binary else 1 / spread_of_environment(response, outside, e)
    columns = independent(design * root[:, None])
    z, response = g * ((e - e.mean()) * root)[:, None], response * (1 if binary else root)
    u, v, third, size, freedom = parts_of(z, columns, response, binary)
    scale = 1 / g.std(axis=0)
    return tests_of_scores(u, v, third, scale, None if binary else (size, freedom))


def joined_tests(cohorts, pairs, *, binary: bool):
    """The same of several cohorts: (genotypes, response, covariates) of each."""
    u, v, third, freedom = 0.0, 0.0, 0.0, 0
    counts = [alt_counts(genotypes) for genotypes, _, _ in cohorts]
    for g, (_, response, covariates) in zip(counts, cohorts, strict=True):
        own, covariance, cubes, size, left = score_parts(
            g, response, covariates, pairs, binary=binary
        )
        u = u + own / (1.0 if binary else np.sqrt(size / left))
        v, third, freedom = v + covariance, third + cubes, freedom + left
    people = np.array([len(g) for g in counts])
    spread = np.sqrt(people @ np.array([g.var(axis=0) for g in counts]) / people.sum())
    minor = np.where(np.concatenate(counts).mean(axis=0) > 1, -1.0, 1.0)
    sign = np.array([minor[i] * minor[j] for i, j in pairs])
    scale = np.array([1 / (spread[i] * spread[j]) for i, j in pairs])
    residual = None if binary else (float(freedom), freedom)
    return tests_of_scores(sign * u, np.outer(sign, sign) * v, sign * third, scale, residual)


def tests_of_scores(u, v, third, scale, residual: tuple[float, int] | None):
    """P of scores with a covariance; `residual`: r'r and degrees of freedom of a number."""
    scaled = scale * u
    weights = np.linalg.eigvalsh(v * scale[:, None] * scale)
    weights = weights[weights > 1e-12 * weights.max()]
    burden = scaled.sum() ** 2 / (scale @ v @ scale)
    pair = (u**2 / v.diagonal()).max()
    if residual is None:
        quadratic = tail(weights, scaled @ scaled)
        p_burden = stats.chi2.sf(burden, 1)
        z, skew = np.abs(u) / v.diagonal() ** 0.5, third / v.diagonal() ** 1.5
        p = stats.pearson3.sf(z, skew) + stats.pearson3.cdf(-z, skew)
        seen = 2 * stats.norm.sf(z) * len(u) <= 1
        p_pair = p[seen].min(initial=1.0)
    else:
        size, freedom = residual
        quadratic = ratio_tail(weights, scaled @ scaled / size, freedom)
        share = np.array([burden, pair]) / size
        p_burden, p_pair = stats.f.sf(share / (1 - share) * (freedom - 1), 1, freedom - 1)
    return {"p_quadratic": quadratic, "p_burden": p_burden, "p_pair": min(1, p_pair * len(u))}


def all_pairs(n_sites: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n_sites), 2))


def tables_of_cases(people, rows, columns):
    """All tables of cases by genotypes at two sites with given sums, their chances, and the sum T
    of the products of counts over cases.

    Given the numbers of cases by genotype of each site, on which main effects with dominance are
    conditioned, tables have the chances of independent draws in each of the nine cells if the
    log-odds have no product: an exact null distribution of T.

    people : int64 array, (3, 3)
        By minor-allele counts of both sites.
    rows, columns : tuple of 3 int
        Cases by genotype of the first and of the second site.

    Returns int64 (n_tables, 3, 3), float64 (n_tables,), int64 (n_tables,).
    """
    halves = [
        [
            (rows[k] - one - two, one, two)
            for one in range(rows[k] + 1)
            for two in range(rows[k] + 1)
        ]
        for k in (1, 2)
    ]
    tables = np.array([[(0, 0, 0), *both] for both in itertools.product(*halves)])
    tables[:, 0] = np.array(columns) - tables[:, 1] - tables[:, 2]
    tables = tables[((tables >= 0) & (tables <= people)).all(axis=(1, 2))]
    logs = (
        special.gammaln(people + 1)
        - special.gammaln(tables + 1)
        - special.gammaln(people - tables + 1)
    ).sum(axis=(1, 2))
    chances = np.exp(logs - logs.max())
    product = np.outer(np.arange(3), np.arange(3))
    return tables, chances / chances.sum(), (tables * product).sum(axis=(1, 2))
