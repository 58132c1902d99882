"""Interactions of a set of sites: one score test of all products of two of them.

Null model: the phenotype by a constant, covariates, and the main effects of all sites of the set,
linear for numbers, logistic for cases and controls. For products z_ij = g_i g_j of minor-allele
counts let U = Z'r be their scores (r the residuals) and V = Z'WZ - Z'WA (A'WA)^-1 A'WZ the
covariance that the null model A leaves them. W is 1 in a linear model. For cases and controls it
is p (1 - p) / (1 - h), h the leverage: fitted risks p follow chance, so that p (1 - p) is too small
by this factor on average. D = diag(1 / (s_i s_j)), s the standard deviations of the counts, is as
if sites were standardised. Three tests (the first is that of QuadKAST; Fu et al. 2024, Genome Res
34:1294):

quadratic   Q = |D U|^2. Under the null it is a sum of chi-squares weighted by the eigenvalues of
            D V D. In a linear model Q / r'r is a ratio of two such sums, whose tail is exact
            for normal residuals; for cases and controls it holds for large samples.
burden      (1'D U)^2 / 1'D V D 1: all products in one direction; an exact t test for numbers.
pair        the best U_ij^2 / V_ij,ij, with p times the number of products (Bonferroni).

Counts and products are integers, so that their sums in float32 (of at most `PEOPLE` people) are
exact; float64 sums run in one thread, in a fixed order. Only `PEOPLE` rows of Z are in memory at a
time or, where there are more products than people, `PRODUCTS` of its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.errors import UserError
from .null_model import NullModel, fit_null
from .quadratic_forms import weighted_chi_square_tail

#: Rows and columns of the matrix of products that are in memory at a time.
PEOPLE, PRODUCTS = 512, 512
#: Most people or products, whichever are fewer, that a set may have: a matrix of 0.5 GB.
MOST_ROWS = 8192
#: Most sites that a set may have: their main effects and pairs take 2.5 GB.
MOST_SITES = 4096
#: Most products of which a covariance is kept for other cohorts: 17 MB a set.
MOST_KEPT = 2048
#: A site is left out if fewer people carry its minor allele, of cases or of controls; so are the
#: minor homozygotes of its main effect, and a product in people with both minor alleles.
LEAST_CARRIERS = 5
#: Share of its square at which a column, or a product, is explained by others.
EXPLAINED = 1e-8
#: Smallest eigenvalue of scaled columns from which on one pass makes them orthonormal.
WELL_APART = 1e-3
#: Largest leverage by which a weight is corrected.
MOST_LEVERAGE = 0.5
#: Eigenvalues below this share of the largest one say nothing.
NO_WEIGHT = 1e-12


@dataclass(frozen=True)
class SetScores:
    """Scores of the products of a set.

    Attributes
    ----------
    first, second : int64 array, (n_products,)
        Sites of each product.
    scale : float64 array, (n_products,)
        Diagonal of D.
    scores : float64 array, (n_products,)
        U; of numbers in units of the residuals' standard deviation.
    eigenvalues : float64 array, (n_eigenvalues,)
        Of D V D.
    variances : float64 array, (n_products,)
        Diagonal of V.
    together : float64
        1'D V D 1.
    n_sites : int
        Sites that were tested.
    freedom : int or None
        Degrees of freedom of the residuals of a linear model.
    """

    first: np.ndarray
    second: np.ndarray
    scale: np.ndarray
    scores: np.ndarray
    eigenvalues: np.ndarray
    variances: np.ndarray
    together: float
    n_sites: int
    freedom: int | None


@dataclass(frozen=True)
class SetStatistics:
    """Scores of a set in one cohort, and their covariance, for ALT counts of its sites.

    With a count, 2 less the count has the same null model, and the score of its product the other
    sign. So scores of cohorts with different minor alleles add up.

    Attributes
    ----------
    sites : int64 array, (n_sites,)
        That were tested, ascending.
    alt : int64 array, (n_sites,)
        ALT alleles in these people.
    spread : float64 array, (n_sites,)
        Standard deviations of the counts.
    i, j : int64 array, (n_products,)
        Places in `sites` of the sites of each product, i < j.
    scores : float64 array, (n_products,)
        U; of numbers in units of the residuals' standard deviation.
    covariance : float64 array, (n_products * (n_products + 1) / 2,)
        Upper triangle of V, by rows.
    n_people : int
    freedom : int or None
        As of `SetScores`.
    """

    sites: np.ndarray
    alt: np.ndarray
    spread: np.ndarray
    i: np.ndarray
    j: np.ndarray
    scores: np.ndarray
    covariance: np.ndarray
    n_people: int
    freedom: int | None


class _Products(NamedTuple):
    """Sites, whether they were flipped, counts float32 (n_sites, n_people), their spread; places of
    the sites of each product; basis, residuals and roots of the null model; its freedom."""

    sites: np.ndarray
    flipped: np.ndarray
    counts: np.ndarray
    spread: np.ndarray
    i: np.ndarray
    j: np.ndarray
    model: tuple
    freedom: int | None


class SetTests:
    """Tests of sets under one null model of the phenotype, to which each set adds its sites.

    Parameters
    ----------
    null : NullModel
        Of the covariates alone.
    dominance : bool
        Whether a main effect has a second column, for minor homozygotes. Without it, dominance of
        one site looks like an interaction of two sites in LD.
    """

    def __init__(self, null: NullModel, dominance: bool = True):
        self.used, self.kind, self.dominance = null.used, null.kind, dominance
        self.response = null.response[null.used]
        n = int(null.used.sum())
        constant = np.full((n, 1), n**-0.5)  # the first column, as a logistic fit adds its own
        self.design = np.column_stack([constant, _basis(null.design[null.used], constant)])

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
        found = self._products(genotypes, first, second)
        g, i, j, spread = found.counts, found.i, found.j, found.spread
        scored = (_by_people if len(i) <= g.shape[1] else _by_products)(
            g, (i, j), 1 / (spread[i] * spread[j]), *found.model
        )
        sites = found.sites
        return SetScores(sites[i], sites[j], *scored, len(sites), found.freedom)

    def statistics(
        self, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None = None
    ) -> SetStatistics:
        """What other cohorts need of a set; parameters and errors as of `scores`.

        Raises
        ------
        UserError
            As of `scores`, or more than `MOST_KEPT` products.
        """
        found = self._products(genotypes, first, second)
        i, j = found.i, found.j
        if len(i) > MOST_KEPT:
            raise UserError(
                f"a set has {len(i)} products of two of its {len(found.sites)} sites; covariances "
                f"of at most {MOST_KEPT} are kept for other cohorts: divide the set."
            )
        scores, covariance, known = _covariance(found.counts, (i, j), *found.model)
        sign = np.where(found.flipped[i] != found.flipped[j], -1.0, 1.0)[known]
        covariance = covariance[np.ix_(known, known)] * sign[:, None] * sign
        alt = found.counts.sum(axis=1, dtype=np.float64)
        n = found.counts.shape[1]
        return SetStatistics(
            found.sites,
            np.where(found.flipped, 2 * n - alt, alt).astype(np.int64),
            found.spread,
            i[known],
            j[known],
            sign * scores[known],
            covariance[np.triu_indices(len(sign))],
            n,
            found.freedom,
        )

    def _products(
        self, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None
    ) -> _Products:
        """The products of a set that are tested, and its null model."""
        sites = np.unique(first if second is None else np.concatenate([first, second]))
        g, flipped = _minor_counts(genotypes[:, sites][self.used])
        kept = self._carried(g > 0)
        sites, g, flipped = sites[kept], g[:, kept], flipped[kept]
        if len(sites) > MOST_SITES:
            raise UserError(
                f"a set has {len(sites)} sites; at most {MOST_SITES} are tested together: divide "
                "the set."
            )
        main = g.astype(np.float64)
        if self.dominance:
            main = np.column_stack([main, (g == 2)[:, self._carried(g == 2)]])
        basis, residuals, root, freedom = self._fit(main)
        i, j = _pairs(sites, first, second)
        if min(len(i), len(g)) > MOST_ROWS:
            raise UserError(
                f"a set has {len(i)} products of two of its {len(sites)} sites in {len(g)} samples;"
                f" at most {MOST_ROWS} products, or samples, are tested together: divide the set."
            )
        g = np.ascontiguousarray(g.T, np.float32)
        spread = g.std(axis=1, dtype=np.float64)
        carriers = (g > 0).astype(np.float32)  # people with both minor alleles: exact up to 2^24
        groups = [carriers]
        if self.kind == "logistic":
            groups = [carriers[:, self.response == c] for c in (0, 1)]
        both = np.min([group @ group.T for group in groups], axis=0)
        varied = spread[i] * spread[j] > 0  # not where all are heterozygous
        carried = (both[i, j] >= LEAST_CARRIERS) & varied
        model = basis, residuals, root
        return _Products(sites, flipped, g, spread, i[carried], j[carried], model, freedom)

    def _carried(self, carriers: np.ndarray) -> np.ndarray:
        """Whether enough people of each class carry it: bool (n_columns,)."""
        groups = [carriers]
        if self.kind == "logistic":
            groups = [carriers[self.response == c] for c in (0, 1)]
        return np.all([group.sum(axis=0) >= LEAST_CARRIERS for group in groups], axis=0)

    def _fit(self, main: np.ndarray):
        """Null model of a set: orthonormal weighted columns, residuals, roots of weights, freedom.

        Those of a linear model are in units in which r'r is the degrees of freedom.
        """
        n = len(main)
        left = _basis(main, self.design)
        if self.kind == "linear":
            basis = np.column_stack([self.design, left])
            r = self.response - basis @ (basis.T @ self.response)
            freedom, size = n - basis.shape[1], float(self.response @ self.response)
            rest = float(r @ r)
            if freedom < 1 or rest <= 1e-20 * size:
                raise UserError("the sites of a set explain the phenotype completely.")
            return basis, r * np.sqrt(freedom / rest), None, freedom
        columns = np.sqrt(n) * np.column_stack([self.design, left])
        null = fit_null(self.response, columns[:, 1:], "logistic")
        root = np.sqrt(null.weights)
        leverage = (_basis(columns * root[:, None]) ** 2).sum(axis=1)
        root /= np.sqrt(1 - np.minimum(leverage, MOST_LEVERAGE))
        return _basis(columns * root[:, None]), null.raw_residuals, root, None


def prepare_sets(
    response: np.ndarray, design: np.ndarray, kind: str, transform: str, dominance: bool
) -> SetTests:
    """Tests of sets for a phenotype; parameters as of `null_model.fit_null`."""
    return SetTests(fit_null(response, design, kind, transform=transform), dominance)


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

    def single(chi2: np.ndarray) -> np.ndarray:
        if found.freedom is None:
            return chdtrc(1, chi2)
        share = np.minimum(chi2 / found.freedom, 1 - 1e-15)
        left = found.freedom - 1
        return 2 * stdtr(left, -np.sqrt(share / (1 - share) * left))

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
    pair = min(1.0, float(single(chi2[best])) * int(known.sum()))
    burden = float("nan")
    if found.together > 0:
        burden = float(single(scaled.sum() ** 2 / found.together))
    return {
        "p": min(1.0, 2 * min(quadratic, pair)),
        "p_quadratic": quadratic,
        "p_burden": burden,
        "p_pair": pair,
        "site1": int(found.first[best]),
        "site2": int(found.second[best]),
    }


def _minor_counts(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the minor allele, int8 (n_people, n_sites), the most frequent where missing; and
    whether REF is the minor one, bool (n_sites,)."""
    counts = np.stack([(genotypes == c).sum(axis=0) for c in range(3)])
    filled = np.where(genotypes < 0, counts.argmax(axis=0).astype(np.int8), genotypes)
    flipped = filled.mean(axis=0) > 1
    return np.where(flipped, 2 - filled, filled).astype(np.int8), flipped


