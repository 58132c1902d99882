"""All-pairs shortest paths on a symmetric matrix of weights: closure, insertion, pruning.

R-Kleene's block steps (D'Alberto and Nicolau) for symmetric matrices, in iterative order: one block
of samples after another ("panel" below, as in linear algebra) is allowed as intermediate nodes.
Only the upper triangle is computed, n**3 / 2 operations in all. The same code runs on numpy arrays
with the CPU backend and on device arrays with the GPU backend, in the same panels, so that floats
are equal on both. Fixed point does not depend on any order.

Exact pruning. No path through the samples of run K can shorten an entry of tile (I, J) when
``min W[I, K] + min W[K, J] >= max W[I, J]``: the kernels skip such runs. A tile is never touched
if the smallest weights of any two of its samples add up to at least the tile's largest weight;
a panel that consists of such tiles needs no product of its own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.threads import run_tasks
from ..engine.backend import Backend
from ..engine.minplus import BASE, PANEL, Bounds, MinPlus, infinity
from ..engine.reordered import reordered
from ..io.sites import chunks

#: Rows that are looked at together: a few of them fit into a core's cache.
BLOCK_ROWS = 32
#: A numpy array, or the backend's array on its device.
Array = Any


@dataclass
class Work:
    """Operations (one add, one minimum) of a closure without pruning, and skipped operations."""

    possible: int = 0
    skipped: int = 0

    @property
    def skipped_share(self) -> float:
        return self.skipped / self.possible if self.possible else 0.0


class _Pruning:
    """The tiles that one closure can skip, derived from its initial weights.

    Ceilings are computed once: entries only decrease, so they remain upper bounds. An indirect path
    from i to j costs at least the smallest weight of i plus the smallest of j. If that is at least
    a tile's largest weight for the whole tile, the tile is `fixed` and its ceiling is set to zero.
    """

    def __init__(self, w: Array, kernels: MinPlus) -> None:
        self.kernels = kernels
        self.rows, self.columns, self.run = kernels.bound_tiles(w.dtype)
        ceiling = kernels.tile_maxima(w, self.rows, self.columns)
        diagonal = w.reshape(-1)[:: len(w) + 1]
        diagonal[:] = infinity(w.dtype)
        smallest = kernels.tile_minima(w, self.rows, self.columns)
        diagonal[:] = 0
        fixed = smallest.min(axis=1)[:, None] + smallest.min(axis=0) >= ceiling
        ceiling[fixed] = 0
        self.ceiling = ceiling
        self.fixed_rows: list[bool] = fixed.all(axis=1).tolist()
        self.used: list[Bounds] = []

    def unchanged(self, first: int, last: int) -> bool:
        """Whether no weight of samples first ... last - 1 can decrease."""
        return all(self.fixed_rows[first // self.rows : -(-last // self.rows)])

    def bounds(self, through: Array) -> Bounds:
        """Bounds for ``through.T`` times `through`, (n_panel, n)."""
        floor_b = self.kernels.tile_minima(through, self.run, self.columns)
        floor_a = floor_b
        if self.rows != self.columns:
            floor_a = self.kernels.tile_minima(through, self.run, self.rows)
        self.used.append(Bounds(floor_a, floor_b, self.ceiling))
        return self.used[-1]

    def skipped(self) -> int:
        return sum(int(one.skipped) for one in self.used)


def close_paths(w: Array, backend: Backend, *, prune: bool = True) -> Work:
    """All-pairs shortest path lengths, in place.

    Parameters
    ----------
    w : array, (n, n), int32, int64, float32 or float64
        Symmetric, zero diagonal, non-negative; `infinity` of the dtype where there is no edge.
        Place similar samples next to each other: pruning then skips more.
    backend : Backend
        `w` is in the memory that it works on: host or device.
    prune : bool
        Whether to compute and use bounds; the result is the same.

    Returns
    -------
    Work
        Operations of the panel products, and how many were skipped.
    """
    kernels, n = backend.minplus(), len(w)
    work = Work()
    if n <= BASE:
        kernels.close_block(w)
        return work
    size = kernels.panel(w)
    if n <= size:  # a matrix in host memory that fits into one panel
        size = PANEL if n > PANEL else BASE
    pruning = _Pruning(w, kernels) if prune and n > 2 * PANEL >= 2 * size else None
    for first in range(0, n, size):
        _allow(w, first, min(n, first + size), backend, pruning)
        work.possible += n * n * (min(n, first + size) - first) // 2
    kernels.mirror(w)
    if pruning:
        work.skipped = pruning.skipped()
    return work


def close_matrix(w: np.ndarray, order: np.ndarray, backend: Backend) -> tuple[np.ndarray, Work]:
    """`close_paths` of a matrix in host memory, on all devices that the job has.

    Parameters
    ----------
    w : array, (n, n)
        Not changed.
    order : int array, (n,)
        Samples as they are placed: similar ones next to each other.
    """
    kernels, out = backend.minplus(), np.empty_like(w)
    if (spread := kernels.spread_matrix(w, order)) is not None:
        work = Work(*spread.close(functools.partial(close_paths, backend=backend, prune=False)))
        placed = np.empty_like(w)
        spread.fetch(placed)
        reordered(placed, np.argsort(order), backend.threads, out)
        return out, work
    held = kernels.hold(w, order)
    work = close_paths(held, backend)
    kernels.fetch(held, out, order)
    return out, work


def _allow(w, first: int, last: int, backend: Backend, pruning: _Pruning | None) -> None:
    """Samples first ... last - 1 become intermediate nodes of all paths."""
    kernels, block = backend.minplus(), w[first:last, first:last]
    unchanged = pruning is not None and pruning.unchanged(first, last)
    if unchanged:
        kernels.mirror(block)
    elif last - first > BASE:
        kernels.mirror(block)
        held = kernels.hold(block) if last - first > PANEL else block
        close_paths(held, backend, prune=False)
        if held is not block:
            kernels.fetch(held, block)
    else:
        kernels.close_block(block)
    through = w[first:last].copy()
    kernels.transpose(w[:first, first:last], through[:, :first])
    if not unchanged:
        before, through = through, through.copy()
        # `block` is symmetric; its transpose is the layout that needs no copy on a device.
        kernels.multiply(through, block.T, before)
        kernels.transpose(through[:, :first], w[:first, first:last])
        w[first:last, last:] = through[:, last:]
    bounds = None
    if pruning:
        # Zeros on the diagonal would lower the floors; these edges never shorten a path.
        through.reshape(-1)[first :: len(w) + 1][: last - first] = infinity(w.dtype)
        bounds = pruning.bounds(through)
    kernels.multiply(w, through.T, through, symmetric=True, bounds=bounds)


def insert_paths(w: Array, closed: int, backend: Backend) -> None:
    """Close a matrix whose leading `closed` samples are already closed: O(m n**2) for m new.

    R-Kleene's steps for W = [A B'; B D] without the first one: B = B*A; D = min(D, B*B');
    close D; B = D*B; A = min(A, B'*B). Reads A, the upper right block and D; writes all of W.
    """
    kernels = backend.minplus()
    a, upper, d = w[:closed, :closed], w[:closed, closed:], w[closed:, closed:]
    if not closed or closed == len(w):
        close_paths(d, backend)
        return
    kernels.multiply(upper, a.T, upper.copy())
    kernels.multiply(d, upper.T, upper, symmetric=True)
    kernels.mirror(d)
    close_paths(d, backend)
    through = w[closed:, :closed]
    kernels.transpose(upper, through)
    shortest = through.copy()
    kernels.multiply(shortest, d.T, through)
    kernels.transpose(shortest, upper)
    kernels.multiply(a, shortest.T, shortest, symmetric=True)
    kernels.mirror(w)


def attach_paths(w: Array, closed: int, backend: Backend) -> None:
    """Paths to samples that can only be ends: the first two steps of an insertion.

    The leading `closed` samples are already closed. The others are connected to them and to one
    another, but no path runs through them.
    """
    kernels = backend.minplus()
    a, upper, d = w[:closed, :closed], w[:closed, closed:], w[closed:, closed:]
    if closed and closed < len(w):
        kernels.multiply(upper, a.T, upper.copy())
        kernels.multiply(d, upper.T, upper, symmetric=True)
        kernels.mirror(w)


def similar_order(w: np.ndarray, threads: int = 1) -> np.ndarray:
    """An order that places close samples next to each other, so that bounds are tight.

    Every sample is linked to its nearest one. The resulting groups (mostly relatives) stay
    together and are ordered by their weights to two distant samples.

    Parameters
    ----------
    w : array, (n, n)
        Symmetric weights in host memory; the diagonal is not read.
    threads : int
        Changes no byte.

    Returns
    -------
    int64 array, (n,)
        Depends on the weights alone.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(w)
    nearest = np.empty(n, np.int64)

    def look(first: int, last: int) -> None:
        rows, own = w[first:last].copy(), np.arange(last - first)
        rows[own, first + own] = infinity(w.dtype)
        nearest[first:last] = rows.argmin(axis=1)

    run_tasks(look, chunks(n, BLOCK_ROWS), threads)
    graph = coo_array((np.ones(n, bool), (np.arange(n), nearest)), (n, n))
    _, group = connected_components(graph, directed=False)
    first = _far_from(w, 0)
    second = _far_from(w, first)
    with np.errstate(invalid="ignore"):
        side = w[first].astype(np.float64) - w[second].astype(np.float64)
    side[~np.isfinite(side)] = 0
    size = np.bincount(group)
    of_group = np.bincount(group, side) / size
    return np.lexsort((np.arange(n), group, of_group[group]))


def _far_from(w: np.ndarray, sample: int) -> int:
    """The sample farthest from this one, among those it can be compared with."""
    row = w[sample]
    return int(np.where(row >= infinity(w.dtype), 0, row).argmax())
