"""Launches of the sums over two-bit genotypes (`kernels/engine/code_sums.cu`); no CuPy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .columns import GRAM_ROWS, NARROW, WIDTH
from .genotype_products import BITS, SITE_BITS
from .layout import KernelSource, divide_up

#: Sums over codes of genotypes: words of 16 items of one stage and of one step, warps of a thread
#: block and rows that it computes, digits of a number; words of people and of sites that are turned
#: together.
SUM_STAGE, SUM_STEP, SUM_WARPS, SUM_ROWS, SUM_DIGITS = 32, 16, 4, 128, 3
TURNED_COLUMNS, TURNED_WORDS = 32, 8
#: Threads of the thread blocks of genotype_passes.cu that do no products.
PASS_THREADS = 256
_SUMS = {
    "SUM_STAGE": SUM_STAGE,
    "SUM_STEP": SUM_STEP,
    "SUM_WARPS": SUM_WARPS,
    "SUM_ROWS": SUM_ROWS,
    "SUM_DIGITS": SUM_DIGITS,
}
CODE_SUMS = KernelSource.of(
    "engine/code_sums", **_SUMS, TURNED_COLUMNS=TURNED_COLUMNS, TURNED_WORDS=TURNED_WORDS
)
PASSES = KernelSource.of(
    "engine/genotype_passes",
    **_SUMS,
    PASS_THREADS=PASS_THREADS,
    VECTOR_BITS=BITS,
    SITE_BITS=SITE_BITS,
)
COLUMNS = KernelSource.of("engine/columns", GRAM_WIDTH=WIDTH, GRAM_ROWS=GRAM_ROWS, NARROW=NARROW)
#: Columns of one tile, and most tiles of one launch.
TILE_COLUMNS, MOST_TILES = 8, 4
#: Values of the codes 00, 01, 10 and 11 in the bytes of a word: genotypes; 1 where there is one ALT
#: allele, two of them, or a missing genotype.
GENOTYPES = 0x00010002
HETEROZYGOTES, HOMOZYGOTES, MISSING = 0x00010000, 0x00000001, 0x00000100
#: Thread blocks that a multiprocessor is given at least, so that loads of one overlap with products
#: of another.
BLOCKS_A_MULTIPROCESSOR = 4
#: Items of one run: int32 accumulators hold 2 * 128 times as many.
MOST_ITEMS = 1 << 22


@dataclass(frozen=True)
class SumLaunch:
    """One launch of `sum_codes`."""

    grid: tuple[int, int]
    block: tuple[int]
    shared: int
    stages_a_run: int


def plan_sums(n_rows: int, n_words: int, tiles: int, multiprocessors: int) -> SumLaunch:
    """How rows and items are shared among thread blocks.

    Parameters
    ----------
    n_rows : int
    n_words : int
        Words of 16 items in each row.
    tiles : int
        Tiles of columns, 1 to MOST_TILES.
    """
    rows, stages = divide_up(n_rows, SUM_ROWS), divide_up(n_words, SUM_STAGE)
    runs = min(stages, max(1, BLOCKS_A_MULTIPROCESSOR * multiprocessors // rows))
    stages_a_run = min(divide_up(stages, runs), MOST_ITEMS // (16 * SUM_STAGE))
    pitch = 16 * SUM_STAGE + 64
    return SumLaunch(
        (rows, divide_up(stages, stages_a_run)),
        (32 * SUM_WARPS,),
        TILE_COLUMNS * SUM_DIGITS * tiles * pitch,
        stages_a_run,
    )


def column_tiles(n_columns: int) -> int:
    return divide_up(n_columns, TILE_COLUMNS)


#: Columns of one pass (`kernels/engine/genotype_passes.cu`).
MOST_COLUMNS = TILE_COLUMNS * MOST_TILES
#: Device memory of a group of blocks besides their codes, aimed at; less where the device has less.
GROUP_BYTES = 1 << 30
#: Codes of a group that are sent or turned for one pass, aimed at.
CODE_BYTES = 1 << 27
#: Places of people that a thread block of `share_numbers` adds up, and thread blocks of one sum.
SHARED_PLACES, MOST_SHARERS = 8192, 64


@dataclass(frozen=True)
class Room:
    """Device memory for passes.

    Attributes
    ----------
    twice : bool
        Whether the device keeps the codes of sites and of people.
    group_bytes : int
        For sums and digits of a group of blocks.
    """

    twice: bool
    group_bytes: int = GROUP_BYTES
    code_bytes: int = CODE_BYTES

    @classmethod
    def of(cls, bytes_left: int, code_bytes: int) -> Room:
        """Room on a device with so many bytes left besides the codes of sites, if it keeps them.

        `code_bytes`: of all codes.
        """
        twice = bytes_left >= code_bytes + GROUP_BYTES
        return cls(twice, min(GROUP_BYTES, max(0, bytes_left - twice * code_bytes) // 2))


@dataclass(frozen=True)
class PassGroup:
    """Consecutive blocks of sites whose sums are in memory together, and their sets of signs.

    Attributes
    ----------
    blocks : int64 array, (n_blocks, 4)
        First site, from `first_site`; sites; set, from `first_set`; padded sites of the blocks
        before.
    site_tiles, person_tiles : int64 arrays, (n_tiles, 8)
        Rows and words of one thread block of `sum_tiles`, as that file says: of sites for each part
        of the people, and of people for each block.
    first_site, n_sites, first_set, n_sets, padded : int
        The padded sites of all blocks.
    """

    blocks: np.ndarray
    site_tiles: np.ndarray
    person_tiles: np.ndarray
    first_block: int
    first_site: int
    n_sites: int
    first_set: int
    n_sets: int
    padded: int


def words_before(bounds: list[tuple[int, int]], row_words: int) -> np.ndarray:
    """Words of people's codes before each block, and of all: int64 (n_blocks + 1,)."""
    sizes = [16 * row_words * site_words(last - first) for first, last in bounds]
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def site_words(n_sites: int) -> int:
    """Words of a person's codes of a block of sites."""
    return divide_up(n_sites, 256) * 16


