"""Launches of sums over genotypes: all items once, within the limits of the accumulators."""

import pytest

from popdesic.engine.gpu.genotype_plans import MOST_ITEMS, MOST_TILES, plan_sums, tiles_of
from popdesic.engine.gpu.layout import SUM_ROWS, SUM_STAGE


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
    assert [tiles_of(k) for k in (1, 8, 9, 32)] == [1, 1, 2, 4]
