"""The test of a listed hit: p of its interaction, corrected for all tests of the scan."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .adjusted import cells_of, centred_basis, fit_offsets, grouped_table, offset_classes
from .grouped_tables_cpu import association_terms, indicators, interaction_terms
from .importance_sampling import (
    DRAWS,
    FIRST_DRAWS,
    TableNull,
    chi_square_p,
    fit_table_null,
    free_directions,
    tail_p,
)
from .relatedness import Relatives, no_relatives, score_variance, shared_risk

#: Hits with more than this by chi-square, after correction, are not drawn: no table is 600 times
#: rarer than chi-square says (tests/unit/epistasis/test_importance_sampling.py).
WORTH_DRAWING = 30.0
#: Hits with more than this, after correction, by `FIRST_DRAWS` draws and by offsets that do not
#: depend on the hit, are not drawn again: their p is no evidence.
WORTH_MORE = 3.0
#: Nor are those with less: their first draws are within a factor of 2, and no decision is so near.
CERTAIN = 1e-4


@dataclass(frozen=True)
class HitTest:
    """Test of the interaction of a combination of sites.

    The model without interaction is a logistic regression on the columns of `design`, on all
    terms of fewer than k of the sites and on a constant. p is the share of people drawn from it
    (`importance_sampling`) whose likelihood ratio is as large; relatives widen the
    distribution (`relatedness`).

    Attributes
    ----------
    case : bool array, (n_samples,)
    offset : float64 array, (n_samples,)
        The columns' part of the log-odds, without sites; NaN where a column is unknown.
    design : float64 array, (n_samples, n_columns)
        `centred_basis` of the known columns, NaN where one is unknown: such people are left out of
        the test. No columns: nothing is adjusted.
    relatives : Relatives
    risk : float
        Part of the variance of the phenotype that relatives share (`relatedness.shared_risk`).
    tests : int
        Combinations of the scan, by which p is multiplied (Bonferroni) unless `p_interaction` is
        given another number.
    """

    case: np.ndarray
    offset: np.ndarray
    design: np.ndarray
    relatives: Relatives
    risk: float
    tests: int

    @functools.cached_property
    def _known(self) -> np.ndarray:
        return np.isfinite(self.offset)

    @functools.cached_property
    def _classes(self) -> tuple[np.ndarray, np.ndarray]:
        """`offset_classes` of all known people: those of most hits."""
        return offset_classes(self.offset[self._known])

    def p_interaction(
        self, genotypes: np.ndarray, tests: float | None = None, *, rough: bool = False
    ) -> float:
        """p of the interaction of all sites, corrected for all tests: 0 < p <= 1.

        Parameters
        ----------
        genotypes : int8 array, (k, n_samples)
            ALT counts of k = 2 to 4 sites, -1 missing.
        tests : float, optional
            What p is multiplied by (`priority.correction_factors`); all tests by default.
        rough : bool
            Draw `FIRST_DRAWS` alone, with offsets that do not depend on the hit: for hits that
            another one of their locus speaks for.
        """
        tests = self.tests if tests is None else tests
        return self._p(genotypes, interaction_terms(3 ** len(genotypes)), tests, rough)

    def p_association(self, genotypes: np.ndarray, *, rough: bool = False) -> float:
        """The same of any association of the sites with the phenotype, main effects included."""
        return self._p(genotypes, association_terms(3 ** len(genotypes)), self.tests, rough)

    def _p(self, genotypes: np.ndarray, terms: np.ndarray, tests: float, rough: bool) -> float:
        used = (genotypes >= 0).all(axis=0) & self._known
        case, cell = self.case[used], cells_of(genotypes[:, used])
        if case.all() or not case.any():
            return 1.0
        whole = len(case) == np.count_nonzero(self._known)
        which, offsets = self._classes if whole else offset_classes(self.offset[used])
        table = grouped_table(cell, case, which, len(terms), len(offsets))
        if chi_square_p(table, offsets, terms) * tests > WORTH_DRAWING:
            return 1.0
        null = fit_table_null(table, offsets, terms)
        variance = self._variance(null, cell, which, used)
        p = tail_p(null, null.half, FIRST_DRAWS, variance=variance) * tests
        if p > WORTH_MORE:
            return 1.0
        if self.design.shape[1] and not rough:
            offset = fit_offsets(case, self.design[used], cell, indicators(terms))
            which, offsets = offset_classes(offset)
            table = grouped_table(cell, case, which, len(terms), len(offsets))
            null = fit_table_null(table, offsets, terms)
            variance = self._variance(null, cell, which, used)
            if p < CERTAIN:
                p = tail_p(null, null.half, FIRST_DRAWS, variance=variance) * tests
        if p >= CERTAIN and not rough:
            p = tail_p(null, null.half, DRAWS, variance=variance) * tests
        return float(f"{min(1.0, p):.4g}")  # so that rounding errors of a machine do not show

    def _variance(self, null: TableNull, cell, which, used: np.ndarray) -> np.ndarray | None:
        """Variance of the table's free directions among relatives; None if nobody is related."""
        if not (self.risk > 0 and len(self.relatives)):
            return None
        directions, risk = free_directions(null), expit(null.log_odds)[cell, which]
        scores, deviation = np.zeros((len(used), directions.shape[1])), np.zeros(len(used))
        scores[used], deviation[used] = directions[cell], np.sqrt(risk * (1 - risk))
        return score_variance(self.relatives, scores, deviation, self.risk)


def hit_test(
    case: np.ndarray,
    tests: int,
    design: np.ndarray | None = None,
    relatives: Relatives | None = None,
) -> HitTest:
    """Prepare the test of a scan's hits.

    Parameters as in `HitTest`; `design`: any columns, without a constant, NaN where unknown.
    """
    case = np.asarray(case, bool)
    design = np.zeros((len(case), 0)) if design is None else np.asarray(design, np.float64)
    relatives = no_relatives() if relatives is None else relatives
    known = np.isfinite(design).all(axis=1)
    offset, residual = np.full(len(case), np.nan), np.zeros(len(case))
    columns = np.full((len(case), 0), np.nan)
    one = np.ones((1, 1))
    if case[known].any() and not case[known].all():
        everyone = np.zeros(int(known.sum()), np.int64)
        basis = centred_basis(design[known])
        columns = np.full((len(case), basis.shape[1]), np.nan)
        columns[known] = basis
        fitted = fit_offsets(case[known], basis, everyone, one)
        share = case[known].mean()
        eta = fitted - fitted.mean() + np.log(share / (1 - share))
        p = np.clip(expit(eta), 1e-6, 1 - 1e-6)
        offset[known] = fitted
        residual[known] = (case[known] - p) / np.sqrt(p * (1 - p))
    risk = shared_risk(relatives.among(known), residual[known])
    return HitTest(case, offset, columns, relatives, risk, tests)
