"""Interactions of a set between cohorts: scores added up, and their direction tested elsewhere.

Each cohort has its own null model, scores U_c of the products and their covariance V_c
(`sets.SetStatistics`); a product that a cohort lacks has 0. Cohorts together have U = sum of U_c
and V = sum of V_c, which the tests of one cohort take (`sets.set_p_values`): a score test in which
every cohort has main effects, covariates and, for numbers, a residual variance of its own.

Replication: the discovery cohorts give one direction w of the products,

    product     the best product alone, with the sign of its score, if p_pair <= p_quadratic,
    direction   w = D^2 U otherwise, the direction of the quadratic test.

In another cohort c, b_c = w'U_c / w'V_c w estimates the effect of the score w'z (log-odds, or
standard deviations of the residuals), with variance 1 / w'V_c w. As w depends on other people, its
test is valid whatever was selected in the discovery; it is one-sided. Of one product in cases and
controls, p is the larger one of a normal and of a skewed score (`skewness.skewed_tail`). Cohorts
are combined with these weights (fixed effect) and by DerSimonian and Laird (1986, Control Clin
Trials 7:177; random effects), and compared by Cochran's Q and I2. In the discovery cohorts
themselves b_c is too large, since w was chosen there.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .set_scores import SetScores, SetStatistics
from .sets import set_p_values
from .skewness import skewed_tail


@dataclass(frozen=True)
class JoinedScores:
    """Scores of a set in several cohorts together, for ALT counts.

    Attributes
    ----------
    first, second : int64 array, (n_products,)
        Sites of each product.
    sign : float64 array, (n_products,)
        -1 where one of the two sites has REF for a minor allele.
    scale : float64 array, (n_products,)
        Diagonal of D, of the mean spread of the counts.
    scores, thirds : float64 array, (n_products,)
    parts : list
        SetStatistics of each cohort, and places of its products.
    n_sites : int
    freedom : int or None
        Sum of the degrees of freedom of linear models.
    """

    first: np.ndarray
    second: np.ndarray
    sign: np.ndarray
    scale: np.ndarray
    scores: np.ndarray
    thirds: np.ndarray
    parts: list[tuple[SetStatistics, np.ndarray]]
    n_sites: int
    freedom: int | None

    @functools.cached_property
    def covariance(self) -> np.ndarray:
        """V, float64 (n_products, n_products): parts are added up in their order."""
        size = len(self.scores)
        if all(len(place) == size for _, place in self.parts):  # ascending, so all of them
            return _whole(sum(part.covariance for part, _ in self.parts), size)
        total = np.zeros((size, size))
        for part, place in self.parts:
            total[np.ix_(place, place)] += _whole(part.covariance, len(place))
        return total

    def tests(self) -> dict[str, float | int]:
        """P-values as of `sets.set_p_values`, of minor-allele counts."""
        scaled = self.covariance * (self.sign * self.scale)[:, None] * (self.sign * self.scale)
        sizes = np.linalg.eigvalsh(scaled)[::-1] if len(scaled) else np.zeros(0)
        return set_p_values(
            SetScores(
                self.first,
                self.second,
                self.scale,
                self.sign * self.scores,
                sizes[sizes > 1e-12 * sizes.max(initial=0.0)],
                self.covariance.diagonal(),
                self.sign * self.thirds,
                float(scaled.sum()),
                self.n_sites,
                self.freedom,
            )
        )

    def direction(self, tests: dict[str, float | int]) -> tuple[str, np.ndarray]:
        """What replication tests, by `tests` of these cohorts, and w: float64 (n_products,)."""
        if tests["p_pair"] <= tests["p_quadratic"]:
            best = (self.first == tests["site1"]) & (self.second == tests["site2"])
            return "product", np.where(best, np.sign(self.scores), 0.0)
        return "direction", self.scale**2 * self.scores


def join_statistics(parts: list[SetStatistics]) -> JoinedScores:
    """Add up the scores of a set; `parts` of cohorts in an order that does not depend on a run."""
    names = _union([part.sites for part in parts])
    people, alt, squares = (np.zeros(len(names)) for _ in range(3))
    for part in parts:
        place = np.searchsorted(names, part.sites)
        people[place] += part.n_people
        alt[place] += part.alt
        squares[place] += part.n_people * part.spread**2
    spread = np.sqrt(squares / np.maximum(people, 1))
    flipped = alt > people
    keys = [_keys(part, names) for part in parts]
    pairs = _union(keys)
    i, j = np.divmod(pairs, max(len(names), 1))
    scores, thirds = np.zeros(len(pairs)), np.zeros(len(pairs))
    places = [np.searchsorted(pairs, own) for own in keys]
    for part, place in zip(parts, places, strict=True):
        scores[place] += part.scores
        thirds[place] += part.thirds
    freedoms = [part.freedom for part in parts]
    return JoinedScores(
        names[i],
        names[j],
        np.where(flipped[i] != flipped[j], -1.0, 1.0),
        1 / (spread[i] * spread[j]),
        scores,
        thirds,
        list(zip(parts, places, strict=True)),
        len(names),
        None if None in freedoms else sum(freedoms),
    )


def _union(arrays: list[np.ndarray]) -> np.ndarray:
    """All numbers of some arrays of ascending ones, ascending."""
    if all(np.array_equal(one, arrays[0]) for one in arrays[1:]):
        return arrays[0]
    return np.unique(np.concatenate(arrays))


def _keys(part: SetStatistics, names: np.ndarray) -> np.ndarray:
    """Numbers of products, by the places of their sites in `names`."""
    place = np.searchsorted(names, part.sites)
    return place[part.i] * len(names) + place[part.j]


def _whole(triangle: np.ndarray, size: int) -> np.ndarray:
    """The symmetric matrix, float64 (size, size), of its upper triangle by rows."""
    whole = np.zeros((size, size))
    above, below = _triangles(size)
    whole.reshape(-1)[above] = triangle
    whole.reshape(-1)[below] = triangle
    return whole


@functools.lru_cache(maxsize=2)
def _triangles(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the upper triangle of a matrix, by rows, and of their mirror images."""
    i, j = np.triu_indices(size)
    return i * size + j, j * size + i


