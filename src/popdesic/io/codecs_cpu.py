"""Compiled byte kernels for the genotype codes of PLINK 1 .bed files."""

import numpy as np
from numba import njit

# Two-bit codes of genotypes 0, 1, 2 and missing (as 3), from the lowest bits: 3, 2, 0, 1.
_TO_BED = 0b01_00_10_11
# Genotypes 2, -1, 1, 0 of the two-bit codes 0, 1, 2, 3: each plus one, in two bits.
_FROM_BED = 0b01_10_00_11


@njit(cache=True, nogil=True)
def pack_bed(genotypes):
    """Pack genotypes into PLINK 1 .bed rows.

    Parameters
    ----------
    genotypes : (n_sites, n_samples) int8
        ALT counts 0, 1, 2, or -1 for missing; no other value is allowed.

    Returns
    -------
    (n_sites, ceil(n_samples / 4)) uint8
        Four samples a byte, the first in the lowest bits; A1 = ALT: 0 -> 11, 1 -> 10, 2 -> 00,
        missing -> 01. The padding of the last byte is zero.
    """
    n_sites, n_samples = genotypes.shape
    n_whole = n_samples // 4
    packed = np.empty((n_sites, (n_samples + 3) // 4), np.uint8)
    for site in range(n_sites):
        row = genotypes[site]
        for byte in range(n_whole):
            packed[site, byte] = (
                ((_TO_BED >> (2 * (row[4 * byte] & 3))) & 3)
                | ((_TO_BED >> (2 * (row[4 * byte + 1] & 3))) & 3) << 2
                | ((_TO_BED >> (2 * (row[4 * byte + 2] & 3))) & 3) << 4
                | ((_TO_BED >> (2 * (row[4 * byte + 3] & 3))) & 3) << 6
            )
        if n_whole < packed.shape[1]:
            last = 0
            for k in range(n_samples - 4 * n_whole):
                last |= ((_TO_BED >> (2 * (row[4 * n_whole + k] & 3))) & 3) << (2 * k)
            packed[site, n_whole] = last
    return packed


@njit(cache=True, nogil=True)
def unpack_bed(packed, n_samples):
    """Unpack PLINK 1 .bed rows, the inverse of `pack_bed`.

    Parameters
    ----------
    packed : (n_sites, ceil(n_samples / 4)) uint8
        A1 = ALT; the padding of the last byte is ignored.

    Returns
    -------
    (n_sites, n_samples) int8
        ALT counts 0, 1, 2, or -1 for missing.
    """
    n_sites = packed.shape[0]
    genotypes = np.empty((n_sites, n_samples), np.int8)
    for site in range(n_sites):
        row = genotypes[site]
        for sample in range(n_samples):
            code = (packed[site, sample >> 2] >> (2 * (sample & 3))) & 3
            row[sample] = ((_FROM_BED >> (2 * code)) & 3) - 1
    return genotypes


@njit(cache=True, nogil=True)
def take_samples(packed, kept):
    """Take some samples of PLINK 1 .bed rows, without unpacking them.

    Parameters
    ----------
    packed : (n_sites, row_bytes) uint8
    kept : (n_kept) int64
        Samples, in the order in which they are written.

    Returns
    -------
    (n_sites, ceil(n_kept / 4)) uint8
        The padding of the last byte is zero.
    """
    n_sites = packed.shape[0]
    n_kept = len(kept)
    out = np.empty((n_sites, (n_kept + 3) // 4), np.uint8)
    n_whole = n_kept // 4
    together = np.zeros(n_whole, np.bool_)  # four neighbours: one shift of two bytes
    for byte in range(n_whole):
        first = kept[4 * byte]
        together[byte] = (
            kept[4 * byte + 1] == first + 1
            and kept[4 * byte + 2] == first + 2
            and kept[4 * byte + 3] == first + 3
        )
    for site in range(n_sites):
        row = packed[site]
        for byte in range(n_whole):
            if together[byte]:
                first = kept[4 * byte]
                pair = np.uint32(row[first >> 2])
                if first & 3:
                    pair |= np.uint32(row[(first >> 2) + 1]) << np.uint32(8)
                out[site, byte] = (pair >> np.uint32(2 * (first & 3))) & np.uint32(0xFF)
            else:
                value = 0
                for k in range(4):
                    sample = kept[4 * byte + k]
                    value |= ((row[sample >> 2] >> (2 * (sample & 3))) & 3) << (2 * k)
                out[site, byte] = value
        if n_whole < out.shape[1]:
            value = 0
            for k in range(n_kept - 4 * n_whole):
                sample = kept[4 * n_whole + k]
                value |= ((row[sample >> 2] >> (2 * (sample & 3))) & 3) << (2 * k)
            out[site, n_whole] = value
    return out


@njit(cache=True, nogil=True)
def turn_codes(packed):
    """Transpose two-bit codes, four a byte and the first in the lowest bits.

    Parameters
    ----------
    packed : (n, n_bytes) uint8

    Returns
    -------
    (4 n_bytes, ceil(n / 4)) uint8
        The padding of the last byte is zero.
    """
    n, n_bytes = packed.shape
    out = np.zeros((4 * n_bytes, (n + 3) // 4), np.uint8)
    for first in range(0, n_bytes, 64):  # a cache line of each row at a time
        last = min(n_bytes, first + 64)
        for row in range(n):
            place, shift = row >> 2, 2 * (row & 3)
            for byte in range(first, last):
                value = packed[row, byte]
                out[4 * byte, place] |= (value & 3) << shift
                out[4 * byte + 1, place] |= ((value >> 2) & 3) << shift
                out[4 * byte + 2, place] |= ((value >> 4) & 3) << shift
                out[4 * byte + 3, place] |= ((value >> 6) & 3) << shift
    return out
