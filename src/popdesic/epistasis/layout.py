"""What Python and `kernels/epistasis/` have in common, each fact once."""

from __future__ import annotations

import numpy as np

from ..engine.layout import PACKED, KernelSource
from .scan_data import LEVEL_BITS, ZERO_LEVEL

#: Sites of one tile of y, samples of one step of depth; sites of z of a block whose largest counts
#: are measured.
TILE_SITES, STEP_BITS, BLOCK_SITES = 64, 256, 32
#: Two first sites may share an operand: their states (2: neither) in the parts of its depth, and
#: how many parts in a row are added up (kernels/epistasis/parts.cuh).
PARTS = ((0, 1), (0, 2), (0, 0), (2, 0), (1, 0), (1, 2), (1, 1), (2, 1))
PARTS_IN_A_ROW = 4
#: Rows of a block that is compacted; words of a sample that a thread block of `transpose_planes`
#: makes.
COMPACT_ROWS, TRANSPOSED_WORDS = 512, 8
#: Words of a record before its cells: the sites.
RECORD_SITES = 3
#: Low bits that the logarithm of a cell is without, so that the sum of 27 fits 32 bits.
LOG_SHIFT = 4
#: `Found` and `Scan` of kernels/epistasis/cells.cuh and scan.cuh.
FOUND = [
    ("records", np.uint64),
    ("number", np.uint64),
    ("capacity", np.uint64),
    ("places", np.uint64),
    ("min_distance", np.int32),
    ("n_sites", np.int32),
    ("first", np.int32),
    ("stop", np.int32),
]
#: What is taken of the sums of cells: `Slope` in kernels/epistasis/cells.cuh.
_SUMS = ("of_whole", "of_parts")


def _line(name: str) -> list[tuple[str, type]]:
    """`Line` there."""
    floats = [(f"{name}_{one}", np.float32) for one in ("cases", "controls")]
    return [(f"{name}_bytes", np.uint32), *floats]


SCAN = np.dtype(
    [
        *FOUND,
        ("weights", np.uint32),
        ("r", np.float32),
        *(field for name in ("whole", "low", "high") for field in _line(name)),
        *((f"{name}_{one}", np.float32) for name in _SUMS for one in ("steep", "empty")),
        ("need", np.float32),
        ("controls", np.uint32),
        ("cases", np.uint32),
        ("margins", np.uint64),
        ("known", np.uint64),
        ("known_pitch", np.int32),
        ("first_column", np.int32),
        ("end_of_columns", np.int32),
        ("columns", np.uint64),
        ("of_w", np.uint32, (3, 2)),
        ("table_words", np.int64),
    ],
    align=True,
)
SCAN_BYTES = SCAN.itemsize
#: `Correlation` and `OfW` of kernels/epistasis/compact_score.cu.
LIMIT = np.dtype([("middle", np.uint64), ("max_r2", np.float64), ("w", np.int32)], align=True)
OF_W = np.dtype([("w", np.int32), ("every", np.int32), ("n_samples", np.int32, 2)])


def _states_of_parts(which: int) -> int:
    """State of one of two sites in each part, two bits a part, 3: neither."""
    states = (3 if part[which] == 2 else part[which] for part in PARTS)
    return sum(state << (2 * i) for i, state in enumerate(states))


_DEFINES = {
    **PACKED,
    "TILE_SITES": TILE_SITES,
    "STEP_BITS": STEP_BITS,
    "PARTS_IN_A_ROW": PARTS_IN_A_ROW,
    "COMPACT_ROWS": COMPACT_ROWS,
    "TRANSPOSED_WORDS": TRANSPOSED_WORDS,
    "RECORD_SITES": RECORD_SITES,
    "LOG_SHIFT": LOG_SHIFT,
    "SCAN_BYTES": SCAN_BYTES,
    "BLOCK_SITES": BLOCK_SITES,
    "PARTS_OF_FIRST": _states_of_parts(0),
    "PARTS_OF_SECOND": _states_of_parts(1),
    "LEVEL_BITS": LEVEL_BITS,
    "ZERO_LEVEL": ZERO_LEVEL,
}
#: The kernels that make operands, and score what scans let through; and those that scan.
COMPACT_SCORE = KernelSource.of("epistasis/compact_score", **_DEFINES)
DEEP, FUSED = (
    KernelSource.of("epistasis/sm90_deep", **_DEFINES),
    KernelSource.of("epistasis/sm90_fused", **_DEFINES),
)
MULTISTAGE = KernelSource.of("epistasis/multistage", **_DEFINES)
