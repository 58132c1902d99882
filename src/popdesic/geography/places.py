"""Places: the different coordinates of a study, their distances and their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .coordinates import SPHERE, coordinate_columns, read_coordinates

#: Mean radius of the Earth (IUGG), kilometres. A sphere is wrong by at most 0.6 % against WGS84.
EARTH_KM = 6371.0088
#: Most places; where a study has more, neighbouring ones share the cell of a grid.
MOST_PLACES = 1_000


@dataclass(frozen=True)
class Places:
    """Different places of a study.

    Attributes
    ----------
    system : {'sphere', 'plane'}
    points : float64 array, (n_places, 2)
        Latitude and longitude in degrees, or x and y.
    home : int64 array, (n_samples,)
        Place of each sample, -1 where unknown.
    cell : float
        Side of the grid cells that places were joined in; 0 if each coordinate is a place.
    """

    system: str
    points: np.ndarray
    home: np.ndarray
    cell: float = 0.0

    @property
    def unit(self) -> str:
        return "km" if self.system == "sphere" else "units"

    def __len__(self) -> int:
        return len(self.points)

    def distances(self) -> np.ndarray:
        """float64 (n_places, n_places): great circles in kilometres, or straight lines."""
        if self.system == "sphere":
            return great_circle(self.points[:, None], self.points[None])
        return np.sqrt(((self.points[:, None] - self.points[None]) ** 2).sum(axis=-1))

    def vectors(self) -> np.ndarray:
        """Points in a space where straight distances order as those on the ground, (n, 2 or 3)."""
        return on_unit_sphere(self.points) if self.system == "sphere" else self.points


def find_places(samples: pd.DataFrame, most: int = MOST_PLACES) -> Places | None:
    """Places of the samples of a sheet; equal coordinates are one place.

    With more than `most`, coordinates are rounded to the finest grid (cells of 1, 2, 5, 10, 20, ...
    times a power of ten) that leaves at most `most` places, each at the mean of its samples.

    Returns
    -------
    Places or None
        None if no sample has coordinates. Ordered by coordinates, so that the order of samples
        means nothing.
    """
    columns = coordinate_columns(samples)
    if columns is None:
        return None
    system = "sphere" if columns == SPHERE else "plane"
    numbers = read_coordinates(samples, columns)
    known = np.flatnonzero(~np.isnan(numbers[:, 0]))
    home = np.full(len(samples), -1, np.int64)
    points, found = np.unique(numbers[known], axis=0, return_inverse=True)
    cell = 0.0
    if len(points) > most:
        cell, found, points = _join(numbers[known], most)
    home[known] = found.ravel()
    return Places(system, points, home, cell)


def _join(numbers: np.ndarray, most: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Cell, place of each sample and means of the cells of the finest grid with few enough."""
    step = 10.0 ** np.floor(np.log10(np.ptp(numbers, axis=0).max() / most))
    for cell in (step * 10**power * head for power in range(9) for head in (1, 2, 5)):
        cells, found = np.unique(np.floor(numbers / cell), axis=0, return_inverse=True)
        if len(cells) <= most:
            break
    found = found.ravel()
    count = np.bincount(found)
    means = [np.bincount(found, column) / count for column in numbers.T]
    return float(cell), found, np.column_stack(means)


def great_circle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Kilometres along the great circle between points (..., 2) of latitude and longitude.

    Haversine formula (Sinnott 1984), which is accurate for near points; for antipodes rounding
    costs some metres.
    """
    (lat_a, lon_a), (lat_b, lon_b) = (np.moveaxis(np.radians(p), -1, 0) for p in (a, b))
    half = np.sin((lat_b - lat_a) / 2) ** 2
    half = half + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_KM * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def on_unit_sphere(points: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 3) of points (n, 2) of latitude and longitude."""
    latitude, longitude = np.radians(points).T
    flat = np.cos(latitude)
    return np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])


def gabriel_edges(vectors: np.ndarray) -> np.ndarray:
    """Edges of the Gabriel graph, int64 (n_edges, 2), first < second, sorted.

    Two places are neighbours if no third one lies in or on the circle whose diameter they are
    (Gabriel and Sokal 1969). It is the part of the Delaunay triangulation without its long edges
    around the rim, is always connected, and has no degenerate case: places on a line are
    neighbours in turn. On the unit sphere the ball over a chord cuts out the cap over its arc, so
    nothing is projected, and the 180th meridian is no border.

    Parameters
    ----------
    vectors : float64 array, (n, 2 or 3)
        Different points of a plane or of the unit sphere.
    """
    n = len(vectors)
    squared = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=-1)
    edges = []
    for a in range(n - 1):
        others = np.arange(a + 1, n)
        around = squared[a][None, :] + squared[others]
        around[:, a] = np.inf
        around[np.arange(len(others)), others] = np.inf
        # The tolerance counts corners of a square as on the circle despite rounding.
        free = around.min(axis=1) > squared[a, others] * (1 + 1e-9)
        edges += [(a, int(b)) for b in others[free]]
    return np.array(edges, np.int64).reshape(-1, 2)


def project_places(points: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Equirectangular projection around the places' centre: kilometres (n, 2) east and north.

    The central meridian is the middle of the shortest arc of longitudes that holds all places, so
    a study on both sides of the 180th meridian is not torn apart.

    Returns
    -------
    places : float64 array, (n, 2)
    centre : (float, float)
        Latitude and longitude of its origin.
    """
    latitude, longitude = points.T
    turned = np.sort(longitude)
    gaps = np.diff(np.append(turned, turned[0] + 360))
    start = turned[(int(gaps.argmax()) + 1) % len(turned)]
    width = (longitude - start) % 360
    east = width - width.max() / 2
    middle = (latitude.min() + latitude.max()) / 2
    degree = np.radians(1) * EARTH_KM
    shown = np.column_stack([east * np.cos(np.radians(middle)), latitude - middle]) * degree
    return shown, (float(middle), float((start + width.max() / 2 + 180) % 360 - 180))
