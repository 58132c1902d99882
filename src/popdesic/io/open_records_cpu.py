"""Calls of a record with several ALT as calls of one of them: the compiled half of `open_records`.

It reads columns of samples once and writes them with 1 for the chosen ALT and 0 for all others. A
call with an allele of a gVCF that stands for any other is missing. All else stays as it is.
"""

import numpy as np
from numba import njit

TAB, COLON, ZERO, DOT = 9, 58, 48, 46
#: Numbers of alleles are read up to this: a larger one is as wrong.
MOST = 1 << 20


@njit(cache=True, nogil=True)
def _read_number(calls, p):
    """The number whose digits begin at `p`, and where they end."""
    number = 0
    while p < len(calls) and ZERO <= calls[p] <= ZERO + 9:
        number = min(10 * number + calls[p] - ZERO, MOST)
        p += 1
    return number, p


@njit(cache=True, nogil=True)
def _has_other(calls, p, is_other):
    """Whether the call that begins at `p` has an allele that stands for any other."""
    while p < len(calls) and calls[p] != TAB and calls[p] != COLON:
        number, end = _read_number(calls, p)
        if end > p and number < len(is_other) and is_other[number]:
            return True
        p = max(end, p + 1)
    return False


@njit(cache=True, nogil=True)
def choose_allele(calls, gt_index, allele, is_other):
    """Rewrite the genotypes of one record.

    Parameters
    ----------
    calls : uint8 (n_bytes,)
        Columns of samples, with tabs between.
    gt_index : int
        Place of GT among the fields of a column.
    allele : int
        Number of the chosen ALT.
    is_other : bool (n_alleles,)
        Which alleles of the record stand for any other; a call with one has a point for each
        allele.

    Returns
    -------
    uint8 (at most n_bytes,)
        Numbers of alleles that the record does not have stay as they are, for the decoder's error.
    """
    size = len(calls)
    out = np.empty(size, np.uint8)
    n = 0
    p = 0
    field = 0
    begins = True  # of a field
    missing = False
    while p < size:
        byte = calls[p]
        if begins and field == gt_index:
            missing = _has_other(calls, p, is_other)
        begins = byte in (TAB, COLON)
        if byte == TAB:
            field = 0
        elif byte == COLON:
            field += 1
        elif field == gt_index and ZERO <= byte <= ZERO + 9:
            number, end = _read_number(calls, p)
            if number < len(is_other):
                out[n] = DOT if missing else ZERO + (number == allele)
                n += 1
            else:
                out[n : n + end - p] = calls[p:end]
                n += end - p
            p = end
            continue
        out[n] = byte
        n += 1
        p += 1
    return out[:n]
