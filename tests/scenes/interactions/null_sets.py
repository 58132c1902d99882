"""Many phenotypes of one set of sites at once, none with an interaction: millions of null sets.

Genotypes are drawn once for a set, and phenotypes many times given them, so that null sets are
independent given the genotypes. A phenotype has main effects of the set's sites (`MAIN` of its
variance, other ones each time), a covariate and, in two populations, another mean in each. Skewed
numbers have no main effects: what is additive before ranks are taken is not so after it.

Numbers: critical values of p_quadratic are those of the set, by `weighted_chi_square_tail`; a
phenotype is counted if its ratio is above one. Cases and controls: each phenotype has its own
logistic fit, weights and eigenvalues, in batches of matrix products; the tail of Q is computed
exactly where Satterthwaite's approximation (1946, Biometrics Bull 2:110) leaves in doubt on which
side of a level it is, by a factor of `DOUBT`. Both are compared with `SetTests` in each set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, expit, stdtrit
from scipy.stats import chi2 as chi_square
from scipy.stats import pearson3

from popdesic.epistasis.null_model import fit_null, normal_scores
from popdesic.epistasis.quadratic_forms import weighted_chi_square_tail
from popdesic.epistasis.set_products import LEAST_CARRIERS
from popdesic.epistasis.sets import MOST_LEVERAGE, SetTests, set_p_values

LEVELS = (0.05, 1e-3, 1e-5)
#: Share of the variance of main effects; log-odds for a standard deviation; half-width of doubt.
MAIN, ODDS = 0.1, 1.0
DOUBT = {0.05: 1.5, 1e-3: 5.0, 1e-5: 50.0}
#: Steps of Newton's method; a fitted log-odds beyond which no set is tested.
STEPS, SEPARATED = 8, 15.0
#: Phenotypes of a set that are compared with `SetTests`.
COMPARED = 2


class Counted(NamedTuple):
    """Null sets, and how many have p, p_quadratic, p_pair at most each level: int (3, n_levels)."""

    sets: int
    found: np.ndarray


def _minor(genotypes: np.ndarray) -> np.ndarray:
    flipped = genotypes.mean(axis=0) > 1
    return np.where(flipped, 2 - genotypes, genotypes).astype(float)


def _effects(rng, g: np.ndarray, age: np.ndarray, north: np.ndarray, many: int) -> np.ndarray:
    """Expected values, (n_people, many)."""
    main = (g - g.mean(axis=0)) @ rng.normal(size=(g.shape[1], many))
    main *= np.sqrt(MAIN) / np.maximum(main.std(axis=0), 1e-300)
    return main + 0.3 * age[:, None] + north[:, None]


def count_numbers(rng, genotypes, north, many: int, skewed: bool) -> Counted:
    """Phenotypes that are numbers; `north`: 0 or 1, of the population, which is a covariate."""
    n = len(genotypes)
    g, age = _minor(genotypes), rng.normal(size=n)
    covariates = np.column_stack([age, north][: 1 + bool(north.any())])
    y = _effects(rng, 0 * g if skewed else g, age, north, many)
    y += np.exp(rng.normal(size=y.shape)) if skewed else rng.normal(size=y.shape)
    if skewed:
        x, _ = np.linalg.qr(np.column_stack([np.ones(n), covariates]))
        y -= x @ (x.T @ y)
        y = np.stack([normal_scores(one) for one in y.T], axis=1)
    places = np.arange(g.shape[1])
    first = SetTests(fit_null(y[:, 0], covariates, "linear")).scores(genotypes, places)
    z = g[:, first.first] * g[:, first.second]
    homozygous = (g == 2)[:, (g == 2).sum(axis=0) >= LEAST_CARRIERS]
    design = np.column_stack([np.ones(n), covariates, g, homozygous])
    basis, sizes, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes[0]]
    z -= basis @ (basis.T @ z)
    r = y - basis @ (basis.T @ y)
    freedom = first.freedom
    scores = (z.T @ r) * np.sqrt(freedom / (r**2).sum(axis=0))
    np.testing.assert_allclose(scores[:, 0], first.scores, rtol=1e-6, atol=1e-6)
    known, weights = first.variances > 0, first.eigenvalues
    degrees = np.append(np.ones(len(weights)), freedom - len(weights))

    def tail(ratio: float) -> float:
        sides = np.append(weights - ratio, -ratio)
        return weighted_chi_square_tail(sides, degrees, 0.0)

    ratios = ((first.scale[:, None] * scores) ** 2).sum(axis=0) / freedom
    shares = (scores[known] ** 2 / first.variances[known, None]).max(axis=0) / freedom
    found = np.zeros((3, len(LEVELS)), np.int64)
    for k, level in enumerate(LEVELS):
        half = [_critical(tail, one, weights) for one in (level, level / 2)]
        t = stdtrit(freedom - 1, np.array([level, level / 2]) / known.sum() / 2)
        limit = t**2 / (t**2 + freedom - 1)
        found[0, k] = ((ratios >= half[1]) | (shares >= limit[1])).sum()
        found[1:, k] = (ratios >= half[0]).sum(), (shares >= limit[0]).sum()
    tested = set_p_values(first)
    assert abs(tail(ratios[0]) / tested["p_quadratic"] - 1) < 1e-5
    return Counted(many, found)


def _critical(tail, level: float, weights: np.ndarray) -> float:
    """The ratio with this tail."""
    low, high = weights.min() * 1e-9, float(weights.max()) * (1 - 1e-9)
    return brentq(
        lambda ratio: np.log(max(tail(ratio), 1e-300) / level), low, high, xtol=1e-12 * high
    )


def count_cases(rng, genotypes, north, many: int, share: float) -> Counted:
    """Cases and controls, of whom a share are cases."""
    n = len(genotypes)
    g, age = _minor(genotypes), rng.normal(size=n)
    covariates = np.column_stack([age, north][: 1 + bool(north.any())])
    odds = ODDS * _effects(rng, g, age, north, many)
    centre = brentq(lambda c: expit(odds[:, 0] + c).mean() - share, -30, 30)
    y = (rng.random(odds.shape) < expit(odds + centre)).astype(float)
    i, j = np.triu_indices(g.shape[1], 1)
    fixed = np.column_stack([np.ones(n), covariates])
    a = np.column_stack([fixed, g, g == 2])
    z = g[:, i] * g[:, j]
    cases, controls = y, 1 - y
    smaller = np.minimum(y.mean(axis=0), 1 - y.mean(axis=0))[:, None]

    def carried(columns: np.ndarray) -> np.ndarray:
        return (columns > 0).sum(axis=0) * smaller >= LEAST_CARRIERS  # (many, n_columns)

    def seen(columns: np.ndarray) -> np.ndarray:
        counts = [(columns > 0).T.astype(float) @ group for group in (cases, controls)]
        return carried(columns) & (np.min(counts, axis=0) > 0).T

    site = seen(g)
    kept = np.column_stack([np.ones((many, fixed.shape[1]), bool), site, seen(g == 2) & site])
    p, fine = _fit(a, y, kept)
    weight = p * (1 - p)
    inverse = _inverse(a, weight, kept)
    outer = a[:, :, None] * a[:, None, :]
    leverage = weight * (outer.reshape(n, -1) @ inverse.reshape(many, -1).T)
    leverage = np.minimum(leverage, MOST_LEVERAGE)
    weight = weight / (1 - leverage)
    shift = leverage * (0.5 - p)
    inverse = _inverse(a, weight, kept)
    product = carried(z) & site[:, i] & site[:, j]
    scale = product / (g.std(axis=0)[i] * g.std(axis=0)[j])
    cross = (z[:, :, None] * a[:, None, :]).reshape(n, -1).T @ weight
    cross = cross.T.reshape(many, z.shape[1], a.shape[1]) * kept[:, None]
    squares = (z[:, :, None] * z[:, None, :]).reshape(n, -1).T @ weight
    v = squares.T.reshape(many, len(i), len(i)) - cross @ inverse @ cross.transpose(0, 2, 1)
    v *= product[:, :, None] * product[:, None, :]
    left = np.einsum("kij,kpj->kpi", inverse, cross)  # coefficients of products in main effects
    scores = (z.T @ (y - p + shift)).T - np.einsum("kpi,ki->kp", left, shift.T @ a)
    scores *= product
    sizes = np.maximum(np.linalg.eigvalsh(v * scale[:, :, None] * scale[:, None, :]), 0.0)
    q = ((scale * scores) ** 2).sum(axis=1)
    total, squared = sizes.sum(axis=1), (sizes**2).sum(axis=1)
    fine &= total > 0
    total, squared = np.where(fine, total, 1.0), np.where(fine, squared, 1.0)
    about = chi_square.sf(q * total / squared, total**2 / squared)
    doubt = np.zeros(many, bool)
    for level in LEVELS:
        for one in (level, level / 2):
            doubt |= (about > one / DOUBT[level]) & (about < one * DOUBT[level])
    for k in np.flatnonzero((doubt & fine) | (np.arange(many) < COMPARED)):
        own = sizes[k][sizes[k] > 1e-12 * sizes[k].max()]
        about[k] = weighted_chi_square_tail(own, np.ones(len(own)), q[k]) if len(own) else 1.0
    variance = v.diagonal(axis1=1, axis2=2)
    chi2 = np.where(variance > 0, scores**2 / np.where(variance > 0, variance, 1.0), 0.0)
    number = (variance > 0).sum(axis=1)
    normal, pair = chdtrc(1, chi2) * number[:, None], np.ones(many)
    for k in np.flatnonzero((normal.min(axis=1) <= 1) & (number > 0)):
        best = np.flatnonzero((normal[k] <= 1) & (variance[k] > 0))
        rest = z[:, best] - a @ left[k, best].T
        third = (weight[:, k] * (1 - 2 * p[:, k])) @ rest**3
        size, skew = np.sqrt(chi2[k, best]), third / variance[k, best] ** 1.5
        both = pearson3.sf(size, skew) + pearson3.cdf(-size, skew)
        pair[k] = min(both.min() * number[k], 1.0)
    for k in range(COMPARED):
        tests = SetTests(fit_null(y[:, k], covariates, "logistic"))
        tested = set_p_values(tests.scores(genotypes, np.arange(g.shape[1])))
        for mine, name in ((about, "p_quadratic"), (pair, "p_pair")):
            assert not fine[k] or abs(np.log(mine[k] / tested[name])) < 1e-4, (name, mine[k])
    p_values = np.stack([np.minimum(about, pair) * 2, about, pair])[:, fine]
    found = np.stack([(p_values <= level).sum(axis=1) for level in LEVELS], axis=1)
    return Counted(int(fine.sum()), found)


def _fit(a: np.ndarray, y: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fitted risks (n_people, many) of logistic regressions on the columns kept, and which are."""
    beta = np.zeros((y.shape[1], a.shape[1]))
    beta[:, 0] = np.log(y.mean(axis=0) / (1 - y.mean(axis=0)))
    for _ in range(STEPS):
        p = expit(a @ beta.T)
        gradient = ((y - p).T @ a) * kept
        beta += np.einsum("kij,kj->ki", _inverse(a, p * (1 - p), kept), gradient)
    eta = a @ beta.T
    p = expit(eta)
    solved = np.abs(((y - p).T @ a) * kept).max(axis=1) < 1e-6
    return p, solved & (np.abs(eta).max(axis=0) < SEPARATED)


def _inverse(a: np.ndarray, weight: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Inverse of A'WA of the columns kept, 0 elsewhere: (many, n_columns, n_columns)."""
    c = a.shape[1]
    outer = (a[:, :, None] * a[:, None, :]).reshape(len(a), -1)
    both = kept[:, :, None] & kept[:, None, :]
    information = (outer.T @ weight).T.reshape(-1, c, c) * both
    information += np.eye(c) * ~kept[:, None]
    return np.linalg.pinv(information, rcond=1e-10, hermitian=True) * both
