"""Counts of one sample with everyone, from planes that are read once.

Formula   the counts of `engine.terms.KINSHIP`, the sample being `a`: opposite homozygotes, sites at
          which both, the sample, the other are heterozygous, and sites called in both.
Shapes    words (n, 2 or 3, n_words); query (3, n_words), its third plane without bits behind the
          last site; out (5, n).
Loops     samples, then their words, whose planes are read once; threads take runs of samples.
"""

from __future__ import annotations

import mmap
import os
import threading

import numba
import numpy as np

from ..core.threads import run_tasks
from ..engine.popcount_cpu import popcount
from ..engine.terms import KINSHIP, Planes

#: Bytes of planes of a task: they stay in the cache of a core between reading and counting.
TASK_BYTES = 1 << 22


@numba.njit(nogil=True, cache=True)
def count_loop(query, words, out, first):
    """Counts of the samples of `words`, which are numbered from `first` on in `out`."""
    masked = words.shape[1] == 3
    for i in range(words.shape[0]):
        own, mask = words[i], words[i, words.shape[1] - 1]
        ibs0, both, het_a, het_b, called = 0, 0, 0, 0, 0
        for w in range(query.shape[1]):
            c = query[2, w]
            if masked:
                c &= mask[w]
            u, v, x, y = own[0, w], own[1, w], query[0, w], query[1, w]
            e, f = x & ~y & c, u & ~v & c
            ibs0 += popcount(((v & ~x) | (y & ~u)) & c)
            both += popcount(e & f)
            het_b += popcount(f)
            if masked:  # otherwise the same for all samples
                het_a += popcount(e)
                called += popcount(c)
        out[0, first + i], out[1, first + i], out[3, first + i] = ibs0, both, het_b
        if masked:
            out[2, first + i], out[4, first + i] = het_a, called


def _with_called(query: Planes) -> np.ndarray:
    """Planes u, v and c of one sample, uint64 (3, n_words)."""
    n_words = -(-query.n_sites // 64)
    words = np.zeros((3, n_words), np.uint64)
    words[:2] = query.words[0, :2, :n_words]
    words[2] = ~np.uint64(0)
    if query.n_sites % 64:
        words[2, -1] = (1 << query.n_sites % 64) - 1
    if not query.complete:
        words[2] &= query.words[0, 2, :n_words]
    return words


class MappedRows:
    """Rows of an array; those of a whole memory map are read from its file by each thread.

    Page faults of a map cost more than the counts, and threads that read side by side keep a disk
    busy. Use it in a `with`.
    """

    def __init__(self, words: np.ndarray) -> None:
        whole = isinstance(words, np.memmap) and isinstance(words.base, mmap.mmap)
        mapped = whole and words.filename and words.flags.c_contiguous
        self.words, self.own = words, threading.local()
        self.file = os.open(words.filename, os.O_RDONLY) if mapped else None

    def __enter__(self) -> MappedRows:
        return self

    def __exit__(self, *_) -> None:
        if self.file is not None:
            os.close(self.file)

    def read(self, first: int, last: int) -> np.ndarray:
        """Rows first ... last - 1, until the thread reads others. OSError: the file is cut off."""
        if self.file is None:
            return self.words[first:last]
        shape, row = (last - first, *self.words.shape[1:]), self.words[0].nbytes
        found = getattr(self.own, "buffer", None)
        if found is None or len(found) < shape[0]:
            found = self.own.buffer = np.empty(shape, self.words.dtype)
        found = found[: shape[0]]
        left, place = memoryview(found.reshape(-1).view(np.uint8)), self.words.offset + first * row
        while left:
            count = os.preadv(self.file, [left], place)
            if not count:
                raise OSError(f"{self.words.filename} ends before its last row")
            left, place = left[count:], place + count
        return found


def count_with_all(query: Planes, others: Planes, threads: int = 1) -> np.ndarray:
    """Counts of one sample with some others, as `bitgemm` of `KINSHIP` gives them.

    Parameters
    ----------
    query : Planes
        Of one sample.
    others : Planes
        In host memory; a whole memory map is read from its file.
    threads : int
        Changes no byte.

    Returns
    -------
    int64 array, (5, n)
        In the order of `KINSHIP.outputs`.

    Raises
    ------
    OSError
        The file of a memory map is shorter than its shape.
    """
    own, n = _with_called(query), others.n_samples
    out = np.zeros((len(KINSHIP.outputs), n), np.int64)
    out[2] = np.bitwise_count(own[0] & ~own[1] & own[2]).sum()
    out[4] = np.bitwise_count(own[2]).sum()
    step = max(1, TASK_BYTES // max(1, others.words[:1].nbytes))
    with MappedRows(others.words) as rows:

        def work(first: int, last: int) -> None:
            count_loop(own, rows.read(first, last), out, first)

        run_tasks(work, [(i, min(i + step, n)) for i in range(0, n, step)], threads)
    return out
