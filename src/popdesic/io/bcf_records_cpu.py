"""Decode whole BCF2 records to genotypes: the compiled half of `popdesic.io.bcf`.

A BCF record states the size of each of its parts, and a damaged file states wrong sizes, so each
one is checked against the end of its part before use: no input causes a read out of bounds. Format:
the VCF specification, section "BCF specification" (version 2.2).
"""

# ruff: noqa: SIM110 (numba makes faster code of plain comparisons and loops)

import math

import numpy as np
from numba import njit

# Slots of the counts array, policies and error codes equal those of `vcf_text`. Numba's cache
# notices changes only in a function's own file, so they are repeated here, and a test compares.
RECORDS, MULTIALLELIC, INDEL, SYMBOLIC, STAR, NO_ALT, NON_ACGT, UNPLACED = range(8)
SNPS, MISSING_CALLS, HALF_CALLS, HAPLOID_CALLS, PHASED, UNPHASED = range(8, 14)
ONE_ALLELE, FILTERED, LOW_QUAL = range(14, 17)
NO_DEPTH, LOW_DP, HIGH_DP, LOW_GQ, UNBALANCED, THINNED_SITES = range(17, 23)
REFERENCE_BLOCK, MADE_REFERENCE, ODD_BLOCK_CALLS = 23, 24, 25
MIN_QUAL, MIN_GQ, MIN_DP, MAX_DP, MIN_BALANCE = range(5)
HAPLOID_ERROR, HAPLOID_DIPLOIDIZE, HAPLOID_MISSING = range(3)
ANY_PLOIDY = 4
HAPLOID_REF = 8
POLYPLOID, HIGH_ALLELE, BROKEN = range(10, 13)
BAD_POS, NO_GT = 18, 19

# Further errors: an inconsistent record (error[2] says which part), GT without values, and GT of a
# type that cannot hold alleles.
DAMAGED, EMPTY_GT, STRANGE_GT = range(32, 35)
LENGTHS, CONTIG, N_SAMPLES, STRINGS, VALUES, NO_ALLELES = range(6)

# Columns of the site table.
RECORD, CHROM, POS, ID_START, ID_END, REF, ALT = range(7)
N_FIELDS = 7
# Columns of the table of dropped records; no FILTER where another reason dropped the record.
AT_CHROM, AT_POS, AT_SIZE, AT_FILTER = range(4)
N_DROPPED = 4
# Columns of the table of reference blocks; FROM counts from 0, TO is not included.
BLOCK_CONTIG, BLOCK_FROM, BLOCK_TO = range(3)
N_BLOCK = 3

# Value types, and bytes per value by type (0: no such type).
INT8, INT16, INT32, FLOAT, CHAR = 1, 2, 3, 5, 7
_SIZES = (0, 1, 2, 4, 0, 4, 0, 1)
# Bytes of the two lengths that start a record, and of the fixed-size fields after them.
LENGTHS_BYTES, FIXED_BYTES = 8, 24

# Calls decoded at a time before the run is checked, as in `vcf_text`.
RUN = 1024
# Largest byte of an allele in a plain diploid call: (allele + 1) << 1 | phased, allele 0 or 1.
_LAST_PLAIN = 5


@njit(cache=True, nogil=True)
def _uint32(data, p):
    return (
        np.int64(data[p])
        | np.int64(data[p + 1]) << 8
        | np.int64(data[p + 2]) << 16
        | np.int64(data[p + 3]) << 24
    )


@njit(cache=True, nogil=True)
def _int32(data, p):
    value = _uint32(data, p)
    return value - (value >> 31 << 32)


