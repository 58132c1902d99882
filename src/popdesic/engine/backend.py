"""The protocol that every backend implements, and what closures hand to it.

Two semiring products carry all heavy work: `bitgemm` sums weighted popcounts of ANDed bit-planes,
`minplus` is the (min, +) matrix product. What a room computes besides lies in its own modules:
`x_cpu` and `x_gpu`, behind a function of `x` that takes the backend.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .constants import BASE, INFINITY_INT32, INFINITY_INT64, PANEL
from .genotype_products import Calls, GenotypeProducts
from .terms import Planes, Terms

log = logging.getLogger(__name__)


def on_cpu(what: str, why: str) -> None:
    """Log that a job with a GPU computes something on the CPU."""
    log.info("On the CPU: %s; %s.", what, why)


def infinity(dtype) -> np.generic:
    """The weight that stands for 'no edge' in `dtype`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return INFINITY_INT32 if dtype == np.int32 else INFINITY_INT64
    return dtype.type(np.inf)


def closure_panel(n: int) -> int:
    """Individuals that become intermediate nodes together in a closure of n.

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


class Backend(Protocol):
    """The array primitives that one kind of device provides. Results are numpy arrays."""

    #: Of the device: ``cpu`` or ``gpu``.
    name: str
    #: CPU threads that the job may use, for what the host computes as well.
    threads: int

    def describe(self) -> str:
        """One line for the log: which device and which kernels will do the work."""
        ...

    def bitgemm(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        """Weighted AND+popcount products between all samples of `a` and of `b`.

        Parameters
        ----------
        a, b : Planes
            Blocks of m and n samples over the same sites. ``b=None`` means `a` against itself:
            only one triangle is computed, then mirrored.
        terms : Terms
            Letters are evaluated over called genotypes. Where a block is complete its c is all
            ones. With ``b=None`` and terms that are not symmetric, a GPU computes all pairs.

        Returns
        -------
        int64 array, (n_outputs, m, n)
            Exact. Missing genotypes add nothing.
        """
        ...

    def keep_planes(self, planes: Planes) -> Planes:
        """The same planes where products read them fastest: those of a block used many times.

        On the device if they are small beside its memory, otherwise as they are. Only `bitgemm`
        reads them.
        """
        ...

    def minplus(
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

    def hold(self, w: np.ndarray) -> np.ndarray:
        """A copy of a square matrix of weights in the memory that this backend computes in.

        It may be padded with individuals that have no edges. A CPU returns `w` itself, as a GPU
        does with a matrix that is too large for it.
        """
        ...

    def fetch(self, held: np.ndarray, w: np.ndarray) -> None:
        """Copy the matrix that `hold` returned for `w` back into `w`."""
        ...

    def spread_matrix(self, w: np.ndarray) -> SpreadMatrix | None:
        """A copy of a square matrix of weights on all devices that the job has.

        None where it has one, or one closes the matrix as fast.
        """
        ...

    def panel(self, w: np.ndarray) -> int:
        """Individuals that become intermediate nodes together in the closure of `w`.

        `closure_panel`, except for a matrix that is too large for the device: its floats may then
        differ in the last digits.
        """
        ...

    def genotype_products(self, calls: Calls) -> GenotypeProducts:
        """Products of standardised genotypes with vectors; the same bytes from every backend."""
        ...
