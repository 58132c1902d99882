"""Nearest samples and nearest points on a GPU: selected on the device, tile by tile.

A tile's sums are read once, where the products left them (kernels/distance/); what leaves the
device is the result.
"""

from __future__ import annotations

import cupy
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import divide_up
from ..engine.tile_plan import tile_side
from . import nearest_plan
from .near_lists_gpu import Lists, Offers
from .nearest import Measure, Nearest, Scaled, checked_points
from .nearest_plan import (
    BANDS,
    POINT_SIDE,
    POINT_TILE,
    WHOLE,
    LimitForm,
    Tiles,
    TilesBetween,
    ordered_tiles,
    tiles_between,
)


def _offers(measure: Measure, lists: Lists, device: Device) -> Offers:
    return Offers(lists, device, measure.least_called, (measure.times, measure.share))


def nearest_samples(tiles: Tiles, measure: Measure, k: int, device: Device) -> Nearest:
    """`nearest_samples`."""
    n = tiles.planes.n_samples
    found = Nearest.empty(n, k)
    if n < 2:
        return found
    k, form = found.index.shape[1], LimitForm.of_measure(measure)
    side = tiles.side(measure.terms)
    lists = Lists(n, max(1, k), side, form, device)
    offers = _offers(measure, lists, device)
    for rows, columns in ordered_tiles(n, side):
        sums = tiles.multiply(rows, columns, measure.terms)
        offers.offer(sums, rows, columns, BANDS if rows == columns else WHOLE)
    found = lists.result((0, n), k)
    found.few = int(offers.few[0])
    return found


def nearest_between(
    tiles: TilesBetween, measure: Measure, k: int, device: Device
) -> tuple[Nearest, Nearest]:
    """`nearest_between`: lists of the rows' samples, and behind them of the columns'."""
    m, n = tiles.rows.n_samples, tiles.columns.n_samples
    of_rows, of_columns = Nearest.empty(m, k, n), Nearest.empty(n, k, m)
    if not m or not n:
        return of_rows, of_columns
    ks = of_rows.index.shape[1], of_columns.index.shape[1]
    sides = tiles.sides(measure.terms)
    lists = Lists(m + n, max(1, *ks), max(sides), LimitForm.of_measure(measure), device)
    offers = _offers(measure, lists, device)
    for rows, columns, bands in tiles_between(m, n, sides):
        sums = tiles.multiply(rows, columns, measure.terms)
        offers.offer(sums, rows, (m + columns[0], m + columns[1]), bands)
    of_rows = lists.result((0, m), ks[0], first_other=m)
    of_columns = lists.result((m, m + n), ks[1])
    of_rows.few = of_columns.few = int(offers.few[0])
    return of_rows, of_columns


def nearest_points(points: np.ndarray, k: int, device: Device) -> Nearest:
    """`nearest_points`."""
    points = checked_points(points)
    n, m = points.shape
    found = Nearest.empty(n, k)
    k = found.index.shape[1]
    if not k:
        return found
    there = cupy.asarray(points)
    scaled = Scaled.of(there, cupy)
    side = tile_side(n, nearest_plan.TILE_POINTS)
    lists = Lists(n, k, side, LimitForm.of_points(scaled.scale, scaled.rounding), device)
    kernel = load_function(nearest_plan.POINTS, "filter_points", (), device.capability)
    for rows, columns in ordered_tiles(n, side):
        own = rows == columns
        grid = tuple(divide_up(last - first, POINT_TILE) for first, last in (columns, rows))
        for band in BANDS if own else WHOLE:
            full = False
            while not full:
                kernel(
                    grid,
                    (POINT_SIDE * POINT_SIDE,),
                    (
                        there,
                        scaled.points,
                        np.int32(m),
                        np.int64(n),
                        *map(np.int32, (*rows, *columns, own)),
                        *map(np.int32, band),
                        *lists.arguments(),
                        lists.places(own),
                    ),
                )
                full = lists.keep(rows, columns)
    found = lists.result((0, n), k)
    found.distance = np.sqrt(found.distance)
    return found
