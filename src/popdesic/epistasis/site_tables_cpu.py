"""Contingency tables of a few combinations of sites, counted from the planes of a scan."""

from __future__ import annotations

import functools

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from .interaction_cpu import tasks_of
from .scan_data import ScanData


@numba.njit(nogil=True)
def _states(words, site, w, valid):
    """Bits of states 0, 1 and of the genotype that is not stored, in word w of a site."""
    first, second = words[site, 0, w], words[site, 1, w]
    third = valid & ~(first | second)
    if words.shape[1] == 3:
        third &= ~words[site, 2, w]
    return first, second, third


@numba.njit(nogil=True)
def _bits_set(word):
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


def _tables(words, n_samples, sites, class_, first, last, out):
    order = sites.shape[1]
    for t in range(first, last):
        for w in range(words.shape[2]):
            left = n_samples - 64 * w
            if left <= 0:
                break
            valid = (
                ~np.uint64(0) if left >= 64 else (np.uint64(1) << np.uint64(left)) - np.uint64(1)
            )
            of_a = _states(words, sites[t, 0], w, valid)
            of_b = _states(words, sites[t, 1], w, valid)
            k = 0
            for a in of_a:
                for b in of_b:
                    if order == 2:
                        out[t, class_, k] += _bits_set(a & b)
                        k += 1
                    else:
                        for c in _states(words, sites[t, 2], w, valid):
                            if order == 3:
                                out[t, class_, k] += _bits_set(a & b & c)
                                k += 1
                            else:
                                for d in _states(words, sites[t, 3], w, valid):
                                    out[t, class_, k] += _bits_set(a & b & c & d)
                                    k += 1


@functools.cache
def site_tables_kernel():
    n, words = types.int64, types.Array(types.uint64, 3, "C", readonly=True)
    signature = (words, n, types.Array(types.int32, 2, "C"), n, n, n, types.Array(n, 3, "C"))
    return numba.njit([types.void(*signature)], nogil=True, cache=True)(_tables)


def count_tables(data: ScanData, sites: np.ndarray, *, threads: int = 1) -> np.ndarray:
    """Tables of some combinations of sites: int64 (n, 2, 3**order).

    The second stage of a scan whose device only filters: tables of what passed its filter, whose
    costs are `interaction_costs`.

    Parameters
    ----------
    data : ScanData
    sites : int array, (n, order)
        Indices into the scanned sites, as in `Hits.sites`.

    Returns
    -------
    int64 array
        People called at all sites; states as in `OneHot`, the third is the one not stored.
    """
    sites = np.ascontiguousarray(sites, np.int32)
    out = np.zeros((len(sites), 2, 3 ** sites.shape[1]), np.int64)
    planes = [np.ascontiguousarray(one.words, np.uint64) for one in data.classes]
    kernel = site_tables_kernel()

    def work(first: int, last: int) -> None:
        for c, (words, one) in enumerate(zip(planes, data.classes, strict=True)):
            kernel(words, one.n_samples, sites, c, first, last, out)

    run_tasks(work, tasks_of(len(sites)), threads)
    return out
