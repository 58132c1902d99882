"""What Python and the CUDA sources in `kernels/` have in common, each fact once.

The constants named in `DEFINES` reach the kernels as definitions of the compiler (`-D`); a kernel
that needs one stops with `#error` where it is missing. Records that both sides write are asserted
by their size.
"""

from __future__ import annotations

import numpy as np

from . import umap_units
from .columns import GRAM_ROWS, NARROW, WIDTH
from .constants import (
    LEVEL_BITS,
    MOST_NEIGHBORS,
    NOBODY,
    RATIO,
    ROOT,
    SHARE_BITS,
    SHARES,
    ZERO_LEVEL,
)
from .genotype_products import BITS, SITE_BITS
from .minplus import BASE, INFINITY_INT32, INFINITY_INT64
from .terms import PLANE_LETTERS

INT32_MAX = 2**31 - 1

# --- packed planes (kernels/common.cuh)

#: Samples of one tile, and of one block of a result: a tile twice.
TILE_ROWS, BLOCK_ROWS = 128, 256
#: Sites of one stage of depth, and bytes of a row that move together.
STAGE_BITS, CHUNK_BYTES = 1024, 16
STAGE_WORDS = STAGE_BITS // 64
TILE_BYTES = TILE_ROWS * STAGE_BITS // 8
#: `Step` of kernels/common.cuh.
STEP = np.dtype([(n, np.int32) for n in ("plane_a", "plane_b", "multiplier", "slot", "weight")])
STEP_BYTES = STEP.itemsize

# --- bit-GEMM (kernels/bitgemm/)

#: Samples of one thread block of `pack_planes`, stages that it walks, letters whose bits it counts.
PACK_ROWS, PACK_STAGES, COUNTED_LETTERS = 32, 16, 3
#: Sides of the squares that are transposed in shared memory, and rows that move together.
TURN_SIDE, TURN_LINES = 32, 8
#: Sums over codes of genotypes: words of 16 items of one stage and of one step, warps of a thread
#: block and rows that it computes, digits of a number; words of people and of sites that are turned
#: together.
SUM_STAGE, SUM_STEP, SUM_WARPS, SUM_ROWS, SUM_DIGITS = 32, 16, 4, 128, 3
TURNED_COLUMNS, TURNED_WORDS = 32, 8
#: Threads of the thread blocks of `kernels/pca/passes.cu` that do no products.
PASS_THREADS = 256
#: Warps that share the partners of a site in `band_r2`.
BAND_WARPS = 8
#: What one thread block of wgmma (and the wider one of mma) keeps in shared memory for one stage,
#: and what it needs besides its slots (alignment, barriers).
SLOT_BYTES, SLOT_OVERHEAD = 3 * TILE_BYTES, 1024 + 256
#: `Moments` of sm90_wgmma.cu: sum and scale of a site.
MOMENTS_BYTES = np.dtype([("sum", np.int32), ("scale", np.float32)]).itemsize

# --- rare sites (kernels/bitgemm/rare_sites.cu)

#: Square of bits that a thread block of `transpose_bits` turns.
SQUARE_SIDE = 512
#: Where the genotype of an entry of a list of carriers stands, and how many genotypes there are: 1,
#: 2 and missing.
STATE_SHIFT, CARRIED_GENOTYPES = 30, 3
#: Threads of a thread block of which each warp takes one site.
SITE_THREADS = 256
#: Threads of one thread block of `add_carriers`, and words of each: one 16-byte load.
ADDERS, ADDER_WORDS = 128, 4

# --- SNP comparisons (kernels/compare/)

#: Queries of one launch, and candidates that are kept of each.
QUERIES, CANDIDATES = 32, 4096
#: Profiles that a warp compares at a time: pieces of a scan are whole steps.
PROFILES_A_STEP = 16
#: Warps of a thread block of `scan_profiles`, and threads of one of `keep_best`.
SCAN_WARPS, KEEP_THREADS = 8, 1024
#: Bits of a profile's number in a key; the share of mismatches is above them.
INDEX_BITS = 40
#: Rows of query words are whole runs of so many sites.
QUERY_BITS = 512
#: Columns and rows that a thread block of `select_pairs` looks at together.
SELECT_COLUMNS, SELECT_ROWS = 32, 8

