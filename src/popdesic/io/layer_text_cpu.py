"""Calls of polyploids in VCF text as those of diploids, one for each layer (`layers`), compiled.

The decoder knows calls of two alleles. It gets each line with the columns of all samples for layer
1, then for layer 2, and so on. Layers after the first have no other field than GT, so limits on
calls count once. All else stays as it is.
"""

import numpy as np
from numba import njit

from .vcf_text_cpu import COLON, DOT, NEWLINE, PIPE, SLASH, TAB, ZERO

RETURN, HASH = 13, 35
#: Before and after the ploidy, in front of a call that is not of this ploidy, for the error.
MARK = 33
#: Bytes that a call can take more than before: a mark, two digits and a mark; or `./.` for `.`.
MORE = 4


@njit(cache=True, nogil=True)
def _gt_index(text, start, end):
    """Place of GT among the keys of FORMAT, -1 if there is none."""
    index = 0
    p = start
    while p < end:
        q = p
        while q < end and text[q] != COLON:
            q += 1
        if q - p == 2 and text[p] == 71 and text[p + 1] == 84:
            return index
        index += 1
        p = q + 1
    return -1


@njit(cache=True, nogil=True)
def _read_alleles(text, start, end):
    """Alleles of a call: how many, called, ALT; whether one is neither; phased; and readable."""
    n = known = alt = 0
    high = phased = False
    p = start
    while True:
        if p < end and text[p] == DOT:
            p += 1
        elif p < end and ZERO <= text[p] <= ZERO + 9:
            allele = 0
            while p < end and ZERO <= text[p] <= ZERO + 9:
                allele = min(10 * allele + text[p] - ZERO, 2)
                p += 1
            known += 1
            alt += allele == 1
            high |= allele > 1
        else:
            return n, known, alt, high, phased, False
        n += 1
        if p == end:
            return n, known, alt, high, phased, True
        if text[p] != SLASH and text[p] != PIPE:
            return n, known, alt, high, phased, False
        phased |= text[p] == PIPE
        p += 1


@njit(cache=True, nogil=True)
def _is_named(text, start, end, names, name_ends):
    """Whether `text[start:end]` is one of some concatenated names."""
    first = 0
    for last in name_ends:
        same = last - first == end - start
        for i in range(last - first if same else 0):
            same &= text[start + i] == names[first + i]
        if same:
            return True
        first = last
    return False


@njit(cache=True, nogil=True)
def widen_lines(text, size, ignored, ploidies, sizes, layers, names, name_ends, out):
    """Write whole lines with a column of each sample for each layer.

    Parameters
    ----------
    text : uint8 (at least size,)
    size : int
    ignored : bool (n_samples,)
        Samples that are left out: a call of another ploidy is missing.
    ploidies, sizes : int64 (n_samples,)
        Alleles of a call, and layers that the sample has: as many, each counted twice, or half of
        them. Further layers are missing.
    layers : int
        Those of the study, whatever the samples of this file have.
    names, name_ends : uint8 (n_bytes,), int64 (n_contigs,)
        Contigs that are left out, concatenated, and where each name ends.
    out : uint8 (any,)
        With room for `widened_size` bytes.

    Returns
    -------
    n_bytes : int
        Written, of lines before the first one with other columns.
    n_columns : int
        Columns of that line; 0 if there is none.
    """
    n_samples = sizes.shape[0]
    starts, ends = np.empty(n_samples, np.int64), np.empty(n_samples, np.int64)
    n = start = 0
    while start < size:
        stop = start
        while text[stop] != NEWLINE:
            stop += 1
        last = stop - 1 if stop > start and text[stop - 1] == RETURN else stop
        p = start
        tabs = 0
        format_start = start
        contig_end = start
        while p < last and tabs < 9:
            if text[p] == TAB:
                tabs += 1
                if tabs == 1:
                    contig_end = p
                if tabs == 8:
                    format_start = p + 1
            p += 1
        columns = 0
        calls = p
        while tabs == 9 and p <= last:
            first = p
            while p < last and text[p] != TAB:
                p += 1
            if columns < n_samples:
                starts[columns], ends[columns] = first, p
            columns += 1
            p += 1
        if columns != n_samples and text[start] != HASH and last > start:
            return n, 9 + columns if tabs == 9 else tabs + 1
        if columns != n_samples:
            out[n : n + stop + 1 - start] = text[start : stop + 1]
            n += stop + 1 - start
            start = stop + 1
            continue
        out[n : n + calls - start] = text[start:calls]
        n += calls - start
        no_contig = _is_named(text, start, contig_end, names, name_ends)
        gt_index = _gt_index(text, format_start, calls - 1)
        for layer in range(layers):
            for k in range(n_samples):
                if layer + k > 0:
                    out[n] = TAB
                    n += 1
                p = starts[k]
                absent = False
                for _ in range(max(gt_index, 0)):
                    while p < ends[k] and text[p] != COLON:
                        p += 1
                    if p == ends[k]:
                        absent = True
                        break
                    p += 1
                if layer > 0 and absent:  # as in layer 1: a column without GT is missing
                    out[n] = DOT
                    n += 1
                elif layer > 0:
                    for _ in range(max(gt_index, 0)):
                        out[n], out[n + 1] = DOT, COLON
                        n += 2
                end = p
                while end < ends[k] and text[end] != COLON:
                    end += 1
                if gt_index < 0:
                    p = end = ends[k]
                if layer == 0:
                    out[n : n + p - starts[k]] = text[starts[k] : p]
                    n += p - starts[k]
                alleles, known, alt, high, phased, fine = _read_alleles(text, p, end)
                ploidy = ploidies[k]
                odd = known > 0 and (known != ploidy or alleles != ploidy)
                if gt_index < 0 or (not fine and layer == 0):
                    out[n : n + end - p] = text[p:end]
                    n += end - p
                elif odd and (no_contig or ignored[k]):
                    out[n], out[n + 1], out[n + 2] = DOT, SLASH, DOT
                    n += 3
                elif odd and layer == 0:
                    out[n] = MARK
                    n += 1
                    if ploidy > 9:
                        out[n] = ZERO + ploidy // 10
                        n += 1
                    out[n], out[n + 1] = ZERO + ploidy % 10, MARK
                    n += 2
                    out[n : n + end - p] = text[p:end]
                    n += end - p
                else:
                    if sizes[k] == ploidy:
                        alt *= 2
                    own = min(max(alt - 2 * layer, 0), 2)
                    one, two = ZERO + (own > 0), ZERO + (own > 1)
                    if high:
                        one = two = ZERO + 2
                    if known == 0 or odd or not fine or layer >= sizes[k]:
                        one = two = DOT
                    out[n], out[n + 2] = one, two
                    out[n + 1] = PIPE if phased and layer == 0 else SLASH
                    n += 3
                if layer == 0:
                    out[n : n + ends[k] - end] = text[end : ends[k]]
                    n += ends[k] - end
        out[n] = NEWLINE
        n += 1
        start = stop + 1
    return n, 0


def widened_size(size: int, layers: int) -> int:
    """Bytes that `widen_lines` writes at most; a column of a sample has at least two bytes."""
    return layers * (size + MORE * (size // 2 + 1))