def plan_pass(
    bounds: list[tuple[int, int]],
    labels: np.ndarray,
    spans: list[tuple[int, int]],
    row_words: int,
    tiles: int,
    *,
    whole_sets: bool = False,
    room: Room,
    multiprocessors: int,
) -> list[PassGroup]:
    """Groups of the blocks of one pass, in their order.

    Parameters
    ----------
    bounds : list of (first, last)
        Sites of each block.
    labels : int array, (n_blocks,)
        Set of signs of each block: 0, then the same or the next one.
    spans : list of (start, end)
        Bytes of a row of each part of the people.
    row_words : int
        Words of a row.
    tiles : int
        Tiles of columns.
    whole_sets : bool
        Whether the blocks of a set must be in one group.
    room : Room
    multiprocessors : int
        Rows are summed in so many parts that all multiprocessors have work.
    """
    n_places, columns = 16 * row_words, TILE_COLUMNS * tiles
    before = words_before(bounds, row_words)
    ends, used, turned = [0], 0, 0
    for at, (first, last) in enumerate(bounds):
        new = at == 0 or labels[at] != labels[at - 1]
        own = columns * (16 * (last - first) * len(spans) + 16 * n_places)
        own += 2 * SUM_DIGITS * columns * 16 * site_words(last - first) * len(spans)
        own += new * SUM_DIGITS * columns * n_places
        codes = 0 if room.twice else 4 * int(before[at + 1] - before[at])
        full = used + own > room.group_bytes or turned + codes > room.code_bytes
        if at > ends[-1] and full and (new or not whole_sets):
            ends.append(at)
            used, turned = 0, 0
        used += own
        turned += codes
    ends.append(len(bounds))
    return [
        _group(bounds, labels, spans, row_words, columns, before, first, last, multiprocessors)
        for first, last in pairwise(ends)
        if last > first
    ]


def _group(
    bounds, labels, spans, row_words, columns, before, first, last, multiprocessors
) -> PassGroup:
    n_places, start = 16 * row_words, bounds[first][0]
    n_sites, digits = bounds[last - 1][1] - start, SUM_DIGITS * columns
    blocks, by_site, by_person, padded = [], [], [], 0
    for at in range(first, last):
        low, high = bounds[at]
        label, words = int(labels[at] - labels[first]), site_words(high - low)
        blocks.append([low - start, high - low, label, padded])
        for part, (left, right) in enumerate(spans):
            span = left // 4, (right - left) // 4
            rows = np.arange(low, high, SUM_ROWS)
            by_site.append(
                _tiles(
                    *((rows - start) * row_words, row_words),
                    *(np.minimum(high - rows, SUM_ROWS), *span),
                    *(digits * label * n_places, n_places, part * n_sites + rows - start),
                )
            )
            people = np.arange(4 * left, 4 * right, SUM_ROWS)
            by_person.append(
                _tiles(
                    *(before[at] - before[first] + people * words, words),
                    np.minimum(4 * right - people, SUM_ROWS),
                    *(0, words, digits * (padded * len(spans) + part * 16 * words), 16 * words),
                    (at - first) * n_places + people,
                )
            )
        padded += 16 * words
    tiles = (_in_runs(np.concatenate(one), multiprocessors) for one in (by_site, by_person))
    tables = np.array(blocks), *tiles
    sets = int(labels[first]), int(labels[last - 1] - labels[first]) + 1
    return PassGroup(*tables, first, start, n_sites, *sets, padded)


def _tiles(*columns) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.int64)


def _in_runs(tiles: np.ndarray, multiprocessors: int) -> np.ndarray:
    """Tiles whose words are shared among several where there are few rows, and below MOST_ITEMS."""
    words = int(tiles[:, 4].max(initial=0))
    stages = max(1, divide_up(words, SUM_STAGE))
    runs = min(stages, max(1, BLOCKS_A_MULTIPROCESSOR * multiprocessors // max(1, len(tiles))))
    step = SUM_STAGE * min(divide_up(stages, runs), MOST_ITEMS // (16 * SUM_STAGE))
    if words <= step:
        return tiles
    parts = []
    for first in range(0, words, step):
        part = tiles[tiles[:, 4] > first]
        part[:, 3] += first
        part[:, 4] = np.minimum(part[:, 4] - first, step)
        parts.append(part)
    return np.concatenate(parts)
