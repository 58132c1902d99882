"""Correction for the tests of a scan that depends on main effects: valid, and what it costs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from oracles.epistasis import class_information
from scipy import stats

from popdesic.core.tables import write_table
from popdesic.epistasis.interaction import interaction_statistics
from popdesic.epistasis.power import cell_probabilities, draw_tables
from popdesic.epistasis.priority import (
    SHARE,
    correction_factors,
    log_tail,
    ranks_of_main_effects,
    read_strength,
)


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


def test_combinations_without_a_part_leave_the_others_as_they_are():
    last = np.array([2, 2, 9])
    some, every = (correction_factors(last, 9, 2, shared) for shared in ([False, True, True], None))
    assert some[0] == pytest.approx(36 / (1 - SHARE)) and (some[1:] == every[1:]).all()


def test_tails_of_chi_square():
    half = np.array([-1.0, 0, 0.3, 5, 299, 301, 330, 600, 690])
    for freedom in range(1, 9):
        found = log_tail(half, np.full(len(half), freedom))
        np.testing.assert_allclose(found, stats.chi2.logsf(2 * half, freedom), rtol=1e-9, atol=1e-9)
    assert log_tail(np.array([5000.0]), np.array([2])) == pytest.approx(-5000)  # exact: exp(-half)
    assert log_tail(np.array([7.0]), np.array([0])) == 0


def test_strength_is_read_in_the_order_of_the_scan(tmp_path):
    """The table is in panel order; a site that does not vary has no strength."""
    chi2, freedom = [3.0, np.nan, 9.0, 8.0], [1, 0, 2, 1]
    table = {"id": list("abcd"), "genotypic_chi2": chi2, "genotypic_df": freedom}
    write_table(tmp_path / "sites.tsv", pd.DataFrame(table))
    found = read_strength(tmp_path / "sites.tsv", np.array([7, 9, 5, 8]))  # panel rows of a scan
    want = -stats.chi2.logsf([3.0, 9.0, 8.0], [1, 2, 1])
    np.testing.assert_allclose(found, [-1, want[2], want[0], want[1]])


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
