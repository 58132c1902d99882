"""Asynchronous upload of the planes of a scan."""

from __future__ import annotations

import cupy
import numpy as np

from ..engine.pinned_gpu import is_pinned
from .scan_data import OneHot

#: Bytes of a plane of one site from which on the device copies some planes of each site at the rate
#: of whole sites.
WIDE_ROW = 2048


class ScanPlanes:
    """Planes of both classes on the device, uint32 (n_sites, states, words), sent block by block.

    Pinned host memory is copied directly, while the device computes.

    Attributes
    ----------
    sent : int array, (n_sites,)
        Planes of each site that are on the device or on their way.
    """

    def __init__(self, classes: tuple[OneHot, OneHot]):
        self.given = [one.words for one in classes]
        self.stream = cupy.cuda.Stream(non_blocking=True)
        stored = [
            words if isinstance(words, cupy.ndarray) else cupy.empty(words.shape, words.dtype)
            for words in self.given
        ]
        # the pool may return memory that queued kernels still use
        self.stream.wait_event(cupy.cuda.get_current_stream().record())
        self.stored = stored
        self.words = [words.view(np.uint32) for words in stored]
        there = all(given is own for given, own in zip(self.given, stored, strict=True))
        self.states = stored[0].shape[1]
        self.sent = np.full(len(stored[0]), self.states if there else 0)
        self.n_words = [np.int32(words.shape[-1]) for words in self.words]
        self.by_plane = not there and all(map(_is_wide, self.given))

    def send(self, sites: range, states: int | None = None) -> cupy.cuda.Event:
        """Start to copy some sites; the event completes when all sent so far have arrived.

        `states`: the first planes alone, where rows are long enough for such copies to be fast.
        """
        wanted = states if states and self.by_plane else self.states
        new = sites.start + np.flatnonzero(self.sent[sites.start : sites.stop] < wanted)
        if len(new):
            # runs of sites of which as many planes are there
            ends = np.flatnonzero((np.diff(new) > 1) | (np.diff(self.sent[new]) != 0)) + 1
            for run in np.split(new, ends):
                self._send(int(run[0]), int(run[-1]) + 1, int(self.sent[run[0]]), wanted)
            self.sent[new] = wanted
        return self.stream.record()

    def _send(self, start: int, stop: int, plane: int, end: int) -> None:
        """Copy planes in [plane, end) of sites in [start, stop)."""
        for given, stored in zip(self.given, self.stored, strict=True):
            if given is stored:
                continue
            if (plane, end) == (0, self.states):
                part = np.ascontiguousarray(given[start:stop])
                stored[start:stop].set(part, stream=self.stream)
                continue
            row = 8 * given.shape[2]
            cupy.cuda.runtime.memcpy2DAsync(
                *(stored.data.ptr + (start * self.states + plane) * row, self.states * row),
                *(given.ctypes.data + (start * self.states + plane) * row, self.states * row),
                *((end - plane) * row, stop - start, cupy.cuda.runtime.memcpyHostToDevice),
                self.stream.ptr,
            )


def _is_wide(words: np.ndarray | cupy.ndarray) -> bool:
    """Whether single planes of sites are copied as fast as whole sites."""
    wide = 8 * words.shape[2] >= WIDE_ROW
    return wide and isinstance(words, np.ndarray) and words.flags.c_contiguous and is_pinned(words)
