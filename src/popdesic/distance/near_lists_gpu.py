"""Lists of nearest samples or points on a GPU, and the candidates that improve them."""

from __future__ import annotations

import cupy
import cupyx
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.tile_plan import Bounds
from .nearest import NOBODY, Nearest
from .nearest_plan import (
    FILTER_THREADS,
    FORMS,
    LIST_ROOM,
    LISTS,
    LimitForm,
    TileOfSums,
    filter_grid,
)

#: The side of a tile whose samples have lists.
ROWS, COLUMNS, BOTH = 1, 2, 3
_NULL = np.uint64(0)
#: Lists up to so large come back to pinned memory: eight times as fast, but slow to allocate.
PINNED_BYTES = 32 << 20


class Lists:
    """The lists of n samples on the device, and candidates of both sides of a tile."""

    def __init__(self, n: int, k: int, side: int, form: LimitForm, device: Device) -> None:
        self.n, self.k, self.side, self.form = n, k, side, form
        used = np.int64 if form.code == FORMS["MATCHES"] else np.int32
        self.distance = cupy.full((n, k), np.inf, np.float64)
        self.index = cupy.full((n, k), NOBODY, np.int32)
        self.called = cupy.zeros((n, k), used)
        self.limits = cupy.full(n, 3e38, np.float32)
        room = (2 * side, LIST_ROOM)
        self.new = [cupy.empty(room, dtype) for dtype in (np.float64, np.int32, used)]
        self.count = cupy.zeros(2 * side, np.uint32)
        self.overflow = cupy.zeros(1, np.int32)
        self.kernel = load_function(LISTS, "keep_nearest", form.defines, device.capability)

    def arguments(self) -> tuple:
        """Of a kernel that offers candidates: `Lists` of lists.cuh."""
        lists = self.distance, self.index, self.called, self.limits
        return (*lists, *self.new, self.count, np.int32(self.k))

    def places(self, own: bool) -> np.int32:
        """Where the candidates of a tile's columns begin: those of its rows where it is `own`."""
        return np.int32(0 if own else self.side)

    def keep(self, rows: Bounds | None, columns: Bounds | None) -> bool:
        """Sort the candidates into the lists of both sides; whether all of them had room.

        None: that side has no lists.
        """
        self.overflow.fill(0)
        sides = [(rows, 0)] if rows == columns else [(rows, 0), (columns, self.side)]
        numbers = [np.float64(x) for x in (self.form.times, self.form.share, self.form.slack)]
        for bounds, place in sides:
            if bounds is not None:
                first, last = bounds
                self.kernel(
                    (last - first,),
                    (32,),
                    (*self.arguments(), *map(np.int32, (first, place)), *numbers, self.overflow),
                )
        return not int(self.overflow[0])

    def result(self, people: Bounds, k: int, first_other: int = 0) -> Nearest:
        """The lists of some people in host memory, k entries each.

        `first_other`: what others are numbered from.
        """
        mine = slice(*people), slice(0, k)
        found = Nearest(
            *(_fetch(array[mine]) for array in (self.index, self.distance, self.called))
        )
        assert not (found.index == NOBODY).any(), "a list that is not full"
        found.index -= np.int32(first_other)
        return found


def _fetch(array: cupy.ndarray) -> np.ndarray:
    """An array in host memory."""
    if array.nbytes > PINNED_BYTES:
        return np.ascontiguousarray(array.get())
    out = cupyx.empty_pinned(array.shape, array.dtype)
    array.get(out=out)
    return out


class Offers:
    """Offers the pairs of tiles of counts to lists (kernels/distance/near_lists.cu).

    Attributes
    ----------
    lists : Lists
    numbers : tuple
        What distances follow from: times, share, fewest jointly called sites.
    sides : int
        Whose lists they are: of the ROWS of tiles, of the COLUMNS, or of BOTH.
    few : uint64 device array, (1,)
        Pairs with too few jointly called sites so far.
    """

    def __init__(
        self, lists: Lists, device: Device, least_called: int, numbers=(1.0, 1.0), sides: int = BOTH
    ) -> None:
        self.lists, self.sides, self.few = lists, sides, cupy.zeros(1, np.uint64)
        self.numbers = (*map(np.float64, numbers), np.int32(least_called))
        defines = lists.form.defines
        self.kernel = load_function(LISTS, "filter_counts", defines, device.capability)

    def offer(
        self, sums: TileOfSums, rows: Bounds, columns: Bounds, bands: tuple[Bounds, ...]
    ) -> None:
        """One tile, band by band; rows and columns are numbers of samples."""
        own = rows == columns and self.sides == BOTH
        kept = rows if self.sides & ROWS else None, columns if self.sides & COLUMNS else None
        for band in bands:
            full, counted = False, self.few
            while not full:
                self.kernel(
                    filter_grid(rows[1] - rows[0], columns[1] - columns[0]),
                    (FILTER_THREADS,),
                    (
                        *sums.arguments(),
                        *map(np.int32, (rows[0], columns[0], own, self.sides, *band)),
                        *self.numbers,
                        *self.lists.arguments(),
                        self.lists.places(own),
                        counted,
                    ),
                )
                full, counted = self.lists.keep(*kept), _NULL
