"""How often chance alone gives a hit's interaction: p far out in the tail, also of sparse tables.

The likelihood ratio LR of a table follows the chi-square distribution only if all its combinations
of genotypes hold many people. Those of scans do not: with minor alleles of 5 % it is off by
factors of 2 to 100 where p is 1e-6. So the null distribution is drawn: each combination of
genotypes keeps its people, and its cases are binomial with the risks of the fitted model without
interaction (parametric bootstrap; Davison & Hinkley 1997, Bootstrap methods, section 4.2).

A p of 1e-9 would need 1e11 such draws. Importance sampling needs a few thousand (Owen & Zhou 2000,
J Am Stat Assoc 95:135): draw k comes from risks tilted towards an interaction of about the
observed strength, in a direction of its own, and counts with the weight

    P_0(draw) / mean over j of P_j(draw),

P_0 under the model without interaction, P_j under the tilt of draw j. The sum of the weights of the
draws with LR at or above the observed one, divided by their number, has p as its mean, whatever
the tilts are. Tilts keep the expected cases of each genotype of fewer sites, since LR does not
depend on main effects. The seed is fixed, so that p depends on the table alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, expit, gammaincc

from .grouped_tables_cpu import half_statistics, indicators, interaction_terms

#: Draws of the first estimate, and of the final one where the first says that it matters.
FIRST_DRAWS, DRAWS = 400, 4000
#: Draws to which the distribution of a whole table's association is fitted.
ASSOCIATION_DRAWS = 2000
#: People that the null model gets for each fitted term, see `shrunk`, and most steps of its fit.
PRIOR, SHRINKING_STEPS = 2.0, 60
#: Information n p (1 - p) that it gets for each term of pairs, in triples: that of log-odds with a
#: standard deviation of 0.3.
PAIR_INFORMATION = 10.0
#: Draws of each tilt.
DRAWS_OF_A_TILT = 4
#: Shares of the draws that are not tilted (they find what no tilt leads to), and that are tilted
#: towards the observed table.
PLAIN, OBSERVED = 0.1, 0.1
#: Least information of a combination, in people^2, on which the length of its tilt is based.
LEAST_WEIGHT = 0.25
#: Least information of a combination that can change at all.
NO_INFORMATION = 1e-9
#: Largest tilt of a combination, on the scale of log-odds.
MOST_TILT = 30.0
#: Most directions that tilts can cover.
MOST_DIRECTIONS = 8
#: Least skewness of a fitted distribution: about that of a chi-square of 800 degrees of freedom.
LEAST_SKEWNESS = 0.1
#: Steps that find the length of a tilt, and that restore its margins.
BISECTIONS, CORRECTIONS = 12, 3
#: Most steps to the constant of the common risk, each Newton's or half of what is left.
NEWTON_STEPS = 60
#: Statistics that differ by less, in nats, are equal.
EQUAL = 1e-6
#: Smallest p, so that no p is 0.
LEAST_P = 1e-300


@dataclass(frozen=True)
class TableNull:
    """A table's people in groups, and the smaller model fitted to them (`grouped_tables_cpu`).

    Attributes
    ----------
    terms : int64 array, (n_cells, n)
        Of the smaller model: `interaction_terms` or `association_terms`.
    cases, people : int64 array, (n_cells, n_offsets)
        Of each combination of genotypes and offset; 9, 27 or 81 combinations.
    offsets : float64 array, (n_offsets,)
        Log-odds of covariates; one 0 without any.
    log_odds : float64 array, (n_cells, n_offsets)
        Log-odds of being a case, fitted to the table and `shrunk`.
    half : float
        LR / 2 of the table, in nats.
    """

    terms: np.ndarray
    cases: np.ndarray
    people: np.ndarray
    offsets: np.ndarray
    log_odds: np.ndarray
    half: float


def fit_table_null(
    table: np.ndarray, offsets: np.ndarray | None = None, terms: np.ndarray | None = None
) -> TableNull:
    """Fit the model without interaction, or with the given terms.

    Parameters
    ----------
    table : int array, (2, n_cells, n_offsets) or without the last axis
        Controls and cases, both present; the last site's state varies fastest.
    offsets : float64 array, (n_offsets,), optional
    """
    offsets = np.zeros(1) if offsets is None else offsets
    table = table.reshape(2, -1, len(offsets))
    terms = interaction_terms(table.shape[1]) if terms is None else terms
    half = _half_statistic(table, offsets, terms)
    cases, people = table[1], table.sum(axis=0)
    fitted = _fitted_log_odds(cases, people, offsets, terms)
    return TableNull(terms, cases, people, offsets, fitted, half)


def _half_statistic(table: np.ndarray, offsets: np.ndarray, terms: np.ndarray) -> float:
    """LR / 2 in nats of a table (2, n_cells, n_offsets)."""
    controls, cases = table.sum(axis=(1, 2))
    centre = float(offsets @ table.sum(axis=(0, 1))) / (controls + cases)
    start = np.tile(offsets - centre + np.log(cases / controls), table.shape[1])
    return float(half_statistics(table.reshape(1, 2, -1), offsets, start, terms)[0])


def chi_square_p(table: np.ndarray, offsets: np.ndarray, terms: np.ndarray) -> float:
    """p of a table by the chi-square distribution, of occurring combinations less fitted terms."""
    seen = table.sum(axis=(0, 2)) > 0
    freedom = int(seen.sum()) - int(np.linalg.matrix_rank(indicators(terms)[seen]))
    if not freedom:
        return 1.0
    return float(chdtrc(freedom, max(2 * _half_statistic(table, offsets, terms), 0.0)))


def _fitted_log_odds(
    cases: np.ndarray, people: np.ndarray, offsets: np.ndarray, terms: np.ndarray
) -> np.ndarray:
    """Log-odds of each group under the smaller model, float64 (n_cells, n_offsets): `shrunk`.

    Terms of single sites shrink towards the common risk, those of pairs, in triples and quads,
    towards the risks that single sites say, and so do those of triples: few cases tell little of 12
    terms of pairs.
    """
    common = _common_log_odds(cases.sum(axis=0), people.sum(axis=0), offsets)
    design, centre = indicators(terms), np.full(len(cases), common)
    if len(terms) > 9 and design.shape[1] > 1:
        genotypes = np.indices((3,) * round(np.log(len(terms)) / np.log(3)))
        genotypes = genotypes.reshape(len(genotypes), -1)
        sites = np.concatenate([genotypes == state for state in range(3)]).T.astype(float)
        centre = shrunk(cases, people, offsets, sites, centre, PRIOR)
        variance = people * (expit(common + offsets) * expit(-common - offsets))
        more = PAIR_INFORMATION * people.sum() / variance.sum()
        return shrunk(cases, people, offsets, design, centre, more)[:, None] + offsets
    return shrunk(cases, people, offsets, design, centre, PRIOR)[:, None] + offsets


def shrunk(
    cases: np.ndarray,
    people: np.ndarray,
    offsets: np.ndarray,
    design: np.ndarray,
    centre: np.ndarray,
    prior: float,
) -> np.ndarray:
    """Log-odds of a model with more people for each term it fits, less the offsets.

    The maximum of the likelihood follows chance: combinations of few people or few cases get
    extreme risks, draws from them vary too little, and p is too small (of triples by a factor of
    1.5 at 1e-5 with 200 cases of 400 people, of 3 at 1e-2 with 50 of 1000). So each combination
    gets more people, `prior` times the share of a term that is fitted to it alone (its leverage),
    at the risk of `centre`.
    The penalty of Firth (1993, Biometrika 80:27) adds one person a term, half of them cases.
    Well-known risks hardly change.

    Parameters
    ----------
    cases, people : int64 array, (n_cells, n_offsets)
    design : float64 array, (n_cells, n_terms)
        `indicators` of the terms.
    centre : float64 array, (n_cells,)
        Log-odds towards which terms shrink, less the offsets.
    prior : float
        People of each term.

    Returns
    -------
    float64 array, (n_cells,)
    """
    y, n = cases.astype(float), people.astype(float)
    seen = n.sum(axis=1) > 0
    columns, sizes, _ = np.linalg.svd(design[seen], full_matrices=False)
    columns = columns[:, sizes > 1e-9 * sizes[0]]
    in_cell = n[seen] / n[seen].sum(axis=1)[:, None]
    expected = expit(centre[seen][:, None] + offsets)
    beta = columns.T @ centre[seen]
    for _ in range(SHRINKING_STEPS):
        risk = expit((columns @ beta)[:, None] + offsets)
        weight = (n[seen] * risk * (1 - risk)).sum(axis=1)
        inverse = np.linalg.pinv(columns.T @ (columns * weight[:, None]), hermitian=True)
        leverage = weight * ((columns @ inverse) * columns).sum(axis=1)
        added = prior * leverage[:, None] * in_cell
        gradient = columns.T @ (y[seen] - n[seen] * risk + added * (expected - risk)).sum(axis=1)
        curved = ((n[seen] + added) * risk * (1 - risk)).sum(axis=1)
        step = np.linalg.pinv(columns.T @ (columns * curved[:, None]), hermitian=True) @ gradient
        longest = np.abs(columns @ step).max()
        beta = beta + step / max(1.0, longest / 2)
        if longest < 1e-6:
            break
    log_odds = centre.copy()
    log_odds[seen] = columns @ beta
    return log_odds


def _common_log_odds(cases: np.ndarray, people: np.ndarray, offsets: np.ndarray) -> float:
    """Constant at which as many cases are expected as there are; both classes are present."""

    share = np.log(cases.sum() / (people.sum() - cases.sum()))
    low, high = share - offsets.max(), share - offsets.min()
    constant = float(low + high) / 2
    for _ in range(NEWTON_STEPS):
        risk = expit(constant + offsets)
        excess = float(people @ risk - cases.sum())
        low, high = (low, constant) if excess > 0 else (constant, high)
        step = constant - excess / float(people @ (risk * (1 - risk)))
        step = step if low <= step <= high else float(low + high) / 2
        if abs(step - constant) < 1e-12:
            break
        constant = step
    return constant


def tail_p(
    null: TableNull,
    least: float,
    draws: int,
    seed: int = 1,
    variance: np.ndarray | None = None,
) -> float:
    """P(LR / 2 >= least) under the fitted model, in (0, 1].

    Parameters
    ----------
    null : NullModel
    least : float
        In nats; `null.half`.
    draws : int
    variance : float64 array, (d, d), optional
        Of the `free_directions` among relatives (`relatedness.score_variance`).
    """
    directions = free_directions(null)
    if least <= EQUAL or not directions.shape[1]:
        return 1.0
    spread = None
    if variance is not None:
        mean = float(np.trace(variance)) / len(variance)
        least, spread = least / mean, variance / mean
    if directions.shape[1] > MOST_DIRECTIONS:
        return _matched_p(null, least, min(draws, ASSOCIATION_DRAWS), seed)
    tilts = tilts_of(null, least, draws // DRAWS_OF_A_TILT, seed)
    if tilts is None:
        return 1.0
    rng = np.random.default_rng([seed, draws])
    risk = np.repeat(expit(null.log_odds + tilts[:, :, None]), DRAWS_OF_A_TILT, axis=0)
    cases = rng.binomial(np.broadcast_to(null.people, risk.shape), risk)
    found = _statistics_of(null, cases, least - EQUAL)
    reached = found >= least - EQUAL
    cases_of = cases[reached].sum(axis=2)
    weights = _weights(null, tilts, cases_of)
    if spread is not None:
        expected = (null.people * expit(null.log_odds)).sum(axis=1)
        weights *= _ratios(spread, (cases_of - expected) @ directions, found[reached])
    if not reached.any():  # rarer than the draws can show: the likelihood of the table itself
        return float(max(np.exp(-least), LEAST_P))
    return float(min(1.0, max(weights.sum() / draws, LEAST_P)))


def _statistics_of(null: TableNull, cases: np.ndarray, least: float) -> np.ndarray:
    """LR / 2 of drawn cases (n, n_cells, n_offsets), float64 (n,); see `half_statistics`."""
    tables = np.stack([null.people - cases, cases], axis=1).reshape(len(cases), 2, -1)
    return half_statistics(tables, null.offsets, null.log_odds.ravel(), null.terms, least=least)


def _matched_p(null: TableNull, least: float, draws: int, seed: int) -> float:
    """p of the shifted gamma distribution with mean, variance and skewness of plain draws.

    For the 26 directions of a triple's association, which tilts cannot cover. Within a factor of 2
    of the share of drawn tables down to 1e-4.
    """
    risk = np.broadcast_to(expit(null.log_odds), (draws, *null.people.shape))
    cases = np.random.default_rng([seed, draws]).binomial(null.people, risk)
    found = _statistics_of(null, cases, -np.inf)
    spread = float(found.std())
    if not spread > 0:
        return 1.0
    skewness = max(float(((found - found.mean()) ** 3).mean()) / spread**3, LEAST_SKEWNESS)
    shape, z = 4 / skewness**2, (least - float(found.mean())) / spread
    p = gammaincc(shape, max(shape + 2 * z / skewness, 0.0))
    return float(np.clip(p, LEAST_P, 1.0))


def _weights(null: TableNull, tilts: np.ndarray, cases: np.ndarray) -> np.ndarray:
    """P_0 / mean of all P_j for each draw's cases (n, n_cells): float64 (n,)."""
    grown = np.logaddexp(0, null.log_odds + tilts[:, :, None]) - np.logaddexp(0, null.log_odds)
    constant = np.einsum("kcb,cb->k", grown, null.people.astype(float))
    exponent = cases @ tilts.T - constant
    most = np.maximum(exponent.max(axis=1, initial=0.0), 0.0)
    return np.exp(-most) / np.exp(exponent - most[:, None]).mean(axis=1)


