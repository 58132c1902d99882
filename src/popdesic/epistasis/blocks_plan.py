"""Scans of data larger than a device: how sites are cut into blocks, and in which order they come.

A scan of two or three blocks holds all combinations with one site in each; with fewer blocks, two
sites or all lie in one. Each step needs at most one block that the step before did not have, which
is loaded while that one is scanned. Triples of three blocks share two with the step before, so a
block of B sites is loaded for B^3 combinations.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ..engine.layout import STAGE_BITS, divide_up
from .scan_plan import BATCH, MAX_SHARED, PACKED_SHARE, PADDING

#: Blocks hold a multiple of so many sites: whole tiles and whole blocks of rows.
BLOCK_STEP = max(PADDING.values())


@dataclass(frozen=True)
class ScanSize:
    """What decides the device memory of a scan.

    Attributes
    ----------
    order : int
    states : int
        Stored states of a site.
    row_bytes : int
        Of the planes of one site, both classes.
    largest_class : int
        Samples.
    interaction : bool
        Whether the scan looks up what pairs of sites say about the class.
    records : int
        Bytes of the records that a launch may write.
    device_bytes : int
        All memory of the device.
    """

    order: int
    states: int
    row_bytes: int
    largest_class: int
    interaction: bool
    records: int
    device_bytes: int

    def bytes(self, n_sites: int) -> int:
        """Device memory of a scan of so many sites; rather too much."""
        planes = n_sites * self.row_bytes
        packed = planes + n_sites * self.states * 2 * STAGE_BITS // 8
        if self.order == 2:
            return planes + packed + self.records
        # sample-major planes; tables of all pairs, in one word and in two where some are crowded
        words = 3 if self.largest_class > MAX_SHARED else 1
        tables = 4 * n_sites**2 * (words * self.states**2 + self.interaction)
        batch = max(packed, int(PACKED_SHARE * self.device_bytes))
        of_x = 8 * BATCH * n_sites * self.states**2
        return 2 * planes + batch + tables + of_x + self.records


def block_sites(size: ScanSize, n_sites: int, room: int) -> int:
    """Sites of a block, so that a scan of as many blocks as its order and one more fit.

    At least BLOCK_STEP, even if these do not fit; about as many in the last block as in others.

    Parameters
    ----------
    n_sites : int
        Sites to be cut.
    room : int
        Device memory in bytes.
    """

    def needed(blocks: int) -> int:
        sites = blocks * BLOCK_STEP
        return size.bytes(size.order * sites) + sites * size.row_bytes

    choices = range(1, divide_up(n_sites, BLOCK_STEP) + 1)
    largest = max(1, bisect.bisect_right(choices, room, key=needed)) * BLOCK_STEP
    n_blocks = divide_up(n_sites, largest)
    return divide_up(divide_up(n_sites, n_blocks), BLOCK_STEP) * BLOCK_STEP


def block_steps(n_blocks: int, order: int, first: Collection[int]) -> Iterator[tuple[int, ...]]:
    """Different blocks, rising, of each step; at most one of them is new (`block_loads`).

    The last block of a step takes turns to rise and to fall, so that the others change beside it.

    Parameters
    ----------
    first : collection of int
        Blocks that hold first sites.
    """
    falls = False
    for i in sorted(first):
        if order == 3:
            yield (i,)
            falls = False
        for middle in _middles(i, n_blocks, order):
            steps = [middle, *((*middle, k) for k in range(middle[-1] + 1, n_blocks))]
            yield from reversed(steps) if falls else steps
            falls = not falls


def _middles(i: int, n_blocks: int, order: int) -> Iterator[tuple[int, ...]]:
    """All blocks but the last one of the steps whose first block is `i`."""
    if order == 2:
        yield (i,)
    else:
        yield from ((i, j) for j in range(i + 1, n_blocks))


def block_loads(
    steps: Iterable[tuple[int, ...]], order: int
) -> Iterator[tuple[list[tuple[int, int]], int | None]]:
    """How the blocks of each step come into its places: those of a step before, and a new one.

    Yields
    ------
    moves : list of (int, int)
        Places from which, and to which, blocks move, one after the other.
    new : int or None
        The place of a block that was in none.
    """
    places: list[int | None] = [None] * order
    for step in steps:
        moves, new = [], None
        for place, block in enumerate(step):
            if places[place] == block:
                continue
            if block in places:
                moves.append((places.index(block), place))
            else:
                new = place
            places[place] = block
        yield moves, new


def block_ranges(n: int, block: int, n_sites: int) -> tuple[range, range, range]:
    """Ranges of the first site, of y and of z of a step of `n` blocks, whose sites are in a row.

    Parameters
    ----------
    block : int
        Sites of all blocks but the last one.
    n_sites : int
        Of all blocks of the step.
    """
    y = range(block, 2 * block) if n == 3 else range(n_sites)
    return range(min(block, n_sites)), y, range((n - 1) * block, n_sites)
