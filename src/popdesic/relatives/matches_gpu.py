"""Best matches of query profiles on a GPU: of 32 x 20 million pairs the best of each query."""

from __future__ import annotations

from collections.abc import Iterator

import cupy
import cupyx
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import divide_up
from ..engine.terms import Planes
from .matches import INDEX_BITS, TopMatches
from .matches_plan import (
    CANDIDATES,
    KEEP_THREADS,
    MOST_MATCHES,
    PROFILES_A_STEP,
    QUERIES,
    SCAN_WARPS,
    SEARCH,
    part_rows,
    piece_size,
    query_words,
    with_planes,
)

#: Bytes of one part of a database on its way to the device.
PART_BYTES = 256 << 20


class _Search:
    """Candidates of one batch of queries on the device."""

    def __init__(self, queries: Planes, k: int, min_called: int, device: Device):
        self.k, self.min_called, self.n_sites = k, max(min_called, 1), queries.n_sites
        self.n_queries = queries.n_samples
        self.words = cupy.asarray(query_words(queries))
        defines = (("N_PLANES", queries.words.shape[1]),)
        self.scan_kernel = load_function(SEARCH, "scan_profiles", defines, device.capability)
        self.keep_kernel = load_function(SEARCH, "keep_best", defines, device.capability)
        self.blocks = device.multiprocessors * 4
        self.candidates = cupy.empty((QUERIES, CANDIDATES), np.uint64)
        self.counts = cupy.empty(QUERIES, np.uint32)
        self.limits = cupy.empty(QUERIES, np.uint64)
        self.overflow = cupy.empty(1, np.int32)
        self.reset(cautious=False)

    def reset(self, cautious: bool) -> None:
        self.counts.fill(0)
        self.limits.fill(0)
        self.limits[: self.n_queries] = np.uint64(2**64 - 1)
        self.overflow.fill(0)
        self.cautious, self.seen = cautious, 0

    def scan(self, words: cupy.ndarray, first_index: int) -> None:
        """Scan profiles, in pieces that grow as the limits tighten (`piece_size`).

        Where an unlucky order of the profiles makes candidates overflow, the search is repeated
        with pieces that cannot.
        """
        row, n = 0, len(words)
        while row < n:
            size = min(piece_size(self.k, self.seen, self.cautious), n - row)
            self.scan_kernel(
                (min(self.blocks, divide_up(size, PROFILES_A_STEP * SCAN_WARPS)),),
                (32 * SCAN_WARPS,),
                (
                    words,
                    self.words,
                    self.limits,
                    self.candidates,
                    self.counts,
                    np.int64(row),
                    np.int64(size),
                    np.int64(first_index + row),
                    np.int32(words.shape[2]),
                    np.int32(self.words.shape[2]),
                    np.int32(self.n_sites),
                    np.int32(self.min_called),
                ),
            )
            self.keep_kernel(
                (QUERIES,),
                (KEEP_THREADS,),
                (self.candidates, self.counts, self.limits, self.overflow, np.int32(self.k)),
            )
            row += size
            self.seen += size

    def indices(self) -> np.ndarray | None:
        """int64 (n_queries, k) numbers of the best profiles, -1 for none; None: scan again."""
        if int(self.overflow[0]):
            return None
        keys = self.candidates[: self.n_queries, : self.k].get()
        counts = self.counts[: self.n_queries].get()
        there = np.arange(self.k)[None, :] < counts[:, None]
        index = (keys & np.uint64(2**INDEX_BITS - 1)).astype(np.int64)
        return np.where(there, index, -1)


def matches_of_parts(
    queries: Planes, parts, device: Device, k: int, min_called: int = 1
) -> np.ndarray:
    """Best matches in a database that comes in parts: int64 (n_queries, k).

    Parameters
    ----------
    queries : Planes
        Any number of queries; 1, 2 or 3 planes. One plane is one bit a site: has the allele or not.
    parts : function
        Gives the number of the first profile and the words of each part, uint64 device array
        (n_profiles, n_planes, row_words); as many planes, `row_words` even.
    """
    searches = [
        _Search(Planes(queries.words[q : q + QUERIES], queries.n_sites), k, min_called, device)
        for q in range(0, queries.n_samples, QUERIES)
    ]
    for first, words in parts():
        for search in searches:
            search.scan(words, first)
    found = [search.indices() for search in searches]
    if any(index is None for index in found):
        for search in searches:
            search.reset(cautious=True)
        for first, words in parts():
            for search in searches:
                search.scan(words, first)
        found = [search.indices() for search in searches]
    return np.concatenate(found)


def stream_parts(database: np.ndarray) -> Iterator[tuple[int, cupy.ndarray]]:
    """Parts of a database in host memory, each copied while the one before it is scanned.

    A database in pinned memory goes as it is; another passes through two pinned buffers.
    """
    n_profiles, n_planes, n_words = database.shape
    rows = part_rows(n_profiles, n_planes * n_words * 8, PART_BYTES)
    row_words = n_words + n_words % 2
    pinned = _is_pinned(database) and row_words == n_words
    buffers = [cupy.zeros((rows, n_planes, row_words), np.uint64) for _ in range(2)]
    hosts = (
        []
        if pinned
        else [cupyx.zeros_pinned((rows, n_planes, row_words), np.uint64) for _ in range(2)]
    )
    copy = cupy.cuda.Stream(non_blocking=True)
    compute = cupy.cuda.get_current_stream()
    sent = [cupy.cuda.Event(), cupy.cuda.Event()]
    scanned = [cupy.cuda.Event(), cupy.cuda.Event()]
    copy.wait_event(compute.record())

    def send(turn: int, first: int) -> None:
        last = min(first + rows, n_profiles)
        if pinned:
            source = database[first:last]
        else:
            sent[turn].synchronize()
            hosts[turn][: last - first, :, :n_words] = database[first:last]
            source = hosts[turn][: last - first]
        copy.wait_event(scanned[turn])
        buffers[turn][: last - first].set(source, stream=copy)
        sent[turn].record(copy)

    starts = list(range(0, n_profiles, rows))
    if starts:
        send(0, 0)
    for number, first in enumerate(starts):
        turn = number % 2
        if number + 1 < len(starts):
            send(1 - turn, starts[number + 1])
        compute.wait_event(sent[turn])
        yield first, buffers[turn][: min(rows, n_profiles - first)]
        scanned[turn].record(compute)
    compute.synchronize()


def _is_pinned(array: np.ndarray) -> bool:
    if not array.flags.c_contiguous:
        return False
    try:
        return cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type == 1
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def top_matches(
    queries: Planes, database: Planes, device: Device, k: int, min_called: int
) -> TopMatches | None:
    """`top_matches`, chosen on the device; None where `k` is more than it keeps."""
    if k > MOST_MATCHES:
        return None
    n_planes = max(queries.words.shape[1], database.words.shape[1])
    queries = with_planes(queries, n_planes)
    words = database.words
    if words.shape[1] != n_planes:
        words = with_planes(database, n_planes).words
    index = matches_of_parts(queries, lambda: stream_parts(words), device, k, min_called)
    return TopMatches.at(index, queries, Planes(words, queries.n_sites), min_called)
