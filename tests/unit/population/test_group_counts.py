"""Counts of genotypes over groups of samples on a CPU, and how a GPU divides them."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.groups import check_counts
from support.cards import CARDS

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.needs import CONTEXT_BYTES, counting_bytes
from popdesic.population import group_counts
from popdesic.population import group_counts_plan as plans
from popdesic.population.group_counts_plan import COUNT_LEVELS

DEVICE = CARDS[90].device()


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 33, 63, 64, 65, 700])
@pytest.mark.parametrize("missing", [0.0, 0.15, 1.0])
def test_counts_equal_the_oracle(rng, n_sites, missing, monkeypatch):
    for n, threads in ((1, 1), (2, 2), (70, 2)):
        check_counts(CpuBackend(threads), rng, n, n_sites, 3, missing)
    monkeypatch.setattr(group_counts, "PART_BYTES", 1)
    check_counts(CpuBackend(1), rng, 5, n_sites, 2, missing)


def test_values_keep_eleven_digits():
    values = np.random.default_rng(1).random(1000)
    found = group_counts.fixed_point(values)
    assert found.dtype == np.int64
    np.testing.assert_allclose(found / 2.0**group_counts.VALUE_BITS, values, atol=1e-11)
    assert int(group_counts.fixed_point(np.ones(1))[0]) * (2**27 - 1) < 2**63


def test_counts_of_many_samples_have_four_bytes():
    assert group_counts.group_count_type(65_535) == np.uint16
    assert group_counts.group_count_type(65_536) == np.uint32


@pytest.mark.parametrize("n", [0, 1, 5, 62, 63, 64, 200])
@pytest.mark.parametrize("rows", [1, 7, 63])
def test_pieces_hold_every_sample_of_a_group_once(rng, n, rows):
    own = rng.integers(-1, 4, n)
    order, groups, bounds = plans.pieces_of(own, rows)
    assert sorted(order.tolist()) == np.flatnonzero(own >= 0).tolist()
    covered = []
    for group, (begin, end) in zip(groups, bounds, strict=True):
        assert 0 < end - begin <= rows and (own[order[begin:end]] == group).all()
        covered += range(begin, end)
    assert covered == list(range(len(order)))


@pytest.mark.parametrize(
    "shape", [(1, 2, 1), (4000, 3, 1563), (100_000, 3, 15_625), (10, 3, 200_000), (2**20, 2, 1)]
)
def test_parts_fit_memory_and_the_launches_of_cuda(shape):
    plan = plans.plan_counts(shape, 20, DEVICE, 60 << 30, 1 << 30)
    row = 8 * shape[1] * shape[2]
    assert 1 <= plan.samples <= min(shape[0], plans.MOST_BLOCKS)
    assert plan.samples == 1 or plan.samples * row <= plans.PART_BYTES
    assert 1 <= plan.rows < 2**COUNT_LEVELS
    assert shape[2] / plan.words_a_run <= plans.MOST_BLOCKS
    # a job that shares a GPU asks for enough that its counts fit
    need = counting_bytes(shape, 20) - CONTEXT_BYTES
    assert plans.plan_counts(shape, 20, DEVICE, need + 1, 1 << 30) == plan


def test_what_does_not_fit_stays_on_the_cpu():
    assert plans.plan_counts((10, 3, 0), 1, DEVICE, 1 << 30, 1 << 30) is None
    assert plans.plan_counts((0, 3, 10), 1, DEVICE, 1 << 30, 1 << 30) is None
    assert plans.plan_counts((10, 3, 10), 70_000, DEVICE, 1 << 40, 1 << 30) is None
    assert plans.plan_counts((10, 3, 1 << 20), 100, DEVICE, 1 << 30, 1 << 30) is None
