"""Parts, pieces and launches of counts over groups of samples (kernels/population/); no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.devices import Device
from ..engine.layout import KernelSource, divide_up
from ..engine.needs import COUNTED_BYTES
from .group_counts import samples_at_once

#: Threads of a thread block, and bit-sliced counters of each kind of genotype.
COUNT_THREADS, COUNT_LEVELS = 128, 6
COUNTS = KernelSource.of(
    "population/group_counts", COUNT_THREADS=COUNT_THREADS, COUNT_LEVELS=COUNT_LEVELS
)
#: Bytes of planes that are sent at a time, of which two parts are under way: long beside the
#: launches and the grouping of a part (0.1 ms), short beside the host's pinned memory; and bytes of
#: counts that come back at a time.
PART_BYTES = RESULT_BYTES = COUNTED_BYTES
#: Most thread blocks along y: samples of a part, groups.
MOST_BLOCKS = 65535
#: Thread blocks that a multiprocessor is given at least, where there are as many samples.
BLOCKS_A_MULTIPROCESSOR = 16
#: Fewest samples of a piece, and fewest words of a run, that pay their additions to global memory.
LEAST_ROWS, LEAST_WORDS = 8, 1024


@dataclass(frozen=True)
class CountPlan:
    """How planes are counted.

    Attributes
    ----------
    samples : int
        Of a part.
    rows : int
        Most samples of a piece, which one thread block counts over its words.
    words_a_run : int
        Words (64 sites) of a sample that a thread block sums.
    """

    samples: int
    rows: int
    words_a_run: int


def plan_counts(
    shape: tuple[int, int, int],
    n_groups: int,
    device: Device,
    free_bytes: int,
    host_bytes: int,
) -> CountPlan | None:
    """How planes of this shape (n_samples, n_planes, n_words) are counted; None: by the CPU.

    Parameters
    ----------
    n_groups : int
        Groups that may turn out to have samples.
    free_bytes, host_bytes : int
        Device memory, and pinned memory for two parts.
    """
    n_samples, n_planes, n_words = shape
    if not n_samples or not n_words or n_groups > MOST_BLOCKS:
        return None
    at_once = samples_at_once(np.broadcast_to(np.uint64(), shape), min(PART_BYTES, host_bytes // 2))
    samples = min(n_samples, at_once, MOST_BLOCKS)
    buffers = 2 * 8 * samples * n_planes * n_words
    of_sites = 64 * n_words * (8 + 1 + 12 * n_groups)
    if buffers + of_sites + RESULT_BYTES > free_bytes:
        return None
    wanted = BLOCKS_A_MULTIPROCESSOR * device.multiprocessors
    pieces = divide_up(wanted, divide_up(2 * n_words, COUNT_THREADS))
    rows = min(2**COUNT_LEVELS - 1, max(LEAST_ROWS, samples // pieces))
    runs = min(MOST_BLOCKS, divide_up(wanted, samples))
    words_a_run = max(LEAST_WORDS, divide_up(n_words, runs))
    return CountPlan(samples, rows, words_a_run)


def pieces_of(own: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of a part by group, in pieces.

    Parameters
    ----------
    own : int64 array, (n,)
        Group of each sample; -1: none.
    rows : int
        Most samples of a piece.

    Returns
    -------
    order : int64 array
        Samples, group by group.
    groups : int64 array, (n_pieces,)
        Group of each piece.
    bounds : int64 array, (n_pieces, 2)
        Where a piece begins and ends in `order`.
    """
    order = np.argsort(own, kind="stable")
    order = order[own[order] >= 0]
    groups, first, sizes = np.unique(own[order], return_index=True, return_counts=True)
    pieces = -(-sizes // rows)
    which = np.repeat(np.arange(len(groups)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = first[which] + number * rows
    end = np.minimum(begin + rows, (first + sizes)[which])
    return order.astype(np.int64), groups[which], np.column_stack([begin, end]).astype(np.int64)


def sites_at_once(n_sites: int, n_groups: int, count_bytes: int) -> int:
    """Sites whose counts come back at a time."""
    return max(1, min(n_sites, RESULT_BYTES // (3 * count_bytes * max(1, n_groups))))
