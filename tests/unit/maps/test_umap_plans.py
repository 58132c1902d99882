"""Launches of UMAP's epochs: each edge in one run, and what is left to the CPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.launches import AMPERE
from support.layouts import draw_layout

from popdesic.maps import layouts_plan
from popdesic.maps.layouts import FARTHEST, SHARE_BITS
from popdesic.maps.layouts_plan import UMAP_THREADS, blocks_of, fits_layout, plan_epoch
from popdesic.maps.umap_layout import DRAWS, EPOCHS


@pytest.mark.parametrize("n_edges", [1, 31, 32, 33, 512, 513, 100_000, 30_000_000, 2**31 - 2000])
@pytest.mark.parametrize("multiprocessors", [1, 40, 132])
def test_runs_cover_all_edges_once(n_edges, multiprocessors):
    launch = plan_epoch(n_edges, multiprocessors)
    warps = launch.grid[0] * UMAP_THREADS // 32
    assert launch.run % 32 == 0 and 32 <= launch.run <= layouts_plan.MOST_RUN
    assert 1 <= launch.grid[0] <= layouts_plan.BLOCKS_A_MULTIPROCESSOR * multiprocessors
    # no thread block has nothing to do
    assert (launch.grid[0] - 1) * (UMAP_THREADS // 32) * launch.run < n_edges
    # a warp's next run follows those of all others; the last number of an edge is an int32
    assert n_edges + launch.run < 2**31
    if n_edges <= warps * launch.run:
        assert warps * launch.run - n_edges < warps * 32 + UMAP_THREADS * launch.run
    assert (blocks_of(n_edges)[0] - 1) * UMAP_THREADS < n_edges


def test_sums_of_a_warp_fit():
    assert 32 * (2 + layouts_plan.MOST_DRAWS) * FARTHEST < 2**31 <= 32 * 16 * FARTHEST
    assert DRAWS <= layouts_plan.MOST_DRAWS and EPOCHS + 200 <= layouts_plan.MOST_EPOCHS
    assert (layouts_plan.MOST_EPOCHS + 1) << SHARE_BITS <= 2**32


def test_what_does_not_fit_is_left_to_the_cpu():
    layout = draw_layout(17, 0.9, 100)
    needed = 17 * 24 + len(layout.ends) * 12
    assert fits_layout(layout, AMPERE, needed) and not fits_layout(layout, AMPERE, needed - 1)
    assert not fits_layout(layout, dataclasses.replace(AMPERE, vendor="amd"), 1 << 30)
    for changes in ({"draws": 14}, {"steps": np.zeros(4096, np.int64)}):
        assert not fits_layout(dataclasses.replace(layout, **changes), AMPERE, 1 << 30)
