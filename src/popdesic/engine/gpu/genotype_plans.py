"""Launches of the sums over two-bit genotypes (`kernels/pca/sum_codes.cu`); no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from ..genotype_products import BITS, SITE_BITS
from .layout import SUM_DIGITS, SUM_ROWS, SUM_STAGE, SUM_WARPS, divide_up

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
#: Files of the kernels between and after the sums of a pass, and threads of their thread blocks.
NORMAL, FLIPPED = ("pca/standardise", 1024), ("pca/flips", 512)


def pass_defines(n_columns: int, threads: int) -> tuple[tuple[str, int], ...]:
    """What the kernels of a pass are compiled with; `n_columns` in whole tiles."""
    bits = ("SITE_BITS", SITE_BITS), ("BITS", BITS)
    return (("N_COLUMNS", n_columns), ("THREADS", threads), *bits)


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


def tiles_of(n_columns: int) -> int:
    return divide_up(n_columns, TILE_COLUMNS)
