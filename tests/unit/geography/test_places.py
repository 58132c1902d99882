"""Places: great circles, grouping, neighbours, projection."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import Delaunay

from popdesic.geography.places import (
    EARTH_KM,
    Places,
    find_places,
    gabriel_edges,
    great_circle,
    on_unit_sphere,
    project_places,
)


def samples(points, columns=("latitude", "longitude")) -> pd.DataFrame:
    texts = [["NA" if np.isnan(v) else repr(float(v)) for v in point] for point in points]
    return pd.DataFrame(texts, columns=columns)


def by_vectors(a, b) -> float:
    """Angle between unit vectors by atan2 of cross and dot product, kilometres."""
    u, v = on_unit_sphere(np.array([a, b], float))
    return EARTH_KM * math.atan2(np.linalg.norm(np.cross(u, v)), float(u @ v))


def test_great_circles_of_cities():
    # Published great-circle distances, kilometres.
    berlin, paris, tokyo, sydney = (
        (52.52, 13.405),
        (48.8566, 2.3522),
        (35.6762, 139.6503),
        (
            -33.8688,
            151.2093,
        ),
    )
    for a, b, known in ((berlin, paris, 878), (berlin, tokyo, 8918), (tokyo, sydney, 7823)):
        assert great_circle(np.array(a), np.array(b)) == pytest.approx(known, rel=0.005)


def test_great_circles_agree_with_vectors():
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(-90, 90, 40), rng.uniform(-180, 180, 40)])
    points = np.vstack([points, [[90, 0], [-90, 0], [0, -180], [0, 179.999], [0, 0], [0, 1e-7]]])
    found = great_circle(points[:, None], points[None])
    for a in range(len(points)):
        for b in range(len(points)):
            assert found[a, b] == pytest.approx(by_vectors(points[a], points[b]), abs=1e-3)
    assert found.max() <= math.pi * EARTH_KM + 1e-6
    assert (found.diagonal() == 0).all()


def test_equal_coordinates_are_one_place_in_any_order():
    points = np.array([[1, 180], [1, -180], [np.nan, np.nan], [0, 5], [1, 180], [0, 5.5]])
    found = find_places(samples(points))
    assert len(found) == 3
    assert found.home.tolist() == [2, 2, -1, 0, 2, 1]
    turned = find_places(samples(points[::-1]))
    np.testing.assert_array_equal(turned.points, found.points)
    assert turned.home.tolist() == found.home.tolist()[::-1]
    assert find_places(pd.DataFrame({"sample": ["a"]})) is None


def test_too_many_places_share_cells():
    rng = np.random.default_rng(2)
    points = rng.uniform(0, 100, (500, 2))
    found = find_places(samples(points, ("x", "y")), most=60)
    assert 15 < len(found) <= 60 and found.cell == 20
    for place in range(len(found)):
        own = points[found.home == place]
        np.testing.assert_allclose(found.points[place], own.mean(axis=0))
        assert (np.ptp(own, axis=0) <= found.cell).all()
    # Rounding to whole cells is not rounding to centres: cells of different sides never mix.
    assert len(np.unique(found.points, axis=0)) == len(found)


def slow_gabriel(points: np.ndarray) -> set[tuple[int, int]]:
    """Pairs whose circle holds no third point, one by one."""
    n, found = len(points), set()
    for a in range(n):
        for b in range(a + 1, n):
            middle, radius = (points[a] + points[b]) / 2, np.linalg.norm(points[a] - points[b]) / 2
            if all(
                np.linalg.norm(points[c] - middle) > radius for c in range(n) if c not in (a, b)
            ):
                found.add((a, b))
    return found


@pytest.mark.parametrize("n", [2, 3, 4, 25])
def test_neighbours_are_a_part_of_the_delaunay_triangulation(n):
    points = np.random.default_rng(n).normal(size=(n, 2))
    found = {tuple(edge) for edge in gabriel_edges(points).tolist()}
    assert found == slow_gabriel(points)
    if n > 3:
        triangles = Delaunay(points).simplices
        sides = {
            tuple(sorted((t[i], t[j]))) for t in triangles for i, j in ((0, 1), (0, 2), (1, 2))
        }
        assert found <= sides


def test_neighbours_of_degenerate_places():
    line = np.column_stack([[3.0, 0, 1, 2], np.zeros(4)])
    assert gabriel_edges(line).tolist() == [[0, 3], [1, 2], [2, 3]]
    grid = np.array([(x, y) for y in range(4) for x in range(5)], float) / 3
    turn = np.array([[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]])
    for points in (grid, grid @ turn, grid @ turn @ turn):
        assert len(gabriel_edges(points)) == 4 * 4 + 5 * 3  # no diagonals
    assert gabriel_edges(np.zeros((1, 2))).shape == (0, 2)
    assert gabriel_edges(np.zeros((0, 2))).shape == (0, 2)


def test_the_180th_meridian_is_no_border():
    points = np.array([[0, 170.0], [0, 178], [0, -174], [1, -166], [2, 174]])
    here = gabriel_edges(on_unit_sphere(points))
    there = gabriel_edges(on_unit_sphere(points - [0, 100]))
    np.testing.assert_array_equal(here, there)
    assert [1, 2] in here.tolist()
    shown, centre = project_places(points)
    elsewhere, other = project_places(
        np.column_stack([points[:, 0], (points[:, 1] - 100 + 180) % 360 - 180])
    )
    np.testing.assert_allclose(shown, elsewhere, atol=1e-6)
    assert centre == pytest.approx((1, -178)) and other == pytest.approx((1, 82))


def test_projection_keeps_distances_near_its_centre():
    points = np.array([[47.0, 8.0], [47.2, 8.3], [46.9, 7.8], [47.1, 8.1]])
    shown, _ = project_places(points)
    on_paper = np.sqrt(((shown[:, None] - shown[None]) ** 2).sum(-1))
    true = Places("sphere", points, np.arange(4)).distances()
    np.testing.assert_allclose(on_paper, true, rtol=0.003)


def test_plane_distances():
    places = Places("plane", np.array([[0.0, 0], [3, 4]]), np.arange(2))
    assert places.distances().tolist() == [[0, 5], [5, 0]]
    assert (places.unit, Places("sphere", places.points, places.home).unit) == ("units", "km")
