"""Counts of genotypes over groups of samples on a GPU, at the rate at which planes arrive.

A part of the samples is sent while the part before it is counted. Planes in pinned memory are sent
from where they are, others pass through two pinned buffers. The sums of a part come to the host,
which says who is in which group. This takes microseconds, and the next part is under way.
"""

from __future__ import annotations

import cupy
import cupyx
import numpy as np

from ..core.threads import run_tasks
from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import divide_up
from ..engine.pinned_gpu import is_pinned, read_by_kernel
from ..engine.stream_plan import COPY_THREADS
from ..io.sites import chunks
from .group_counts import GroupCounts, Grouping, group_count_type
from .group_counts_plan import COUNT_THREADS, COUNTS, CountPlan, pieces_of, sites_at_once


class GroupStream:
    """Counts of all parts of some planes.

    Parameters
    ----------
    plan : CountPlan
    device : Device
    threads : int
        CPU threads that copy planes into pinned memory.
    """

    def __init__(self, plan: CountPlan, device: Device, threads: int) -> None:
        self.plan, self.device = plan, device
        self.threads = min(threads, COPY_THREADS)
        self.compute, self.copy = cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
        self.compute.wait_event(cupy.cuda.get_current_stream().record())
        self.counted = [cupy.cuda.Event(), cupy.cuda.Event()]

    def count(
        self,
        words: np.ndarray,
        used: np.ndarray,
        values: np.ndarray,
        n_sites: int,
        grouping: Grouping,
    ) -> GroupCounts:
        """`count_groups`."""
        self.shape = words.shape
        n_samples = len(words)
        self._make_buffers(words)
        self.count_bytes = group_count_type(n_samples).itemsize
        sums = np.zeros((n_samples, 3), np.int64)
        sizes: dict[int, int] = {}
        self.totals: dict[int, cupy.ndarray] = {}
        with self.compute:
            self.used, self.values = cupy.asarray(used), cupy.asarray(values)
        parts = list(chunks(n_samples, self.plan.samples))
        coming = self._send(words, parts[0], 0)
        for number, (begin, end) in enumerate(parts):
            (host, sent, raw), turn = coming, number % 2
            if number + 1 < len(parts):
                coming = self._send(words, parts[number + 1], 1 - turn)
            with self.compute:
                self.compute.wait_event(sent)
                sums[begin:end] = self._sum(raw)
                own = grouping(begin, host, sums[begin:end])
                self._add(raw, own)
                self.counted[turn].record(self.compute)
            for group, size in zip(*np.unique(own[own >= 0], return_counts=True), strict=True):
                sizes[int(group)] = sizes.get(int(group), 0) + int(size)
        groups = np.array(sorted(sizes), np.int64)
        counts = self._interleaved(groups, n_sites, group_count_type(n_samples))
        of_groups = np.array([sizes[g] for g in groups.tolist()], np.int64)
        return GroupCounts(sums, groups, of_groups, counts)

    def _make_buffers(self, words: np.ndarray) -> None:
        n_samples, n_planes, n_words = words.shape
        size = self.plan.samples * n_planes * n_words
        self.sends_from = words.flags.c_contiguous and is_pinned(words)
        pinned = 0 if self.sends_from else min(2, divide_up(n_samples, self.plan.samples))
        self.pinned = [cupyx.empty_pinned(size, np.uint64) for _ in range(pinned)]
        with self.compute:
            self.raw = [cupy.empty(size, np.uint64) for _ in range(2)]
        self.compute.synchronize()  # the copy stream writes them

    def _send(
        self, words: np.ndarray, part: tuple[int, int], turn: int
    ) -> tuple[np.ndarray, cupy.cuda.Event, cupy.ndarray]:
        """Start to copy a part: its words on the host, when they have arrived, and where."""
        begin, end = part
        source = words[begin:end]
        host = source
        if not self.sends_from:
            # The part that lay here was counted, or its sums would not have been known.
            host = self.pinned[turn][: source.size].reshape(source.shape)
            rows = divide_up(len(source), self.threads)
            run_tasks(
                lambda a, b: np.copyto(host[a:b], source[a:b]),
                chunks(len(source), rows),
                self.threads,
            )
        raw = self.raw[turn][: source.size].reshape(source.shape)
        self.copy.wait_event(self.counted[turn])
        raw.set(host, stream=self.copy)
        return host, self.copy.record(), raw

    def _launch(self, name: str, grid: tuple[int, ...], arguments: tuple) -> None:
        defines = (("COUNT_BYTES", self.count_bytes),)
        kernel = load_function(COUNTS, name, defines, self.device.capability)
        kernel(grid, (COUNT_THREADS,), arguments)

    def _sum(self, raw: cupy.ndarray) -> np.ndarray:
        n, n_planes, n_words = raw.shape
        sums = cupy.zeros((n, 3), np.uint64)
        run = self.plan.words_a_run
        sizes = np.int32(n_planes), np.int64(n_words), np.int64(run)
        grid = n, divide_up(n_words, run)
        self._launch("sum_samples", grid, (raw, self.used, self.values, sums, *sizes))
        return sums.get().view(np.int64)

    def _add(self, raw: cupy.ndarray, own: np.ndarray) -> None:
        _, n_planes, n_words = raw.shape
        order, groups, bounds = pieces_of(own, self.plan.rows)
        if not len(order):
            return
        for group in np.unique(groups).tolist():
            if group not in self.totals:
                self.totals[group] = cupy.zeros((3, 64 * n_words), np.int32)
        addresses = [self.totals[group].data.ptr for group in groups.tolist()]
        pieces = np.column_stack([bounds, np.array(addresses, np.int64)])
        # An upload would wait behind that of the next part.
        tables = read_by_kernel(np.concatenate([order, pieces.ravel()]))
        self._launch(
            "add_sites",
            (divide_up(2 * n_words, COUNT_THREADS), len(groups)),
            (
                *(raw, self.used, tables[: len(order)], tables[len(order) :]),
                *(np.int32(n_planes), np.int64(2 * n_words)),
            ),
        )

    def _interleaved(self, groups: np.ndarray, n_sites: int, dtype: np.dtype) -> np.ndarray:
        """Counts of all groups as (n_sites, n_groups, 3), some sites at a time."""
        counts = np.zeros((n_sites, len(groups), 3), dtype)
        if not counts.size:
            return counts
        n_bits = 64 * self.shape[2]
        with self.compute:
            addresses = [self.totals[group].data.ptr for group in groups.tolist()]
            table = cupy.asarray(np.array(addresses, np.int64))
            for first, last in chunks(n_sites, sites_at_once(n_sites, len(groups), dtype.itemsize)):
                out = cupy.empty((last - first, len(groups), 3), dtype)
                numbers = map(np.int64, (first, last - first, n_bits))
                grid = divide_up(last - first, COUNT_THREADS), len(groups)
                self._launch("interleave_counts", grid, (table, out, *numbers))
                out.get(out=counts[first:last])
        return counts
