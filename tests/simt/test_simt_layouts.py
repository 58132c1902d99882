"""Epochs of UMAP by the kernels' source, on a CPU: the bytes of the host's epochs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.layouts import SCENES, draw_layout

from popdesic.maps import layouts_plan
from popdesic.maps.fuzzy_graph import fuzzy_graph
from popdesic.maps.lay_out import lay_out
from popdesic.maps.layouts_cpu import run_epochs
from popdesic.maps.umap_layout import optimize_layout


def assert_same(layout) -> None:
    from popdesic.engine.backend_gpu import GpuBackend

    found = lay_out(GpuBackend(), layout)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, run_epochs(layout))


@pytest.mark.parametrize(("n", "density", "spread"), SCENES)
def test_layouts_are_those_of_the_cpu(machine, schedule, n, density, spread):
    """No edges, one, those of one place, and a point with an edge to every other."""
    for draws, seed in ((5, 1), (0, 2**40 + 3), (1, -7)):
        layout = draw_layout(n, density, spread, draws=draws, seed=abs(seed))
        assert_same(dataclasses.replace(layout, seed=seed))
    assert density == 0 or {"add_forces", "move_points"} <= set(machine.launched)


@pytest.mark.parametrize(("n", "density", "spread"), SCENES[2:])
def test_layouts_with_densities_are_those_of_the_cpu(machine, schedule, n, density, spread):
    assert_same(draw_layout(n, density, spread, epochs=5, dense=True))
    assert machine.launched.count("add_density") == 4


def test_a_warp_walks_over_several_runs(machine, schedule, monkeypatch):
    monkeypatch.setattr(layouts_plan, "MOST_RUN", 32)
    monkeypatch.setattr(layouts_plan, "BLOCKS_A_MULTIPROCESSOR", 1)
    layout = draw_layout(150, 0.5, 5 << 20, epochs=8)
    launch = layouts_plan.plan_epoch(len(layout.ends), machine.device.multiprocessors)
    assert len(layout.ends) > 3 * launch.grid[0] * launch.run * 16
    assert_same(layout)


def test_late_epochs_and_points_at_the_bound(schedule):
    """Edges of a small share are active once in hundreds of epochs."""
    layout = draw_layout(20, 0.5, 1 << 29, epochs=400)
    shares = np.where(layout.shares % 3 == 0, 1 << 20, layout.shares >> 9)
    assert_same(dataclasses.replace(layout, shares=shares))


def test_what_does_not_fit_is_left_to_the_cpu(machine):
    from popdesic.engine.backend_gpu import GpuBackend

    layout = draw_layout(17, 0.9, 1 << 20, epochs=2)
    for backend, one in (
        (GpuBackend(device_bytes=1000), layout),
        (GpuBackend(), dataclasses.replace(layout, draws=15)),
    ):
        np.testing.assert_array_equal(lay_out(backend, one), run_epochs(one))
    assert not machine.launched


def test_a_map_has_the_same_bytes(machine, rng, monkeypatch):
    """In two parts that no edge joins, from neighbours to coordinates."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.maps import umap_layout

    monkeypatch.setattr(umap_layout, "EPOCHS", 11)
    near = np.arange(40)[:, None] // 20 * 20 + rng.permuted(np.arange(20))
    near = np.stack([np.delete(row, np.flatnonzero(row == i))[:6] for i, row in enumerate(near)])
    graph = fuzzy_graph(near, np.sort(rng.random((40, 6)), axis=1), 1 / 11)
    options = {"start": rng.normal(size=(40, 2)), "min_dist": 0.3, "seed": 5}
    found = optimize_layout(graph, **options, backend=GpuBackend())
    assert found.tobytes() == optimize_layout(graph, **options).tobytes()
    assert machine.launched.count("add_forces") == 11
