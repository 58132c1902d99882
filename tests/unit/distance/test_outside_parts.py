"""The shortest edges of parts, by planes and by points, are those of the matrix of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.reference import outside_of
from scenes.random_cohorts import make_planes

from popdesic.cohort.planes import load_planes
from popdesic.distance import outside_parts
from popdesic.distance.find_nearest import nearest_samples
from popdesic.distance.matrix import rows_of_points
from popdesic.distance.neighbors import measure_of
from popdesic.distance.outside_parts import OutsideParts
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.plane_parts import PlaneParts
from popdesic.maps.outside_points_cpu import nearest_outside


def shortest(which, part, found):
    """Of every part its shortest edge: distance, and both numbers in order."""
    far, other = found
    edges = {}
    for i, value, j in zip(which.tolist(), far.tolist(), other.tolist(), strict=True):
        if np.isfinite(value):
            edge = value, min(i, j), max(i, j)
            edges[part[i]] = min(edges.get(part[i], edge), edge)
    return edges


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("threads", [1, 3])
def test_points(seed, threads, monkeypatch):
    monkeypatch.setattr("popdesic.maps.outside_points_cpu.POINTS_OF_TASK", 7)
    rng = np.random.default_rng(seed)
    n, parts = 150, 1 + seed
    points = rng.normal(size=(n, 1 + seed % 4)) + 3 * rng.integers(0, 3, (n, 1))
    if seed % 2:
        points = np.rint(2 * points)  # many ties
    part = rng.integers(0, parts, n)
    which = np.flatnonzero(rng.random(n) < 0.7)
    expected = outside_of(rows_of_points(points)(np.arange(n)))(which, part, None)
    edges = shortest(which, part, expected)
    best = np.full(parts, np.inf)
    if seed % 3 == 1:  # as short as the shortest edge is allowed
        for one, edge in edges.items():
            best[one] = edge[0]
    found = nearest_outside(points, which, part, best, threads)
    assert shortest(which, part, found) == edges


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("metric", ["euclidean", "normalized"])
def test_planes(tmp_path, seed, metric, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(outside_parts, "BLOCK_BYTES", 4000)  # several blocks, few of them kept
    monkeypatch.setattr(outside_parts, "KEPT_BYTES", 9000)
    sizes = [[40, 1, 30], [71]][seed % 2]
    folders = [make_planes(tmp_path / str(n), n, 200, 0.05 * (n % 2)) for n in sizes]
    planes = PlaneParts.of([load_planes(folder)[0] for folder in folders])
    backend = CpuBackend(threads=2)
    n, measure = planes.n_samples, measure_of(metric, 200, 20)
    part = rng.integers(0, [2, 5, 71][seed % 3], n)
    which = np.flatnonzero(rng.random(n) < [1.0, 0.3][seed // 3])
    every = nearest_samples(backend, planes, measure, n - 1)
    matrix = np.zeros((n, n))
    np.put_along_axis(matrix, every.index, every.distance, 1)
    best = np.full(part.max() + 1, np.inf)
    far, other = OutsideParts(planes, lambda: backend, measure)(which, part, best)
    expected, nearest = outside_of(matrix)(which, part, best)
    np.testing.assert_array_equal(far, expected)
    known = np.isfinite(expected)
    np.testing.assert_array_equal(other[known], nearest[known])
