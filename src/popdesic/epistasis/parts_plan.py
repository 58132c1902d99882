"""Which combinations a GPU scan counts without the products of missing genotypes.

Sites without missing genotypes that are the last ones (`epistasis.reorder` puts them there) form
one block. Combinations of these sites alone take the products of two stored states. Triples whose
first site alone is before the block also take them, with one more part of the depth: the samples
that lack the first site, which are then subtracted (kernels/epistasis/parts.cuh). Pairs whose first
site alone is before the block take six products (kernels/epistasis/cells.cuh). Only combinations
with at least two sites before the block take the products of three states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.threads import run_tasks
from .scan_data import ScanData
from .scan_work import block_of_complete

#: Sites whose planes a thread looks through at a time, and pieces of so many for each thread before
#: the search may end.
LOOKED_AT, PIECES = 64, 8


@dataclass(frozen=True)
class ScanPart:
    """Combinations of one scan: stored states of y and z, and of x, and ranges of x, y and z.

    Of pairs, which have no x, `first` is the range of y, the first site, whose states are
    `x_states`. `y` and `z` end with a tile or with the last site, and begin with a tile.
    """

    states: int
    x_states: int
    first: range
    y: range
    z: range

    def within(self, first: range, y: range, z: range) -> ScanPart:
        """Those of its combinations whose sites lie in these ranges."""
        ranges = both(self.first, first), both(self.y, y), both(self.z, z)
        return ScanPart(self.states, self.x_states, *ranges)


def both(a: range, b: range) -> range:
    """The sites that lie in two ranges."""
    start = max(a.start, b.start)
    return range(start, max(start, min(a.stop, b.stop)))


def incomplete_sites(data: ScanData, threads: int = 1) -> np.ndarray:
    """Whether each site has missing genotypes, bool (n_sites,); exact for the last that has some.

    Sites before that one are not looked through, and said to have some.
    """
    out = np.zeros(data.n_sites, bool)
    words = [one.words for one in data.classes]
    if words[0].shape[1] == 2:
        return out

    def look(start: int, stop: int) -> None:
        for one in words:
            found = np.bitwise_or.reduce(_on_host(one[start:stop, 2]), axis=1)
            out[start:stop] |= found != 0

    span = PIECES * LOOKED_AT * threads
    for stop in range(data.n_sites, 0, -span):
        start = max(0, stop - span)
        pieces = range(start, stop, LOOKED_AT)
        run_tasks(look, [(a, min(stop, a + LOOKED_AT)) for a in pieces], threads)
        if out[start:stop].any():
            out[:start] = True
            break
    return out


def parts_of(data: ScanData, order: int, tile: int, threads: int = 1) -> list[ScanPart]:
    """Parts of a scan; each combination is in one of them.

    Parameters
    ----------
    tile : int
        Sites of y of one item: the block begins with one.
    threads : int
        CPU threads that look through the planes, if the data do not say where the block begins.
    """
    n, states = data.n_sites, data.classes[0].words.shape[1]
    everyone = range(n)
    begin = 0 if states == 2 else block_of_complete(_incomplete(data, threads), tile)
    if states == 2 or begin == n:
        return [ScanPart(states, states, everyone, everyone, everyone)]
    before, block = range(begin), range(begin, n)
    parts = [ScanPart(2, 2, block, block, block)]
    if begin:
        parts.append(ScanPart(2, 3, before, before if order == 2 else block, block))
        parts.append(ScanPart(3, 3, before, before, before if order == 2 else everyone))
    return parts


def _incomplete(data: ScanData, threads: int) -> np.ndarray:
    """Whether each site may have missing genotypes, bool (n_sites,)."""
    if data.complete_from is None:
        return incomplete_sites(data, threads)
    return np.arange(data.n_sites) < data.complete_from


def _on_host(planes):
    """Planes that a benchmark made on the device."""
    return planes if isinstance(planes, np.ndarray) else planes.get()
