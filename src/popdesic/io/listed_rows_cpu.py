"""Rows of a .bed as lists of the samples that differ from a site's most frequent homozygote.

A record is one site. All numbers are unsigned, seven bits a byte, the lowest first; the highest bit
says that another byte follows (LEB128).

====== ==================================================================================
first  what follows
====== ==================================================================================
4 n    n heterozygotes; all others are homozygous REF
4 n+1  numbers of ALT homozygotes and of missing, n heterozygotes, these two; others REF
4 n+2  the same with REF homozygotes; all others are homozygous ALT
3      the row itself, as many bytes as a .bed has for a site
====== ==================================================================================

A list has the number of its first sample, then of each next one how many samples lie between. A
site takes the record that is shorter; a row if both are as long. Codes of a .bed: 00 ALT ALT,
01 missing, 10 heterozygous, 11 REF REF.
"""

import numba
import numpy as np

#: Bytes that a record may have beyond those of a row: three numbers and the last of a list.
SPARE = 32
#: Kinds of records: the lowest two bits of their first number.
HETS, REF, ALT, ROW = 0, 1, 2, 3
_LOW = np.uint64(0x5555555555555555)


@numba.njit(nogil=True, cache=True)
def encode_rows(words, n_samples, row_bytes, out, ends):
    """Write the records of some rows.

    Parameters
    ----------
    words : uint64 array, (n_sites, n_words)
        Rows of a .bed, whose padding bits are zero.
    n_samples, row_bytes : int
        Samples, and bytes of a row.
    out : uint8 array, (n_sites * (row_bytes + SPARE),)
        Gets the records.
    ends : int64 array, (n_sites,)
        Gets the end of each record in `out`.
    """
    found = np.empty((3, row_bytes), np.int64)
    n_found = np.empty(3, np.int64)
    here = 0
    for site in range(words.shape[0]):
        n_ref, n_alt = 0, 0
        for k in range(words.shape[1]):
            low, high = words[site, k] & _LOW, (words[site, k] >> np.uint64(1)) & _LOW
            n_ref += _popcount(low & high)
            n_alt += _popcount(~(low | high) & _LOW)
        n_alt -= 32 * words.shape[1] - n_samples  # the padding
        common, base = (n_alt, np.uint64(0)) if n_alt > n_ref else (n_ref, ~np.uint64(0))
        end = here + row_bytes + 1
        listed = n_samples - common < row_bytes
        if listed:
            n_found[:] = 0
            for k in range(words.shape[1]):
                other = words[site, k] ^ base
                other = (other | other >> np.uint64(1)) & _LOW
                if 32 * (k + 1) > n_samples:
                    other &= (np.uint64(1) << np.uint64(2 * (n_samples - 32 * k))) - np.uint64(1)
                while other:
                    bit = _popcount((other & (~other + np.uint64(1))) - np.uint64(1))
                    other &= other - np.uint64(1)
                    code = (words[site, k] >> np.uint64(bit)) & np.uint64(3)
                    # Heterozygous 10, missing 01, the other homozygote 00 or 11.
                    which = 0 if code == 2 else 2 if code == 1 else 1
                    found[which, n_found[which]] = 32 * k + bit // 2
                    n_found[which] += 1
            kind = ALT if base == 0 else REF if n_found[1] + n_found[2] else HETS
            at = _put(out, here, 4 * n_found[0] + kind)
            if kind != HETS:
                at = _put(out, _put(out, at, n_found[1]), n_found[2])
            for which in range(3):
                last = -1
                for k in range(n_found[which]):
                    if at < end:
                        at = _put(out, at, found[which, k] - last - 1)
                    last = found[which, k]
            listed = at < end
        if not listed:
            out[here] = ROW
            for k in range(row_bytes):
                out[here + 1 + k] = (words[site, k >> 3] >> np.uint64(8 * (k & 7))) & np.uint64(255)
            at = end
        here = at
        ends[site] = here


