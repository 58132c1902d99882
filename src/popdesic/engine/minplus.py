"""(min, +) products and what closures need beside them: the object that a backend hands out.

`minplus_cpu` and `backend_gpu` have one class each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

#: Most samples that become intermediate nodes together in a closure (of a matrix that is not
#: streamed through a device), and the side of the base block that Floyd-Warshall closes.
PANEL, BASE = 512, 128
#: Largest weight in fixed point, which stands for infinity: a sum of two does not overflow.
INFINITY_INT32, INFINITY_INT64 = np.int32(2**30 - 1), np.int64(2**62 - 1)


def infinity(dtype) -> np.generic:
    """The weight that stands for 'no edge' in `dtype`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return INFINITY_INT32 if dtype == np.int32 else INFINITY_INT64
    return dtype.type(np.inf)


def closure_panel(n: int) -> int:
    """Samples that become intermediate nodes together in a closure of n.

    Closing a panel costs its length squared times n; shorter panels read the matrix more often. The
    length decides how float sums are split, so all backends use the same (measured on a CPU and an
    H200: tests/bench/bench_minplus.py, bench_minplus_gpu.py).
    """
    return BASE if n <= PANEL else PANEL // 2 if n <= 8 * PANEL else PANEL


@dataclass
class Bounds:
    """What lets a min-plus product c = min(c, a * b) skip work without changing its result.

    A run of k is skipped for a tile of c when ``floor_a + floor_b >= ceiling`` there. Tiles and
    runs are those of the backend's `bound_tiles`.

    Attributes
    ----------
    floor_a : array, (runs, row tiles)
        Smallest entry of each run of columns of a, by tile of its rows.
    floor_b : array, (runs, column tiles)
    ceiling : array, (row tiles, column tiles)
        No entry of c is larger, now or earlier.
    skipped : int
        Operations left out so far, added to by the backend.
    """

    floor_a: np.ndarray
    floor_b: np.ndarray
    ceiling: np.ndarray
    skipped: int = 0


class SpreadMatrix(Protocol):
    """A symmetric matrix of weights that several devices of a machine store together."""

    def close(
        self, close_block: Callable[[np.ndarray], object], prune: bool = True
    ) -> tuple[int, int]:
        """All-pairs shortest paths, in place, with the bytes of a closure on one device.

        Parameters
        ----------
        close_block : function
            Closes a diagonal block, in the memory of the device that calls it.
        prune : bool
            Whether to skip work that changes nothing.

        Returns
        -------
        possible, skipped : int
            Operations (one add, one minimum) of the products of panels, and those left out.
        """
        ...

    def fetch(self, w: np.ndarray) -> None:
        """Copy the matrix back into host memory."""
        ...


class MinPlus(Protocol):
    """(min, +) products of one kind of device, and the steps of a closure."""

    def multiply(
        self,
        c: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        *,
        symmetric: bool = False,
        bounds: Bounds | None = None,
    ) -> None:
        """In place ``c[i, j] = min(c[i, j], min_k a[i, k] + b[k, j])``.

        Parameters
        ----------
        c, a, b : arrays (m, n), (m, k), (k, n), of one dtype: int32, int64, float32 or float64
            Any strides, in host memory or on the backend's device. `c` may not overlap `a` or
            `b`. Values are not negative, integers at most `infinity`, so that no sum overflows.
        symmetric : bool
            The product and `c` are symmetric, and the caller reads only the upper triangle:
            entries below the diagonal may be left unchanged (see `mirror`).
        bounds : Bounds, optional
            What may be skipped.
        """
        ...

    def close_block(self, w: np.ndarray) -> None:
        """Floyd-Warshall of a symmetric block of at most 128; its upper triangle is read."""
        ...

    def mirror(self, w: np.ndarray) -> None:
        """Copy the upper triangle of a square matrix onto the lower, in place."""
        ...

    def transpose(self, source: np.ndarray, target: np.ndarray) -> None:
        """``target = source.T`` for two blocks whose rows are contiguous."""
        ...

    def bound_tiles(self, dtype: np.dtype) -> tuple[int, int, int]:
        """Rows and columns of the tiles, and length of the runs, that `Bounds` speak of."""
        ...

    def tile_minima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        """The smallest entry of each height x width block of `x`; the last ones may be cut."""
        ...

    def tile_maxima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        """The largest entry of each height x width block of `x`."""
        ...

    def hold(self, w: np.ndarray, order: np.ndarray | None = None) -> np.ndarray:
        """A copy of a square matrix of weights in the memory that this backend computes in.

        Rows and columns are in `order`, if given. It may be padded with samples that have no
        edges. Without an order a CPU returns `w` itself, as a GPU does with a matrix that is too
        large for it.
        """
        ...

    def fetch(self, held: np.ndarray, w: np.ndarray, order: np.ndarray | None = None) -> None:
        """Copy the matrix that `hold` returned into `w`, out of its order."""
        ...

    def spread_matrix(self, w: np.ndarray, order: np.ndarray) -> SpreadMatrix | None:
        """A copy of a square matrix of weights, in `order`, on all devices that the job has.

        None where it has one, or one closes the matrix as fast.
        """
        ...

    def panel(self, w: np.ndarray) -> int:
        """Samples that become intermediate nodes together in the closure of `w`.

        `closure_panel`, except for a matrix that is too large for the device: its floats may then
        differ in the last digits.
        """
        ...
