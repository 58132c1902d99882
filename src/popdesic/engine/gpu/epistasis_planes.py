"""Asynchronous upload of the planes of a scan, and of small lists past it."""

from __future__ import annotations

import cupy
import numpy as np

from ..base import OneHot


class ScanPlanes:
    """Planes of both classes on the device, uint32 (n_sites, states, words), sent block by block.

    Pinned host memory is copied directly, while the device computes.
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
        self.sent = np.full(len(stored[0]), there)
        self.n_words = [np.int32(words.shape[-1]) for words in self.words]

    def send(self, sites: range) -> cupy.cuda.Event:
        """Start to copy some sites; the event completes when all sent so far have arrived."""
        new = sites.start + np.flatnonzero(~self.sent[sites.start : sites.stop])
        sites = range(int(new[0]), int(new[-1]) + 1) if len(new) else range(0)
        self.sent[sites.start : sites.stop] = True
        for given, stored in zip(self.given, self.stored, strict=True):
            if given is not stored and len(sites):
                part = np.ascontiguousarray(given[sites.start : sites.stop])
                stored[sites.start : sites.stop].set(part, stream=self.stream)
        return self.stream.record()


def read_by_kernel(array: np.ndarray) -> cupy.ndarray:
    """A device copy that does not wait behind queued uploads: a kernel reads pinned memory."""
    memory = cupy.cuda.alloc_pinned_memory(max(1, array.nbytes))
    pinned = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    pinned[...] = array
    view = cupy.cuda.UnownedMemory(memory.ptr, max(1, array.nbytes), memory)
    pointer = cupy.cuda.MemoryPointer(view, 0)
    out = cupy.ndarray(array.shape, array.dtype, pointer) + array.dtype.type(0)
    cupy.cuda.get_current_stream().synchronize()  # before the pinned memory is freed
    return out
