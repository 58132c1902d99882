"""Tails of weighted sums of chi-squares equal closed forms and mixtures, however far out."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import prod

import numpy as np
import pytest
from oracles import sets as oracle
from scipy import stats

from popdesic.epistasis.quadratic_forms import weighted_chi_square_tail as tail

EXACT = 1e-9


@pytest.mark.parametrize("degrees", [1, 2, 5, 50, 300])
def test_equal_weights_are_a_chi_square(degrees):
    for x in (0.01, 0.5, 3, 50, 200, 1000):
        # weights that differ in the last digits take the integral, equal ones do not
        for weights in ([2.0, 2 - 4e-15], [2.0, 2.0]):
            found = tail(np.array(weights), np.full(2, degrees / 2), 2 * x)
            expected = stats.chi2.sf(x, degrees)
            assert found == pytest.approx(expected, rel=EXACT, abs=1e-300)


@pytest.mark.parametrize("freedom", [1, 2, 20, 1000, 100_000])
def test_a_ratio_has_the_f_distribution(freedom):
    for degrees in (1, 3, 40):
        for x in (0.01, 1, 10, 50):
            found = tail(np.array([1 / degrees, -x / freedom]), np.array([degrees, freedom]), 0.0)
            assert found == pytest.approx(stats.f.sf(x, degrees, freedom), rel=EXACT)


@pytest.mark.parametrize("x", [0.01, 1, 5, 20, 60, 200, 1000])
def test_pairs_of_degrees_equal_the_closed_form(x):
    """Sums of exponential variables, in 90 digits: p from 1 down to 1e-217."""
    weights = [1.0, 0.7, 0.5, 0.2, 0.1, 0.01]
    with localcontext() as context:
        context.prec = 90
        w = [Decimal(one) for one in weights]
        expected = sum(
            (-Decimal(x) / (2 * a)).exp() * prod(a / (a - b) for b in w if b != a) for a in w
        )
    assert tail(np.array(weights), np.full(6, 2.0), x) == pytest.approx(float(expected), rel=EXACT)


@pytest.mark.parametrize("seed", range(4))
def test_uneven_weights_equal_rubens_mixture(seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.02, 1, 5 + 10 * seed)
    for times in (0.5, 1, 3, 8):
        x = times * weights.sum()
        expected = oracle.tail(weights, x)
        assert tail(weights, np.ones(len(weights)), x) == pytest.approx(expected, rel=EXACT)


def test_what_cannot_be_exceeded_has_no_tail_and_the_other_way_round():
    ones = np.ones(2)
    assert tail(np.array([1.0, 2.0]), ones, 0.0) == 1 == tail(np.array([1.0, 2.0]), ones, -3.0)
    assert tail(np.array([-1.0, -2.0]), ones, 0.0) == 0 == tail(np.zeros(2), ones, 1.0)
    assert tail(np.zeros(2), ones, -1.0) == 1
    mirrored = tail(np.array([-1.0, -2.0]), ones, -3.0)
    assert mirrored == pytest.approx(1 - tail(np.array([1.0, 2.0]), ones, 3.0))


@pytest.mark.parametrize("x", [-40.0, -1.0, -0.01, 0.0, 0.01, 1.0, 40.0])
def test_a_difference_of_exponential_variables_has_the_laplace_distribution(x):
    found = tail(np.array([1.0, -1.0]), np.full(2, 2.0), x)
    assert found == pytest.approx(stats.laplace.sf(x, scale=2), rel=EXACT)


def test_the_unit_of_the_sum_does_not_matter():
    weights = np.random.default_rng(5).exponential(size=30)
    found = [tail(unit * weights, np.ones(30), unit * 150) for unit in (1e-12, 1.0, 1e12)]
    assert found == pytest.approx([found[1]] * 3, rel=1e-9)
