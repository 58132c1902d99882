"""All-pairs shortest paths on a symmetric matrix of weights: closure, insertion, pruning.

R-Kleene's block steps (D'Alberto and Nicolau; the genome-distance work's symmetric form, DESIGN
section 7) in the iterative order: one panel of individuals after another becomes allowed as
intermediate nodes. Only the upper triangle is worked on, n**3 / 2 operations in all. The same
code runs on numpy arrays with the CPU backend and on device arrays with the GPU backend, in the
same panels, so that floats come out the same on both; fixed point does not depend on any order.

Exact pruning. No path through an individual of run K can shorten an entry of tile (I, J) when
``min W[I, K] + min W[K, J] >= max W[I, J]``: the kernels skip such runs. Tiles in which even the
smallest weights of two individuals add up to no less than any weight between them are never
touched, and panels of nothing but such tiles form no products of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.base import BASE, PANEL, Backend, Bounds, infinity

#: A numpy array, or what the backend holds on its device.
Array = Any


@dataclass
class Work:
    """Operations (one add, one minimum) that a closure could cost, and those that were skipped."""

    possible: int = 0
    skipped: int = 0

    @property
    def skipped_share(self) -> float:
        return self.skipped / self.possible if self.possible else 0.0


class _Pruning:
    """What one closure may leave out, from the weights that it starts with.

    Ceilings stay those of the start: entries only fall, so they remain upper bounds. A path from
    i to j takes at least the smallest weight of i and the smallest of j: where that is no less
    than a whole tile's largest weight, the tile is `fixed`, and its ceiling is set to zero.
    """

    def __init__(self, w: Array, backend: Backend) -> None:
        self.backend = backend
        self.rows, self.columns, self.run = backend.bound_tiles(w.dtype)
        ceiling = backend.tile_maxima(w, self.rows, self.columns)
        diagonal = w.reshape(-1)[:: len(w) + 1]
        diagonal[:] = infinity(w.dtype)
        smallest = backend.tile_minima(w, self.rows, self.columns)
        diagonal[:] = 0
        fixed = smallest.min(axis=1)[:, None] + smallest.min(axis=0) >= ceiling
        ceiling[fixed] = 0
        self.ceiling = ceiling
        self.fixed_rows: list[bool] = fixed.all(axis=1).tolist()
        self.used: list[Bounds] = []

    def unchanged(self, first: int, last: int) -> bool:
        """Whether no weight of individuals first ... last - 1 can fall."""
        return all(self.fixed_rows[first // self.rows : -(-last // self.rows)])

    def bounds(self, through: Array) -> Bounds:
        """Bounds for ``through.T`` times `through`, (n_panel, n)."""
        floor_b = self.backend.tile_minima(through, self.run, self.columns)
        floor_a = floor_b
        if self.rows != self.columns:
            floor_a = self.backend.tile_minima(through, self.run, self.rows)
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
        Individuals that are similar should be neighbours: pruning then finds more to skip.
    backend : Backend
        `w` lies where it works: host memory or its device.
    prune : bool
        Whether bounds are computed and used; the result is the same.

    Returns
    -------
    Work
        Operations of the panel products, and how many of them were skipped.
    """
    n = len(w)
    work = Work()
    if n <= BASE:
        backend.close_block(w)
        return work
    size = backend.panel(w)
    if n <= size:  # a matrix in host memory whose rest fits one panel
        size = PANEL if n > PANEL else BASE
    pruning = _Pruning(w, backend) if prune and n > 2 * PANEL >= 2 * size else None
    for first in range(0, n, size):
        _allow(w, first, min(n, first + size), backend, pruning)
        work.possible += n * n * (min(n, first + size) - first) // 2
    backend.mirror(w)
    if pruning:
        work.skipped = pruning.skipped()
    return work


def _allow(w, first: int, last: int, backend: Backend, pruning: _Pruning | None) -> None:
    """Individuals first ... last - 1 become intermediate nodes of all paths."""
    block = w[first:last, first:last]
    unchanged = pruning is not None and pruning.unchanged(first, last)
    if unchanged:
        backend.mirror(block)
    elif last - first > BASE:
        backend.mirror(block)
        held = backend.hold(block) if last - first > PANEL else block
        close_paths(held, backend, prune=False)
        if held is not block:
            backend.fetch(held, block)
    else:
        backend.close_block(block)
    through = w[first:last].copy()
    backend.transpose(w[:first, first:last], through[:, :first])
    if not unchanged:
        before, through = through, through.copy()
        # `block` is symmetric: its transpose is the layout that needs no copy on a device.
        backend.minplus(through, block.T, before)
        backend.transpose(through[:, :first], w[:first, first:last])
        w[first:last, last:] = through[:, last:]
    bounds = None
    if pruning:
        # The way from an individual to itself must not spoil the floors; it shortens nothing.
        through.reshape(-1)[first :: len(w) + 1][: last - first] = infinity(w.dtype)
        bounds = pruning.bounds(through)
    backend.minplus(w, through.T, through, symmetric=True, bounds=bounds)


def insert_paths(w: Array, closed: int, backend: Backend) -> None:
    """Close a matrix whose leading `closed` individuals are closed already: O(m n**2) for m new.

    R-Kleene's steps for W = [A B'; B D] without the first one: B = B*A; D = min(D, B*B');
    close D; B = D*B; A = min(A, B'*B). Reads A, the upper right block and D; all is written.
    """
    a, upper, d = w[:closed, :closed], w[:closed, closed:], w[closed:, closed:]
    if not closed or closed == len(w):
        close_paths(d, backend)
        return
    backend.minplus(upper, a.T, upper.copy())
    backend.minplus(d, upper.T, upper, symmetric=True)
    backend.mirror(d)
    close_paths(d, backend)
    through = w[closed:, :closed]
    backend.transpose(upper, through)
    shortest = through.copy()
    backend.minplus(shortest, d.T, through)
    backend.transpose(shortest, upper)
    backend.minplus(a, shortest.T, shortest, symmetric=True)
    backend.mirror(w)


def attach_paths(w: Array, closed: int, backend: Backend) -> None:
    """Paths of individuals that are only ends: the first two steps of an insertion.

    The leading `closed` individuals are closed already. The others are joined to them and to one
    another, but no path runs through them.
    """
    a, upper, d = w[:closed, :closed], w[:closed, closed:], w[closed:, closed:]
    if closed and closed < len(w):
        backend.minplus(upper, a.T, upper.copy())
        backend.minplus(d, upper.T, upper, symmetric=True)
        backend.mirror(w)


def similar_order(w: np.ndarray) -> np.ndarray:
    """An order of individuals in which close ones are neighbours, so that bounds are tight.

    Every individual is joined with its nearest; the groups that this makes (relatives first of
    all) stay together, and are ordered by the weights to a few far individuals.

    Parameters
    ----------
    w : array, (n, n)
        Symmetric weights in host memory; the diagonal is not read.

    Returns
    -------
    int64 array, (n,)
        Depends on the weights alone.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(w)
    nearest = np.empty(n, np.int64)
    for i in range(n):
        row = w[i].copy()
        row[i] = infinity(w.dtype)
        nearest[i] = row.argmin()
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


def _far_from(w: np.ndarray, individual: int) -> int:
    """The individual that is farthest from this one, among those that it can be compared with."""
    row = w[individual]
    return int(np.where(row >= infinity(w.dtype), 0, row).argmax())
