"""Square matrices to a device and back through pinned buffers, rows and columns in another order.

A range of rows is copied into one of two pinned buffers by threads while the range before it is
sent. Columns are put in order on the device, so that the host passes over the matrix once.
CuPy's own copies pass through pinned memory of the matrix's size, which takes longer to allocate
than to send.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import cupy
import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks
from .layout import divide_up

#: Bytes of a pinned buffer.
STAGED_BYTES = 32 << 20


def send_matrix(
    w: np.ndarray, held: cupy.ndarray, order: np.ndarray | None = None, threads: int = 1
) -> None:
    """Write ``w[order][:, order]``, (n, n), into the first n rows and columns of `held`."""
    n, stream = len(w), cupy.cuda.get_current_stream()
    rows, staged = _buffers(n, w.dtype)
    raw = [cupy.empty((rows, n), w.dtype) for _ in range(2)]
    sent = [cupy.cuda.Event() for _ in range(2)]
    columns = None if order is None else cupy.asarray(order)
    for number, (first, last) in enumerate(chunks(n, rows)):
        turn, size = number % 2, last - first
        if number > 1:
            sent[turn].synchronize()  # the device has read this buffer
        part = staged[turn][:size]

        def fill(start: int, end: int, part: np.ndarray = part, first: int = first) -> None:
            if order is None:
                np.copyto(part[start:end], w[first + start : first + end])
            else:
                which = order[first + start : first + end]
                np.take(w, which, axis=0, out=part[start:end], mode="clip")

        run_tasks(fill, chunks(size, divide_up(size, threads)), threads)
        lines = raw[turn][:size]
        lines.set(part, stream=stream)
        held[first:last, :n] = lines if columns is None else lines[:, columns]
        sent[turn].record(stream)
    stream.synchronize()


def fetch_matrix(
    held: cupy.ndarray, w: np.ndarray, order: np.ndarray | None = None, threads: int = 1
) -> None:
    """Write the first n rows and columns of `held` into `w`, (n, n), out of `order`."""
    n = len(w)
    rows, staged = _buffers(n, w.dtype)
    places = None if order is None else cupy.asarray(np.argsort(order))
    writing: list[list[Future]] = [[], []]
    with ThreadPoolExecutor(threads) as pool:
        for number, (first, last) in enumerate(chunks(n, rows)):
            turn, size = number % 2, last - first
            for task in writing[turn]:
                task.result()
            if places is None:
                lines = cupy.ascontiguousarray(held[first:last, :n])
            else:
                lines = held[places[first:last]][:, places]
            part = staged[turn][:size]
            lines.get(out=part)
            writing[turn] = [
                pool.submit(np.copyto, w[first + start : first + end], part[start:end])
                for start, end in chunks(size, divide_up(size, threads))
            ]
        for task in writing[0] + writing[1]:
            task.result()


def _buffers(n: int, dtype: np.dtype) -> tuple[int, list[np.ndarray]]:
    """Rows of a buffer, and two pinned arrays (rows, n)."""
    rows = max(1, min(n, STAGED_BYTES // (n * dtype.itemsize)))
    pinned = [cupy.cuda.alloc_pinned_memory(rows * n * dtype.itemsize) for _ in range(2)]
    return rows, [np.frombuffer(one, dtype, rows * n).reshape(rows, n) for one in pinned]
