"""Groups by coancestry: structure is found, chance is not."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.communities import coancestry
from popdesic.communities.coancestry import (
    FLIPS,
    LEAST_EXCESS,
    balanced_signs,
    centred_coancestry,
    divide_samples,
    find_groups,
)


def chance(n_stretches, n, seed):
    """Skewed lengths of one population, of samples that are copied more or less often."""
    rng = np.random.default_rng(seed)
    return rng.exponential(1, (n_stretches, n, n)) ** 2 * rng.uniform(0.5, 2, n)


def test_one_population_is_one_group():
    assert all(divide_samples(chance(20, 40, seed)).max() == 0 for seed in range(12))


def test_groups_within_groups_are_found_in_any_order(monkeypatch):
    truth = np.repeat([0, 1, 2], [20, 15, 25])
    lengths = chance(24, 60, 1)
    near = np.array([[1.5, 0, 0], [0, 1.5, 0.7], [0, 0.7, 1.5]])
    lengths += near[truth[:, None], truth]
    assert divide_samples(lengths).tolist() == truth.tolist()
    monkeypatch.setattr(coancestry, "SUM_BYTES", 1)  # one sum at a time
    assert divide_samples(lengths).tolist() == truth.tolist()
    order = np.random.default_rng(2).permutation(60)
    turned = divide_samples(lengths[:, order[:, None], order])
    for group in range(3):
        assert len(set(turned[truth[order] == group].tolist())) == 1
    assert turned[0] == 0


def test_structure_of_one_stretch_is_chance():
    """An inversion, or one long segment of IBD, is no group."""
    lengths = chance(16, 40, 3)
    lengths[5, :20, :20] += 12
    lengths[5, 20:, 20:] += 12
    assert divide_samples(lengths).max() == 0


@pytest.mark.parametrize("n_stretches", [8, 9])
def test_clear_groups_show_in_few_stretches(n_stretches):
    """Structure cancels in the sums that tell of chance, so that few stretches suffice."""
    truth = np.repeat([0, 1], [18, 22])
    near = 3.0 * (truth[:, None] == truth)
    found, (test, *parts) = find_groups(chance(n_stretches, 40, 6) + near)
    assert found.tolist() == truth.tolist() and sorted(test.halves) == [18, 22]
    assert test.deviations > 15 and max(one.deviations for one in parts) < LEAST_EXCESS
    undivided, (test,) = find_groups(chance(n_stretches, 40, 6))
    assert not undivided.any() and test.deviations < LEAST_EXCESS and test.halves == ()


def test_as_many_stretches_have_either_sign():
    for n_stretches in (8, 9, 32):
        signs = balanced_signs(n_stretches, 5)
        assert signs.shape == (FLIPS, n_stretches) and set(signs.ravel().tolist()) == {-1, 1}
        assert abs(signs.sum(axis=1)).tolist() == [n_stretches % 2] * FLIPS
        assert len(np.unique(signs, axis=0)) > 15 and abs(signs.sum(axis=0)).max() < FLIPS


def test_few_stretches_or_samples_are_not_divided():
    lengths = chance(7, 20, 4)
    lengths[:, :10, :10] += 9
    assert divide_samples(lengths).max() == 0
    assert divide_samples(np.ones((20, 9, 9))).max() == 0
    assert divide_samples(np.ones((20, 30, 30))).max() == 0


def test_centred_rows_sum_to_zero():
    centred = centred_coancestry(np.random.default_rng(5).random((7, 7)))
    assert abs(centred.sum(axis=0)).max() < 1e-12
    np.testing.assert_array_equal(centred, centred.T)
