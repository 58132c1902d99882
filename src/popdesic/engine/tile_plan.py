"""Sides of the tiles of counts of a large study on a GPU (`tiles_gpu`)."""

from __future__ import annotations

from typing import Any, Protocol

from .layout import BLOCK_ROWS
from .plane_parts import PlaneParts
from .terms import Planes, Terms

#: Most samples a side of a tile of counts.
TILE_SAMPLES = 1 << 15
#: Share of the free device memory for the sums of a tile and what they come from.
TILE_SHARE = 0.75

Bounds = tuple[int, int]


class TileOfSums(Protocol):
    """Sums of one tile on the device (`tiles_gpu.Sums`)."""

    plan: Any

    def arguments(self) -> tuple: ...


class Tiles(Protocol):
    """Sums of tiles on the device (`tiles_gpu.TileSums`)."""

    #: Of all samples; and those on the device, if they are there.
    planes: PlaneParts
    held: Any

    def side(self, terms: Terms) -> int: ...

    def block(self, bounds: Bounds) -> Planes: ...

    def multiply(self, rows: Bounds, columns: Bounds, terms: Terms) -> TileOfSums: ...


def tile_side(n: int, most: int) -> int:
    """Samples a side of the tiles of n samples, at most `most`: whole blocks, evenly long."""
    largest = max(BLOCK_ROWS, most // BLOCK_ROWS * BLOCK_ROWS)
    n_blocks = -(-n // largest)
    return min(largest, -(-n // (n_blocks * BLOCK_ROWS)) * BLOCK_ROWS)
