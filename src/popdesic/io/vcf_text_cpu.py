"""Decode whole lines of VCF text to genotypes: the compiled half of `popdesic.io.vcf`.

One pass over the bytes: columns are split, the site is classified, and the calls of biallelic
SNPs are decoded straight to int8. A call almost always has four bytes: "0/1" and a tab, or a colon
where further fields follow. Runs of such calls are decoded four bytes at a time in a loop that the
compiler vectorises. Where FORMAT is exactly GT they lie side by side. Where GT is the first of
several fields, their starts are found from bit masks of the tabs in 64 bytes. Anything else takes
the general path, one call at a time.
"""

# ruff: noqa: SIM109, SIM110 (numba makes faster code of plain comparisons and loops)

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Slots of the counts array; `popdesic.io.vcf.DecodeCounts` has its fields in this order.
RECORDS, MULTIALLELIC, INDEL, SYMBOLIC, STAR, NO_ALT, NON_ACGT, UNPLACED = range(8)
SNPS, MISSING_CALLS, HALF_CALLS, HAPLOID_CALLS, PHASED, UNPHASED = range(8, 14)
ONE_ALLELE, FILTERED, LOW_QUAL = range(14, 17)
NO_DEPTH, LOW_DP, HIGH_DP, LOW_GQ, UNBALANCED, THINNED_SITES = range(17, 23)
REFERENCE_BLOCK, MADE_REFERENCE, ODD_BLOCK_CALLS = 23, 24, 25
N_COUNTS = 26

# Limits of records and calls (`call_filters.CallFilters.limits`).
MIN_QUAL, MIN_GQ, MIN_DP, MAX_DP, MIN_BALANCE = range(5)

# What to do with a call of one allele.
HAPLOID_ERROR, HAPLOID_DIPLOIDIZE, HAPLOID_MISSING = range(3)
# Added to it on a contig that never enters the study: calls of more alleles are missing there.
ANY_PLOIDY = 4

# Kinds of calls. To the first two, HET or HOM_ALT is added to give the genotype.
WITH_SLASH, WITH_PIPE = 0, 3
HET, HOM_ALT = 1, 2
UNKNOWN, HALF, HAPLOID_REF, HAPLOID_ALT = range(6, 10)
POLYPLOID, HIGH_ALLELE, BROKEN = range(10, 13)
LEFT_OUT = 13  # counted beside HAPLOID_REF and HAPLOID_ALT, of a sample that is left out

# Values of error[0]: 0, a kind of call that is refused, or one of these.
BAD_COLUMNS, EMPTY_COLUMN, BAD_POS, NO_GT, HEADER_LINE, NOT_UTF8, BAD_NAME = range(16, 23)

# Columns of the site table.
LINE, CHROM_START, CHROM_END, POS, ID_START, ID_END, REF, ALT = range(8)
N_FIELDS = 8

# Columns of the table of dropped records; no FILTER where another reason dropped the record.
AT_CHROM, AT_CHROM_END, AT_POS, AT_SIZE, AT_FILTER, AT_FILTER_END = range(6)
N_DROPPED = 6

# Columns of the table of reference blocks; FROM counts from 0, TO is not included.
BLOCK_CHROM, BLOCK_CHROM_END, BLOCK_FROM, BLOCK_TO = range(4)
N_BLOCK = 4

# Bytes compared at a time with a separator, and readable bytes needed after the last line for it.
BLOCK = 64
PAD = BLOCK

# Calls decoded at a time before the run is checked: long enough to vectorise, short enough
# that one unusual call costs little.
RUN = 1024

TAB, NEWLINE, RETURN, COLON, SLASH, PIPE, DOT = 9, 10, 13, 58, 47, 124, 46
COMMA, HASH, ZERO, LESS, OPEN, CLOSE, ASTERISK = 44, 35, 48, 60, 91, 93, 42
MINUS, PLUS, SEMICOLON = 45, 43, 59


@intrinsic
def _find_byte(typing_context, text, start, byte):
    """uint64: bit i is set where text[start + i] is `byte`, for BLOCK bytes."""
    bits = types.uint64
    signature = bits(text, types.int64, types.uint8)

    def codegen(context, builder, signature, arguments):
        array, first, value = arguments
        struct = context.make_array(signature.args[0])(context, builder, array)
        vector = ir.VectorType(ir.IntType(8), BLOCK)
        there = builder.load(
            builder.bitcast(builder.gep(struct.data, [first]), vector.as_pointer())
        )
        there.align = 1
        one = builder.insert_element(vector(ir.Undefined), value, ir.IntType(32)(0))
        zeros = ir.VectorType(ir.IntType(32), BLOCK)(None)
        wanted = builder.shuffle_vector(one, vector(ir.Undefined), zeros)
        return builder.bitcast(builder.icmp_unsigned("==", there, wanted), ir.IntType(BLOCK))

    return signature, codegen


