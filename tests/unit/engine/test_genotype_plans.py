"""Launches of sums over genotypes: all items once, within the limits of the accumulators."""

from itertools import pairwise

import numpy as np
import pytest

from popdesic.engine.genotype_plan import (
    MOST_ITEMS,
    MOST_TILES,
    SUM_ROWS,
    SUM_STAGE,
    Room,
    column_tiles,
    plan_pass,
    plan_sums,
    site_words,
    words_before,
)
from popdesic.engine.genotype_products import site_blocks


@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, 4096, 1_000_000])
@pytest.mark.parametrize("n_words", [16, 32, 48, 1888, 62_512, 2_000_000])
def test_runs_cover_all_items_once(n_rows, n_words):
    launch = plan_sums(n_rows, n_words, 2, 132)
    rows, runs = launch.grid
    assert (rows - 1) * SUM_ROWS < n_rows <= rows * SUM_ROWS
    items = launch.stages_a_run * SUM_STAGE
    assert (runs - 1) * items < n_words <= runs * items
    assert items * 16 <= MOST_ITEMS and MOST_ITEMS * 2 * 128 < 1 << 31
    assert rows * runs >= min(132, rows * -(-n_words // SUM_STAGE))


def test_a_stage_of_digits_fits_the_shared_memory_of_any_of_these_gpus():
    assert plan_sums(4096, 1888, MOST_TILES, 132).shared <= 99 << 10
    assert [column_tiles(k) for k in (1, 8, 9, 32)] == [1, 1, 2, 4]


@pytest.mark.parametrize("multiprocessors", [1, 132])
@pytest.mark.parametrize(
    "room",
    [Room(True), Room(True, group_bytes=1), Room(False, code_bytes=1 << 16), Room.of(0, 1 << 30)],
)
@pytest.mark.parametrize("whole_sets", [False, True])
def test_tiles_of_a_pass_cover_all_words_once(multiprocessors, room, whole_sets):
    labels = np.repeat([0, 1, 2], [5000, 1, 700])
    bounds = site_blocks(5701, labels)
    sets = labels[[first for first, _ in bounds]]
    spans, row_words = [(0, 128), (128, 320)], 80
    before = words_before(bounds, row_words)
    groups = plan_pass(
        *(bounds, sets, spans, row_words, 1),
        whole_sets=whole_sets,
        room=room,
        multiprocessors=multiprocessors,
    )
    assert sum(len(one.blocks) for one in groups) == len(bounds)
    if whole_sets:
        assert all(one.first_set != other.first_set for one, other in pairwise(groups))
    for group in groups:
        first = group.first_block
        own = before[first : first + len(group.blocks) + 1] - before[first]
        for tiles, size in (
            (group.site_tiles, group.n_sites * row_words),
            (group.person_tiles, own[-1]),
        ):
            seen = np.zeros(size, int)
            for start, width, rows, word, n_words, *_ in tiles:
                for row in range(rows):
                    low = start + row * width + word
                    seen[low : low + n_words] += 1
            assert (seen == 1).all()
        assert group.padded == 16 * sum(site_words(n) for n in group.blocks[:, 1].tolist())
        # Every block, part and row has its own row of sums, to which all its words are added.
        rows_of = (
            (group.site_tiles, group.n_sites * len(spans)),
            (group.person_tiles, len(group.blocks) * 16 * row_words),
        )
        for tiles, n_rows in rows_of:
            found = {}
            for start, width, rows, *_, at in tiles.tolist():
                for row in range(rows):
                    found.setdefault(at + row, set()).add(start + row * width)
            assert sorted(found) == list(range(n_rows))
            assert all(len(starts) == 1 for starts in found.values())