@numba.njit(nogil=True, cache=True)
def decode_rows(data, starts, block, numbers, n_samples, out):
    """Read some rows of records; returns -1, or the number of a site whose record is damaged.

    Parameters
    ----------
    data : uint8 array
        Records of all sites.
    starts : int64 array, (n_blocks + 1,)
        Where each block of records begins in `data`; then their end.
    block : int
        Sites of a block.
    numbers : int64 array, (n,)
        The sites, fastest in rising order.
    n_samples : int
    out : uint8 array, (n, row_bytes)
        Gets the rows; padding bits are zero.
    """
    at, site = 0, -1  # where the record of `site` begins
    for k in range(len(numbers)):
        wanted = numbers[k]
        first = wanted // block * block
        if not first <= site <= wanted:
            at, site = starts[wanted // block], first
        end = starts[wanted // block + 1]
        if not 0 <= at <= end <= len(data):
            return wanted
        while site < wanted and at >= 0:
            at = _read_record(data, at, end, n_samples, out[k], False)
            site += 1
        if at >= 0:
            at = _read_record(data, at, end, n_samples, out[k], True)
        site += 1
        if at < 0:
            return wanted
        if site == first + block and at != end:
            return wanted
    return -1


@numba.njit(nogil=True, cache=True)
def count_records(data, starts, block, first, group, sizes, by_site, by_sample, has_row):
    """Count genotypes at sites whose records are lists; returns as `decode_rows`.

    A record costs its carriers, whatever the number of samples.

    Parameters
    ----------
    data, starts, block
        As `decode_rows` takes them.
    first : int
        The first of the sites, which are as many as `has_row`.
    group : int64 array, (n_samples,)
        Group of each sample; -1 is not counted by site.
    sizes : int64 array, (n_groups,)
        Samples of each group.
    by_site : int64 array, (n_sites, n_groups, 4)
        Gets the samples with 0, 1, 2 ALT alleles and missing; zeros where a site has its row.
    by_sample : int64 array, (n_samples, 4)
        The same of each sample is added, over these sites.
    has_row : bool array, (n_sites,)
        Gets whether a site has its row, and is not counted.
    """
    n_samples = len(group)
    scratch = np.empty((n_samples + 3) // 4, np.uint8)
    common = np.zeros(4, np.int64)
    site = first // block * block
    at = starts[first // block]
    by_site[:] = 0
    while site < first + len(has_row):
        end = starts[site // block + 1]
        if not 0 <= at <= end <= len(data):
            return site
        k, begun = site - first, at
        at = _read_record(data, at, end, n_samples, scratch, False)
        if at < 0:
            return site
        site += 1
        if k < 0:
            continue
        n_hets, here = _take(data, begun, at)
        kind, n_hets = n_hets & 3, n_hets >> 2
        has_row[k] = kind == ROW
        if kind == ROW:
            continue
        n_other, n_missing = 0, 0
        if kind != HETS:
            n_other, here = _take(data, here, at)
            n_missing, here = _take(data, here, at)
        base = 2 if kind == ALT else 0
        common[base] += 1
        by_site[k, :, base] = sizes
        for which in range(3):
            n = n_hets if which == 0 else n_other if which == 1 else n_missing
            state = 1 if which == 0 else 2 - base if which == 1 else 3
            sample = -1
            for _ in range(n):
                gap, here = _take(data, here, at)
                sample += gap + 1
                by_sample[sample, base] -= 1
                by_sample[sample, state] += 1
                if group[sample] >= 0:
                    by_site[k, group[sample], base] -= 1
                    by_site[k, group[sample], state] += 1
    for sample in range(n_samples):
        by_sample[sample] += common
    return -1


@numba.njit(nogil=True, cache=True)
def _read_record(data, at, end, n_samples, row, wanted):
    """Read a record, into `row` if it is wanted; returns its end, or -1 of a damaged one."""
    n_hets, at = _take(data, at, end)
    if at < 0:
        return -1
    kind, n_hets = n_hets & 3, n_hets >> 2
    if kind == ROW:
        if n_hets or at + len(row) > end:
            return -1
        if wanted:
            row[:] = data[at : at + len(row)]
        return at + len(row)
    n_other, n_missing = 0, 0
    if kind != HETS:
        n_other, at = _take(data, at, end)
        if at >= 0:
            n_missing, at = _take(data, at, end)
        if at < 0:
            return -1
    if wanted:
        row[:] = 0 if kind == ALT else 255
        if n_samples & 3:
            row[-1] &= (1 << (2 * (n_samples & 3))) - 1
    for which in range(3):
        n = n_hets if which == 0 else n_other if which == 1 else n_missing
        code = 2 if which == 0 else 1 if which == 2 else 3 if kind == ALT else 0
        sample = -1
        for _ in range(n):
            gap, at = _take(data, at, end)
            sample += gap + 1
            if at < 0 or sample >= n_samples:
                return -1
            if wanted:
                shift = 2 * (sample & 3)
                row[sample >> 2] = (row[sample >> 2] & ~(3 << shift)) | (code << shift)
    return at


@numba.njit(nogil=True, cache=True, inline="always")
def _put(out, at, number):
    while number > 127:
        out[at] = (number & 127) | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@numba.njit(nogil=True, cache=True, inline="always")
def _take(data, at, end):
    """A number of at most five bytes, and where the next begins; -1 of one that is cut."""
    number, shift = 0, 0
    while at < end and shift < 35:
        byte = np.int64(data[at])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    return 0, -1


@numba.njit(nogil=True, cache=True, inline="always")
def _popcount(x):
    x -= (x >> np.uint64(1)) & _LOW
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
