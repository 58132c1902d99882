"""The dip equals the smallest distance to a unimodal distribution that a linear program finds."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from popdesic.communities.dip import PROBABILITIES, QUANTILES, SIZES, dip, dip_probability

MAKE_TABLE = Path(__file__).resolve().parents[3] / "resources/dip/make_table.py"


def least_distance(values: np.ndarray) -> float:
    """The dip by its definition: a linear program for each place where the mode may be.

    Unknown are the unimodal distribution function at each place, once more at the mode, where it
    may jump, and its largest distance d from the samples'. Before a place the samples' function is
    as it was at the last one.
    """
    places, counts = np.unique(values, return_counts=True)
    upto = np.cumsum(counts) / len(values)
    before, k = upto - counts / len(values), len(places)
    best = np.inf
    for mode in range(k):
        rows, limits = [], []

        def at_most(limit, rows=rows, limits=limits, **weights):
            """Sum of weights times unknowns; `g3` is the function at place 3."""
            row = np.zeros(k + 2)
            for name, weight in weights.items():
                row[{"jump": k, "d": k + 1}.get(name) or int(name[1:])] += weight
            rows.append(row)
            limits.append(limit)

        for i in range(k):
            at_most(before[i], **{f"g{i}": 1}, d=-1)
            at_most(-upto[i], **{"jump" if i == mode else f"g{i}": -1}, d=-1)
        at_most(0, **{f"g{mode}": 1}, jump=-1)
        names = [f"g{i}" for i in range(k)]
        convex = list(zip(names, places, strict=True))[: mode + 1]
        concave = [("jump", places[mode]), *zip(names[mode + 1 :], places[mode + 1 :], strict=True)]
        for side, sign in ((convex, 1), (concave, -1)):
            for (a, _), (b, _) in pairwise(side):
                at_most(0, **{a: 1, b: -1})
            for (a, x), (b, y), (c, z) in zip(side, side[1:], side[2:], strict=False):
                first, second = sign / (y - x), sign / (z - y)
                at_most(0, **{a: -first, b: first + second, c: -second})
        goal = np.append(np.zeros(k + 1), 1)
        found = linprog(goal, np.array(rows), limits, bounds=(0, 1))
        assert found.status == 0
        best = min(best, found.fun)
    return best


def two_heaps(rng, n):
    return np.concatenate([rng.normal(0, 1, n // 2), rng.normal(5, 1, n - n // 2)])


KINDS = {
    "uniform": lambda rng, n: rng.random(n),
    "ties": lambda rng, n: rng.integers(0, 8, n),
    "two heaps": two_heaps,
    "heaps with ties": lambda rng, n: np.round(two_heaps(rng, n)),
    "tail": lambda rng, n: rng.exponential(size=n) ** 3,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 12, 25])
def test_the_dip_is_the_least_distance(kind, n, rng):
    for _ in range(5):
        values = KINDS[kind](rng, n)
        assert dip(values) == pytest.approx(least_distance(values), abs=1e-7), values.tolist()


def test_the_dip_of_many_is_the_least_distance():
    values = KINDS["two heaps"](np.random.default_rng(1), 150)
    assert dip(values) == pytest.approx(least_distance(values), abs=1e-7)


def test_known_dips():
    assert dip(np.zeros(9)) == 0
    assert dip(np.array([3.0])) == 0
    assert dip(np.arange(10.0)) == pytest.approx(1 / 20)
    assert dip(np.repeat([0.0, 1.0], 50)) == pytest.approx(1 / 4)
    assert dip(np.repeat([0.0, 1.0, 2.0], [30, 10, 60])) == pytest.approx(0.15)


def test_moving_scaling_turning_and_shuffling_change_no_dip(rng):
    values = two_heaps(rng, 501)
    for changed in (values + 1e3, values * 1e-6, -values, rng.permutation(values)):
        assert dip(changed) == pytest.approx(dip(values), rel=1e-9)


def test_the_dip_of_many_samples_is_that_of_their_distribution():
    """A unimodal distribution has none; far heaps of shares a and 1 - a have half the smaller."""
    rng = np.random.default_rng(2)
    assert dip(rng.normal(size=20_000)) < 0.005
    heaps = np.where(rng.random(20_000) < 0.3, 0.0, 50.0) + rng.random(20_000)
    assert dip(heaps) == pytest.approx(0.15, abs=0.01)


# --- probability ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 24, 75])
def test_probabilities_are_uniform_for_uniform_samples(n):
    rng = np.random.default_rng([3, n])
    p = np.array([dip_probability(dip(rng.random(n)), n) for _ in range(2_000)])
    for level in (0.5, 0.1, 0.01):
        error = 4 * np.sqrt(level * (1 - level) / len(p))
        assert np.mean(p <= level) == pytest.approx(level, abs=error + 0.05 * level)


def test_the_table_can_be_made_again():
    spec = importlib.util.spec_from_file_location("make_table", MAKE_TABLE)
    maker = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(maker)
    sys.path[:] = path
    assert (maker.SIZES, maker.PROBABILITIES) == (SIZES, PROBABILITIES)
    dips = maker.simulate(50, 3_000, seed=5)
    row = QUANTILES[SIZES.index(50)]
    for probability, quantile in zip(PROBABILITIES, row, strict=True):
        error = 4 * np.sqrt(probability * (1 - probability) / len(dips))
        assert np.mean(dips >= (quantile - 1) / 1e5) == pytest.approx(probability, abs=error + 1e-4)


def test_quantiles_grow_as_they_become_rare():
    assert np.shape(QUANTILES) == (len(SIZES), len(PROBABILITIES))
    assert (np.diff(QUANTILES, axis=1) >= 0).all()
    assert (np.diff(np.array(QUANTILES)[SIZES.index(20) :, 1:-4], axis=0) > 0).all()


def test_probabilities_at_the_ends():
    for n in (1, 2, 3, 4, 9, 100):
        assert dip_probability(1 / (2 * n), n) == 1
    assert dip_probability(0.25, 50) == pytest.approx(PROBABILITIES[-1])
    p = [dip_probability(0.04, n) for n in (100, 101, 150, 199, 200, 4_999, 5_000, 50_000)]
    assert np.diff(p).max() <= 0 and p[0] > 0.1 and p[-1] == pytest.approx(PROBABILITIES[-1])


def test_between_sizes_probabilities_lie_between():
    at = {n: dip_probability(0.5 / np.sqrt(n), n) for n in (100, 140, 200)}
    assert min(at[100], at[200]) < at[140] < max(at[100], at[200])
