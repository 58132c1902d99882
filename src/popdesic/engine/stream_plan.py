"""How much of a product passes through a device at a time."""

from __future__ import annotations

from .layout import BLOCK_ROWS, STAGE_WORDS, TILE_ROWS

#: Pinned host memory of one stream of planes, unless the caller says otherwise.
HOST_BYTES = 1 << 30
#: Share of the free device memory that a product may take.
DEVICE_SHARE = 0.9
#: Device memory for staging the rows of a result.
RESULT_BYTES = 256 << 20
#: Most device memory for the packed planes of one range: enough for full speed.
PACKED_BYTES = 16 << 30
#: Most threads that copy planes into pinned memory (one cannot keep up with the bus).
COPY_THREADS = 8


def range_words(needed: int, *, budget: int, packed: int, site_limit: int, host: int | None) -> int:
    """Words (64 sites) of one range of a stream, whole stages, at least one.

    Parameters
    ----------
    needed : int
        All there are.
    budget : int
        Words that the device has room for.
    packed : int
        Bytes of one word of all packed planes.
    site_limit : int
        Sites whose sums fit the accumulators.
    host : int, optional
        Words that the pinned buffers have room for, where planes pass through such.
    """
    longest = min(budget, PACKED_BYTES // packed, site_limit // 64)
    if host is not None:
        longest = min(longest, host)
    return min(needed, max(STAGE_WORDS, longest // STAGE_WORDS * STAGE_WORDS))


def result_rows(n_columns: int, n_outputs: int, wanted: int | None = None) -> int:
    """Rows of a result that go to the host at a time: whole tiles, RESULT_BYTES or `wanted`."""
    rows = wanted or RESULT_BYTES // (8 * n_columns * n_outputs)
    return max(TILE_ROWS, rows // TILE_ROWS * TILE_ROWS)


def largest_block(n_outputs: int, planes: int, free_bytes: int) -> int:
    """Most samples of a square tile whose accumulators fit the device with its planes.

    Accumulators and totals (int32, int64) of every pair, two stages of every sample's planes.
    """
    per_pair = (4 + 8) * n_outputs
    per_sample = 2 * STAGE_WORDS * 8 * (2 * planes + 6)
    side = BLOCK_ROWS
    while (side + BLOCK_ROWS) ** 2 * per_pair + (side + BLOCK_ROWS) * per_sample <= free_bytes:
        side += BLOCK_ROWS
    return side