def _pairs(
    sites: np.ndarray, first: np.ndarray, second: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Places in `sites` of the sites of each product, the smaller first, each product once."""
    i, j = np.triu_indices(len(sites), 1)
    if second is None:
        return i, j
    a, b = np.isin(sites, first), np.isin(sites, second)
    kept = (a[i] & b[j]) | (a[j] & b[i])
    return i[kept], j[kept]


def _basis(columns: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
    """Orthonormal columns of what is left of `columns` beside orthonormal ones: (n, rank).

    A direction is left out if all but `EXPLAINED` of its square is explained by others. A second
    pass removes the rounding errors of the first one where columns are nearly dependent.
    """
    norms = np.sqrt((columns**2).sum(axis=0))
    columns = columns / np.where(norms > 0, norms, 1.0)
    for limit in (EXPLAINED, 0.5):
        if given is not None:
            columns = columns - given @ (given.T @ columns)
        sizes, ways = np.linalg.eigh(columns.T @ columns)
        kept = sizes > limit
        columns = columns @ (ways[:, kept] / np.sqrt(sizes[kept]))
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


def _by_people(g, pairs, scale, basis, residuals, root):
    """Scale, scores, eigenvalues, variances and `together` from the matrix of products."""
    scores, gram, known = _covariance(g, pairs, basis, residuals, root)
    variances = gram.diagonal().copy()
    variances[~known], scale = 0.0, np.where(known, scale, 0.0)
    scaled = gram * scale[:, None] * scale
    sizes = np.linalg.eigvalsh(scaled)
    return scale, scores, _positive(sizes), variances, float(scaled.sum())


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
    return scale, scores, _positive(sizes), variances, float(total @ total)


def _positive(sizes: np.ndarray) -> np.ndarray:
    """Eigenvalues without those that are rounding errors, the largest first."""
    return sizes[sizes > NO_WEIGHT * max(sizes[-1], 0.0)][::-1] if len(sizes) else sizes