def _ratios(spread: np.ndarray, z: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Density of scores z (n, d) under relatives over that of unrelated people: float64 (n,).

    spread: U, of mean eigenvalue 1; half: LR / 2 of each draw.
    """
    values, ways = np.linalg.eigh(spread)
    squares = (z @ ways) ** 2
    share = squares @ (1 - 1 / values) / np.maximum(squares.sum(axis=1), 1e-300)
    return np.exp(half * share) / np.sqrt(np.prod(values))


def information(null: TableNull) -> np.ndarray:
    """Variance of the cases of each combination under the fitted model: float64 (n_cells,)."""
    return (null.people * expit(null.log_odds) * expit(-null.log_odds)).sum(axis=1)


def free_directions(null: TableNull) -> np.ndarray:
    """Changes of the log-odds that the terms cannot follow: float64 (n_cells, d).

    A unit of each changes the log-odds by one standard error, independently of the others (less
    where a combination has an information below `LEAST_WEIGHT`). d = 0: the table cannot show an
    interaction.
    """
    weight = information(null)
    active = weight > NO_INFORMATION
    scale = np.sqrt(np.maximum(weight, LEAST_WEIGHT))[active]
    basis, sizes, _ = np.linalg.svd(scale[:, None] * indicators(null.terms)[active])
    rank = int((sizes > 1e-9 * sizes.max(initial=0.0)).sum())
    directions = np.zeros((len(weight), basis.shape[1] - rank))
    directions[active] = basis[:, rank:] / scale[:, None]
    return directions


def tilts_of(null: TableNull, least: float, draws: int, seed: int) -> np.ndarray | None:
    """Changes of the log-odds of each combination: float64 (draws, n_cells); None: no interaction.

    Directions are uniform on the sphere of the interactions that the table can show, in units of
    standard errors. The length of each is that of an expected statistic of `least` nats.
    """
    design = indicators(null.terms)
    n = null.people.sum(axis=1).astype(float)
    directions = free_directions(null)
    if not directions.shape[1]:
        return None
    risk = (null.people * expit(null.log_odds)).sum(axis=1) / np.maximum(n, 1)
    active = information(null) > NO_INFORMATION
    z = np.random.default_rng([seed, draws, 1]).normal(size=(draws, directions.shape[1]))
    z /= np.linalg.norm(z, axis=1)[:, None]
    ways = z @ directions.T
    centre = np.where(active, np.log(np.maximum(risk, 1e-300) / np.maximum(1 - risk, 1e-300)), 0.0)
    base = np.logaddexp(0, centre)

    def strength(length: np.ndarray) -> np.ndarray:
        """Kullback-Leibler divergence of the tilted from the fitted model, in nats."""
        tilt = np.clip(ways * length[:, None], -MOST_TILT, MOST_TILT)
        return (n * (tilt * expit(centre + tilt) - np.logaddexp(0, centre + tilt) + base)).sum(1)

    short, long = np.zeros(draws), np.full(draws, 10 * np.sqrt(2 * least) + 10)
    for _ in range(BISECTIONS):
        middle = (short + long) / 2
        large = strength(middle) > least
        short, long = np.where(large, short, middle), np.where(large, middle, long)
    tilts = np.clip(ways * short[:, None], -MOST_TILT, MOST_TILT)
    seen = null.cases.sum(axis=1)
    tilts[: round(OBSERVED * draws)] = np.log((seen + 0.5) / (n - seen + 0.5)) - centre
    for _ in range(CORRECTIONS):
        fitted = n * expit(centre + tilts)
        weight = fitted * expit(-centre - tilts)
        curvature = np.einsum("kc,ca,cb->kab", weight, design, design, optimize=True)
        curvature += 1e-3 * np.eye(design.shape[1])
        missing = (n * risk - fitted) @ design
        step = np.linalg.solve(curvature, missing[..., None])[..., 0]
        tilts = np.clip(tilts + step @ design.T, -MOST_TILT, MOST_TILT)
    tilts[:, ~active] = 0.0
    tilts[-round(PLAIN * draws) :] = 0.0
    return tilts
