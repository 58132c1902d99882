"""Interactions of a set of sites: one score test of all products of two of them.

Null model: the phenotype by a constant, covariates, and the main effects of all sites of the set,
linear for numbers, logistic for cases and controls. For products z_ij = g_i g_j of minor-allele
counts let U = Z'r be their scores (r the residuals) and V = Z'WZ - Z'WA (A'WA)^-1 A'WZ the
covariance that the null model A leaves them. W is 1 in a linear model. For cases and controls it
is p (1 - p) / (1 - h), h the leverage: fitted risks p follow chance, so that p (1 - p) is too small
by this factor on average. By the same chance U has the expectation -Z~'e, e = h (1/2 - p), with Z~
what A leaves of Z; r is y - p + e (less A's share), which Firth (1993, Biometrika 80:27) sets to 0.
D = diag(1 / (s_i s_j)), s the standard deviations of the counts, is as if sites were standardised.
Three tests (the first is that of QuadKAST; Fu et al. 2024, Genome Res 34:1294):

quadratic   Q = |D U|^2. Under the null it is a sum of chi-squares weighted by the eigenvalues of
            D V D. In a linear model Q / r'r is a ratio of two such sums, whose tail is exact
            for normal residuals; for cases and controls it holds for large samples.
burden      (1'D U)^2 / 1'D V D 1: all products in one direction; an exact t test for numbers.
pair        the best product, with p times the number of products (Bonferroni). p of one is an
            exact t test for numbers. For cases and controls U / sqrt(V) has the skewness of a sum
            of independent cases, with which |U| / sqrt(V) is compared with a shifted gamma variable
            (Pearson's type III); a normal one has too light a tail where few cases carry both
            alleles. Only products whose normal p times their number is at most 1 are looked at.

With an environment, products are those of each site with it instead; it is the site -1.

Counts and products are integers, so that their sums in float32 (of at most `PEOPLE` people) are
exact; float64 sums run in one thread, in a fixed order. Only `PEOPLE` rows of Z are in memory at a
time or, where there are more products than people, `PRODUCTS` of its columns.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from ..core.errors import UserError
from .null_model import NullModel, fit_null
from .quadratic_forms import weighted_chi_square_tail
from .set_environment import environment_design, spread_with
from .set_products import (
    EXPLAINED_COMPLETELY,
    HOST,
    Arrays,
    Carriers,
    Products,
    choose_products,
    main_effects,
    minor_counts,
)
from .set_scores import SetScores, SetStatistics
from .skewness import leading_products, skewed_tail

#: Rows and columns of the matrix of products that are in memory at a time.
PEOPLE, PRODUCTS = 512, 512
#: Most products of which a covariance is kept for other cohorts: 17 MB a set.
MOST_KEPT = 2048
#: Share of its square at which a column, or a product, is explained by others.
EXPLAINED = 1e-8
#: Smallest eigenvalue of scaled columns from which on one pass makes them orthonormal.
WELL_APART = 1e-3
#: Largest leverage by which a weight is corrected.
MOST_LEVERAGE = 0.5
#: Eigenvalues below this share of the largest one say nothing.
NO_WEIGHT = 1e-12


class _Set(NamedTuple):
    """Products of a set; basis, residuals and roots of its null model; its freedom; third cumulants
    of cases over roots to the third."""

    products: Products
    model: tuple
    freedom: int | None
    third: np.ndarray | None


class SetTests:
    """Tests of sets under one null model of the phenotype, to which each set adds its sites.

    Parameters
    ----------
    null : NullModel
        Of the covariates alone.
    dominance : bool
        Whether a main effect has a second column, for minor homozygotes. Without it, dominance of
        one site looks like an interaction of two sites in LD.
    environment : float64 array, (n_people,), optional
        Of which the products of each site are tested, instead of those of two sites. The covariates
        have its columns (`set_environment.environment_design`).
    """

    def __init__(
        self, null: NullModel, dominance: bool = True, environment: np.ndarray | None = None
    ):
        self.used, self.kind, self.dominance = null.used, null.kind, dominance
        self.response = null.response[null.used]
        n = int(null.used.sum())
        constant = np.full((n, 1), n**-0.5)  # the first column, as a logistic fit adds its own
        self.design = np.column_stack([constant, basis_of(null.design[null.used], constant)])
        self.environment = self.root = None
        if environment is not None:
            self.environment = environment[null.used] - environment[null.used].mean()
            if self.kind == "linear":
                self._weigh()

    def _weigh(self) -> None:
        """Multiply all columns, so that the spread of residuals is the same in all environments."""
        rest = self.response - self.design @ (self.design.T @ self.response)
        self.root = 1 / spread_with(self.environment, rest)
        self.response = self.response * self.root
        self.environment = self.environment * self.root
        self.design = basis_of(self.design * self.root[:, None])

    def _main(self, minor: np.ndarray) -> np.ndarray:
        """Columns of main effects of minor-allele counts (n_people, n_sites)."""
        main = main_effects(minor, self.dominance, self.carriers)
        return main if self.root is None else main * self.root[:, None]

    @property
    def carriers(self) -> Carriers:
        """Who counts for `LEAST_CARRIERS`."""
        if self.kind == "linear":
            return Carriers()
        share = float(min(self.response.mean(), 1 - self.response.mean()))
        return Carriers(share, self.response == 1)

    def scores(
        self, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None = None
    ) -> SetScores:
        """Scores of all products of two sites of a set, or of a site of each of two sets.

        Parameters
        ----------
        genotypes : int8 array, (n_people, n_sites)
            ALT counts, -1 missing, which counts as the site's most frequent genotype.
        first, second : int64 array
            Sites of the sets; without `second`, all pairs of `first` are tested.

        Raises
        ------
        UserError
            The sites separate cases from controls, leave nothing of a number to explain, or are
            too many.
        """
        found = self._set(genotypes, first, second)
        sites, _, _, g, spread, i, j = found.products
        scale, scores, eigenvalues, variances, together = (
            _by_people if len(i) <= g.shape[1] else _by_products
        )(g, (i, j), 1 / (spread[i] * spread[j]), *found.model)
        thirds = np.zeros(len(i))
        if found.third is not None:
            chosen = leading_products(scores, variances)
            thirds[chosen] = _thirds(g, (i[chosen], j[chosen]), found)
        scored = scale, scores, eigenvalues, variances, thirds, together
        return SetScores(sites[i], sites[j], *scored, int((sites >= 0).sum()), found.freedom)

    def statistics(
        self, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None = None
    ) -> SetStatistics:
        """What other cohorts need of a set; parameters and errors as of `scores`.

        Raises
        ------
        UserError
            As of `scores`, or more than `MOST_KEPT` products.
        """
        found = self._set(genotypes, first, second)
        sites, flipped, _, g, spread, i, j = found.products
        if len(i) > MOST_KEPT:
            raise UserError(
                f"a set has {len(i)} products of two of its {len(sites)} sites; covariances "
                f"of at most {MOST_KEPT} are kept for other cohorts: divide the set."
            )
        scores, covariance, known = _covariance(g, (i, j), *found.model)
        sign = np.where(flipped[i] != flipped[j], -1.0, 1.0)[known]
        covariance = covariance[np.ix_(known, known)] * sign[:, None] * sign
        alt = np.where(sites < 0, 0.0, g.sum(axis=1, dtype=np.float64))
        n = g.shape[1]
        return SetStatistics(
            sites,
            np.where(flipped, 2 * n - alt, alt).astype(np.int64),
            spread,
            i[known],
            j[known],
            sign * scores[known],
            sign * _thirds(g, (i[known], j[known]), found),
            covariance[np.triu_indices(len(sign))],
            n,
            found.freedom,
        )

    def with_response(self, response: np.ndarray) -> SetTests:
        """The tests of another phenotype, float64 (n_used,)."""
        other = copy(self)
        other.response = response
        return other

    def given(self, genotypes: np.ndarray) -> SetTests:
        """Tests whose null model also has main effects of some sites; `genotypes` as of `scores`.

        Sites that too few people carry are left out.
        """
        g, _ = minor_counts(genotypes[self.used])
        g = g[:, self.carriers.enough(g > 0)]
        other = copy(self)
        other.design = np.column_stack(
            [self.design, basis_of(main_effects(g, self.dominance, self.carriers), self.design)]
        )
        return other

    def single_sites(self, genotypes: np.ndarray) -> np.ndarray:
        """Score test (1 degree of freedom) of the count of each site: float64 (n_sites,).

        `genotypes` as of `scores`; 0 where the null model leaves nothing of a site.
        """
        g = minor_counts(genotypes[self.used])[0].astype(np.float64)
        basis, residuals, root, *_ = self._fit(g[:, :0])
        weighted = g if root is None else g * root[:, None]
        rest = weighted - basis @ (basis.T @ weighted)
        left, scores = (rest**2).sum(axis=0), residuals @ g
        known = left > EXPLAINED * (weighted**2).sum(axis=0)
        return np.where(known, scores**2 / np.where(known, left, 1.0), 0.0)

    def _set(self, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None) -> _Set:
        """The products of a set that are tested, and its null model."""
        chosen = genotypes, (first, second), self.used, self.carriers
        products = choose_products(*chosen, environment=self.environment)
        *model, freedom, third = self._fit(self._main(products.minor))
        return _Set(products, tuple(model), freedom, third)

    def _fit(self, main: np.ndarray):
        """Null model of a set: as `_Set.model`, its freedom, and `_Set.third`.

        Residuals of a linear model are in units in which r'r is the degrees of freedom.
        """
        n = len(main)
        left = basis_of(main, self.design)
        if self.kind == "linear":
            basis = np.column_stack([self.design, left])
            r = self.response - basis @ (basis.T @ self.response)
            freedom, size = n - basis.shape[1], float(self.response @ self.response)
            rest = float(r @ r)
            if freedom < 1 or rest <= 1e-20 * size:
                raise UserError(EXPLAINED_COMPLETELY)
            return basis, r * np.sqrt(freedom / rest), None, freedom, None
        columns = np.sqrt(n) * np.column_stack([self.design, left])
        null = fit_null(self.response, columns[:, 1:], "logistic")
        root = np.sqrt(null.weights)
        leverage = (basis_of(columns * root[:, None]) ** 2).sum(axis=1)
        leverage = np.minimum(leverage, MOST_LEVERAGE)
        root /= np.sqrt(1 - leverage)
        basis = basis_of(columns * root[:, None])
        shift = leverage * (0.5 - null.fitted) / root
        residuals = null.raw_residuals + root * (shift - basis @ (basis.T @ shift))
        return basis, residuals, root, None, (1 - 2 * null.fitted) / root


def prepare_sets(
    response: np.ndarray,
    design: np.ndarray,
    kind: str,
    transform: str,
    dominance: bool,
    environment: np.ndarray | None = None,
) -> SetTests:
    """Tests of sets for a phenotype; parameters as of `null_model.fit_null` and `SetTests`."""
    if environment is not None:
        people = len(response)
        if kind == "logistic":
            people = int(min(response.sum(), (1 - response).sum()))
        design, _ = environment_design(design, environment, people)
    null = fit_null(response, design, kind, transform=transform)
    return SetTests(null, dominance, environment)


def set_p_values(found: SetScores) -> dict[str, float | int]:
    """P-values of a set: `p_quadratic`, `p_burden`, `p_pair`, `p` and the best pair.

    `p` is twice the smaller of `p_quadratic` and `p_pair`, at most 1. NaN if nothing is tested.
    """
    from scipy.special import chdtrc, stdtr

    scaled = found.scale * found.scores
    known = found.variances > 0
    if not known.any() or not len(found.eigenvalues):
        nothing = dict.fromkeys(("p", "p_quadratic", "p_burden", "p_pair"), float("nan"))
        return nothing | {"site1": -1, "site2": -1}

    def single(chi2: float) -> float:
        if found.freedom is None:
            return float(chdtrc(1, chi2))
        share = min(chi2 / found.freedom, 1 - 1e-15)
        left = found.freedom - 1
        return float(2 * stdtr(left, -np.sqrt(share / (1 - share) * left)))

    q, weights = float(scaled @ scaled), found.eigenvalues
    degrees = np.ones(len(weights))
    if found.freedom is None:
        quadratic = weighted_chi_square_tail(weights, degrees, q)
    else:
        ratio, rest = q / found.freedom, found.freedom - len(weights)
        quadratic = weighted_chi_square_tail(
            np.append(weights - ratio, -ratio), np.append(degrees, rest), 0.0
        )
    chi2 = np.where(known, found.scores**2 / np.where(known, found.variances, 1.0), 0.0)
    best = int(np.argmax(chi2))
    pair = min(1.0, single(chi2[best]) * int(known.sum()))
    leading = np.flatnonzero(leading_products(found.scores, found.variances))
    if found.freedom is None and len(leading):
        size, skewness = np.sqrt(chi2[leading]), found.thirds[leading]
        skewness = skewness / found.variances[leading] ** 1.5
        p = skewed_tail(size, skewness) + skewed_tail(size, -skewness)
        best, pair = int(leading[np.argmin(p)]), min(1.0, float(p.min()) * int(known.sum()))
    burden = float("nan")
    if found.together > 0:
        burden = single(scaled.sum() ** 2 / found.together)
    return {
        "p": min(1.0, 2 * min(quadratic, pair)),
        "p_quadratic": quadratic,
        "p_burden": burden,
        "p_pair": pair,
        "site1": int(found.first[best]),
        "site2": int(found.second[best]),
    }


def basis_of(columns, given=None, arrays: Arrays = HOST):
    """Orthonormal columns of what is left of `columns` beside orthonormal ones: (n, rank).

    A direction is left out if all but `EXPLAINED` of its square is explained by others. A second
    pass removes the rounding errors of the first one where columns are nearly dependent.
    """
    norms = np.sqrt((columns**2).sum(axis=0))
    columns = columns / np.where(norms > 0, norms, 1.0)
    for limit in (EXPLAINED, 0.5):
        if given is not None:
            columns = columns - given @ (given.T @ columns)
        sizes, ways = np.linalg.eigh(arrays.fetch(columns.T @ columns))
        kept = sizes > limit
        columns = columns @ arrays.send(ways[:, kept] / np.sqrt(sizes[kept]))
        if sizes[kept].min(initial=1.0) > WELL_APART:
            break
    return columns


def _covariance(g, pairs, basis, residuals, root):
    """U and V of products from their matrix, and whether the null model leaves anything of each."""
    i, j = pairs
    exact, gram = root is None, np.zeros((len(i),) * 2)
    root = np.ones(len(residuals)) if exact else root
    right = np.column_stack([basis, residuals / root])
    cross = np.zeros((len(i), right.shape[1]))
    for start in range(0, g.shape[1], PEOPLE):
        rows = slice(start, start + PEOPLE)
        z = g[i, rows] * g[j, rows]
        whole = z * root[rows]
        gram += z @ z.T if exact else whole @ whole.T  # of integers, sums are exact
        cross += whole @ right[rows]
    scores, cross = cross[:, -1], cross[:, :-1]
    squares = gram.diagonal().copy()
    gram -= cross @ cross.T
    return scores, gram, gram.diagonal() > EXPLAINED * squares


def _thirds(g, pairs, found: _Set) -> np.ndarray:
    """Third cumulants of the scores of products: sums of z~^3 p (1 - p) (1 - 2 p) / (1 - h)."""
    i, j = pairs
    basis, _, root = found.model
    thirds = np.zeros(len(i))
    if found.third is None or not len(i):
        return thirds
    chunks = [slice(start, start + PEOPLE) for start in range(0, g.shape[1], PEOPLE)]
    cross = np.zeros((len(i), basis.shape[1]))
    for rows in chunks:
        cross += (g[i, rows] * g[j, rows] * root[rows]) @ basis[rows]
    for rows in chunks:
        rest = g[i, rows] * g[j, rows] * root[rows] - cross @ basis[rows].T
        thirds += (rest * rest * rest) @ found.third[rows]  # a power takes ten times as long
    return thirds


def _by_people(g, pairs, scale, basis, residuals, root):
    """Scale, scores, eigenvalues, variances and `together` from the matrix of products."""
    scores, gram, known = _covariance(g, pairs, basis, residuals, root)
    variances = gram.diagonal().copy()
    variances[~known], scale = 0.0, np.where(known, scale, 0.0)
    scaled = gram * scale[:, None] * scale
    sizes = np.linalg.eigvalsh(scaled)
    return scale, scores, positive_sizes(sizes), variances, float(scaled.sum())


def _by_products(g, pairs, scale, basis, residuals, root):
    """The same from the matrix of people, for fewer people than products."""
    i, j = pairs
    n = g.shape[1]
    scores, variances, scale = np.zeros(len(i)), np.zeros(len(i)), scale.copy()
    people, total = np.zeros((n, n)), np.zeros(n)
    for start in range(0, len(i), PRODUCTS):
        part = slice(start, start + PRODUCTS)
        z = (g[i[part]] * g[j[part]]).astype(np.float64)
        scores[part] = z @ residuals
        if root is not None:
            z *= root
        squares = (z**2).sum(axis=1)
        z -= (z @ basis) @ basis.T
        variances[part] = (z**2).sum(axis=1)
        known = variances[part] > EXPLAINED * squares
        variances[part] *= known
        scale[part] *= known
        z *= scale[part, None]
        people += z.T @ z
        total += z.sum(axis=0)
    sizes = np.linalg.eigvalsh(people)
    return scale, scores, positive_sizes(sizes), variances, float(total @ total)


def positive_sizes(sizes: np.ndarray) -> np.ndarray:
    """Eigenvalues without those that are rounding errors, the largest first."""
    return sizes[sizes > NO_WEIGHT * max(sizes[-1], 0.0)][::-1] if len(sizes) else sizes
