"""Counts of genotypes by site, over groups of samples, and by sample, from sample-major planes.

With u, v, c the planes carrier, hom and called, het = u & ~v & c, hom = v & c and ref = ~u & c.
Words of 64 sites are added into LEVELS bit-sliced counters (bit b of counter k is bit k of the
count of site b), FOUR samples at a time: three full adders make two bits of their sum and one
carry, which half adders take on:

    carry = counter[k] & x;  counter[k] ^= x;  x = carry;  and so on

SIMD does this for several words at once. After 2**LEVELS - FOUR samples the counters are added to
integers. The cost of a genotype does not depend on the number of groups or on who is in them.
"""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks
from ..engine.popcount_cpu import popcount

#: Bit-sliced counters of each kind of genotype.
LEVELS = 6
#: Samples that are added at a time.
FOUR = 4
#: Words of one task: its counters, 3 x LEVELS of them, stay in the first-level cache.
WORDS_A_TASK = 128


def count_by_site(
    words: np.ndarray, used: np.ndarray, rows: np.ndarray, out: np.ndarray, threads: int = 1
) -> None:
    """Add the genotypes of some samples to the counts of each site.

    Parameters
    ----------
    words : uint64 array, (n_samples, 2 or 3, n_words)
        Without the third plane all genotypes are called.
    used : uint64 array, (n_words,)
        Sites that count; none beyond the last one.
    rows : int64 array, (n,)
        The samples.
    out : int32 array, (3, 64 * n_words)
        Samples with 0, 1, 2 ALT alleles.
    """
    n_words = words.shape[2]
    tasks = [(k, min(n_words, k + WORDS_A_TASK)) for k in range(0, n_words, WORDS_A_TASK)]
    run_tasks(lambda a, b: count_by_site_loop(words, used, rows, a, b, out), tasks, threads)


@numba.njit(nogil=True, cache=True)
def _add(counters, x):
    """Add FOUR bits a site, x (FOUR, n_words), to counters (LEVELS, n_words)."""
    for w in range(x.shape[1]):
        a, b, c, d = x[0, w], x[1, w], x[2, w], x[3, w]
        # Full adders: two bits and a counter give its new bit and one carry.
        one, half = counters[0, w], a ^ b
        first = (a & b) | (half & one)
        one ^= half
        half = c ^ d
        second = (c & d) | (half & one)
        counters[0, w] = one ^ half
        two, half = counters[1, w], first ^ second
        bit = (first & second) | (half & two)
        counters[1, w] = two ^ half
        for level in range(2, LEVELS):
            carry = counters[level, w] & bit
            counters[level, w] ^= bit
            bit = carry


@numba.njit(nogil=True, cache=True)
def _flush(counters, first, out):
    """Add counters to integers of sites, from word `first` on, and clear them."""
    one = np.uint64(1)
    for w in range(counters.shape[1]):
        a, b, c = counters[0, w], counters[1, w], counters[2, w]
        d, e, f = counters[3, w], counters[4, w], counters[5, w]
        own = out[64 * (first + w) : 64 * (first + w + 1)]
        for k in range(64):
            bit = np.uint64(k)
            own[k] += np.int32(
                (a >> bit & one)
                | (b >> bit & one) << np.uint64(1)
                | (c >> bit & one) << np.uint64(2)
                | (d >> bit & one) << np.uint64(3)
                | (e >> bit & one) << np.uint64(4)
                | (f >> bit & one) << np.uint64(5)
            )
    counters[:] = 0


@numba.njit(nogil=True, cache=True)
def count_by_site_loop(words, used, rows, first, last, out):
    n_words = last - first
    counters = np.zeros((3, LEVELS, n_words), np.uint64)
    bits = np.zeros((3, FOUR, n_words), np.uint64)
    full = (1 << LEVELS) - FOUR
    added = 0
    for k in range(rows.shape[0]):
        own, place = words[rows[k]], k % FOUR
        ref, het, hom = bits[0, place], bits[1, place], bits[2, place]
        for w in range(n_words):
            u, v, c = own[0, first + w], own[1, first + w], used[first + w]
            if own.shape[0] == 3:
                c &= own[2, first + w]
            ref[w] = c & ~u
            het[w] = c & u & ~v
            hom[w] = c & v
        is_last = k == rows.shape[0] - 1
        if place < FOUR - 1 and not is_last:
            continue
        bits[:, place + 1 :] = 0
        for state in range(3):
            _add(counters[state], bits[state])
        added += FOUR
        if added == full or is_last:
            for state in range(3):
                _flush(counters[state], first, out[state])
            added = 0


@numba.njit(nogil=True, cache=True)
def count_by_sample(words, used, values, out):
    """Sums over the used sites of each sample.

    words, used: as in `count_by_site`. values: int64 (64 * n_words,). out: int64 (n_samples, 3):
    called genotypes, heterozygous ones, and the sum of `values` over the sites where the sample is
    missing.
    """
    for i in range(words.shape[0]):
        called, hets, absent = 0, 0, 0
        for w in range(words.shape[2]):
            c = used[w]
            if words.shape[1] == 3:
                c &= words[i, 2, w]
                left = used[w] & ~c
                while left:
                    bit = left & (~left + np.uint64(1))
                    absent += values[64 * w + popcount(bit - np.uint64(1))]
                    left &= left - np.uint64(1)
            called += popcount(c)
            hets += popcount(c & words[i, 0, w] & ~words[i, 1, w])
        out[i, 0] = called
        out[i, 1] = hets
        out[i, 2] = absent
