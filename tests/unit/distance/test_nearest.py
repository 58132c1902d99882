"""Lists of nearest samples on a CPU equal what matrices of all pairs hold."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.neighbor_checks import (
    METRICS,
    awkward_points,
    check_between,
    check_nearest,
    check_points,
    draw_people,
)
from support.operands import planes_of

from popdesic.distance import nearest, nearest_cpu
from popdesic.distance.find_nearest import nearest_points
from popdesic.distance.nearest import tiles_of_pairs
from popdesic.distance.neighbor_lists_cpu import merge_lists
from popdesic.engine.plane_parts import PlaneParts
from popdesic.engine.select import cpu_backend

BACKEND = cpu_backend(2)


@pytest.fixture(params=[7, 64, 1024])
def side(request, monkeypatch) -> int:
    monkeypatch.setattr(nearest_cpu, "SIDE", request.param)
    return request.param


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_nearest_of_a_matrix(side, metric, missing):
    """Few sites and copies of people make ties, also at the last place of a list."""
    genotypes = draw_people(1, 90, 40, missing, copies=20)
    check_nearest(BACKEND, genotypes, 6, metric, min_called=15)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("cut", "k"), [(1, 3), (40, 6), (86, 9)])
def test_nearest_of_two_cohorts_in_each_other(side, metric, cut, k):
    """Also with fewer others than neighbours, and with nobody who can be compared."""
    genotypes = draw_people(3, 90, 40, 0.3, copies=20)
    genotypes[2] = -1
    check_between(BACKEND, genotypes, cut, k, metric, min_called=15)


def test_joined_lists_are_those_of_everyone():
    """In any order of the others, ties and empty places included."""
    rng = np.random.default_rng(5)
    far = rng.integers(0, 6, (50, 40)).astype(float)
    far[rng.random(far.shape) < 0.2] = np.inf
    sites = rng.integers(1, 99, far.shape).astype(np.int32)
    cuts = [(0, 3), (3, 4), (4, 25), (25, 40)]
    for k in (1, 5, 30, 40):
        found = nearest.Nearest.empty(50, k, 40)
        for first, last in rng.permutation(cuts).tolist():
            order = np.argsort(far[:, first:last], axis=1, kind="stable")[:, :k]
            arrays = (np.take_along_axis(x[:, first:last], order, 1) for x in (far, sites))
            merge_lists(found, nearest.Nearest(order.astype(np.int32), *arrays), first, 2)
        order = np.argsort(far, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(found.index, order)
        np.testing.assert_array_equal(found.distance, np.take_along_axis(far, order, 1))
        np.testing.assert_array_equal(found.called, np.take_along_axis(sites, order, 1))


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65])
def test_nearest_of_few_sites(n_sites):
    genotypes = draw_people(n_sites, 40, n_sites, 0.2)
    genotypes[3] = -1  # nobody can be compared with it
    check_nearest(BACKEND, genotypes, 5, "euclidean")
    genotypes[:] = -1
    found = check_nearest(BACKEND, genotypes, 5, "euclidean")
    assert np.isinf(found.distance).all()
    check_nearest(BACKEND, np.ones((20, n_sites), np.int8), 5, "euclidean")


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_nearest_of_few_people(n):
    found = check_nearest(BACKEND, draw_people(n, n, 30, 0.1), 5, "euclidean")
    assert found.index.shape == (n, min(5, n - 1))
    check_points(BACKEND, np.random.default_rng(n).random((n, 3)), 5)


def test_cohorts_with_and_without_missing_genotypes(side):
    genotypes = draw_people(2, 60, 100, 0.0, copies=9)
    genotypes[20:33][np.random.default_rng(3).random((13, 100)) < 0.3] = -1
    check_nearest(BACKEND, genotypes, 7, "ibs", cuts=(10, 20, 33, 50))


def test_blocks_of_cohorts():
    genotypes = draw_people(4, 12, 70)
    genotypes[8, 1] = -1
    parts = [planes_of(genotypes[:5], masked=False), planes_of(genotypes[5:])]
    planes = PlaneParts.of(parts)
    assert (planes.n_samples, planes.n_sites, planes.n_planes) == (12, 70, 3)
    whole = planes_of(genotypes).words
    for first, last in ((0, 12), (0, 5), (3, 8), (5, 12), (11, 12)):
        np.testing.assert_array_equal(planes.block(first, last).words, whole[first:last])
    with pytest.raises(ValueError, match="different numbers of sites"):
        PlaneParts.of([parts[0], planes_of(genotypes[:, :3])])


def test_every_pair_is_in_one_tile():
    for n, size in ((1, 4), (4, 4), (5, 4), (13, 4)):
        seen = np.zeros((n, n), int)
        for (a, b), (c, d) in tiles_of_pairs(n, size):
            seen[a:b, c:d] += 1
        blocks = np.arange(n) // size
        expected = blocks[:, None] <= blocks
        np.testing.assert_array_equal(seen, expected.astype(int))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_byte(threads):
    genotypes = draw_people(5, 300, 60, 0.1, copies=50)
    one = check_nearest(BACKEND, genotypes, 9, "euclidean")
    other = check_nearest(cpu_backend(threads), genotypes, 9, "euclidean")
    assert one.distance.tobytes() == other.distance.tobytes()
    points = np.random.default_rng(5).normal(size=(700, 4))
    one, other = (nearest_points(b, points, 9) for b in (BACKEND, cpu_backend(threads)))
    assert one.index.tobytes() == other.index.tobytes()


@pytest.mark.parametrize("m", [1, 2, 20])
@pytest.mark.parametrize("n", [15, 1023, 1024, 1030])
def test_nearest_points(n, m):
    check_points(BACKEND, np.random.default_rng(n).normal(size=(n, m)), 10)


@pytest.mark.parametrize("name", awkward_points())
def test_nearest_of_awkward_points(name):
    check_points(BACKEND, awkward_points()[name], 8)


@pytest.mark.parametrize(
    "points", [np.full((3, 2), np.nan), np.zeros(3), np.array([[np.inf], [1.0]])]
)
def test_what_is_no_point_is_refused(points):
    with pytest.raises(ValueError, match="give finite coordinates"):
        nearest_points(BACKEND, points, 2)


def test_too_many_neighbors_are_refused():
    with pytest.raises(ValueError, match="257 neighbours; give 0 to 256"):
        nearest_points(BACKEND, np.zeros((300, 2)), 257)
    assert nearest_points(BACKEND, np.zeros((300, 2)), 256).index.shape == (300, 256)
    assert nearest.number_of_neighbors(4, 100) == 4