# --- neighbours (kernels/neighbors/)

#: Entries that one warp sorts, and candidates of a person among them.
LIST_LENGTH = 1024
LIST_ROOM = LIST_LENGTH - MOST_NEIGHBORS
#: Threads of a thread block that looks through counts, 4 columns each, and rows that it walks over.
FILTER_THREADS, FILTER_ROWS = 256, 64
#: Points a side of a thread block, threads a side, coordinates in shared memory at a time.
POINT_TILE, POINT_SIDE, POINT_DEPTH = 128, 16, 16
#: Code of each form of a distance; the last ones are of points and of matches.
FORMS = {"ROOT": ROOT, "RATIO": RATIO, "SHARES": SHARES, "POINTS": 3, "MATCHES": 4}
#: `Pair` of kernels/neighbors/screen.cu: row, column, the counts of KINSHIP.
PAIR_WORDS, PAIR_BYTES = 8, 32

# --- layouts of maps (kernels/umap/)

#: Threads of a thread block: two or three of them and their tables of forces fit any card.
UMAP_THREADS = 512

# --- identity by descent (kernels/ibd/)

#: Samples a side of a thread block's and of a warp's pairs; entries of a warp's queue; sites of a
#: part of a window; threads of a thread block of `pack_windows`.
IBD_SIDE, IBD_WARP_SIDE, IBD_QUEUE = 256, 64, 64
PART_SITES, PACK_THREADS = 128, 256

# --- populations (kernels/population/)

#: Threads of a thread block, and bit-sliced counters of each kind of genotype.
COUNT_THREADS, COUNT_LEVELS = 128, 6

# --- kinship (kernels/kinship/)

#: People a side of a tile of pairs; sites of a stage, and stages in shared memory.
PAIR_SIDE, PAIR_DEPTH, PAIR_STAGES = 64, 64, 3

# --- min-plus (kernels/minplus/)

#: Rows and columns of the tiles, and length of the runs, that bounds speak of.
BOUND_TILE, BOUND_RUN = 128, 32
#: Threads along each side of a thread block.
THREAD_SIDE = 16
#: Code of each number type.
NUMBERS = {"int32": 0, "float32": 1, "float64": 2, "int64": 3}

# --- epistasis (kernels/epistasis/)

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
    ],
    align=True,
)
SCAN_BYTES = SCAN.itemsize
#: `Correlation` of kernels/epistasis/compact_score.cu.
LIMIT = np.dtype([("middle", np.uint64), ("max_r2", np.float64)])


def _states_of_parts(which: int) -> int:
    """State of one of two sites in each part, two bits a part, 3: neither."""
    states = (3 if part[which] == 2 else part[which] for part in PARTS)
    return sum(state << (2 * i) for i, state in enumerate(states))


def _named(*names: str) -> dict[str, int]:
    return {name: globals()[name] for name in names}


