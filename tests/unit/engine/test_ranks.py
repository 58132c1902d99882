"""Ranks of values against SciPy's."""

import numpy as np
import pytest
from scipy.stats import rankdata

from popdesic.engine import ranks
from popdesic.engine.ranks import average_ranks, smallest


@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_ranks_equal_those_of_scipy(n):
    rng = np.random.default_rng(n)
    for values in (rng.random(n), rng.integers(0, 7, n), np.zeros(n)):
        np.testing.assert_array_equal(average_ranks(values), rankdata(values))


@pytest.mark.parametrize("n", [0, 1, 2, 300])
@pytest.mark.parametrize("k", [0, 1, 7, 299, 301])
def test_the_smallest_are_the_first_of_a_stable_order(n, k):
    rng = np.random.default_rng(n + k)
    for values in (rng.random(n), rng.integers(0, 7, n) / 1.0, np.full(n, np.inf)):
        values[rng.random(n) < 0.1] = np.inf
        expected = np.argsort(values, kind="stable")[:k]
        np.testing.assert_array_equal(smallest(values, k), expected)


MANY = {
    "random": lambda rng, n: rng.normal(size=n),
    "ascending": lambda rng, n: np.arange(n) / 7,
    "ties": lambda rng, n: rng.integers(0, 5, n) / 3,
    "steps of the sample": lambda rng, n: np.where(np.arange(n) % 16 == 0, 9.0, rng.random(n)),
    "equal": lambda rng, n: np.full(n, 0.1),
}


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("n", [1, 2, 999, 4_096, 20_001, 20_002])
def test_a_median_is_that_of_numpy(monkeypatch, name, n, rng):
    monkeypatch.setattr(ranks, "MANY_VALUES", 1_000)
    monkeypatch.setattr(ranks, "SAMPLE", 512)
    monkeypatch.setattr(ranks, "MIDDLE", 64)
    values = MANY[name](rng, n)
    parts = np.array_split(values, rng.integers(1, min(n, 60) + 1))
    assert ranks.median_of(parts, 2) == np.median(values)


def test_few_values_are_sorted(monkeypatch):
    """Of random values a sample leaves few; without one all would be."""
    monkeypatch.setattr(ranks, "MANY_VALUES", 1_000)
    sorted_values = []
    partition = np.partition
    monkeypatch.setattr(
        np, "partition", lambda x, k: sorted_values.append(len(x)) or partition(x, k)
    )
    values = np.random.default_rng(1).random(1 << 20)
    assert ranks.median_of([values]) == np.median(values)
    assert 0 < sorted_values[0] < 1 << 17
