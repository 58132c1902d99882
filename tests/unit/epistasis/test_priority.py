"""Correction for the tests of a scan that depends on main effects: valid, and what it costs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from popdesic.epistasis.interaction import class_information, interaction_statistics
from popdesic.epistasis.power import cell_probabilities, draw_tables
from popdesic.epistasis.priority import SHARE, correction_factors, ranks_of_main_effects


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("n_sites", [3, 4, 5, 8, 9, 33])
def test_shares_of_all_combinations_sum_to_one(order, n_sites):
    last = [c[-1] for c in itertools.combinations(range(1, n_sites + 1), order)]
    tests = correction_factors(np.array(last), n_sites, order)
    assert (1 / tests).sum() == pytest.approx(1)
    assert (np.diff(tests[np.argsort(last, kind="stable")]) >= -1e-9).all()


def test_what_it_gives_and_costs():
    n = 500_000
    tests = correction_factors(np.array([2, 1000, n]), n, 2)
    assert tests[0] == pytest.approx(180, rel=0.01)
    assert tests[1] < 1e8 < tests[2] < math.comb(n, 2) / (1 - SHARE)


def test_ranks():
    assert ranks_of_main_effects(np.array([0.5, 9.0, 0.5, 2.0])).tolist() == [3, 1, 4, 2]


def test_interaction_is_independent_of_main_effects_under_the_null():
    """Additive model: LR is as large among the studies of strong main effects as among others."""
    risk = 1 / (1 + np.exp(1 - 0.3 * np.add.outer(np.arange(3), np.arange(3)).ravel()))
    cells = cell_probabilities([0.3, 0.4], risk)
    tables = draw_tables(cells, 600, 500, 20_000, np.random.default_rng(1))
    tables = tables.swapaxes(0, 1).reshape(-1, 2, 3, 3)
    lr = interaction_statistics(tables)
    for axis in (2, 3):
        strength = class_information(tables.sum(axis=axis))
        strong = strength > np.quantile(strength, 0.9)
        for level in (0.05, 0.005):
            limit = np.quantile(lr, 1 - level)
            error = math.sqrt(level / strong.sum())
            assert (lr[strong] > limit).mean() == pytest.approx(level, abs=4 * error)
