"""Epochs of UMAP on a GPU: the bytes of the CPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.layouts import SCENES, draw_layout

from popdesic.maps import layouts_plan
from popdesic.maps.lay_out import lay_out
from popdesic.maps.layouts_cpu import run_epochs
from popdesic.maps.umap_layout import NearestRows, draw_maps

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend(gpu_device):
    from popdesic.engine.backend_gpu import GpuBackend

    return GpuBackend()


def assert_same(backend, layout) -> None:
    np.testing.assert_array_equal(lay_out(backend, layout), run_epochs(layout, 2))


@pytest.mark.parametrize(("n", "density", "spread"), [*SCENES, (3000, 0.01, 10 << 20)])
@pytest.mark.parametrize("draws", [0, 1, 5, 13])
def test_layouts_are_those_of_the_cpu(backend, n, density, spread, draws):
    layout = draw_layout(n, density, spread, draws=draws, epochs=50)
    for seed in (1, 2**40 + 3, -7):
        assert_same(backend, dataclasses.replace(layout, seed=seed))


@pytest.mark.parametrize("run", [32, 64, 1024])
def test_runs_of_any_length(backend, monkeypatch, run):
    monkeypatch.setattr(layouts_plan, "MOST_RUN", run)
    monkeypatch.setattr(layouts_plan, "BLOCKS_A_MULTIPROCESSOR", 1)
    assert_same(backend, draw_layout(1500, 0.5, 5 << 20, epochs=20))


def test_maps_have_the_same_bytes(backend):
    """All epochs of two maps of 20 000 points, with a point that is everybody's neighbour."""
    rng, n, k = np.random.default_rng(1), 20_000, 14
    near = (np.arange(n)[:, None] + 1 + np.argsort(rng.random((n, 40)), axis=1)[:, :k]) % n
    near[1:, 0] = 0
    found = NearestRows(near, np.sort(rng.random((n, k)), axis=1))
    start, members = rng.normal(size=(n, 2)), [(1, 15), (2, 8)]
    ours = draw_maps(found, start, members, min_dist=0.3, backend=backend)
    theirs = draw_maps(found, start, members, min_dist=0.3, threads=4)
    assert [one.tobytes() for one in ours] == [one.tobytes() for one in theirs]
