"""Byte kernels over PLINK .bed rows: counting genotypes and turning rows into bit-planes.

A .bed row holds one site, four samples a byte, two bits a sample (A1 = ALT): 00 = two ALT alleles,
01 = missing, 10 = one, 11 = none. With lo and hi the two bits: u = ~lo, v = ~lo & ~hi,
missing = lo & ~hi (planes: `engine.terms.Planes`).
"""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks
from ..engine.popcount_cpu import popcount

#: ALT count by 2-bit code, with 3 for missing.
STATE_OF_CODE = np.array([2, 3, 1, 0], np.uint8)


#: Sites of one task of `count_by_group`.
SITES_A_TASK = 1024


def count_by_group(rows, group, n_groups, threads=1):
    """Samples by genotype at every site, within groups of samples.

    Parameters
    ----------
    rows : uint8 array, (n_sites, row_bytes)
    group : int64 array, (n_samples,)
        Group of each sample; -1 is not counted.

    Returns
    -------
    int64 array, (n_sites, n_groups, 4)
        Last axis: 0, 1, 2 ALT alleles, missing.
    """
    out = np.empty((len(rows), n_groups, 4), np.int64)
    masks = _group_masks(group, n_groups)

    def work(first):
        last = first + SITES_A_TASK
        count_by_group_loop(_as_words(rows[first:last]), *masks, out[first:last])

    run_tasks(work, [(first,) for first in range(0, len(rows), SITES_A_TASK)], threads)
    return out


@numba.njit(nogil=True, cache=True)
def count_by_group_loop(words, group_words, masks, starts, sizes, out):
    """Codes 01, 10 and 11 are counted by popcounts of the words that hold a group's samples."""
    for site in range(words.shape[0]):
        for g in range(out.shape[1]):
            missing, het, ref = 0, 0, 0
            for k in range(starts[g], starts[g + 1]):
                word, mask = words[site, group_words[k]], masks[k]
                low, high = word & mask, (word >> np.uint64(1)) & mask
                missing += popcount(low & ~high)
                het += popcount(high & ~low)
                ref += popcount(low & high)
            out[site, g, 0] = ref
            out[site, g, 1] = het
            out[site, g, 2] = sizes[g] - ref - het - missing
            out[site, g, 3] = missing


