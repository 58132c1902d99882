"""What Python and the CUDA sources in `kernels/` have in common: sizes and their arithmetic."""

from __future__ import annotations

INT32_MAX = 2**31 - 1

# Packed planes (kernels/common.cuh).
TILE_ROWS = 128
BLOCK_ROWS = 256
STAGE_BITS = 1024
STAGE_WORDS = STAGE_BITS // 64
TILE_BYTES = TILE_ROWS * STAGE_BITS // 8
#: Samples of one thread block, and stages that it walks, in `pack_planes`.
PACK_ROWS, PACK_STAGES = 32, 16
#: What one thread block of wgmma (and the wider one of mma) keeps in shared memory for one stage,
#: and what it needs besides its slots (alignment, barriers).
SLOT_BYTES, SLOT_OVERHEAD = 3 * TILE_BYTES, 1024 + 256


def divide_up(value: int, step: int) -> int:
    return -(-value // step)


def layout_tiles(n_samples: int) -> int:
    """Tiles that some samples take, in whole blocks."""
    return divide_up(n_samples, BLOCK_ROWS) * (BLOCK_ROWS // TILE_ROWS)


def packed_bytes(n_samples: int, n_letters: int, n_stages: int) -> int:
    """Size of packed planes."""
    return n_letters * n_stages * layout_tiles(n_samples) * TILE_BYTES
