"""Lists of nearest samples or points on a GPU, and the candidates that improve them."""

from __future__ import annotations

import cupy
import numpy as np

from ..nearest import NOBODY, Nearest
from .compile import load_function
from .devices import Device
from .layout import LIST_ROOM
from .neighbor_plans import Bounds, Form

#: The file of these kernels.
NEAREST = "neighbors/nearest"


class Lists:
    """The lists of n samples on the device, and candidates of both sides of a tile."""

    def __init__(self, n: int, k: int, side: int, form: Form, device: Device) -> None:
        self.n, self.k, self.side, self.form = n, k, side, form
        self.distance = cupy.full((n, k), np.inf, np.float64)
        self.index = cupy.full((n, k), NOBODY, np.int32)
        self.called = cupy.zeros((n, k), np.int32)
        self.limits = cupy.full(n, 3e38, np.float32)
        room = (2 * side, LIST_ROOM)
        self.new = [cupy.empty(room, dtype) for dtype in (np.float64, np.int32, np.int32)]
        self.count = cupy.zeros(2 * side, np.uint32)
        self.overflow = cupy.zeros(1, np.int32)
        defines = form.defines(2)
        self.kernel = load_function(NEAREST, "keep_nearest", defines, device.capability)

    def arguments(self) -> tuple:
        """Of a kernel that offers candidates: `Lists` of lists.cuh."""
        lists = self.distance, self.index, self.called, self.limits
        return (*lists, *self.new, self.count, np.int32(self.k))

    def places(self, own: bool) -> np.int32:
        """Where the candidates of a tile's columns begin: those of its rows where it is `own`."""
        return np.int32(0 if own else self.side)

    def keep(self, rows: Bounds, columns: Bounds) -> bool:
        """Sort the candidates into the lists; whether all of them had room."""
        self.overflow.fill(0)
        sides = [(rows, 0)] if rows == columns else [(rows, 0), (columns, self.side)]
        for (first, last), place in sides:
            numbers = map(np.float64, (self.form.times, self.form.share, self.form.slack))
            self.kernel(
                (last - first,),
                (32,),
                (
                    *self.arguments(),
                    np.int32(first),
                    np.int32(place),
                    *numbers,
                    self.overflow,
                ),
            )
        return not int(self.overflow[0])

    def result(self, people: Bounds, k: int, first_other: int = 0) -> Nearest:
        """The lists of some people in host memory, k entries each.

        `first_other`: what others are numbered from.
        """
        mine = slice(*people), slice(0, k)
        lists = (array[mine].get() for array in (self.index, self.distance, self.called))
        found = Nearest(*map(np.ascontiguousarray, lists))
        assert not (found.index == NOBODY).any(), "a list that is not full"
        found.index -= np.int32(first_other)
        return found