_PACKED = _named("TILE_ROWS", "BLOCK_ROWS", "STAGE_BITS", "CHUNK_BYTES", "STEP_BYTES")
#: What the kernels of each folder are compiled with; a launch adds more.
DEFINES: dict[str, dict[str, int]] = {
    "bitgemm": {
        **_PACKED,
        **_named("PACK_ROWS", "PACK_STAGES", "COUNTED_LETTERS", "TURN_SIDE", "TURN_LINES"),
        **_named("MOMENTS_BYTES", "SQUARE_SIDE", "STATE_SHIFT", "CARRIED_GENOTYPES"),
        **_named("SITE_THREADS", "ADDERS", "ADDER_WORDS"),
        **{f"LETTER_{letter.upper()}": i for i, letter in enumerate(PLANE_LETTERS)},
    },
    "compare": _named(
        *("QUERIES", "CANDIDATES", "PROFILES_A_STEP", "SCAN_WARPS", "KEEP_THREADS", "INDEX_BITS"),
        *("QUERY_BITS", "SELECT_COLUMNS", "SELECT_ROWS", "BAND_WARPS"),
    )
    | {"SHARE_BITS": SHARE_BITS},
    "neighbors": _named(
        *("LIST_LENGTH", "LIST_ROOM", "FILTER_THREADS", "FILTER_ROWS"),
        *("POINT_TILE", "POINT_SIDE", "POINT_DEPTH", "SHARE_BITS", "PAIR_BYTES"),
    )
    | {f"FORM_{name}": code for name, code in FORMS.items()}
    | {"NOBODY": NOBODY},
    "ibd": _named("IBD_SIDE", "IBD_WARP_SIDE", "IBD_QUEUE", "PART_SITES", "PACK_THREADS"),
    "pca": _named(
        *("SUM_STAGE", "SUM_STEP", "SUM_WARPS", "SUM_ROWS", "SUM_DIGITS"),
        *("TURNED_COLUMNS", "TURNED_WORDS", "PASS_THREADS"),
    )
    | {
        "VECTOR_BITS": BITS,
        "SITE_BITS": SITE_BITS,
        "GRAM_WIDTH": WIDTH,
        "GRAM_ROWS": GRAM_ROWS,
        "NARROW": NARROW,
    },
    "umap": {
        "UMAP_THREADS": UMAP_THREADS,
        "POINT_BITS": umap_units.POINT_BITS,
        "FORCE_BITS": umap_units.FORCE_BITS,
        "SHARE_BITS": umap_units.SHARE_BITS,
        "STEP_BITS": umap_units.STEP_BITS,
        "SPREAD_BITS": umap_units.SPREAD_BITS,
        "RADIUS_BITS": umap_units.RADIUS_BITS,
        "INTERVAL_BITS": umap_units.INTERVAL_BITS,
        "PLACE_BITS": umap_units.PLACE_BITS,
        "TOP_BIT": umap_units.TOP_BIT,
        "FARTHEST": umap_units.FARTHEST,
        "BOUND": umap_units.BOUND,
        "LEAST_RADIUS": umap_units.LEAST_RADIUS,
    },
    "kinship": _named("PAIR_SIDE", "PAIR_DEPTH", "PAIR_STAGES"),
    "population": _named("COUNT_THREADS", "COUNT_LEVELS"),
    "minplus": {
        **_named("BOUND_TILE", "BOUND_RUN", "THREAD_SIDE", "TURN_SIDE"),
        "BASE": BASE,
        **{f"NUMBER_{name.upper()}": code for name, code in NUMBERS.items()},
        "LARGEST_INT32": int(INFINITY_INT32),
        "LARGEST_INT64": int(INFINITY_INT64),
    },
    "epistasis": {
        **_PACKED,
        **_named("TILE_SITES", "STEP_BITS", "PARTS_IN_A_ROW", "COMPACT_ROWS"),
        **_named("TRANSPOSED_WORDS", "RECORD_SITES", "SCAN_BYTES", "BLOCK_SITES"),
        "PARTS_OF_FIRST": _states_of_parts(0),
        "PARTS_OF_SECOND": _states_of_parts(1),
        "LEVEL_BITS": LEVEL_BITS,
        "ZERO_LEVEL": ZERO_LEVEL,
    },
}


def compiler_options(file: str, defines: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Options that a kernel file is compiled with: the common layout, then those of the launch."""
    common = DEFINES[file.split("/")[0]].items()
    return ("-std=c++17", *(f"-D{name}={value}" for name, value in (*common, *defines)))


def divide_up(value: int, step: int) -> int:
    return -(-value // step)


def layout_tiles(n_samples: int) -> int:
    """Tiles that some samples take, in whole blocks."""
    return divide_up(n_samples, BLOCK_ROWS) * (BLOCK_ROWS // TILE_ROWS)


def packed_bytes(n_samples: int, n_letters: int, n_stages: int) -> int:
    """Size of packed planes."""
    return n_letters * n_stages * layout_tiles(n_samples) * TILE_BYTES
