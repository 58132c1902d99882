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

#: Share of the sites from which on the block is scanned apart. Below, its scan saves less than
#: another one costs to set up.
LEAST_BLOCK = 1 / 4
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


def first_complete(data: ScanData) -> int:
    """The first site of those at the end that have no missing genotype."""
    words = [one.words for one in data.classes]
    if words[0].shape[1] == 2:
        return 0
    for stop in range(data.n_sites, 0, -LOOKED_AT):
        start = max(0, stop - LOOKED_AT)
        some = [np.asarray(_on_host(one[start:stop, 2])).any(axis=1) for one in words]
        rows = np.flatnonzero(some[0] | some[1])
        if len(rows):
            return start + int(rows[-1]) + 1
    return 0


def parts_of(data: ScanData, order: int, tile: int) -> list[Part]:
    """Parts of a scan; each combination is in one of them.

    Parameters
    ----------
    tile : int
        Sites of y of one item: the block begins with one.
    """
    n, states = data.n_sites, data.classes[0].words.shape[1]
    everyone = range(n)
    if states == 2:
        return [Part(2, 2, everyone, everyone)]
    begin = -(-first_complete(data) // tile) * tile
    if n - begin < max(1, LEAST_BLOCK * n):
        return [Part(3, 3, everyone, everyone)]
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
