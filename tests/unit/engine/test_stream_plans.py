"""Ranges of sites and rows of results are whole stages and tiles within every limit."""

from __future__ import annotations

import pytest

from popdesic.engine import stream_plan
from popdesic.engine.layout import BLOCK_ROWS, STAGE_WORDS, TILE_ROWS


@pytest.mark.parametrize("budget", [0, 1, 100, 10**9])
@pytest.mark.parametrize("host", [None, 0, 77, 10**9])
@pytest.mark.parametrize("site_limit", [64, 10**5, 2**29])
def test_a_range_keeps_to_every_limit(budget, host, site_limit):
    needed = 50 * STAGE_WORDS
    words = stream_plan.range_words(
        needed, budget=budget, packed=1000, site_limit=site_limit, host=host
    )
    assert words % STAGE_WORDS == 0
    assert STAGE_WORDS <= words <= needed
    limit = min(budget, site_limit // 64, needed if host is None else host)
    assert words <= max(STAGE_WORDS, limit)
    if words < needed:  # and is as long as the limits allow
        assert words + STAGE_WORDS > limit


def test_rows_of_a_result_are_whole_tiles():
    assert stream_plan.result_rows(1000, 2, 64) == TILE_ROWS
    assert stream_plan.result_rows(1000, 2, 300) == 2 * TILE_ROWS
    rows = stream_plan.result_rows(16384, 2)
    assert rows % TILE_ROWS == 0
    assert rows * 16384 * 2 * 8 <= stream_plan.RESULT_BYTES


def test_blocks_of_samples_grow_with_memory():
    sides = [stream_plan.largest_block(2, 3, free) for free in (0, 10**9, 10**10, 10**11)]
    assert sides[0] == BLOCK_ROWS
    assert sides == sorted(set(sides))
    assert 24 * sides[-1] ** 2 <= 10**11 < 24 * (sides[-1] + 2 * BLOCK_ROWS) ** 2
