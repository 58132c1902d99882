"""Sizes and tables of the search for identity by descent on a GPU; no CuPy needed."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.ibd import draw_windows
from support.cards import CARDS

from popdesic.ibd import candidates_plan
from popdesic.ibd.candidates import Probes
from popdesic.ibd.candidates_plan import IBD_SIDE, Shape, block_side, can_find_runs, probe_table


@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_slots_fit_every_card_that_searches(bits):
    shape = Shape.of(bits)
    assert shape.parts == max(1, bits // 128)
    assert candidates_plan.LEAST_STAGES <= shape.stages <= candidates_plan.MOST_STAGES
    probes = Probes.of(draw_windows(np.random.default_rng(1), 2000, bits), 1.0)
    for card in CARDS.values():
        assert can_find_runs(card.device(), probes) == (card.capability >= 80)


@pytest.mark.parametrize("free", [0, 1 << 20, 1 << 30, 120 << 30])
@pytest.mark.parametrize("n", [1, 256, 257, 100_000])
def test_blocks_are_whole_and_fit(free, n):
    side = block_side(3900, 1, n, free)
    assert side % IBD_SIDE == 0
    assert side < n + IBD_SIDE
    assert side == IBD_SIDE or 2 * side * 3900 * 32 <= free


def test_a_hundred_thousand_people_are_one_block_of_an_h200():
    assert block_side(3900, 1, 100_000, 120 << 30) >= 100_000


def test_probes_of_the_table_reach_back_by_the_depth():
    probes = Probes.of(draw_windows(np.random.default_rng(2), 2000, 16), 2.0, depth=2)
    assert probes.depth == 2
    window, reach, stop, fresh = probe_table(probes).T
    np.testing.assert_array_equal(window, probes.probe)
    inside = fresh == 0
    np.testing.assert_array_equal(reach[1:][inside[1:]], window[:-1][inside[1:]])
    assert (stop[inside] < reach[inside]).all()
    assert (reach[inside] <= window[inside]).all()