@njit(cache=True, nogil=True)
def split_records(data, size):
    """Find whole records at the start of `data[:size]`.

    Returns
    -------
    (end, n_records, needed)
        End of the last whole record, number of whole records, and bytes that the next record takes
        (8 until its lengths are available).
    """
    p = 0
    n_records = 0
    needed = LENGTHS_BYTES
    while size - p >= LENGTHS_BYTES:
        needed = LENGTHS_BYTES + _uint32(data, p) + _uint32(data, p + 4)
        if needed > size - p:
            break
        p += needed
        n_records += 1
        needed = LENGTHS_BYTES
    return p, n_records, needed


@njit(cache=True, nogil=True)
def _read_type(data, p, end):
    """Read the descriptor of a value at `p`; return (type, number of values, start of the values).

    The number is -1 where the descriptor is damaged or extends past `end`.
    """
    if p >= end:
        return 0, -1, p
    kind = data[p] & 15
    length = np.int64(data[p] >> 4)
    p += 1
    if length == 15:  # the number follows, itself a typed value
        if p >= end or data[p] >> 4 != 1:
            return 0, -1, p
        size_kind = data[p] & 15
        p += 1
        if size_kind == INT8 and end - p >= 1:
            length = np.int64(np.int8(data[p]))
            p += 1
        elif size_kind == INT16 and end - p >= 2:
            length = np.int64(np.int16(np.uint16(data[p]) | np.uint16(data[p + 1]) << 8))
            p += 2
        elif size_kind == INT32 and end - p >= 4:
            length = _int32(data, p)
            p += 4
        else:
            return 0, -1, p
    if length < 0 or (length > 0 and (kind >= len(_SIZES) or _SIZES[kind] == 0)):
        return 0, -1, p
    return np.int64(kind), length, p


