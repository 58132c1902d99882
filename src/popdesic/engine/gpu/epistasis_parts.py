"""Which combinations a GPU scan counts without the products of missing genotypes.

Sites without missing genotypes that are the last ones (`epistasis.reorder` puts them there) form
one block. Combinations of these sites alone take the products of two stored states. Triples whose
first site alone is before the block also take them, with one more part of the depth: the samples
that lack the first site, which are then subtracted (kernels/epistasis/parts.cuh). Only combinations
with at least two sites before the block (pairs: one) take the products of three states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base import ScanData
from ..scan_work import block_of_complete

#: Sites whose planes are looked through together.
LOOKED_AT = 256


@dataclass(frozen=True)
class Part:
    """Combinations of one scan: their first sites x, sites y, and stored states of y and z, and x.

    Of pairs, which have no x, `first` is the range of y.
    """

    states: int
    x_states: int
    first: range
    y: range


def both(a: range, b: range) -> range:
    """The sites that lie in two ranges."""
    start = max(a.start, b.start)
    return range(start, max(start, min(a.stop, b.stop)))


def incomplete_sites(data: ScanData) -> np.ndarray:
    """Whether each site has missing genotypes, bool (n_sites,); exact for the last that has some.

    Sites before that one are not looked through, and said to have some.
    """
    out = np.zeros(data.n_sites, bool)
    words = [one.words for one in data.classes]
    if words[0].shape[1] == 2:
        return out
    for stop in range(data.n_sites, 0, -LOOKED_AT):
        start = max(0, stop - LOOKED_AT)
        for one in words:
            out[start:stop] |= np.asarray(_on_host(one[start:stop, 2])).any(axis=1)
        if out[start:stop].any():
            out[:start] = True
            break
    return out


def parts_of(data: ScanData, order: int, tile: int) -> list[Part]:
    """Parts of a scan; each combination is in one of them.

    Parameters
    ----------
    tile : int
        Sites of y of one item: the block begins with one.
    """
    n, states = data.n_sites, data.classes[0].words.shape[1]
    everyone = range(n)
    begin = 0 if states == 2 else block_of_complete(incomplete_sites(data), tile)
    if states == 2 or begin == n:
        return [Part(states, states, everyone, everyone)]
    before, block = range(begin), range(begin, n)
    parts = [Part(2, 2, block, block)]
    if begin and order == 3:
        parts.append(Part(2, 3, before, block))
    if begin:
        parts.append(Part(3, 3, before, before))
    return parts


def _on_host(planes):
    """Planes that a benchmark made on the device."""
    return planes if isinstance(planes, np.ndarray) else planes.get()
