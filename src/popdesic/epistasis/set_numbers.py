"""Tests of sets for several numbers of the same people, which share all but the residuals.

The statistics are those of `sets.py`. Null model, products, their covariance and its eigenvalues
depend on genotypes and covariates alone; of each number there are only the residuals r and the
scores U = Z'r. So 52 numbers cost little more than one until p is computed.

It is written for NumPy and CuPy alike (`set_products.Arrays`; `set_numbers_gpu.py`). Sums of
products are of integers below 2^24 in float32, exact in any order. Others are in float64; their
order differs between devices and with the count of numbers, which changes p by rounding, below 1e-9
of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UserError
from .set_products import (
    EXPLAINED_COMPLETELY,
    HOST,
    Arrays,
    Carriers,
    choose_products,
    main_effects,
    pairs_of,
    sites_of,
)
from .set_scores import SetScores
from .sets import EXPLAINED, PEOPLE, SetTests, basis_of, positive_sizes

#: People whose products are in memory at a time on a GPU: with counts of at most 4, sums of their
#: squares stay below 2^24, to which float32 is exact.
PEOPLE_ON_GPU = 1 << 16


class _Shared(NamedTuple):
    """Of a set, on the host: sites, spread of their counts, places of the sites of each product,
    covariance V, which products the null model leaves, degrees of freedom; of each number the
    scores (n_products, n_numbers), and whether the sites leave anything of it."""

    sites: np.ndarray
    spread: np.ndarray
    i: np.ndarray
    j: np.ndarray
    covariance: np.ndarray
    known: np.ndarray
    freedom: int
    scores: np.ndarray
    left: np.ndarray


class NumberTests:
    """Tests of sets for several numbers under one design.

    Parameters
    ----------
    tests : list of SetTests
        Of numbers, with the same people and covariates.
    arrays : Arrays
        Where they are computed.
    """

    def __init__(self, tests: list[SetTests], arrays: Arrays = HOST):
        self.tests, self.arrays = tests, arrays
        self.used, self.dominance = tests[0].used, tests[0].dominance
        self.people = PEOPLE if arrays is HOST else PEOPLE_ON_GPU
        with arrays.use():
            self.design = arrays.send(tests[0].design)
            self.responses = arrays.send(np.column_stack([one.response for one in tests]))

    def scores(
        self, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None = None
    ) -> list[SetScores | UserError]:
        """Scores of a set for each number, or why it cannot be tested.

        Parameters as of `SetTests.scores`.

        Raises
        ------
        UserError
            The sites are too many.
        """
        sites = sites_of(first, second)
        if len(pairs_of(sites, first, second)[0]) > int(self.used.sum()):
            return [_scores_of_one(one, genotypes, first, second) for one in self.tests]
        with self.arrays.use():
            shared = self._shared(genotypes, first, second)
        i, j, spread = shared.i, shared.j, shared.spread
        variances = np.where(shared.known, shared.covariance.diagonal(), 0.0)
        scale = np.where(shared.known, 1 / (spread[i] * spread[j]), 0.0)
        scaled = shared.covariance * scale[:, None] * scale
        eigenvalues, together = positive_sizes(np.linalg.eigvalsh(scaled)), float(scaled.sum())
        nothing = UserError(EXPLAINED_COMPLETELY)
        return [
            SetScores(
                *(shared.sites[i], shared.sites[j], scale, np.ascontiguousarray(scores)),
                *(eigenvalues, variances, np.zeros(len(i)), together),
                *(len(shared.sites), shared.freedom),
            )
            if left
            else nothing
            for scores, left in zip(shared.scores.T, shared.left, strict=True)
        ]

    def _shared(
        self, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None
    ) -> _Shared:
        xp, send, fetch, _ = self.arrays
        chosen = choose_products(genotypes, (first, second), self.used, Carriers(), self.arrays)
        sites, _, minor, counts, spread, i, j = chosen
        if not len(i):
            numbers = len(self.tests)
            nothing = np.zeros((0, 0)), np.zeros(0, bool), 1, np.zeros((0, numbers))
            return _Shared(sites, spread, i, j, *nothing, np.ones(numbers, bool))
        main = main_effects(minor, self.dominance, Carriers(), self.arrays)
        right, freedom, left = self._residuals(main)
        gram, cross = xp.zeros((len(i), len(i))), xp.zeros((len(i), right.shape[1]))
        on_i, on_j = send(i), send(j)
        for start in range(0, len(minor), self.people):
            part = counts[:, start : start + self.people]
            z = part[on_i] * part[on_j]
            gram += z @ z.T
            cross += z.astype(xp.float64) @ right[start : start + self.people]
        rank = right.shape[1] - len(self.tests)
        squares = fetch(gram.diagonal())
        gram -= cross[:, :rank] @ cross[:, :rank].T
        covariance = fetch(gram)
        known = covariance.diagonal() > EXPLAINED * squares
        scores = fetch(cross[:, rank:])
        return _Shared(sites, spread, i, j, covariance, known, freedom, scores, left)

    def _residuals(self, main: Any) -> tuple[Any, int, np.ndarray]:
        """Basis of the null model and residuals of each number, side by side; their degrees of
        freedom; whether anything is left of each number. `main`: columns of main effects."""
        xp, send, fetch, _ = self.arrays
        basis = xp.concatenate([self.design, basis_of(main, self.design, self.arrays)], axis=1)
        residuals = self.responses - basis @ (basis.T @ self.responses)
        freedom = len(main) - basis.shape[1]
        rest = fetch((residuals**2).sum(axis=0))
        sizes = fetch((self.responses**2).sum(axis=0))
        left = (rest > 1e-20 * sizes) & (freedom >= 1)
        residuals = residuals * send(np.sqrt(max(freedom, 1) / np.where(left, rest, 1.0)))
        return xp.concatenate([basis, residuals], axis=1), freedom, left


def _scores_of_one(
    tests: SetTests, genotypes: np.ndarray, first: np.ndarray, second: np.ndarray | None
) -> SetScores | UserError:
    try:
        return tests.scores(genotypes, first, second)
    except UserError as error:
        return error
