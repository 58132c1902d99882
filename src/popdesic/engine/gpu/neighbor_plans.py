"""Sizes and host arithmetic of neighbours and close pairs on a GPU (kernels/neighbors/)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..nearest import SLACK, Measure, PlaneParts, tiles_of_pairs
from ..terms import Planes, Terms
from .layout import BLOCK_ROWS, FORMS

#: Most samples a side of a tile of counts, and of one of points.
TILE_SAMPLES, TILE_POINTS = 1 << 15, 1 << 16
#: Pairs of a block with itself are looked at in groups of 2**high samples without those of 2**low:
#: each group is 8 times as long as the one before, so lists are never much worse than their
#: candidates. The first is one tile of points, whose lists are still empty.
BANDS = ((0, 7), (7, 10), (10, 13), (13, 31))
#: Every pair of two blocks.
WHOLE = ((0, 31),)
#: Pairs of a tile whose counts come to the host: 16 bytes each of most distances.
HOST_PAIRS = 1 << 23
#: Share of the free device memory for the sums of a tile and what they come from.
TILE_SHARE = 0.75
#: Error of a float32 comparison of counts: three roundings of 2**-24, and room.
COUNT_ROUNDING = 1e-6

Bounds = tuple[int, int]


class Tiles(Protocol):
    """Sums of tiles on the device (`tiles.TileSums`)."""

    #: Of all samples; and those on the device, if they are there.
    planes: PlaneParts
    held: Any

    def side(self, terms: Terms) -> int: ...

    def block(self, bounds: Bounds) -> Planes: ...

    def multiply(self, rows: Bounds, columns: Bounds, terms: Terms) -> Any: ...


@dataclass(frozen=True)
class Form:
    """How `keep_nearest` turns the last distance of a list into a limit (kernels/neighbors)."""

    code: int
    times: float
    share: float
    slack: float

    @classmethod
    def of_measure(cls, measure: Measure) -> Form:
        return cls(measure.form, measure.times, measure.share, COUNT_ROUNDING)

    @classmethod
    def of_points(cls, scale: float, rounding: float) -> Form:
        return cls(FORMS["POINTS"], scale, SLACK, rounding)

    def defines(self, n_outputs: int) -> tuple[tuple[str, int], ...]:
        return (("FORM", self.code), ("N_OUTPUTS", n_outputs))


def tile_side(n: int, most: int) -> int:
    """Samples a side of the tiles of n samples, at most `most`: whole blocks, evenly long."""
    largest = max(BLOCK_ROWS, most // BLOCK_ROWS * BLOCK_ROWS)
    n_blocks = -(-n // largest)
    return min(largest, -(-n // (n_blocks * BLOCK_ROWS)) * BLOCK_ROWS)


def sides_between(m: int, n: int, kept: tuple[bool, bool]) -> Bounds:
    """Samples of m and of n others in one tile of counts that comes to the host.

    Every sample of the block that is kept on the device, up to TILE_SAMPLES, and few of the other
    one: so the planes of that one pass once.
    """
    first = kept[0] and not kept[1]
    whole = max(1, min(m if first else n, TILE_SAMPLES))
    few = max(BLOCK_ROWS, HOST_PAIRS // whole // BLOCK_ROWS * BLOCK_ROWS)
    return (whole, few) if first else (few, whole)


def ordered_tiles(n: int, side: int) -> Iterator[tuple[Bounds, Bounds]]:
    """`tiles_of_pairs`, tiles of one shape together, so that they share their buffers."""

    def shape(tile: tuple[Bounds, Bounds]) -> tuple[bool, int, int]:
        (first, last), (start, end) = tile
        return first != start, first - last, start - end

    return iter(sorted(tiles_of_pairs(n, side), key=shape))
