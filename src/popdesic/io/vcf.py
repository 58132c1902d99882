"""Read biallelic SNP genotypes from VCF text (plain, gzip, bgzip) and BCF, in bounded memory.

Text is split into buffers of whole lines, which `vcf_text` decodes in parallel, and BCF into
buffers of whole records for `bcf_records` (by `bcf`). Both formats follow the same rules and give
the same error sentences. Dropped and counted: multiallelic sites (never split), indels, symbolic
alleles, records at POS 0 (a telomere). Missing: half-calls and a single '.'. Haploid calls follow a
policy. Errors: calls of more than two alleles, dosages, anything malformed.

The compiled half is imported on first use: jobs that read no VCF do not need it.
"""

import operator
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from .batches import (
    CHUNK_BYTES,
    DecodeCounts,
    DecodedRecords,
    HaploidPolicies,
    LeftOut,
    SiteBatch,
    as_samples,
    joined_names,
    unusable_name,
)
from .bgzf import BgzfBlocks, Parts, Plain, in_order
from .call_filters import CallFilters
from .genotypes import pack_bed
from .layers import layers_each, most_layers
from .vcf_errors import record_error
from .vcf_header import LONGEST_RECORD, VcfHeader, read_head


def stream_sites(
    path: Path | str,
    *,
    haploid: str | Mapping[str, str] = "error",
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    left_out: LeftOut = LeftOut(),  # noqa: B008 (a tuple)
    counts: DecodeCounts | None = None,
    threads: int = 1,
    _chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[SiteBatch]:
    """Decode the biallelic SNPs of a VCF or BCF file, in file order.

    Parameters
    ----------
    haploid : {'error', 'diploidize', 'missing'}, or a mapping of contigs to them
        How to read a call of one allele: as an error, as homozygous for it, or as missing. In a
        mapping, ``default`` (or else 'error') applies to the contigs that it does not name.
    filters : CallFilters
        Records and calls that are not read for what the file says about them. Without depth (DP is
        0), a homozygous REF call is missing whatever the limits.
    left_out : LeftOut
        Samples and contigs that never enter the study: calls of another ploidy are missing there.
    counts : DecodeCounts, optional
        Updated as batches are yielded, and complete when the iterator ends.
    threads : int
        1 decodes in the calling thread; more decode ahead of the caller in a thread pool.

    Raises
    ------
    UserError
        A file or record breaks the rules; the sentence names line and sample.
    """
    policies = HaploidPolicies.parse(haploid, left_out)
    path = Path(path)
    counts = DecodeCounts() if counts is None else counts
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    ahead = 2 * threads  # enough that no worker waits while the caller writes
    try:
        header, rest, pieces = read_head(path, _chunk_bytes)
        pieces = chain([Plain(rest)], pieces)
        if header.kind == "bcf":
            from .bcf import stream_bcf

            contents = in_order(operator.methodcaller("read"), pieces, pool, ahead)
            yield from stream_bcf(header, contents, policies, filters, counts, pool, ahead)
        else:
            yield from _stream_text(header, pieces, policies, filters, counts, pool, ahead)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


# --- text -----------------------------------------------------------------------------------


def _stream_text(
    header: VcfHeader,
    pieces: Iterable[BgzfBlocks | Plain],
    haploid: HaploidPolicies,
    filters: CallFilters,
    counts: DecodeCounts,
    pool: Executor | None,
    ahead: int,
) -> Iterator[SiteBatch]:
    decode = partial(
        _decode_piece,
        header=header,
        ignored=haploid.ignored(header.samples),
        haploid=haploid,
        filters=filters,
        memory=_Memory(),
    )
    n_lines_before = header.n_lines
    for decoded in in_order(decode, _joined(pieces), pool, ahead):
        if decoded is None:  # no line ends in the piece
            continue
        value, batch, here, n_lines, error = decoded
        counts.merge(here)
        if error[0]:
            code, line, _, end, sample, _ = error.tolist()
            raise record_error(
                f"{header.path}, line {n_lines_before + 1 + line}",
                code,
                value=value,
                number=end,
                samples=header.samples,
                sample=sample % len(header.samples),
                any_gt=counts.sites > 0,
            )
        batch.line += n_lines_before + 1
        n_lines_before += n_lines
        if len(batch.chrom):
            yield batch


@dataclass(frozen=True)
class _Piece:
    """A piece of text, and how its ends pass between the threads that decode neighbours.

    `before` will hold the begin of a line that the previous piece ends with, and `after` that of
    this one. `content` is None for the end of the file.
    """

    content: BgzfBlocks | Plain | None
    before: Future[Parts]
    after: Future[Parts]


def _joined(pieces: Iterable[BgzfBlocks | Plain]) -> Iterator[_Piece]:
    before: Future[Parts] = Future()
    before.set_result([])
    for content in chain(pieces, [None]):
        after: Future[Parts] = Future()
        yield _Piece(content, before, after)
        before = after


class _Memory(threading.local):
    """Arrays that a thread uses again for all its pieces: fresh ones cost a page fault per 4 KB."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.room = 1 << 16  # bytes before a piece, for the begin of its first line
        self.genotypes = np.empty(0, np.int8)

    def of_text(self, size: int) -> bytearray:
        """Return at least `size` bytes of any content, the same as before if there are as many."""
        if len(self.text) < size:
            self.text = bytearray(size)
        return self.text

    def of_genotypes(self, n_sites: int, n_samples: int) -> np.ndarray:
        """Return (n_sites, n_samples) int8 of any content."""
        if len(self.genotypes) < n_sites * n_samples:
            self.genotypes = np.empty(n_sites * n_samples, np.int8)
        return self.genotypes[: n_sites * n_samples].reshape(n_sites, n_samples)


def _decode_piece(
    piece: _Piece,
    header: VcfHeader,
    ignored: np.ndarray,
    haploid: HaploidPolicies,
    filters: CallFilters,
    memory: _Memory,
):
    """Decode the lines that end in a piece; None if there are none.

    The bytes after its last line are handed over before those of the previous piece are waited
    for, so that a thread waits for a neighbour's decompression only. Pieces must begin in order.

    Returns
    -------
    as `_decode_lines`
    """
    from .vcf_text_cpu import PAD

    try:
        start = memory.room
        text, end = _read_text(piece.content, start, memory)
        view = memoryview(text)
        cut = text.rfind(b"\n", start, end) + 1
        if not cut:
            pending = [*piece.before.result(), bytes(view[start:end])]
            if sum(map(len, pending)) > LONGEST_RECORD:
                raise UserError(
                    f"{header.path} has a line longer than the limit of {LONGEST_RECORD} bytes; "
                    "the file is damaged, so copy or write it again."
                )
            piece.after.set_result(pending)
            return None
        piece.after.set_result([bytes(view[cut:end])])
    except BaseException as error:
        piece.after.set_exception(error)
        raise
    pending = piece.before.result()
    n_before = sum(map(len, pending))
    if piece.content is None and n_before == 0:
        return None  # the last line has its end
    if n_before > start:
        memory.room = n_before
        lines = bytes(view[start:cut])
        start, cut = n_before, cut - start + n_before
        text = memory.of_text(cut + PAD)
        view = memoryview(text)
        view[start:cut] = lines
    view[start - n_before : start] = b"".join(pending)
    view[cut : cut + PAD] = bytes(PAD)
    start -= n_before
    content = np.frombuffer(text, np.uint8, cut + PAD - start, start)
    decode = _decode_lines if haploid.kinds == (2,) else _decode_polyploids
    if not filters.classes:
        decoded = decode(content, cut - start, ignored, haploid, filters, memory)
        return _with_written_call(decoded, content) if haploid.kinds != (2,) else decoded
    from .open_records import open_vcf_lines, settle_opened

    lines, size, opened = open_vcf_lines(content, cut - start, filters.classes, PAD)
    value, batch, counts, _, error = decode(lines, size, ignored, haploid, filters, memory)
    if error[0]:
        error[1] = opened.origin[error[1]]
    else:
        settle_opened(opened, batch, counts, filters)
    decoded = value, batch, counts, opened.n_records, error
    return _with_written_call(decoded, content) if error[0] else decoded


def _with_written_call(decoded: tuple, content: np.ndarray) -> tuple:
    """What `_decode_lines` returned, with a call that is refused as the file has it."""
    from .vcf_text_cpu import BAD_COLUMNS

    value, batch, counts, n_lines, error = decoded
    if not 0 < error[0] < BAD_COLUMNS:
        return decoded
    fields = content.tobytes().split(b"\n")[error[1]].rstrip(b"\r").split(b"\t")
    sample = error[4] % (len(fields) - 9)
    found = fields[9 + sample].split(b":")[fields[8].split(b":").index(b"GT")]
    mark = value[: value.rfind(b"!") + 1]  # of `layer_text_cpu`
    return mark + found, batch, counts, n_lines, error


def _read_text(
    content: BgzfBlocks | Plain | None, start: int, memory: _Memory
) -> tuple[bytearray, int]:
    """Read a piece to memory from byte `start` on, a newline for None; return memory and end."""
    from .vcf_text_cpu import PAD

    if isinstance(content, BgzfBlocks) and content.is_usual():
        end = start + content.size
        text = memory.of_text(end + PAD)
        if content.read_into(memoryview(text)[start:end]):
            return text, end
    parts = [b"\n"] if content is None else content.read()
    end = start + sum(map(len, parts))
    text = memory.of_text(end + PAD)
    memoryview(text)[start:end] = b"".join(parts)
    return text, end


def _decode_lines(
    text: np.ndarray,
    size: int,
    ignored: np.ndarray,
    haploid: HaploidPolicies,
    filters: CallFilters,
    memory: _Memory,
):
    """Decode whole lines, the first `size` of (size + PAD) bytes.

    Returns
    -------
    (offending value, batch, counts, number of lines, error)
    """
    from . import vcf_text_cpu as kernel

    n_samples = len(ignored)
    genotypes = memory.of_genotypes(kernel.row_capacity(size, n_samples), n_samples)
    widths = kernel.N_FIELDS, kernel.N_DROPPED, kernel.N_BLOCK
    n_dropped = kernel.dropped_capacity(size, n_samples)
    out = DecodedRecords.room(genotypes, n_dropped, kernel.N_COUNTS, widths)
    n_sites, n_lines, n_dropped, n_blocks = kernel.decode_records(
        text,
        size,
        ignored,
        haploid.default,
        *haploid.arrays(),
        *filters.names(),
        filters.any_filter,
        filters.limits(),
        out,
    )
    error = out.error
    strange = error[0] or out.counts[kernel.ODD_BLOCK_CALLS]
    if strange and b"\r\n" in (raw := text[:size].tobytes()):
        # CRLF line ends matter only if a call cannot be read: then retry with LF.
        raw = raw.replace(b"\r\n", b"\n")
        text = np.frombuffer(bytearray(raw + bytes(kernel.PAD)), np.uint8)  # writable, as above
        return _decode_lines(text, len(raw), ignored, haploid, filters, memory)
    table = out.fields[:n_sites]
    try:
        chrom, site_id = _names(text, table)
    except ValueError:
        error[:5] = _first_unusable_name(text, table)
        chrom = site_id = []
    batch = SiteBatch(
        chrom=chrom,
        pos=table[:, kernel.POS].copy(),
        id=site_id,
        ref=list(text[table[:, kernel.REF]].tobytes().decode()),
        alt=list(text[table[:, kernel.ALT]].tobytes().decode()),
        rows=pack_bed(genotypes[:n_sites]),
        n_samples=n_samples,
        line=table[:, kernel.LINE].copy(),
    )
    value = text[error[2] : error[3]].tobytes() if error[0] else b""
    counts = DecodeCounts()
    counts.add(out.counts)
    counts.add_removed(out.removed)
    _note_dropped(text, out.dropped[:n_dropped], filters, counts)
    _note_blocks(text, out.blocks[:n_blocks], out.block_rows[:n_blocks], counts)
    return value, batch, counts, n_lines, error


def _decode_polyploids(
    text: np.ndarray,
    size: int,
    ignored: np.ndarray,
    haploid: HaploidPolicies,
    filters: CallFilters,
    memory: _Memory,
):
    """As `_decode_lines`, of polyploids: rows have all layers, counts are those of samples."""
    from .layer_text_cpu import widen_lines, widened_size
    from .vcf_text_cpu import BAD_COLUMNS, PAD

    ploidy, layers = haploid.of_samples(len(ignored)), most_layers(haploid.kinds)
    sizes = layers_each(ploidy, haploid.kinds)
    wide = np.empty(widened_size(size, layers) + PAD, np.uint8)
    names = joined_names(sorted(haploid.left_out.contigs))
    wide_size, n_columns = widen_lines(text, size, ignored, ploidy, sizes, layers, *names, wide)
    wide[wide_size : wide_size + PAD] = 0
    of_layers = np.tile(ignored, layers)
    value, batch, counts, n_lines, error = _decode_lines(
        wide[: wide_size + PAD], wide_size, of_layers, haploid, filters, memory
    )
    if not error[0] and n_columns:
        error[:4] = BAD_COLUMNS, n_lines, 0, n_columns
    if error[0]:
        return value, batch, counts, n_lines, error
    return value, *as_samples(batch, counts, haploid.kinds, ploidy), n_lines, error


def _note_dropped(
    text: np.ndarray, dropped: np.ndarray, filters: CallFilters, counts: DecodeCounts
) -> None:
    """Count the filters that dropped records, by name, and note where dropped records lie."""
    from . import vcf_text_cpu as kernel

    if not len(dropped):
        return
    view = memoryview(text)

    def names(first: int) -> list[str]:
        ranges = dropped[:, first : first + 2].tolist()
        return [str(view[start:end], "utf-8", "replace") for start, end in ranges]

    for name, number in Counter(names(kernel.AT_FILTER)).items():
        counts.filters.update(dict.fromkeys(filters.failed(name), number))
    counts.add_dropped(
        names(kernel.AT_CHROM), dropped[:, kernel.AT_POS], dropped[:, kernel.AT_SIZE]
    )


def _note_blocks(
    text: np.ndarray, blocks: np.ndarray, rows: np.ndarray, counts: DecodeCounts
) -> None:
    """Note where reference blocks say that a sample is homozygous REF."""
    from . import vcf_text_cpu as kernel

    block, sample = np.nonzero(rows == 0)
    if not len(block):
        return
    view = memoryview(text)
    ranges = blocks[:, : kernel.BLOCK_CHROM_END + 1].tolist()
    names = [str(view[start:end], "utf-8", "replace") for start, end in ranges]
    start, end = blocks[:, kernel.BLOCK_FROM], blocks[:, kernel.BLOCK_TO]
    chrom = np.array(names, object)[block]
    counts.blocks.append((chrom, start[block], end[block], sample))


def _names(text: np.ndarray, table: np.ndarray) -> tuple[list[str], list[str]]:
    """Return CHROM and ID of each row of the site table.

    Raises
    ------
    ValueError
        A name is not UTF-8 (UnicodeDecodeError is a ValueError) or cannot be in a table.
    """
    from . import vcf_text_cpu as kernel

    view = memoryview(text)
    starts, ends = table[:, kernel.CHROM_START], table[:, kernel.CHROM_END]
    changes = np.flatnonzero(
        np.diff(starts, prepend=-1)
    )  # consecutive sites of a contig share a range
    sizes = np.diff(changes, append=len(table)).tolist()
    chrom: list[str] = []
    for start, end, size in zip(starts[changes], ends[changes], sizes, strict=True):
        chrom += [str(view[start:end], "utf-8")] * size
    starts, ends = table[:, kernel.ID_START], table[:, kernel.ID_END]
    if (ends - starts == 1).all() and (text[starts] == ord(".")).all():
        site_id = ["."] * len(table)  # no identifiers in the file: the common case
    else:
        ranges = zip(starts.tolist(), ends.tolist(), strict=True)
        site_id = [str(view[start:end], "utf-8") for start, end in ranges]
    if any(unusable_name("".join(names)) for names in (dict.fromkeys(chrom), site_id)):
        raise ValueError("a table cannot hold this name")
    return chrom, site_id


def _first_unusable_name(text: np.ndarray, table: np.ndarray) -> tuple[int, int, int, int, int]:
    """Return the error values of the first CHROM or ID that `_names` rejects."""
    from . import vcf_text_cpu as kernel

    for row in table:
        for column in (kernel.CHROM_START, kernel.ID_START):
            start, end = row[column], row[column + 1]
            try:
                name = text[start:end].tobytes().decode("utf-8")
            except UnicodeDecodeError:
                return kernel.NOT_UTF8, row[kernel.LINE], start, end, 0
            if unusable_name(name):
                return kernel.BAD_NAME, row[kernel.LINE], start, end, 0
    raise AssertionError("every name is usable")
