"""Sides of the tiles of counts of a large study on a GPU (`tiles_gpu`)."""

from __future__ import annotations

from .layout import BLOCK_ROWS

#: Most samples a side of a tile of counts.
TILE_SAMPLES = 1 << 15
#: Share of the free device memory for the sums of a tile and what they come from.
TILE_SHARE = 0.75

Bounds = tuple[int, int]


def tile_side(n: int, most: int) -> int:
    """Samples a side of the tiles of n samples, at most `most`: whole blocks, evenly long."""
    largest = max(BLOCK_ROWS, most // BLOCK_ROWS * BLOCK_ROWS)
    n_blocks = -(-n // largest)
    return min(largest, -(-n // (n_blocks * BLOCK_ROWS)) * BLOCK_ROWS)
