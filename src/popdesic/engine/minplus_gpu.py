"""min-plus products on a CUDA device: operands made ready for minplus.cu, and launched.

Device arrays in the kernel's layout (rows aligned to 16 bytes, whole tiles) are used in place; all
others, host arrays in particular, are copied and padded.
"""

from __future__ import annotations

import cupy
import numpy as np

from .compile_gpu import load_function
from .devices import Device
from .layout import TURN_SIDE, divide_up
from .minplus import Bounds, infinity
from .minplus_plan import BOUND_RUN, BOUND_TILE, MINPLUS, THREADS, host_block, shape_of

_NULL = np.uint64(0)


def _function(name: str, dtype: np.dtype, device: Device) -> cupy.RawKernel:
    return load_function(
        MINPLUS, name, shape_of(dtype, device.shared_bytes).defines, device.capability
    )


def _row_length(x: cupy.ndarray) -> np.int64:
    return np.int64(x.strides[0] // x.itemsize)


def _usable(x, height: int, width: int) -> bool:
    """Whether the kernel can read `x` in place, in blocks of height x width."""
    return (
        isinstance(x, cupy.ndarray)
        and x.strides[1] == x.itemsize
        and x.strides[0] % 16 == 0
        and x.data.ptr % 16 == 0
        and x.shape[0] % height == 0
        and x.shape[1] % width == 0
    )


def _ready(x, height: int, width: int) -> cupy.ndarray:
    """`x` on the device in the kernel's layout, padded with infinity where it has to be copied."""
    if _usable(x, height, width):
        return x
    rows, columns = (divide_up(s, b) * b for s, b in zip(x.shape, (height, width), strict=True))
    padded = cupy.full((rows, columns), infinity(x.dtype), x.dtype)
    padded[: x.shape[0], : x.shape[1]] = cupy.asarray(x)
    return padded


def multiply(
    c, a, b, *, symmetric: bool, bounds: Bounds | None, device: Device, free_bytes: int
) -> None:
    """``c = min(c, a * b)`` in place; see `MinPlus.multiply`.

    Matrices in host memory go through the device in blocks of `c` that fit `free_bytes`.
    """
    if not (c.dtype == a.dtype == b.dtype):
        raise ValueError(f"minplus needs one dtype, got {c.dtype}, {a.dtype} and {b.dtype}")
    if 0 in (*c.shape, a.shape[1]):
        return
    if isinstance(c, cupy.ndarray):
        _multiply(c, a, b, symmetric=symmetric, bounds=bounds, device=device)
        return
    (m, n), depth = c.shape, a.shape[1]
    side = host_block(depth, c.itemsize, free_bytes)
    for i in range(0, m, side):
        rows = cupy.asarray(a[i : i + side].T) if m > side or n > side else a[i : i + side].T
        for j in range(i if symmetric else 0, n, side):
            block = c[i : i + side, j : j + side]
            held = cupy.asarray(block)
            _multiply(
                held,
                rows.T,
                b[:, j : j + side],
                symmetric=symmetric and i == j,
                bounds=None,
                device=device,
            )
            block[...] = held.get()


def _multiply(c, a, b, *, symmetric: bool, bounds: Bounds | None, device: Device) -> None:
    p, q, out = (
        _ready(a.T, BOUND_RUN, BOUND_TILE),
        _ready(b, BOUND_RUN, BOUND_TILE),
        _ready(c, BOUND_TILE, BOUND_TILE),
    )
    blocks = shape_of(c.dtype, device.shared_bytes).blocks(out.shape, symmetric)
    _launch(blocks, p, q, out, symmetric, bounds, (_NULL, 0, 0, 0, 0), device)
    if out is not c:
        c[...] = out[: c.shape[0], : c.shape[1]]


def multiply_listed(
    c: cupy.ndarray,
    p: cupy.ndarray,
    q: cupy.ndarray,
    tiles: cupy.ndarray,
    hole: tuple[range, range],
    bounds: Bounds | None,
    device: Device,
) -> None:
    """``c[i, j] = min(c[i, j], min_k p[k, i] + q[k, j])`` in some tiles of c, on its device.

    Parameters
    ----------
    c, p, q : arrays (m, n), (k, m), (k, n), of one dtype
        In the kernel's layout, in whole tiles.
    tiles : uint16 array, (n_tiles, 2)
        Row and column of each tile, in tiles of `Shape.block`.
    hole : two ranges
        Rows and columns, in such tiles, of which no tile is computed.
    bounds : Bounds, optional
        Of the whole product.
    """
    if not len(tiles):
        return
    assert tiles.flags.c_contiguous, "row and column of a tile lie side by side"
    for x, height in ((c, BOUND_TILE), (p, BOUND_RUN), (q, BOUND_RUN)):
        assert _usable(x, height, BOUND_TILE), "a spread matrix is stored in whole tiles"
    rows, columns = hole
    edges = rows.start, rows.stop, columns.start, columns.stop
    _launch(len(tiles), p, q, c, False, bounds, (tiles, *edges), device)


def _launch(
    blocks: int, p, q, out, symmetric: bool, bounds: Bounds | None, chosen: tuple, device: Device
) -> None:
    """Launch so many thread blocks; `chosen`: the tiles of a list, and the edges of its hole."""
    shape = shape_of(out.dtype, device.shared_bytes)
    function = _function("minplus", out.dtype, device)
    function.max_dynamic_shared_size_bytes = shape.shared_bytes
    skipping = (_NULL,) * 4
    if bounds is not None:
        skipped = cupy.zeros(1, np.uint64)
        skipping = (bounds.floor_a, bounds.floor_b, bounds.ceiling, skipped)
    function(
        (blocks,),
        (THREADS,),
        (
            p,
            q,
            out,
            _row_length(p),
            _row_length(q),
            _row_length(out),
            np.int32(out.shape[0]),
            np.int32(out.shape[1]),
            np.int32(p.shape[0]),
            np.int32(symmetric),
            *skipping,
            chosen[0],
            *map(np.int32, chosen[1:]),
        ),
        shared_mem=shape.shared_bytes,
    )
    if bounds is not None:
        # a device scalar, read at the end: the host does not wait for each product
        bounds.skipped = bounds.skipped + skipped[0] * (BOUND_RUN * shape.block**2)


def close_block(w, device: Device) -> None:
    """Floyd-Warshall of one small block; see `MinPlus.close_block`."""
    on_device = isinstance(w, cupy.ndarray) and w.strides[1] == w.itemsize
    block = w if on_device else cupy.array(w, order="C")
    function = _function("close_block", w.dtype, device)
    function((1,), (THREADS,), (block, _row_length(block), np.int32(len(block))))
    if not on_device:
        w[...] = block if isinstance(w, cupy.ndarray) else block.get()


def transpose(source: cupy.ndarray, target: cupy.ndarray, device: Device) -> None:
    """``target = source.T``, both with contiguous rows."""
    if isinstance(source, cupy.ndarray):
        _transpose(source, target, False, device)
    else:
        target[...] = source.T


def mirror(w: cupy.ndarray, device: Device) -> None:
    """Copy the upper triangle onto the lower."""
    if isinstance(w, cupy.ndarray):
        _transpose(w, w, True, device)
    else:
        from .minplus_cpu import mirror_upper  # compiled only where a matrix exceeds the device

        mirror_upper(w)


def _transpose(source, target, triangle: bool, device: Device) -> None:
    rows, columns = source.shape
    if not rows or not columns:
        return
    _function("transpose", source.dtype, device)(
        (divide_up(columns, TURN_SIDE), divide_up(rows, TURN_SIDE)),
        (THREADS,),
        (
            source,
            target,
            _row_length(source),
            _row_length(target),
            np.int32(rows),
            np.int32(columns),
            np.int32(triangle),
        ),
    )


def tile_extremes(x, height: int, largest: bool, device: Device) -> cupy.ndarray:
    """Smallest or largest entry of each height x BOUND_TILE block of a device array."""
    assert _usable(x, height, BOUND_TILE), "bounds are for matrices in whole tiles"
    out = cupy.empty((x.shape[0] // height, x.shape[1] // BOUND_TILE), x.dtype)
    _function("tile_extremes", x.dtype, device)(
        (out.shape[1], out.shape[0]),
        (BOUND_TILE,),
        (x, out, _row_length(x), np.int32(height), np.int32(x.shape[1]), np.int32(largest)),
    )
    return out
