"""Calls of a record with several ALT as calls of one of them: the compiled half of `open_records`.

It reads columns of samples once and writes them with 1 for the chosen ALT, 0 for all others, and a
point for the allele of a gVCF that stands for any other. All else stays as it is.
"""

import numpy as np
from numba import njit

TAB, COLON, ZERO, DOT = 9, 58, 48, 46
#: Numbers of alleles are read up to this: a larger one is as wrong.
MOST = 1 << 20


@njit(cache=True, nogil=True)
def choose_allele(calls, gt_index, allele, n_alts, any_other):
    """Rewrite the genotypes of one record.

    Parameters
    ----------
    calls : uint8 (n_bytes,)
        Columns of samples, with tabs between.
    gt_index : int
        Place of GT among the fields of a column.
    allele, n_alts : int
        Number of the chosen ALT, and of the last one.
    any_other : bool
        Whether allele n_alts + 1 stands for any other: it becomes a point.

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
    while p < size:
        byte = calls[p]
        if byte == TAB:
            field = 0
        elif byte == COLON:
            field += 1
        elif field == gt_index and ZERO <= byte <= ZERO + 9:
            end = p
            number = 0
            while end < size and ZERO <= calls[end] <= ZERO + 9:
                number = min(10 * number + calls[end] - ZERO, MOST)
                end += 1
            if number <= n_alts or (any_other and number == n_alts + 1):
                out[n] = ZERO + (number == allele) if number <= n_alts else DOT
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
