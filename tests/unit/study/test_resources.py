"""Expected cost of jobs, and the limits that follow from it."""

from __future__ import annotations

import pytest

from popdesic.study.resources import (
    Cost,
    closing_minutes,
    expected_minutes,
    limit_mb,
    limit_minutes,
)


def test_cost_is_a_sum_over_sizes():
    cost = Cost(1, mb=2, samples=3, pairs=5, triples=7, mb_samples=11)
    assert cost.of(10, 4) == 1 + 20 + 12 + 80 + 7 * 64 + 440


def test_cost_of_two_blocks():
    """Pairs are between the blocks; samples are those of the second, over which a tile runs."""
    assert Cost(pairs=1).of(0, 3, 5) == 15
    assert Cost(samples=1).of(0, 3, 5) == 5
    assert Cost(mb_samples=1).of(2, 3, 5) == 10


def test_cost_stops_growing():
    assert Cost(pairs=1, max_samples=10).of(0, 20) == 100


@pytest.mark.parametrize(
    ("attempt", "mb", "minutes"), [(1, 1000, 11), (2, 1500, 22), (3, 2000, 44)]
)
def test_limits_grow_with_each_attempt(attempt, mb, minutes):
    assert limit_mb(300, attempt) == mb
    assert limit_minutes(2, attempt) == minutes


@pytest.mark.parametrize("expected", [0, 1, 12])
def test_expected_minutes_follow_from_limits(expected):
    assert expected_minutes(limit_minutes(expected)) == expected


def test_a_closure_costs_half_of_n_cubed():
    """n = 30 000 in about a second on a GPU, half an hour on a CPU (docs/scaling.md)."""
    assert 60 * closing_minutes(gpu=True) * 30_000**3 == pytest.approx(1.04, abs=0.01)
    assert closing_minutes(gpu=False) * 30_000**3 == pytest.approx(28, abs=1)
