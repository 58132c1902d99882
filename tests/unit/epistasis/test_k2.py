"""K2, and K2 excess, which is 0 on average where genotypes do not matter."""

from __future__ import annotations

from math import lgamma

import numpy as np
import pytest
from oracles import epistasis as oracle
from scipy.special import xlog1py, xlogy

from popdesic.epistasis import k2_null
from popdesic.epistasis.k2_null import exact_excess, excess_of_cells
from popdesic.epistasis.scores import scale_bits, score_tables, table_cost

#: Half of a unit of the last place that `excess_of_cells` keeps.
ROUNDED = 2.0**-21 * 1.0001


def slow_excess(n: int, n_controls: int, n_cases: int) -> float:
    r = n_cases / (n_controls + n_cases)
    return -n * (xlogy(r, r) + xlog1py(1 - r, -r)) - oracle.mean_log_ways(n, n_controls, n_cases)


@pytest.mark.parametrize(
    "classes", [(1, 1), (3, 2), (1, 40), (33, 31), (1000, 3), (500, 500), (70, 900)]
)
def test_excess_equals_the_sum_over_all_draws(classes):
    found = excess_of_cells(*classes)
    sizes = np.unique(np.linspace(0, sum(classes), 50).astype(int))
    want = [slow_excess(n, *classes) for n in sizes]
    np.testing.assert_allclose(found[sizes], want, rtol=0, atol=ROUNDED + 1e-9)
    assert found[0] == 0.0 and (found >= 0).all()


@pytest.mark.parametrize("classes", [(30_000, 20_000), (99_900, 100), (200_000, 3), (5, 60_000)])
def test_interpolation_is_exact_enough(classes):
    n = np.random.default_rng(1).integers(k2_null.DENSE, sum(classes), 60)
    n = np.unique([*n, k2_null.DENSE, k2_null.DENSE + 1, sum(classes) - 1, sum(classes)])
    found = excess_of_cells(*classes)[n]
    np.testing.assert_allclose(found, exact_excess(n, *classes), rtol=0, atol=ROUNDED + 1e-8)


def test_classes_without_people_have_no_excess():
    assert not excess_of_cells(7, 0).any() and not excess_of_cells(0, 7).any()
    total, part = score_tables("k2_excess", 0, 7)
    assert np.array_equal(total, part)


@pytest.mark.parametrize("maf", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_the_mean_under_permutation_is_zero(maf, missing):
    """Of pairs and triples; without centring it was +3.0 nats for pairs at MAF 0.02, +14 at 0.5."""
    n0, n1 = 700, 300
    rng = np.random.default_rng(2)
    tables, unit = score_tables("k2_excess", n0, n1), 2.0 ** scale_bits(n0 + n1)
    for order in (2, 3):
        cell = 3 ** np.arange(order) @ rng.binomial(2, maf, (order, n0 + n1))
        cell[rng.random(n0 + n1) < missing] = -1
        costs = []
        for _ in range(3000):
            case = rng.permutation(n0 + n1) < n1
            drawn = [
                np.bincount(cell[(cell >= 0) & (case == kind)], minlength=3**order)
                for kind in (False, True)
            ]
            costs.append(int(table_cost(np.array(drawn), *tables)) / unit)
        error = np.std(costs) / np.sqrt(len(costs))
        assert abs(np.mean(costs)) < 4 * error and error < 0.1
        assert np.mean(costs) == pytest.approx(0, abs=0.3)


def test_k2_is_the_published_formula():
    """Sum over cells of ln (n + 1)! - ln n0! - ln n1!, less that of all samples in one cell."""
    rng = np.random.default_rng(3)
    tables, unit = score_tables("k2", 300, 150), 2.0 ** scale_bits(450)
    for n_cells in (9, 27):
        controls = rng.multinomial(300, rng.dirichlet(np.full(n_cells, 0.3)))
        cases = rng.multinomial(150, rng.dirichlet(np.full(n_cells, 0.3)))

        def k2(n0, n1):
            exact = [
                lgamma(a + b + 2) - lgamma(a + 1) - lgamma(b + 1)
                for a, b in zip(n0, n1, strict=True)
            ]
            return sum(exact)

        found = int(table_cost(np.array([controls, cases]), *tables)) / unit
        assert found == pytest.approx(k2(controls, cases) - k2([300], [150]), abs=1e-8)