@intrinsic
def _lowest_bit(typing_context, bits):
    """int64: the place of the lowest set bit of a uint64 that is not 0."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), codegen


@intrinsic
def _count_bits(typing_context, bits):
    """int64: the number of bits that are set in a uint64."""

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen


@intrinsic
def _read_word(typing_context, text, start):
    """uint32: the four bytes of text at `start`, little-endian."""

    def codegen(context, builder, signature, arguments):
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(struct.data, [arguments[1]])
        word = builder.load(builder.bitcast(place, ir.IntType(32).as_pointer()))
        word.align = 1
        return word

    return types.uint32(text, types.int64), codegen


@njit(cache=True, nogil=True)
def _gather_calls(text, start, n_calls, calls):
    """Read the first four bytes of `n_calls` columns to `calls`, a ':' after three as a tab.

    Returns the start of the next column, or -1 if the line has too few.
    """
    words = calls.view(np.uint32)
    done = 0
    column = block = start
    while True:
        tabs = _find_byte(text, block, TAB)
        ends = _find_byte(text, block, NEWLINE)
        if ends != 0:
            tabs &= ends ^ (ends - np.uint64(1))  # those before the first end of a line
        while tabs != 0:
            word = _read_word(text, column)
            more = np.uint32(word >> np.uint32(24) == COLON)
            words[done] = word ^ np.uint32(more * np.uint32((COLON ^ TAB) << 24))
            done += 1
            column = block + _lowest_bit(tabs) + 1
            if done == n_calls:
                return column
            tabs &= tabs - np.uint64(1)
        if ends != 0:
            return -1
        block += BLOCK


@njit(cache=True, nogil=True)
def _decode_run(text, start, n_calls, row, first, kinds):
    """Decode `n_calls` calls of four bytes; False if one is not plain (`row` is then invalid).

    A plain call is 'a/b' or 'a|b', a tab, and a, b both in {0, 1} or both '.'. The four bytes are
    read as one little-endian word; XOR with '0/0<tab>' leaves bit 0 and bit 16 as the alleles.
    """
    words = text[start : start + 4 * n_calls].view(np.uint32)
    one = np.uint32(1)
    strange = np.uint32(0)
    n_missing = np.uint32(0)
    n_phased = np.uint32(0)
    for i in range(n_calls):
        word = np.uint32(words[i] ^ np.uint32(0x09302F30))
        pipe = np.uint32((word >> np.uint32(8)) & one)
        word = np.uint32(word ^ np.uint32(pipe * np.uint32(0x5300)))  # '|' becomes '/'
        missing = np.uint32(word == np.uint32(0x001E001E))  # './.'
        strange |= np.uint32(word & np.uint32(0xFFFEFFFE)) * (one - missing)
        n_missing = np.uint32(n_missing + missing)
        n_phased = np.uint32(n_phased + np.uint32(pipe & (one - missing)))
        count = np.uint32(np.uint32(word & one) + np.uint32(word >> np.uint32(16)))
        row[first + i] = np.int8(count | np.uint32(-missing))
    if strange != 0:
        return False
    kinds[UNKNOWN] += n_missing
    kinds[WITH_PIPE] += n_phased
    kinds[WITH_SLASH] += n_calls - n_missing - n_phased
    return True


@njit(cache=True, nogil=True)
def _read_call(text, start):
    """Read one call of any shape; return 16 * (end of the call) + its kind.

    The signature is minimal because this is called often: passing arrays would cost more than
    reading the call.
    """
    p = start
    ploidy = 0
    n_alt = 0
    n_unknown = 0
    status = WITH_SLASH
    while status != BROKEN:
        if text[p] == DOT:
            n_unknown += 1
            p += 1
        elif ZERO <= text[p] <= ZERO + 9:
            allele = 0
            while ZERO <= text[p] <= ZERO + 9:
                allele = min(10 * allele + text[p] - ZERO, 2)
                p += 1
            if allele > 1:
                status = HIGH_ALLELE
            n_alt += allele
        else:
            status = BROKEN
        ploidy += 1
        if text[p] == COLON or text[p] == TAB or text[p] == NEWLINE:
            break
        if text[p] == PIPE and status == WITH_SLASH:
            status = WITH_PIPE
        elif text[p] != SLASH and text[p] != PIPE:
            status = BROKEN
        p += 1
    while text[p] != COLON and text[p] != TAB and text[p] != NEWLINE:
        p += 1
    if ploidy > 2 and status != BROKEN:
        status = POLYPLOID
    elif status == WITH_SLASH or status == WITH_PIPE:
        if n_unknown > 0:
            status = UNKNOWN if n_unknown == ploidy else HALF
        elif ploidy == 1:
            status = HAPLOID_ALT if n_alt else HAPLOID_REF
        elif n_alt == 1:
            status += HET
        elif n_alt == 2:
            status += HOM_ALT
    return 16 * p + status


@njit(cache=True, nogil=True)
def _decode_row(
    text, start, size, ignored, gt_index, gt_alone, genotype_of, calls, row, kinds, error
):
    """Decode the sample columns of one record that start at `start`; False on an error.

    A call of another ploidy is missing, and no error, of the samples that are `ignored`. Adds the
    number of calls of each kind to `kinds`. Leaves the end of the line in error[2], or on an error
    all details (see `decode_records`). `calls` has room for RUN calls of four bytes.
    """
    n_samples = len(ignored)
    p = start
    done = 0
    careful = 0  # calls left to decode one at a time after a run that was not plain
    n_unknown = 0
    n_pipe = 0
    n_slash = 0
    while done < n_samples:
        # The last sample ends with the line, not with a tab, so it is never part of a run.
        n_run = min(RUN, n_samples - 1 - done) if gt_index == 0 and careful == 0 else 0
        if n_run > 0:
            run, at, after = text, p, p + 4 * n_run
            if not gt_alone:
                run, at, after = calls, 0, _gather_calls(text, p, n_run, calls)
            if 0 < after <= size and _decode_run(run, at, n_run, row, done, kinds):
                p = after
                done += n_run
                continue
            careful = n_run
        column = p
        present = True
        for _ in range(gt_index):
            while text[p] != COLON and text[p] != TAB and text[p] != NEWLINE:
                p += 1
            present = text[p] == COLON
            if not present:
                break
            p += 1
        # With CRLF line ends the last column may consist of the '\r' alone.
        empty = p == column or (p == column + 1 and text[column] == RETURN and text[p] == NEWLINE)
        if not present and not empty:
            n_unknown += 1  # trailing fields may be dropped: the call is missing
            row[done] = -1
        else:
            # A fast path for plain calls; `_read_call` reads all others.
            a, separator, b, after = text[p], text[p + 1], text[p + 2], text[p + 3]
            plain = separator == SLASH or separator == PIPE
            plain = plain and (after == COLON or after == TAB or after == NEWLINE)
            if plain and a | 1 == ZERO | 1 and b | 1 == ZERO | 1:
                row[done] = (a & 1) + (b & 1)
                n_pipe += separator == PIPE
                n_slash += separator == SLASH
                p += 3
            elif plain and a == DOT and b == DOT:
                row[done] = -1
                n_unknown += 1
                p += 3
            else:
                call = _read_call(text, p)
                kind = call & 15
                row[done] = genotype_of[kind]
                kinds[kind] += 1
                if genotype_of[kind] < -1 and ignored[done] and HAPLOID_REF <= kind <= POLYPLOID:
                    row[done] = -1
                    kinds[LEFT_OUT] += kind != POLYPLOID
                elif genotype_of[kind] < -1:
                    error[0], error[2], error[3], error[4] = kind, p, call >> 4, done
                    return False
                p = call >> 4
        while text[p] > NEWLINE or (text[p] != TAB and text[p] != NEWLINE):
            p += 1
        done += 1
        careful = max(careful - 1, 0)
        if (text[p] == NEWLINE) != (done == n_samples):
            error[0] = BAD_COLUMNS
            return False
        p += 1
    kinds[UNKNOWN] += n_unknown
    kinds[WITH_PIPE] += n_pipe
    kinds[WITH_SLASH] += n_slash
    error[2] = p - 1
    return True


@njit(cache=True, nogil=True)
def count_columns(text, start):
    """Return (number of tab-separated columns, end) of the line that starts at `start`."""
    n_columns = 1
    p = start
    while text[p] != NEWLINE:
        n_columns += text[p] == TAB
        p += 1
    return n_columns, p


@njit(cache=True, nogil=True)
def _is_base(byte):
    """True for A, C, G, T in either case."""
    upper = byte & 0xDF
    return upper == 65 or upper == 67 or upper == 71 or upper == 84


@njit(cache=True, nogil=True)
def _classify(text, ref_start, ref_end, alt_start, alt_end):
    """Return the slot of the counts array that the site belongs to; SNPS is the one to keep."""
    ref_size = ref_end - ref_start
    alt_size = alt_end - alt_start
    first = text[alt_start]
    if alt_size == 1 and first == DOT:
        return NO_ALT
    symbolic = alt_size > 1 and (first == DOT or text[alt_end - 1] == DOT)  # single breakends
    for p in range(alt_start, alt_end):
        byte = text[p]
        if byte == COMMA:
            return MULTIALLELIC
        symbolic |= byte == LESS or byte == OPEN or byte == CLOSE
    if symbolic:
        return SYMBOLIC
    if alt_size == 1 and first == ASTERISK:
        return STAR
    if ref_size != 1 or alt_size != 1:
        return INDEL
    if not (_is_base(first) and _is_base(text[ref_start])):
        return NON_ACGT
    if (first & 0xDF) == (text[ref_start] & 0xDF):
        return NO_ALT
    return SNPS


@njit(cache=True, nogil=True)
def _without_any_other(text, start, end):
    """Return the end of ALT without the allele of a gVCF that stands for any other.

    That is `<NON_REF>` or `<*>`, the last one; `start` if there is no other.
    """
    size = 0
    if end - start >= 3 and text[end - 1] == 62 and text[end - 2] == ASTERISK:
        size = 3 if text[end - 3] == LESS else 0
    elif end - start >= 9 and text[end - 1] == 62:
        size = 9
        for k, byte in enumerate((LESS, 78, 79, 78, 95, 82, 69, 70)):
            if text[end - 9 + k] != byte:
                size = 0
    if size == 0:
        return end
    if size == end - start:
        return start
    return end - size - 1 if text[end - size - 1] == COMMA else end


@njit(cache=True, nogil=True)
def _read_end(text, start, end):
    """Return the number of END in INFO, -1 without one."""
    p = start
    while p + 4 <= end:
        if text[p] == 69 and text[p + 1] == 78 and text[p + 2] == 68 and text[p + 3] == 61:
            last = p + 4
            while last < end and text[last] != SEMICOLON:
                last += 1
            return _read_pos(text, p + 4, last)
        while p < end and text[p] != SEMICOLON:
            p += 1
        p += 1
    return -1


# Keys of FORMAT as numbers: their bytes, the first one highest.
KEY_GT, KEY_GQ, KEY_DP, KEY_AD, KEY_GP, KEY_DS, KEY_MIN_DP = (
    int.from_bytes(key, "big") for key in (b"GT", b"GQ", b"DP", b"AD", b"GP", b"DS", b"MIN_DP")
)


@njit(cache=True, nogil=True)
def _find_key(text, start, end, wanted):
    """Return the index of a key, one of KEY_*, in FORMAT (keys between ':'), -1 if absent."""
    index = 0
    key = 0
    for p in range(start, end):
        if text[p] == COLON:
            if key == wanted:
                return index
            index += 1
            key = 0
        else:
            key = min(key, 1 << 48) << 8 | text[p]
    return index if key == wanted else -1


@njit(cache=True, nogil=True)
def _passes(text, start, end, accepted, ends):
    """Whether all names in FILTER, between ';', are PASS, '.' or accepted."""
    first = start
    for p in range(start, end + 1):
        if p < end and text[p] != SEMICOLON:
            continue
        size = p - first
        passed = size == 0 or (size == 1 and text[first] == DOT)
        passed |= (
            size == 4
            and text[first] == 80
            and text[first + 1] == 65
            and text[first + 2] == 83
            and text[first + 3] == 83
        )
        for k in range(len(ends)):
            begin = ends[k - 1] if k > 0 else 0
            if not passed and ends[k] - begin == size:
                same = True
                for i in range(size):
                    same &= text[first + i] == accepted[begin + i]
                passed = same
        if not passed:
            return False
        first = p + 1
    return True


@njit(cache=True, nogil=True)
def _read_number(text, start):
    """Return the number that starts at a byte, NaN if there is none: '.', nan or anything else."""
    p = start
    negative = text[p] == MINUS
    p += text[p] == MINUS or text[p] == PLUS
    value = 0.0
    scale = 1.0
    digits = 0
    while ZERO <= text[p] <= ZERO + 9:
        value = 10 * value + (text[p] - ZERO)
        digits += 1
        p += 1
    if text[p] == DOT:
        p += 1
        while ZERO <= text[p] <= ZERO + 9:
            value = 10 * value + (text[p] - ZERO)
            scale *= 10
            digits += 1
            p += 1
    if digits == 0:
        return np.nan
    value /= scale
    if text[p] == 101 or text[p] == 69:
        below = text[p + 1] == MINUS
        p += 1 + (text[p + 1] == MINUS or text[p + 1] == PLUS)
        exponent = 0
        while ZERO <= text[p] <= ZERO + 9:
            exponent = min(10 * exponent + (text[p] - ZERO), 400)
            p += 1
        value *= 10.0 ** (-exponent if below else exponent)
    return -value if negative else value


@njit(cache=True, nogil=True)
def _call_fault(genotype, gq, dp, ref_reads, alt_reads, imputed, limits):
    """Return the slot that counts a call beyond a limit, 0 for one within; NaN is within."""
    if genotype == 0 and dp == 0 and not imputed:
        return NO_DEPTH
    if limits[MIN_DP] > 0 and dp < limits[MIN_DP]:
        return LOW_DP
    if limits[MAX_DP] > 0 and dp > limits[MAX_DP]:
        return HIGH_DP
    if limits[MIN_GQ] > 0 and gq < limits[MIN_GQ]:
        return LOW_GQ
    if genotype == 1 and limits[MIN_BALANCE] > 0:
        reads = ref_reads + alt_reads
        if reads > 0 and min(ref_reads, alt_reads) < limits[MIN_BALANCE] * reads:
            return UNBALANCED
    return 0


@njit(cache=True, nogil=True)
def _states(text, start, index):
    """Whether the field `index` (-1: none) of the call that starts at a byte has a number."""
    if index < 0:
        return False
    p = start
    for _ in range(index):
        while text[p] != COLON and text[p] != TAB and text[p] != NEWLINE:
            p += 1
        if text[p] != COLON:
            return False
        p += 1
    return not np.isnan(_read_number(text, p))


@njit(cache=True, nogil=True)
def _separator(text, gt):
    """The byte after the first allele of the genotype at `gt`."""
    while ZERO <= text[gt] <= ZERO + 9:
        gt += 1
    return text[gt]


@njit(cache=True, nogil=True)
def _is_imputed(text, start, gt, gp, ds):
    """Whether the call at a byte is phased, or states GP or DS: it does not rest on its own reads.

    `gt` is the first byte of its genotype; `gp` and `ds` are indices in FORMAT, -1 for none.
    """
    phased = _separator(text, gt) == PIPE
    return phased or _states(text, start, gp) or _states(text, start, ds)


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
def _remove_without_depth(text, start, end, row, dp, gp, ds, counts, removed):
    """As `_limit_calls` without limits, where GT is first: calls 0/0 with a depth of 0.

    `end` is that of the line. Only fields that begin with 0 and have no comma after it can be such
    a depth. They are found from bit masks of 64 bytes, and their samples from the tabs before.
    """
    one = np.uint64(1)
    any_removed = False
    sample = 0
    for block in range(start, end, BLOCK):
        tabs = _find_byte(text, block, TAB)
        found = _find_byte(text, block, ZERO) & _find_byte(text, block - 1, COLON)
        found &= ~_find_byte(text, block + 1, COMMA)
        while found != 0:
            lowest = found & (~found + one)
            p = block + _lowest_bit(found)
            found ^= lowest
            k = sample + _count_bits(tabs & (lowest - one))
            if p >= end or row[k] != 0:
                continue
            index = 0
            column = p
            while column > start and text[column - 1] != TAB:
                column -= 1
                index += text[column] == COLON
            if index != dp or _read_number(text, p) != 0:
                continue
            if _is_imputed(text, column, column, gp, ds):
                continue
            row[k] = -1
            removed[k] += 1
            any_removed = True
            counts[NO_DEPTH] += 1
            counts[MISSING_CALLS] += 1
            counts[UNPHASED] -= _separator(text, column) == SLASH  # a phased call is kept
        sample += _count_bits(tabs)
    counts[THINNED_SITES] += any_removed


@njit(cache=True, nogil=True)
def _limit_calls(text, start, row, gt, gq, dp, ad, gp, ds, limits, counts, removed):
    """Make the calls of one record missing that are beyond a limit, and count them.

    `start` is that of the first sample's column; `gt`, `gq`, `dp`, `ad`, `gp` and `ds` are indices
    of these fields in FORMAT, -1 for one that is not there or not needed.
    """
    sample = 0
    index = 0
    value = block = column = start
    at_gt = at_gq = at_dp = at_ad = np.int64(-1)
    any_removed = False
    while True:
        stops = _find_byte(text, block, TAB) | _find_byte(text, block, NEWLINE)
        stops |= _find_byte(text, block, COLON)
        while stops != 0:
            p = block + _lowest_bit(stops)
            stops &= stops - np.uint64(1)
            if index == dp:
                at_dp = value
            elif index == gq:
                at_gq = value
            elif index == ad:
                at_ad = value
            elif index == gt:
                at_gt = value
            index += 1
            value = p + 1
            if text[p] == COLON:
                continue
            if row[sample] >= 0:
                quality = _read_number(text, at_gq) if at_gq >= 0 else np.nan
                depth = _read_number(text, at_dp) if at_dp >= 0 else np.nan
                ref_reads = alt_reads = np.nan
                if at_ad >= 0:
                    ref_reads = _read_number(text, at_ad)
                    while (
                        text[at_ad] != COMMA
                        and text[at_ad] != COLON
                        and text[at_ad] != TAB
                        and text[at_ad] != NEWLINE
                    ):
                        at_ad += 1
                    if text[at_ad] == COMMA:
                        alt_reads = _read_number(text, at_ad + 1)
                imputed = depth == 0 and _is_imputed(text, column, at_gt, gp, ds)
                fault = _call_fault(
                    row[sample], quality, depth, ref_reads, alt_reads, imputed, limits
                )
                if fault > 0:
                    row[sample] = -1
                    removed[sample] += 1
                    any_removed = True
                    counts[fault] += 1
                    counts[MISSING_CALLS] += 1
                    separator = _separator(text, at_gt)
                    counts[PHASED] -= separator == PIPE
                    counts[UNPHASED] -= separator == SLASH
            sample += 1
            if sample == len(row):
                counts[THINNED_SITES] += any_removed
                return
            index = 0
            column = value
            at_gq = at_dp = at_ad = np.int64(-1)
        block += BLOCK


@njit(cache=True, nogil=True)
def _read_pos(text, start, end):
    """Return POS, or -1 if it is not a whole number of at most ten digits."""
    if end - start < 1 or end - start > 10:
        return -1
    value = 0
    for p in range(start, end):
        if not ZERO <= text[p] <= ZERO + 9:
            return -1
        value = 10 * value + text[p] - ZERO
    return value


@njit(cache=True, nogil=True)
def _require_ref(text, start, gt_index, row, error):
    """At a record without ALT: False, and the first call that has one in `error`.

    `start` is that of the first sample's column.
    """
    for sample in range(len(row)):
        if row[sample] > 0:
            p = start
            for _ in range(sample):
                while text[p] != TAB:
                    p += 1
                p += 1
            for _ in range(gt_index):
                while text[p] != COLON:
                    p += 1
                p += 1
            end = p
            while text[end] != COLON and text[end] != TAB and text[end] != NEWLINE:
                end += 1
            error[0], error[2], error[3], error[4] = HIGH_ALLELE, p, end, sample
            return False
    return True


@njit(cache=True, nogil=True)
def _same_bytes(text, start_a, end_a, start_b, end_b):
    if end_a - start_a != end_b - start_b:
        return False
    for i in range(end_a - start_a):
        if text[start_a + i] != text[start_b + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _policy_of(text, start, end, haploid, names, ends, policies):
    """Return the policy for haploid calls of the contig `text[start:end]`; `haploid` by default."""
    for contig in range(len(ends)):
        first = ends[contig - 1] if contig > 0 else 0
        size = ends[contig] - first
        if size == end - start:
            same = True
            for i in range(size):
                same &= text[start + i] == names[first + i]
            if same:
                return policies[contig]
    return haploid


def dropped_capacity(size, n_samples):
    """Return an upper bound of the dropped records in `size` bytes.

    A record takes 8 + n_samples tabs, a newline, and a byte in each of five columns.
    """
    return size // (n_samples + 14) + 1


def row_capacity(size, n_samples):
    """Return an upper bound of the sites in `size` bytes of records, plus one.

    A kept record takes 8 + n_samples tabs, a newline, a byte in each sample and in CHROM,
    POS, ID, REF and ALT, and two in FORMAT.
    """
    return size // (2 * n_samples + 16) + 1


@njit(cache=True, nogil=True)
def decode_records(
    text,
    size,
    ignored,
    haploid,
    names,
    ends,
    policies,
    accepted,
    accepted_ends,
    any_filter,
    limits,
    out,
):
    """Decode the records in `text[:size]`, whole lines that end with a newline.

    Parameters
    ----------
    text : (at least size + PAD) uint8
        VCF records without carriage returns; bytes after `size` are readable but ignored.
    size, haploid : int
        `haploid` is one of HAPLOID_ERROR, HAPLOID_DIPLOIDIZE, HAPLOID_MISSING.
    ignored : (n_samples) bool
        Samples that are left out.
    names, ends, policies : uint8 (n_bytes), int64 (n_contigs), int64 (n_contigs)
        Contigs with their own haploid policy: concatenated names, end offset of each, and
        policies, each with ANY_PLOIDY or not.
    accepted, accepted_ends, any_filter, limits
        `CallFilters.names`, `any_filter` and `limits`.
    out : batches.DecodedRecords
        `genotypes` has `row_capacity` rows. `fields`: line (0 is the first of `text`), the byte
        ranges of CHROM and ID, POS, and the offsets of REF and ALT; consecutive sites with the same
        CHROM share its range. `error`: code, line, first and last byte of the offending value, and
        the sample's index; element 3 is the number of columns found for BAD_COLUMNS, and the column
        for EMPTY_COLUMN. `dropped`, of `dropped_capacity` rows as `blocks`: the byte range of
        CHROM, POS, the bytes of REF, and the byte range of a FILTER for which it was dropped.
        `blocks`: the byte range of CHROM and the interval.

    Returns
    -------
    (n_sites, n_lines, n_dropped, n_blocks)
        `n_lines` counts all lines read, including blank ones.
    """
    genotypes, fields, counts, error, dropped, removed, blocks, block_rows = out
    n_samples = len(ignored)
    kinds = np.zeros(16, np.int64)
    genotype_of = np.full(16, -2, np.int8)  # of each kind of call; -2 where it is refused
    genotype_of[: HALF + 1] = (0, 1, 2, 0, 1, 2, -1, -1)
    as_ref = np.array([-2, 0, -1], np.int8)  # by policy
    as_alt = np.array([-2, 2, -1], np.int8)
    n_haploid_missing = 0
    calls = np.empty(4 * RUN, np.uint8)
    tabs = np.empty(10, np.int64)  # tabs[c] is the start of column c
    n_sites = 0
    n_lines = 0
    n_dropped = 0
    n_blocks = 0
    in_block = np.full(16, -1, np.int8)  # of each kind of call, in a reference block
    in_block[WITH_SLASH] = in_block[WITH_PIPE] = 0
    other_kinds, other_counts = np.zeros(16, np.int64), np.zeros(N_COUNTS, np.int64)
    other_error, other_removed = np.zeros(5, np.int64), np.zeros(n_samples, np.int64)
    p = 0
    while p < size:
        start = p
        n_lines += 1
        if text[p] == NEWLINE:
            p += 1
            continue
        error[1] = n_lines - 1
        error[2] = start
        if text[p] == HASH:
            error[0] = HEADER_LINE
            return n_sites, n_lines, n_dropped, n_blocks
        counts[RECORDS] += 1
        tabs[0] = p
        n_starts = 1
        while n_starts < 10 and text[p] != NEWLINE:
            if text[p] == TAB:
                tabs[n_starts] = p + 1
                n_starts += 1
            p += 1
        if n_starts < 10:
            error[0] = BAD_COLUMNS
            error[3] = n_starts
            return n_sites, n_lines, n_dropped, n_blocks
        for column in range(5):
            if tabs[column + 1] - tabs[column] == 1:
                error[0] = EMPTY_COLUMN
                error[3] = column
                return n_sites, n_lines, n_dropped, n_blocks
        alt_end = _without_any_other(text, tabs[4], tabs[5] - 1)
        kind = REFERENCE_BLOCK
        if alt_end > tabs[4]:
            kind = _classify(text, tabs[3], tabs[4] - 1, tabs[4], alt_end)
        pos = _read_pos(text, tabs[1], tabs[2] - 1)
        if pos == 0:  # a telomere: valid, but without a base
            kind = UNPLACED
        if pos < 0 or pos >= 2**31:
            error[0] = BAD_POS
            error[2], error[3] = tabs[1], tabs[2] - 1
            return n_sites, n_lines, n_dropped, n_blocks
        gt_index = _find_key(text, tabs[8], tabs[9] - 1, KEY_GT)
        one_allele = kind == NO_ALT and gt_index >= 0
        one_allele = one_allele and tabs[5] - tabs[4] == 2 and text[tabs[4]] == DOT
        one_allele = one_allele and tabs[4] - tabs[3] == 2 and _is_base(text[tabs[3]])
        until = np.int64(0)
        if kind == NO_ALT and gt_index >= 0 and alt_end - tabs[4] == 1 and text[tabs[4]] == DOT:
            until = _read_end(text, tabs[7], tabs[8] - 1)
            if until > pos + tabs[4] - tabs[3] - 2:  # a block of a gVCF without `<NON_REF>`
                kind, one_allele = REFERENCE_BLOCK, False
        if kind == SNPS or one_allele:
            if not any_filter and not _passes(text, tabs[6], tabs[7] - 1, accepted, accepted_ends):
                kind = FILTERED
            elif limits[MIN_QUAL] > 0 and _read_number(text, tabs[5]) < limits[MIN_QUAL]:
                kind = LOW_QUAL
            else:
                kind = SNPS
        if kind != SNPS:
            n_columns, p = count_columns(text, start)
            if n_columns != 9 + n_samples:
                error[0] = BAD_COLUMNS
                error[3] = n_columns
                return n_sites, n_lines, n_dropped, n_blocks
            counts[kind] += 1
            p += 1
            if kind == REFERENCE_BLOCK:
                if gt_index < 0 or not (
                    any_filter or _passes(text, tabs[6], tabs[7] - 1, accepted, accepted_ends)
                ):
                    continue
                row = block_rows[n_blocks]
                policy = _policy_of(text, tabs[0], tabs[1] - 1, haploid, names, ends, policies)
                policy &= ~ANY_PLOIDY
                in_block[HAPLOID_REF] = 0 if policy == HAPLOID_DIPLOIDIZE else -1
                other_kinds[:] = 0
                if not _decode_row(
                    text,
                    tabs[9],
                    size,
                    ignored,
                    gt_index,
                    False,
                    in_block,
                    calls,
                    row,
                    other_kinds,
                    other_error,
                ):
                    continue
                counts[ODD_BLOCK_CALLS] += other_kinds[POLYPLOID] + other_kinds[BROKEN]
                if policy != HAPLOID_DIPLOIDIZE:
                    counts[ODD_BLOCK_CALLS] += other_kinds[HAPLOID_REF] + other_kinds[HAPLOID_ALT]
                first, last = tabs[8], tabs[9] - 1
                dp_index = _find_key(text, first, last, KEY_MIN_DP)
                if dp_index < 0:
                    dp_index = _find_key(text, first, last, KEY_DP)
                gq_index = _find_key(text, first, last, KEY_GQ) if limits[MIN_GQ] > 0 else -1
                if dp_index >= 0 or gq_index >= 0:
                    _limit_calls(
                        text,
                        tabs[9],
                        row,
                        gt_index,
                        gq_index,
                        dp_index,
                        -1,
                        -1,
                        -1,
                        limits,
                        other_counts,
                        other_removed,
                    )
                blocks[n_blocks, BLOCK_CHROM] = tabs[0]
                blocks[n_blocks, BLOCK_CHROM_END] = tabs[1] - 1
                blocks[n_blocks, BLOCK_FROM] = pos - 1
                until = _read_end(text, tabs[7], tabs[8] - 1)
                if until < pos:
                    until = pos + tabs[4] - tabs[3] - 2
                blocks[n_blocks, BLOCK_TO] = min(until, 2**31)
                n_blocks += 1
            elif kind != UNPLACED:
                dropped[n_dropped, AT_CHROM], dropped[n_dropped, AT_CHROM_END] = (
                    tabs[0],
                    tabs[1] - 1,
                )
                dropped[n_dropped, AT_POS] = pos
                dropped[n_dropped, AT_SIZE] = tabs[4] - 1 - tabs[3]
                dropped[n_dropped, AT_FILTER] = tabs[6]
                dropped[n_dropped, AT_FILTER_END] = tabs[7] - 1 if kind == FILTERED else tabs[6]
                n_dropped += 1
            continue
        if gt_index < 0:
            error[0] = NO_GT
            error[2], error[3] = tabs[8], tabs[9] - 1
            return n_sites, n_lines, n_dropped, n_blocks
        gt_alone = tabs[9] - tabs[8] == 3
        row = genotypes[n_sites]
        policy = _policy_of(text, tabs[0], tabs[1] - 1, haploid, names, ends, policies)
        genotype_of[POLYPLOID] = -1 if policy & ANY_PLOIDY else -2
        policy &= ~ANY_PLOIDY
        genotype_of[HAPLOID_REF], genotype_of[HAPLOID_ALT] = as_ref[policy], as_alt[policy]
        # An allele that is neither of the two is missing where the record has one for it.
        genotype_of[HIGH_ALLELE] = -1 if alt_end < tabs[5] - 1 else -2
        n_haploid_before = kinds[HAPLOID_REF] + kinds[HAPLOID_ALT]
        if not _decode_row(
            text, p, size, ignored, gt_index, gt_alone, genotype_of, calls, row, kinds, error
        ):
            # A wrong number of columns explains a strange call better than the call does.
            n_columns, p = count_columns(text, start)
            if n_columns != 9 + n_samples:
                error[0] = BAD_COLUMNS
                error[3] = n_columns
            return n_sites, n_lines, n_dropped, n_blocks
        calls_start = p
        if one_allele and not _require_ref(text, p, gt_index, row, error):
            return n_sites, n_lines, n_dropped, n_blocks
        p = error[2] + 1
        counts[ONE_ALLELE] += one_allele
        if not gt_alone:
            first, last = tabs[8], tabs[9] - 1
            dp_index = _find_key(text, first, last, KEY_DP)
            gq_index = _find_key(text, first, last, KEY_GQ) if limits[MIN_GQ] > 0 else -1
            ad_index = _find_key(text, first, last, KEY_AD) if limits[MIN_BALANCE] > 0 else -1
            any_limit = limits[MIN_GQ:].any()
            if gt_index == 0 and dp_index > 0 and not any_limit:
                _remove_without_depth(
                    text,
                    calls_start,
                    p - 1,
                    row,
                    dp_index,
                    _find_key(text, first, last, KEY_GP),
                    _find_key(text, first, last, KEY_DS),
                    counts,
                    removed,
                )
            elif dp_index >= 0 or gq_index >= 0 or ad_index >= 0:
                # Without a limit only calls 0/0 are removed.
                limited = any_limit and not _has_ref_alone(row)
                _limit_calls(
                    text,
                    calls_start,
                    row,
                    gt_index,
                    gq_index,
                    dp_index,
                    ad_index,
                    _find_key(text, first, last, KEY_GP),
                    _find_key(text, first, last, KEY_DS),
                    limits,
                    counts,
                    removed,
                )
                counts[MADE_REFERENCE] += limited and _has_ref_alone(row)
        if policy == HAPLOID_MISSING:
            n_haploid_missing += kinds[HAPLOID_REF] + kinds[HAPLOID_ALT] - n_haploid_before
        counts[SNPS] += 1
        fields[n_sites, LINE] = n_lines - 1
        fields[n_sites, CHROM_START], fields[n_sites, CHROM_END] = tabs[0], tabs[1] - 1
        if n_sites > 0:
            before, end = fields[n_sites - 1, CHROM_START], fields[n_sites - 1, CHROM_END]
            if _same_bytes(text, before, end, tabs[0], tabs[1] - 1):
                fields[n_sites, CHROM_START], fields[n_sites, CHROM_END] = before, end
        fields[n_sites, POS] = pos
        fields[n_sites, ID_START], fields[n_sites, ID_END] = tabs[2], tabs[3] - 1
        fields[n_sites, REF], fields[n_sites, ALT] = tabs[3], tabs[4]
        n_sites += 1
    n_haploid = kinds[HAPLOID_REF] + kinds[HAPLOID_ALT]
    counts[HAPLOID_CALLS] += n_haploid
    counts[HALF_CALLS] += kinds[HALF]
    counts[MISSING_CALLS] += kinds[UNKNOWN] + kinds[HALF] + kinds[HIGH_ALLELE]
    counts[MISSING_CALLS] += n_haploid_missing + kinds[POLYPLOID] + kinds[LEFT_OUT]
    counts[UNPHASED] += kinds[WITH_SLASH : WITH_SLASH + 3].sum()
    counts[PHASED] += kinds[WITH_PIPE : WITH_PIPE + 3].sum()
    return n_sites, n_lines, n_dropped, n_blocks