@njit(cache=True, nogil=True)
def skip_value(data, p, end, count):
    """Return the end of `count` values that share the descriptor at `p`; -1 if damaged."""
    kind, length, p = _read_type(data, p, end)
    if length < 0 or (length > 0 and length * _SIZES[kind] > (end - p) // count):
        return -1
    return p if length == 0 else p + length * _SIZES[kind] * count


@njit(cache=True, nogil=True)
def read_key(data, p, end):
    """Read an INFO or FORMAT key, one typed integer; return (key, its end), key -1 if damaged."""
    kind, length, p = _read_type(data, p, end)
    if length != 1 or not INT8 <= kind <= INT32 or end - p < _SIZES[kind]:
        return np.int64(-1), p
    return _read_int(data, p, kind), p + _SIZES[kind]


def read_ints(data, p):
    """Return the integers of the typed list at `p`, which has been checked."""
    kind, length, p = _read_type(data, p, len(data))
    return [int(_read_int(data, p + k * _SIZES[kind], kind)) for k in range(length)]


@njit(cache=True, nogil=True)
def _read_int(data, p, kind):
    if kind == INT8:
        return np.int64(np.int8(data[p]))
    if kind == INT16:
        return np.int64(np.int16(np.uint16(data[p]) | np.uint16(data[p + 1]) << 8))
    return _int32(data, p)


@njit(cache=True, nogil=True)
def _is_plain(data, start, end):
    """True if all bytes are printable ASCII, as in any allele."""
    for p in range(start, end):
        if not 32 < data[p] < 127:
            return False
    return True


@njit(cache=True, nogil=True)
def _is_base(byte):
    """True for A, C, G, T in either case."""
    upper = byte & 0xDF
    return upper == 65 or upper == 67 or upper == 71 or upper == 84


@njit(cache=True, nogil=True)
def _is_any_other(data, start, size):
    """Whether an allele is `<NON_REF>` or `<*>`, which stands for any other in a gVCF."""
    if size == 3:
        return data[start] == 60 and data[start + 1] == 42 and data[start + 2] == 62
    if size != 9:
        return False
    for k, byte in enumerate((60, 78, 79, 78, 95, 82, 69, 70, 62)):
        if data[start + k] != byte:
            return False
    return True


@njit(cache=True, nogil=True)
def _classify(data, ref_start, ref_size, alt_start, alt_size):
    """Return the slot of the counts array for a site with one ALT, by the rules of `vcf_text`."""
    first = data[alt_start]
    if alt_size == 1 and first == ord("."):
        return NO_ALT
    symbolic = alt_size > 1 and (first == ord(".") or data[alt_start + alt_size - 1] == ord("."))
    for p in range(alt_start, alt_start + alt_size):
        if data[p] == ord(","):
            return MULTIALLELIC
        symbolic |= data[p] == ord("<") or data[p] == ord("[") or data[p] == ord("]")
    if symbolic:
        return SYMBOLIC
    if alt_size == 1 and first == ord("*"):
        return STAR
    if ref_size != 1 or alt_size != 1:
        return INDEL
    if not (_is_base(first) and _is_base(data[ref_start])):
        return NON_ACGT
    return NO_ALT if (first & 0xDF) == (data[ref_start] & 0xDF) else SNPS


@njit(cache=True, nogil=True)
def _decode_run(data, start, n_calls, row, first, counts):
    """Decode calls of two bytes; False if one of them is not plain (`row` is then invalid).

    A byte of a plain call is 0 or 1 (unknown), 2 or 3 (REF), 4 or 5 (ALT); the lowest bit of the
    second is set if the call is phased.
    """
    words = data[start : start + 2 * n_calls].view(np.uint16)
    strange = np.uint16(0)
    n_missing = np.uint32(0)
    n_half = np.uint32(0)
    n_phased = np.uint32(0)
    for i in range(n_calls):
        a = np.uint16(words[i] & np.uint16(0xFF))
        b = np.uint16(words[i] >> np.uint16(8))
        strange |= np.uint16(a > _LAST_PLAIN) | np.uint16(b > _LAST_PLAIN)
        no_a, no_b = np.uint16(a < 2), np.uint16(b < 2)
        missing = np.uint16(no_a | no_b)
        n_missing = np.uint32(n_missing + missing)
        n_half = np.uint32(n_half + np.uint16(no_a ^ no_b))
        n_phased = np.uint32(n_phased + (np.uint16(b & np.uint16(1)) & (np.uint16(1) - missing)))
        count = np.uint16((a >> np.uint16(1)) + (b >> np.uint16(1)) - np.uint16(2))
        row[first + i] = np.int8(-1) if missing else np.int8(count)
    if strange:
        return False
    counts[MISSING_CALLS] += n_missing
    counts[HALF_CALLS] += n_half
    counts[PHASED] += n_phased
    counts[UNPHASED] += n_calls - n_missing - n_phased
    return True


@njit(cache=True, nogil=True)
def _decode_call(data, p, kind, width, policy, any_other, counts):
    """Return the genotype of one call of `width` integers, or an error code plus 16."""
    ploidy = 0
    n_unknown = 0
    n_alt = 0
    phased = False
    status = 0
    missing = np.int64(-128) if kind == INT8 else np.int64(-32768)
    if kind == INT32:
        missing = np.int64(-(2**31))
    for k in range(width):
        value = _read_int(data, p + k * _SIZES[kind], kind)
        if value == missing + 1:  # the call has ended
            break
        ploidy += 1
        if value == missing or value >> 1 == 0:
            n_unknown += 1
        elif value < 0:
            status = BROKEN
        else:
            allele = (value >> 1) - 1
            n_alt += allele
            if allele > 1 and status != BROKEN:
                status = HIGH_ALLELE
        if k == 1:
            phased = value & 1 == 1
    if status == BROKEN:
        return 16 + BROKEN
    if ploidy > 2 and policy & ANY_PLOIDY:
        counts[MISSING_CALLS] += 1
        return -1
    if ploidy > 2:
        return 16 + POLYPLOID
    if status == HIGH_ALLELE and any_other:
        counts[MISSING_CALLS] += 1
        return -1
    if status != 0:
        return 16 + status
    if n_unknown > 0 or ploidy == 0:
        counts[MISSING_CALLS] += 1
        counts[HALF_CALLS] += 0 < n_unknown < ploidy
        return -1
    if ploidy == 1:
        if policy & ~ANY_PLOIDY == HAPLOID_ERROR:
            return 16 + HAPLOID_REF
        counts[HAPLOID_CALLS] += 1
        if policy & ~ANY_PLOIDY == HAPLOID_MISSING:
            counts[MISSING_CALLS] += 1
            return -1
        return 2 * n_alt
    counts[PHASED if phased else UNPHASED] += 1
    return n_alt


@njit(cache=True, nogil=True)
def _decode_row(data, p, kind, width, ignored, policy, any_other, in_block, row, counts, error):
    """Decode the calls of one record; False on an error, which is left in `error`.

    In a reference block a call that would be an error is missing, and counted.
    """
    n_samples = len(ignored)
    size = width * _SIZES[kind]
    done = 0
    while done < n_samples:
        n_run = min(RUN, n_samples - done)
        if not (kind == INT8 and width == 2) or not _decode_run(data, p, n_run, row, done, counts):
            for k in range(n_run):
                at = p + k * size
                own = policy
                if ignored[done + k] and not in_block:
                    own = (HAPLOID_MISSING if policy & 3 == HAPLOID_ERROR else policy) | ANY_PLOIDY
                genotype = _decode_call(data, at, kind, width, own, any_other, counts)
                if genotype > 2 and in_block:
                    counts[ODD_BLOCK_CALLS] += 1
                    genotype = -1
                elif genotype > 2:
                    error[0], error[4], error[5] = genotype - 16, done + k, kind
                    error[2], error[3] = p + k * size, p + (k + 1) * size
                    return False
                row[done + k] = genotype
        p += n_run * size
        done += n_run
    return True


@njit(cache=True, nogil=True)
def _read_float(data, p):
    """Return the 32-bit float at `p`; NaN for the two codes of a value that is not there."""
    bits = _uint32(data, p)
    exponent = bits >> 23 & 0xFF
    fraction = bits & 0x7FFFFF
    if exponent == 0xFF:
        return np.nan if fraction else math.inf
    value = math.ldexp(np.float64(fraction | 0x800000), exponent - 150)
    if exponent == 0:
        value = math.ldexp(np.float64(fraction), -149)
    return -value if bits >> 31 else value


@njit(cache=True, nogil=True)
def _read_number(data, p, kind):
    """Return the number at `p`, NaN for one that is not there."""
    if kind == FLOAT:
        return _read_float(data, p)
    value = _read_int(data, p, kind)
    lowest = -128 if kind == INT8 else -32768 if kind == INT16 else -(2**31)
    return np.nan if value < lowest + 8 else np.float64(value)


@njit(cache=True, nogil=True)
def _read_text(data, p, end, which):
    """Return number `which` (0 or 1) of a text between commas, as `vcf_text` reads it from VCF."""
    while which > 0 and p < end:
        which -= data[p] == 44
        p += 1
    negative = p < end and data[p] == 45
    p += p < end and (data[p] == 45 or data[p] == 43)
    value = 0.0
    scale = 1.0
    digits = 0
    point = False
    while p < end and (48 <= data[p] <= 57 or (data[p] == 46 and not point)):
        if data[p] == 46:
            point = True
        else:
            value = 10 * value + (data[p] - 48)
            scale *= 10 if point else 1
            digits += 1
        p += 1
    if digits == 0:
        return np.nan
    value /= scale
    if p + 1 < end and (data[p] == 101 or data[p] == 69):
        below = data[p + 1] == 45
        p += 1 + (data[p + 1] == 45 or data[p + 1] == 43)
        exponent = 0
        while p < end and 48 <= data[p] <= 57:
            exponent = min(10 * exponent + (data[p] - 48), 400)
            p += 1
        value *= 10.0 ** (-exponent if below else exponent)
    return -value if negative else value


@njit(cache=True, nogil=True)
def _value(data, places, kinds, widths, k, sample, which):
    """Return number `which` of field `k` of a call, NaN if there is none; a field may be text."""
    step = widths[k] * _SIZES[kinds[k]]
    at = places[k] + sample * step
    if kinds[k] == CHAR:
        return _read_text(data, at, at + step, which)
    if widths[k] <= which:
        return np.nan
    return _read_number(data, at + which * _SIZES[kinds[k]], kinds[k])


@njit(cache=True, nogil=True)
def _passes(data, p, end, accepted):
    """Whether all filters of the typed list at `p` are accepted (bool by key); damaged: True."""
    kind, length, p = _read_type(data, p, end)
    if length > 0 and not INT8 <= kind <= INT32:
        return True
    for k in range(length):
        key = _read_int(data, p + k * _SIZES[kind], kind)
        if not 0 <= key < len(accepted) or not accepted[key]:
            return False
    return True


@njit(cache=True, nogil=True)
def _has_ref_alone(row):
    """Whether a genotype is 0 and none is above."""
    some = False
    for genotype in row:
        if genotype > 0:
            return False
        some |= genotype == 0
    return some


@njit(cache=True, nogil=True)
def _is_phased(data, start, kind, width, sample):
    """Return 1 if a call of GT is phased, 0 if not, -1 if it has one allele."""
    if width < 2:
        return -1
    size = _SIZES[kind]
    second = _read_int(data, start + (sample * width + 1) * size, kind)
    lowest = -128 if kind == INT8 else -32768 if kind == INT16 else -(2**31)
    return -1 if second == lowest + 1 else second & 1


@njit(cache=True, nogil=True)
def _may_lack_depth(data, row, start, kind, width):
    """Whether a call 0/0 may have a depth of 0; quick where the depths are single integers."""
    if width != 1 or kind > INT32:
        return width > 0
    found = np.uint8(0)
    if kind == INT8:
        for sample in range(len(row)):
            found |= np.uint8((data[start + sample] | np.uint8(row[sample])) == 0)
    else:
        low = data[start : start + _SIZES[kind] * len(row)]
        if kind == INT16:
            depths = low.view(np.uint16)
            for sample in range(len(row)):
                found |= np.uint8((depths[sample] | np.uint16(np.uint8(row[sample]))) == 0)
        else:
            wide = low.view(np.uint32)
            for sample in range(len(row)):
                found |= np.uint8((wide[sample] | np.uint32(np.uint8(row[sample]))) == 0)
    return found > 0


@njit(cache=True, nogil=True)
def _limit_calls(
    data, row, places, kinds, widths, gt_start, gt_kind, gt_width, limits, counts, removed
):
    """As `vcf_text._limit_calls`.

    `places`, `kinds`, `widths`: of GQ, DP, AD, MIN_DP, GP and DS; width 0 for none.
    """
    any_removed = False
    any_limit = limits[MIN_GQ:].any()
    if not any_limit and not _may_lack_depth(data, row, places[1], kinds[1], widths[1]):
        return
    for sample in range(len(row)):
        if row[sample] < 0 or (row[sample] > 0 and not any_limit):
            continue
        fault = 0
        dp = _value(data, places, kinds, widths, 1, sample, 0)
        gq = _value(data, places, kinds, widths, 0, sample, 0)
        imputed = False  # `vcf_text._is_imputed`
        if row[sample] == 0 and dp == 0:
            imputed = _is_phased(data, gt_start, gt_kind, gt_width, sample) == 1
            for k in (4, 5):
                imputed |= not np.isnan(_value(data, places, kinds, widths, k, sample, 0))
        if row[sample] == 0 and dp == 0 and not imputed:
            fault = NO_DEPTH
        elif limits[MIN_DP] > 0 and dp < limits[MIN_DP]:
            fault = LOW_DP
        elif limits[MAX_DP] > 0 and dp > limits[MAX_DP]:
            fault = HIGH_DP
        elif limits[MIN_GQ] > 0 and gq < limits[MIN_GQ]:
            fault = LOW_GQ
        elif row[sample] == 1 and limits[MIN_BALANCE] > 0:
            first = _value(data, places, kinds, widths, 2, sample, 0)
            second = _value(data, places, kinds, widths, 2, sample, 1)
            if first + second > 0 and min(first, second) < limits[MIN_BALANCE] * (first + second):
                fault = UNBALANCED
        if fault > 0:
            row[sample] = -1
            removed[sample] += 1
            any_removed = True
            counts[fault] += 1
            counts[MISSING_CALLS] += 1
            phased = _is_phased(data, gt_start, gt_kind, gt_width, sample)
            if phased >= 0:
                counts[PHASED if phased else UNPHASED] -= 1
    counts[THINNED_SITES] += any_removed


def row_capacity(size, n_records, n_samples):
    """Return an upper bound of the kept sites: every call of a kept site takes a byte or more."""
    return min(n_records, size // (LENGTHS_BYTES + FIXED_BYTES + n_samples))


@njit(cache=True, nogil=True)
def decode_records(
    data,
    size,
    ignored,
    policies,
    keys,
    accepted,
    limits,
    out,
):
    """Decode the whole records in `data[:size]`, as `split_records` finds them.

    Parameters
    ----------
    data : (size) uint8
    ignored : (n_samples) bool
        Samples that are left out: a call of another ploidy is missing.
    policies : (n_contigs) int64
        Policy for haploid calls, by contig index, with ANY_PLOIDY or not; -1 where the header has
        no such contig.
    keys : (7) int64
        Indices of GT, GQ, DP, AD, MIN_DP, GP and DS in the header's dictionary, -1 for one that it
        does not have.
    accepted : (n_keys) bool
        By key of a FILTER, whether records with it are read.
    limits : (5) float64
        `CallFilters.limits`.
    out : batches.DecodedRecords
        `genotypes` has `row_capacity` rows, `dropped` and `blocks` one for each record. `fields`:
        record (0 is the first of `data`), contig, POS, start and end of ID, and the offsets of REF
        and ALT (-1 without one). `dropped`: contig, POS, the bytes of REF, and the start of FILTER
        if that dropped it, else -1. `error`: code, record, then the damaged part (DAMAGED), POS
        (BAD_POS), start and end of FORMAT (NO_GT), or start and end of the call, the sample's
        index and the value type.

    Returns
    -------
    (n_sites, n_dropped, n_blocks)
        Numbers of kept sites, of dropped records with a position, and of reference blocks.
    """
    genotypes, fields, counts, error, dropped, removed, blocks, block_rows = out
    n_samples = len(ignored)
    n_sites = n_records = n_dropped = n_blocks = 0
    places, kinds, widths = np.zeros(6, np.int64), np.zeros(6, np.int64), np.zeros(6, np.int64)
    other_counts, other_error = np.zeros(len(counts), np.int64), np.zeros(6, np.int64)
    other_removed = np.zeros(n_samples, np.int64)
    p = 0
    while size - p >= LENGTHS_BYTES:
        shared_end = p + LENGTHS_BYTES + _uint32(data, p)
        end = shared_end + _uint32(data, p + 4)
        p += LENGTHS_BYTES
        error[1] = n_records
        n_records += 1
        counts[RECORDS] += 1
        error[0] = DAMAGED
        error[2] = LENGTHS
        if end > size or shared_end - p < FIXED_BYTES:
            return n_sites, n_dropped, n_blocks
        contig = _int32(data, p)
        pos = _int32(data, p + 4) + 1
        length_on_ref = _int32(data, p + 8)
        quality = p + 12
        n_alleles = _uint32(data, p + 16) >> 16
        n_info = _uint32(data, p + 16) & 0xFFFF
        n_formats = _uint32(data, p + 20) >> 24
        if not 0 <= contig < len(policies) or policies[contig] < 0:
            error[2] = CONTIG
            return n_sites, n_dropped, n_blocks
        if _uint32(data, p + 20) & 0xFFFFFF != n_samples:
            error[2] = N_SAMPLES
            error[3] = _uint32(data, p + 20) & 0xFFFFFF
            return n_sites, n_dropped, n_blocks
        p += FIXED_BYTES
        # ID and alleles.
        error[2] = STRINGS
        any_other = False
        id_start = id_end = ref = ref_size = alt = alt_size = np.int64(0)
        for k in range(1 + n_alleles):
            kind, length, p = _read_type(data, p, shared_end)
            if length < 0 or length > shared_end - p or (length > 0 and kind != CHAR):
                return n_sites, n_dropped, n_blocks
            if k == 0:
                id_start, id_end = p, p + length
            elif length == 0:
                return n_sites, n_dropped, n_blocks
            elif k == 1:
                ref, ref_size = p, length
            elif k == 2:
                alt, alt_size = p, length
            if k > 0 and not _is_plain(data, p, p + length):
                return n_sites, n_dropped, n_blocks
            any_other = k > 1 and _is_any_other(data, p, length)  # of the last one
            p += length
        if n_alleles == 0:
            error[2] = NO_ALLELES
            return n_sites, n_dropped, n_blocks
        # Skip FILTER and INFO.
        error[2] = VALUES
        failed_at = p
        p = skip_value(data, p, shared_end, 1)
        for _ in range(n_info):
            if p < 0:
                return n_sites, n_dropped, n_blocks
            key, p = read_key(data, p, shared_end)
            p = -1 if key < 0 else skip_value(data, p, shared_end, 1)
        if p < 0:
            return n_sites, n_dropped, n_blocks
        # FORMAT: find GT.
        gt_kind, gt_width, gt_start = np.int64(0), np.int64(-1), np.int64(0)
        p = shared_end
        widths[:] = 0
        for _ in range(n_formats):
            key, p = read_key(data, p, end)
            if key < 0:
                return n_sites, n_dropped, n_blocks
            if key == keys[0] and gt_width < 0:
                gt_kind, gt_width, gt_start = _read_type(data, p, end)
            for k in range(6):
                if key == keys[k + 1] and widths[k] == 0:
                    kinds[k], widths[k], places[k] = _read_type(data, p, end)
            p = skip_value(data, p, end, n_samples)
            if p < 0:
                return n_sites, n_dropped, n_blocks
        p = end
        error[0] = 0
        if not 0 <= pos < 2**31:
            error[0], error[2] = BAD_POS, pos
            return n_sites, n_dropped, n_blocks
        if pos == 0:  # a telomere
            slot = UNPLACED
        elif n_alleles == 1:
            slot = NO_ALT
        elif n_alleles == 2 and any_other:
            slot = REFERENCE_BLOCK
        elif n_alleles - any_other > 2:
            slot = MULTIALLELIC
        else:
            slot = _classify(data, ref, ref_size, alt, alt_size)
        one_allele = slot == NO_ALT and gt_width >= 0 and ref_size == 1 and _is_base(data[ref])
        no_allele = n_alleles == 1 or (n_alleles == 2 and alt_size == 1 and data[alt] == ord("."))
        if slot == NO_ALT and gt_width >= 0 and no_allele and length_on_ref > ref_size:
            slot, one_allele = REFERENCE_BLOCK, False  # of a gVCF without `<NON_REF>`
        one_allele = one_allele and no_allele
        if slot == SNPS or one_allele:
            slot = SNPS
            if len(accepted) and not _passes(data, failed_at, shared_end, accepted):
                slot = FILTERED
            elif limits[MIN_QUAL] > 0 and _read_float(data, quality) < limits[MIN_QUAL]:
                slot = LOW_QUAL
        if slot == REFERENCE_BLOCK:
            counts[slot] += 1
            passes = not len(accepted) or _passes(data, failed_at, shared_end, accepted)
            if not passes or gt_width <= 0 or not INT8 <= gt_kind <= INT32:
                continue
            row = block_rows[n_blocks]
            policy = policies[contig] & ~ANY_PLOIDY
            policy = HAPLOID_ERROR if policy == HAPLOID_MISSING else policy
            other_counts[ODD_BLOCK_CALLS] = 0
            _decode_row(
                data,
                gt_start,
                gt_kind,
                gt_width,
                ignored,
                policy,
                True,
                True,
                row,
                other_counts,
                other_error,
            )
            counts[ODD_BLOCK_CALLS] += other_counts[ODD_BLOCK_CALLS]
            if widths[3] > 0:  # the least depth of the block
                places[1], kinds[1], widths[1] = places[3], kinds[3], widths[3]
            widths[4:] = 0
            _limit_calls(
                data,
                row,
                places,
                kinds,
                widths,
                gt_start,
                gt_kind,
                gt_width,
                limits,
                other_counts,
                other_removed,
            )
            blocks[n_blocks, BLOCK_CONTIG] = contig
            blocks[n_blocks, BLOCK_FROM] = pos - 1
            blocks[n_blocks, BLOCK_TO] = min(pos - 1 + max(length_on_ref, ref_size), 2**31)
            n_blocks += 1
            continue
        if slot != SNPS:
            counts[slot] += 1
            if slot != UNPLACED:
                dropped[n_dropped, AT_CHROM], dropped[n_dropped, AT_POS] = contig, pos
                dropped[n_dropped, AT_SIZE] = ref_size
                dropped[n_dropped, AT_FILTER] = failed_at if slot == FILTERED else -1
                n_dropped += 1
            continue
        if gt_width < 0:
            error[0], error[2], error[3], error[4] = NO_GT, shared_end, end, n_formats
            return n_sites, n_dropped, n_blocks
        if gt_width == 0 or not INT8 <= gt_kind <= INT32:
            error[0] = EMPTY_GT if gt_width == 0 else STRANGE_GT
            return n_sites, n_dropped, n_blocks
        row = genotypes[n_sites]
        policy = policies[contig]
        if not _decode_row(
            data,
            gt_start,
            gt_kind,
            gt_width,
            ignored,
            policy,
            any_other,
            False,
            row,
            counts,
            error,
        ):
            return n_sites, n_dropped, n_blocks
        if one_allele:
            for sample in range(n_samples):
                if row[sample] > 0:
                    size_of_call = gt_width * _SIZES[gt_kind]
                    error[0], error[4], error[5] = HIGH_ALLELE, sample, gt_kind
                    error[2] = gt_start + sample * size_of_call
                    error[3] = error[2] + size_of_call
                    return n_sites, n_dropped, n_blocks
            counts[ONE_ALLELE] += 1
            alt = alt if n_alleles > 1 else np.int64(-1)
        wanted = widths[1] > 0 or (widths[0] > 0 and limits[MIN_GQ] > 0)
        if wanted or (widths[2] > 0 and limits[MIN_BALANCE] > 0):
            limited = limits[MIN_GQ:].any() and not _has_ref_alone(row)
            _limit_calls(
                data,
                row,
                places,
                kinds,
                widths,
                gt_start,
                gt_kind,
                gt_width,
                limits,
                counts,
                removed,
            )
            counts[MADE_REFERENCE] += limited and _has_ref_alone(row)
        counts[SNPS] += 1
        fields[n_sites, RECORD] = n_records - 1
        fields[n_sites, CHROM], fields[n_sites, POS] = contig, pos
        fields[n_sites, ID_START], fields[n_sites, ID_END] = id_start, id_end
        fields[n_sites, REF], fields[n_sites, ALT] = ref, alt
        n_sites += 1
    return n_sites, n_dropped, n_blocks
