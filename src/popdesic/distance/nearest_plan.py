"""Sizes and host arithmetic of neighbours and pairs on a GPU (kernels/distance/)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..engine.layout import KernelSource, divide_up
from ..engine.plane_parts import PlaneParts
from ..engine.terms import KINSHIP, Planes, Terms
from ..engine.tile_plan import Bounds
from .nearest import (
    MOST_NEIGHBORS,
    NOBODY,
    RATIO,
    ROOT,
    SHARE_BITS,
    SHARES,
    SLACK,
    Measure,
    tiles_of_pairs,
)

#: Entries that one warp sorts, and candidates of a person among them.
LIST_LENGTH = 1024
LIST_ROOM = LIST_LENGTH - MOST_NEIGHBORS
#: Threads of a thread block that looks through counts, 4 columns each, and rows that it walks over.
FILTER_THREADS, FILTER_ROWS = 256, 64
#: Points a side of a thread block, threads a side, coordinates in shared memory at a time.
POINT_TILE, POINT_SIDE, POINT_DEPTH = 128, 16, 16
#: Code of each form of a distance; the last ones are of points and of matches.
FORMS = {"ROOT": ROOT, "RATIO": RATIO, "SHARES": SHARES, "POINTS": 3, "MATCHES": 4}
_LISTS = {
    "LIST_LENGTH": LIST_LENGTH,
    "LIST_ROOM": LIST_ROOM,
    **{f"FORM_{name}": code for name, code in FORMS.items()},
    "NOBODY": NOBODY,
}
LISTS = KernelSource.of(
    "distance/near_lists",
    **_LISTS,
    FILTER_THREADS=FILTER_THREADS,
    FILTER_ROWS=FILTER_ROWS,
    SHARE_BITS=SHARE_BITS,
)
POINTS = KernelSource.of(
    "distance/points",
    **_LISTS,
    POINT_TILE=POINT_TILE,
    POINT_SIDE=POINT_SIDE,
    POINT_DEPTH=POINT_DEPTH,
)
#: Most points a side of a tile.
TILE_POINTS = 1 << 16
#: Pairs of blocks whose lists are empty are looked at in groups of 2**high samples without those of
#: 2**low: each group is 8 times as long as the one before, so lists are never much worse than their
#: candidates. The first is one tile of points.
BANDS = ((0, 7), (7, 10), (10, 13), (13, 31))
#: Every pair of two blocks.
WHOLE = ((0, 31),)
#: Error of a float32 comparison of counts: three roundings of 2**-24, and room.
COUNT_ROUNDING = 1e-6


class TileOfSums(Protocol):
    """Sums of one tile on the device (`tiles.Sums`)."""

    plan: Any

    def arguments(self) -> tuple: ...


class Tiles(Protocol):
    """Sums of tiles on the device (`tiles.TileSums`)."""

    #: Of all samples; and those on the device, if they are there.
    planes: PlaneParts
    held: Any

    def side(self, terms: Terms) -> int: ...

    def block(self, bounds: Bounds) -> Planes: ...

    def multiply(self, rows: Bounds, columns: Bounds, terms: Terms) -> TileOfSums: ...


class TilesBetween(Protocol):
    """Sums of tiles of two blocks on the device (`tiles.BlockSums`)."""

    #: The rows are the second block.
    turned: bool
    rows: Planes
    columns: Planes

    def sides(self, terms: Terms) -> Bounds: ...

    def multiply(self, rows: Bounds, columns: Bounds, terms: Terms) -> TileOfSums: ...


@dataclass(frozen=True)
class LimitForm:
    """How `keep_nearest` turns the last distance of a list into a limit (kernels/distance)."""

    code: int
    n_outputs: int
    times: float
    share: float
    slack: float

    @classmethod
    def of_measure(cls, measure: Measure) -> LimitForm:
        n_outputs = len(measure.terms.outputs)
        return cls(measure.form, n_outputs, measure.times, measure.share, COUNT_ROUNDING)

    @classmethod
    def of_points(cls, scale: float, rounding: float) -> LimitForm:
        return cls(FORMS["POINTS"], 2, scale, SLACK, rounding)

    @classmethod
    def of_matches(cls) -> LimitForm:
        """Best matches, from counts of `KINSHIP`."""
        return cls(FORMS["MATCHES"], len(KINSHIP.outputs), 2.0**SHARE_BITS, 1.0, COUNT_ROUNDING)

    @property
    def defines(self) -> tuple[tuple[str, int], ...]:
        return (("FORM", self.code), ("N_OUTPUTS", self.n_outputs))


def tiles_between(
    m: int, n: int, sides: tuple[int, int]
) -> Iterator[tuple[Bounds, Bounds, tuple[Bounds, ...]]]:
    """Rows among m samples, columns among n others, and the bands of each tile.

    A tile of samples that have met nobody is looked at group by group.
    """
    for row in range(0, m, sides[0]):
        for column in range(0, n, sides[1]):
            bands = WHOLE if row and column else BANDS
            yield (row, min(row + sides[0], m)), (column, min(column + sides[1], n)), bands


def filter_grid(n_rows: int, n_columns: int) -> tuple[int, int]:
    """Thread blocks that look through a tile of counts."""
    return divide_up(n_columns, 4 * FILTER_THREADS), divide_up(n_rows, FILTER_ROWS)


def ordered_tiles(n: int, side: int) -> Iterator[tuple[Bounds, Bounds]]:
    """`tiles_of_pairs`, tiles of one shape together, so that they share their buffers."""

    def shape(tile: tuple[Bounds, Bounds]) -> tuple[bool, int, int]:
        (first, last), (start, end) = tile
        return first != start, first - last, start - end

    return iter(sorted(tiles_of_pairs(n, side), key=shape))