@dataclass(frozen=True)
class CohortEffect:
    """Effect b of a direction in a cohort, its standard error and one-sided p; NaN if untested."""

    effect: float
    se: float
    p: float


def effect_of(part: SetStatistics, joined: JoinedScores, direction: np.ndarray) -> CohortEffect:
    """The effect in a cohort of a direction of the products of `joined`."""
    from scipy.linalg.blas import dspmv
    from scipy.special import ndtr, stdtr

    most = int(max(joined.second.max(initial=0), part.sites.max(initial=0))) + 1
    keys = joined.first * most + joined.second  # ascending
    own = part.sites[part.i] * most + part.sites[part.j]
    w = direction
    if not np.array_equal(own, keys):
        known, w = np.isin(own, keys), np.zeros(len(own))
        w[known] = direction[np.searchsorted(keys, own[known])]
    if not w.any():
        return CohortEffect(*(float("nan"),) * 3)
    third = 0.0
    if np.count_nonzero(w) == 1:  # of a product alone, its own entry of the diagonal
        k = int(np.flatnonzero(w)[0])
        place = k * len(w) - k * (k - 1) // 2
        variance = float(w[k] * part.covariance[place] * w[k])
        third = float(w[k] ** 3 * part.thirds[k])
    else:
        variance = float(w @ dspmv(len(w), 1.0, part.covariance, w, lower=1))
    if not variance > 0:
        return CohortEffect(*(float("nan"),) * 3)
    z = float(w @ part.scores) / variance**0.5
    if part.freedom is None:
        p = max(float(ndtr(-z)), float(skewed_tail(z, third / variance**1.5)))
    else:  # exact for normal residuals
        share, left = min(z * z / part.freedom, 1 - 1e-15), part.freedom - 1
        p = float(stdtr(left, -np.sign(z) * np.sqrt(share / (1 - share) * left)))
    return CohortEffect(z / variance**0.5, variance**-0.5, p)


def combine_effects(effects: list[CohortEffect]) -> dict[str, float | int]:
    """Fixed and random effects of independent cohorts, and their heterogeneity.

    Returns
    -------
    dict
        `cohorts` that were tested; `effect`, `se`, one-sided `p` of the fixed effect;
        `effect_random`, `se_random`, `p_random`; Cochran's `q` with its `p_q`, and `i2`, from
        0 to 1. NaN of what needs more cohorts.
    """
    from scipy.special import chdtrc, ndtr

    tested = [one for one in effects if np.isfinite(one.se)]
    b, se = (np.array([getattr(one, name) for one in tested]) for name in ("effect", "se"))
    names = ("effect", "se", "p", "effect_random", "se_random", "p_random", "q", "p_q", "i2")
    found: dict[str, float | int] = {"cohorts": len(tested)} | dict.fromkeys(names, float("nan"))
    if not tested:
        return found
    weight = se**-2.0
    fixed = float(weight @ b / weight.sum())
    found |= {"effect": fixed, "se": float(weight.sum() ** -0.5)}
    # One cohort has an exact test of its own.
    found["p"] = tested[0].p if len(tested) == 1 else float(ndtr(-fixed * weight.sum() ** 0.5))
    if len(tested) < 2:
        return found
    q, freedom = float(weight @ (b - fixed) ** 2), len(tested) - 1
    spare = float(weight.sum() - (weight**2).sum() / weight.sum())
    between = max(0.0, (q - freedom) / spare)
    weight = 1 / (se**2 + between)
    random = float(weight @ b / weight.sum())
    return found | {
        "effect_random": random,
        "se_random": float(weight.sum() ** -0.5),
        "p_random": float(ndtr(-random * weight.sum() ** 0.5)),
        "q": q,
        "p_q": float(chdtrc(freedom, q)),
        "i2": max(0.0, (q - freedom) / q) if q > 0 else 0.0,
    }
