"""Tiles of counts of a large study on a GPU: sums that stay on the device, to be selected there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import cupy
import cupyx
import numpy as np

from . import tile_plan
from .layout import divide_up
from .plane_parts import PlaneParts
from .stream_gpu import BitgemmStream, StreamHost
from .stream_plan import largest_block
from .terms import Planes, Terms
from .tile_plan import TILE_SHARE, Bounds, tile_side

#: Most sites whose sums, of a weight of 4, fit 32 bits.
MOST_SITES = 1 << 29
#: Share of the free device memory that the planes of a study may keep.
HELD_SHARE = 0.5
#: Bytes of planes that go to the device at a time.
UPLOAD_BYTES = 128 << 20


class TileHost(StreamHost, Protocol):
    """What tiles need of the backend that they work for."""

    def stream(
        self, m: int, n: int | None, planes_a: int, planes_b: int, terms: Terms, n_sites: int
    ) -> BitgemmStream: ...


@dataclass
class Sums:
    """Accumulators of a tile and how outputs follow from them (kernels/engine/sums.cuh)."""

    acc: cupy.ndarray
    total: cupy.ndarray | None
    plan: cupy.ndarray
    row_terms: cupy.ndarray
    column_terms: cupy.ndarray

    @classmethod
    def of(cls, stream: BitgemmStream) -> Sums:
        """The sums of a stream; it must be cleared before more is added."""
        with stream._compute:
            if stream.rare_sites:
                stream.rare_sites.settle()
            rows, columns = (
                cupy.ascontiguousarray(cupy.stack(terms).astype(np.int32))
                for terms in zip(*stream._count_terms(), strict=True)
            )
            plan = cupy.asarray(np.array([stream.plan.slots, stream.plan.scale], np.int32))
            done = stream._compute.record()
        cupy.cuda.get_current_stream().wait_event(done)
        return cls(stream._acc, stream._total, plan, rows, columns)

    def arguments(self) -> tuple:
        """Of a kernel that reads sums, up to the number of columns."""
        return (
            self.acc,
            np.uint64(0) if self.total is None else self.total,
            np.int64(self.acc.shape[1] * self.acc.shape[2]),
            np.int64(self.acc.shape[2]),
            self.plan,
            self.row_terms,
            self.column_terms,
            np.int32(self.row_terms.shape[1]),
            np.int32(self.column_terms.shape[1]),
        )


class _KeptStream:
    """Products of one pair of blocks after the other; blocks of the same shape share buffers."""

    def __init__(self, backend: TileHost, n_sites: int) -> None:
        if n_sites >= MOST_SITES:
            raise ValueError(f"{n_sites} sites; at most {MOST_SITES - 1} fit these sums.")
        self.backend, self.n_sites = backend, n_sites
        self._stream: tuple[tuple, BitgemmStream] | None = None

    def multiply(self, a: Planes, b: Planes | None, terms: Terms) -> Sums:
        """The sums of two blocks, or of one with itself; they hold until the next ones."""
        other = a if b is None else b
        n = None if b is None else b.n_samples
        sizes = a.n_samples, n, a.words.shape[1], other.words.shape[1]
        if self._stream is None or self._stream[0] != (terms, sizes):
            self._stream = None
            made = self.backend.stream(*sizes, terms, self.n_sites)
            self._stream = (terms, sizes), made
        else:
            self._stream[1].clear()
        stream = self._stream[1]
        stream.add(a, b)
        return Sums.of(stream)


class TileSums:
    """Products of blocks of a study's samples, one tile after the other.

    Planes are kept on the device where they fit; otherwise a block of rows is, and columns come
    from the host while they are multiplied.
    """

    def __init__(self, backend: TileHost, planes: PlaneParts) -> None:
        self.backend, self.planes = backend, planes
        self._products = _KeptStream(backend, planes.n_sites)
        words = planes.parts[0].words
        if len(planes.parts) == 1 and isinstance(words, cupy.ndarray):
            self.held = cupy.ascontiguousarray(words)
        elif planes.n_bytes <= HELD_SHARE * backend.free_bytes():
            self.held = upload(backend, planes)
        else:
            self.held = None
        self._rows: tuple[Bounds, Planes] | None = None

    def side(self, terms: Terms) -> int:
        """Samples a side of the tiles of some terms."""
        most = _most_of_side(self.backend, terms, self.planes.n_planes)
        return tile_side(self.planes.n_samples, most)

    def block(self, bounds: Bounds) -> Planes:
        """Planes of a block of rows, on the device."""
        if self.held is not None:
            return Planes(self.held[slice(*bounds)], self.planes.n_sites)
        if self._rows is None or self._rows[0] != bounds:
            self._rows = None
            words = cupy.asarray(np.ascontiguousarray(self.planes.block(*bounds).words))
            self._rows = bounds, Planes(words, self.planes.n_sites)
        return self._rows[1]

    def columns(self, bounds: Bounds) -> Planes:
        """Planes of a block of columns, on the device or in host memory."""
        return self.block(bounds) if self.held is not None else self.planes.block(*bounds)

    def multiply(self, rows: Bounds, columns: Bounds, terms: Terms) -> Sums:
        """The sums of one tile; they hold until the next one."""
        a = self.block(rows)
        symmetric = rows == columns and terms.symmetric
        b = None if symmetric else a if rows == columns else self.columns(columns)
        return self._products.multiply(a, b, terms)


class BlockSums:
    """Products of two blocks of different samples, tile by tile.

    A block that is on the device makes the rows, so that one in host memory passes once for all of
    them; two blocks in host memory pass together.

    Attributes
    ----------
    rows, columns : Planes
    turned : bool
        The rows are the second block.
    """

    def __init__(self, backend: TileHost, a: Planes, b: Planes) -> None:
        there = [isinstance(planes.words, cupy.ndarray) for planes in (a, b)]
        self.backend, self.turned = backend, there[1] and not there[0]
        self.rows, self.columns = (b, a) if self.turned else (a, b)
        self._products = _KeptStream(backend, a.n_sites)

    def sides(self, terms: Terms) -> Bounds:
        """Most rows and columns of a tile of some terms."""
        most = _most_of_side(self.backend, terms, 3)
        return tile_side(self.rows.n_samples, most), tile_side(self.columns.n_samples, most)

    def multiply(self, rows: Bounds, columns: Bounds, terms: Terms) -> Sums:
        """The sums of one tile; they hold until the next one."""
        a, b = (
            Planes(planes.words[slice(*bounds)], planes.n_sites)
            for planes, bounds in ((self.rows, rows), (self.columns, columns))
        )
        return self._products.multiply(a, b, terms)


def _most_of_side(backend: TileHost, terms: Terms, n_planes: int) -> int:
    """Most samples a side of a tile of some terms."""
    room = int(TILE_SHARE * backend.free_bytes())
    fits = largest_block(len(terms.outputs), n_planes, room)
    return min(fits, tile_plan.TILE_SAMPLES)


def upload(backend: StreamHost, planes: PlaneParts) -> cupy.ndarray:
    """All planes on the device: uint64 (n_samples, n_planes, n_words)."""
    shape = planes.n_samples, planes.n_planes, planes.n_words
    held = cupy.empty(shape, np.uint64)
    rows = min(max(1, shape[0]), max(1, UPLOAD_BYTES // (8 * max(1, shape[1] * shape[2]))))
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.wait_event(cupy.cuda.get_current_stream().record())
    buffers = [cupyx.empty_pinned((rows, *shape[1:]), np.uint64) for _ in range(2)]
    sent = [cupy.cuda.Event(), cupy.cuda.Event()]
    for number, first in enumerate(range(0, planes.n_samples, rows)):
        last, turn = min(first + rows, planes.n_samples), number % 2
        sent[turn].synchronize()
        pinned = buffers[turn][: last - first]
        _copy(backend, pinned, planes.block(first, last).words)
        held[first:last].set(pinned, stream=stream)
        sent[turn].record(stream)
    stream.synchronize()
    return held


def _copy(backend: StreamHost, target: np.ndarray, source: np.ndarray) -> None:
    """Copy rows by the threads that the job has."""
    step = divide_up(len(source), backend.threads)

    def copy(first: int) -> None:
        np.copyto(target[first : first + step], source[first : first + step])

    list(backend.copiers.map(copy, range(0, len(source), step)))