def _as_words(rows):
    """Rows of bytes as uint64 (n_sites, n_words), zero-padded."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view(np.uint64)


def _group_masks(group, n_groups):
    """The words in which each group has samples, with a mask of the low bits of their codes.

    Returns
    -------
    group_words : int64 array, (k,)
    masks : uint64 array, (k,)
    starts : int64 array, (n_groups + 1,)
        The first of each group.
    sizes : int64 array, (n_groups,)
        Samples of each group.
    """
    bit = np.uint64(1) << np.arange(0, 64, 2, dtype=np.uint64)
    found, masks, starts = [], [], [0]
    padded = np.full(-(-len(group) // 32) * 32, -1)
    padded[: len(group)] = group
    for g in range(n_groups):
        mask = ((padded.reshape(-1, 32) == g) * bit).sum(axis=1, dtype=np.uint64)
        (here,) = np.nonzero(mask)
        found.append(here)
        masks.append(mask[here])
        starts.append(starts[-1] + len(here))
    sizes = np.bincount(group[group >= 0], minlength=n_groups)
    return np.concatenate(found), np.concatenate(masks), np.array(starts, np.int64), sizes


def add_by_sample(rows, out):
    """out[sample, state] += number of sites. rows: uint8 (n_sites < 2**31, row_bytes)."""
    seen = np.zeros((rows.shape[1], 256), np.int32)
    for first in range(0, len(rows), SITES_A_TASK):
        count_bytes(rows[first : first + SITES_A_TASK], seen)
    for place in range(4):
        of_sample = out[place::4]
        for code, state in enumerate(STATE_OF_CODE):
            which = (np.arange(256) >> (2 * place) & 3) == code
            of_sample[:, state] += seen[: len(of_sample), which].sum(axis=1)


#: Bytes of a row whose counts stay in the cache.
BYTES_A_PASS = 64


@numba.njit(nogil=True, cache=True)
def count_bytes(rows, seen):
    """seen[byte, value] += number of sites; four samples share a byte."""
    for first in range(0, rows.shape[1], BYTES_A_PASS):
        last = min(rows.shape[1], first + BYTES_A_PASS)
        for site in range(rows.shape[0]):
            for byte in range(first, last):
                seen[byte, rows[site, byte]] += 1


@numba.njit(nogil=True, cache=True, inline="always")
def _transpose_8x8(x):
    """Transpose the 8 x 8 bits of a word: bit 8 i + j becomes bit 8 j + i (three swap steps)."""
    t = (x ^ (x >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    x = x ^ t ^ (t << np.uint64(7))
    t = (x ^ (x >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    x = x ^ t ^ (t << np.uint64(14))
    t = (x ^ (x >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return x ^ t ^ (t << np.uint64(28))


#: Words a pass of `pack_planes` writes for one sample: one cache line.
WORDS_A_PASS = 8
#: Words of one task; a multiple of WORDS_A_PASS.
WORDS_A_TASK = 32


def pack_planes(rows, fill_carrier, fill_hom, out, threads=1):
    """Sample-major bit-planes of a run of sites.

    Parameters
    ----------
    rows : uint8 array, (n_sites, row_bytes)
        Padding bits of the last byte are ignored.
    fill_carrier, fill_hom : uint64 arrays, (n_words,)
        Sites whose missing genotypes become >= 1, = 2; zero beyond the last site.
    out : uint64 array, (n_samples, 2 or 3, n_words)
        Every word is written.
    """

    def work(first):
        part = slice(first, first + WORDS_A_TASK)
        sites = slice(first * 64, (first + WORDS_A_TASK) * 64)
        pack_planes_loop(rows[sites], fill_carrier[part], fill_hom[part], out[:, :, part])

    run_tasks(work, [(first,) for first in range(0, out.shape[2], WORDS_A_TASK)], threads)


@numba.njit(nogil=True, cache=True)
def pack_planes_loop(rows, fill_carrier, fill_hom, out):
    n_sites = rows.shape[0]
    n_samples, n_planes, n_words = out.shape
    low = np.empty((4, WORDS_A_PASS), np.uint64)
    high = np.empty((4, WORDS_A_PASS), np.uint64)
    for word0 in range(0, n_words, WORDS_A_PASS):
        n_block_words = min(WORDS_A_PASS, n_words - word0)
        for byte in range((n_samples + 3) // 4):
            for w in range(n_block_words):
                for lane in range(4):
                    low[lane, w] = 0
                    high[lane, w] = 0
                site0 = (word0 + w) * 64
                for group in range(8):
                    first = site0 + group * 8
                    # Sites beyond the end read as code 01, missing, and are cleared below.
                    gathered = np.uint64(0)
                    for r in range(8):
                        value = np.uint64(rows[first + r, byte] if first + r < n_sites else 0x55)
                        gathered |= value << np.uint64(8 * r)
                    bits = _transpose_8x8(gathered)
                    shift = np.uint64(8 * group)
                    for lane in range(4):
                        pair = bits >> np.uint64(16 * lane)
                        low[lane, w] |= (pair & np.uint64(0xFF)) << shift
                        high[lane, w] |= ((pair >> np.uint64(8)) & np.uint64(0xFF)) << shift
            for lane in range(min(4, n_samples - byte * 4)):
                sample = byte * 4 + lane
                for w in range(n_block_words):
                    lo, hi = low[lane, w], high[lane, w]
                    missing = lo & ~hi
                    word = word0 + w
                    out[sample, 0, word] = ~lo | (missing & fill_carrier[word])
                    out[sample, 1, word] = (~lo & ~hi) | (missing & fill_hom[word])
                    if n_planes == 3:
                        out[sample, 2, word] = ~missing


def fill_site_planes(rows, n_samples, first, out, threads=1):
    """Put the genotypes of some samples into variant-major planes.

    Parameters
    ----------
    rows : uint8 array, (n_sites, row_bytes)
        Padding bits of the last byte are ignored.
    n_samples : int
    first : int
        Bit of the first of these samples.
    out : uint64 array, (n_sites, 3, n_words)
        Planes u, v and c; the bits of these samples are zero before.
    """

    def work(site):
        part = slice(site, site + SITES_A_TASK)
        fill_site_planes_loop(_as_words(rows[part]), n_samples, first, out[part])

    run_tasks(work, [(site,) for site in range(0, len(rows), SITES_A_TASK)], threads)


@numba.njit(nogil=True, cache=True, inline="always")
def _even_bits(x):
    """The 32 even bits of a word, side by side."""
    x &= np.uint64(0x5555555555555555)
    x = (x | x >> np.uint64(1)) & np.uint64(0x3333333333333333)
    x = (x | x >> np.uint64(2)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    x = (x | x >> np.uint64(4)) & np.uint64(0x00FF00FF00FF00FF)
    x = (x | x >> np.uint64(8)) & np.uint64(0x0000FFFF0000FFFF)
    return (x | x >> np.uint64(16)) & np.uint64(0x00000000FFFFFFFF)


@numba.njit(nogil=True, cache=True)
def fill_site_planes_loop(words, n_samples, first, out):
    for site in range(words.shape[0]):
        for k in range((n_samples + 31) // 32):
            low, high = words[site, k], words[site, k] >> np.uint64(1)
            here = np.uint64(0xFFFFFFFF)
            if 32 * k + 32 > n_samples:
                here = (np.uint64(1) << np.uint64(n_samples - 32 * k)) - np.uint64(1)
            bit = first + 32 * k
            word, shift = bit >> 6, np.uint64(bit & 63)
            for plane in range(3):
                if plane == 0:
                    found = _even_bits(~low)
                elif plane == 1:
                    found = _even_bits(~low & ~high)
                else:
                    found = _even_bits(~low | high)
                found &= here
                out[site, plane, word] |= found << shift
                if shift > np.uint64(32):
                    over = found >> (np.uint64(64) - shift)
                    if over:
                        out[site, plane, word + 1] |= over
