"""The distance stage on a GPU writes the same bytes as on the CPU.

POPDESIC_PLANES may name a folder of encoded cohorts of a real study (`results/cohorts`).
"""

from __future__ import annotations

import os
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

pytest.importorskip("cupy")

from scenes.random_cohorts import make_planes

from popdesic.distance.measure_tile import measure_tile
from popdesic.engine.select import select_backend

pytestmark = pytest.mark.gpu


@pytest.fixture
def cohorts(tmp_path) -> list[Path]:
    if real := os.environ.get("POPDESIC_PLANES"):
        return sorted(path.parent for path in Path(real).glob("*/planes.npy"))
    return [
        make_planes(tmp_path / "complete", 70, 1_300, 0.0),
        make_planes(tmp_path / "masked", 131, 1_300, 0.05),
    ]


@pytest.mark.parametrize("missing", ["pairwise", "imputed"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "normalized"])
def test_tiles_are_the_same_bytes(gpu_device, cohorts, tmp_path, metric, missing):
    for a, b in combinations_with_replacement(cohorts, 2):
        for device in ("cpu", "gpu"):
            out = tmp_path / f"{device}.npz"
            backend = select_backend(device, 4)
            measure_tile(a, b, out, backend, metric=metric, missing=missing)
        assert (tmp_path / "cpu.npz").read_bytes() == (tmp_path / "gpu.npz").read_bytes(), (a, b)


def test_little_host_memory_gives_the_same_bytes(gpu_device, cohorts, tmp_path):
    """Sites streamed through a much smaller ring of pinned memory."""
    for a, b in combinations_with_replacement(cohorts, 2):
        arguments = {"metric": "euclidean", "missing": "pairwise"}
        measure_tile(a, b, tmp_path / "whole.npz", select_backend("cpu", 4), **arguments)
        backend = select_backend("gpu", host_bytes=1 << 16)
        assert backend.host_bytes == 1 << 16
        measure_tile(a, b, tmp_path / "streamed.npz", backend, **arguments)
        assert (tmp_path / "streamed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
