"""Read biallelic SNP genotypes from BCF, by the rules of `popdesic.io.vcf`.

This module splits the decompressed bytes into records; `bcf_records` decodes them and checks every
size that a record states before using it. (htslib trusts these sizes: some damaged records crash
the process, and a header with a zero byte returns the first sample's genotypes for all samples.)
"""

import re
import struct
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from functools import partial

import numpy as np

from ..core.errors import UserError
from . import bcf_records_cpu as kernel
from . import vcf_text_cpu as codes
from .batches import (
    UNKNOWN_ALLELE,
    DecodeCounts,
    DecodedRecords,
    HaploidPolicies,
    SiteBatch,
    as_samples,
    unusable_name,
)
from .bgzf import in_order
from .call_filters import CallFilters
from .genotypes import pack_bed
from .layer_bcf import other_call, widen_records
from .layers import layers_each, most_layers
from .open_bcf import open_bcf_records, written_call
from .open_records import settle_opened
from .vcf_errors import record_error, show
from .vcf_header import LONGEST_RECORD, VcfHeader

#: Upper bound of a contig's or key's index: names are looked up in an array of that size.
MOST_NAMES = 1 << 24
# Fields of calls in the order of `bcf_records.decode_records`.
CALL_FIELDS = ("GT", "GQ", "DP", "AD", "MIN_DP", "GP", "DS")

#: Header lines that define contigs and keys, and their fields: a value is quoted, or ends at a
#: comma or '>'.
_LINE = re.compile(r"^##(contig|FILTER|INFO|FORMAT)=<(.*)$", re.MULTILINE)
_FIELD = re.compile(r'([^=,<>"]+)=("(?:[^"\\]|\\.)*"|[^,>]*)(?:,|>|$)')

#: Type of a call in an error that is text (`layer_text_cpu`).
TEXT = -1

_DAMAGE = {
    kernel.LENGTHS: "its stated lengths do not match its content",
    kernel.CONTIG: "its contig is not in the header",
    kernel.STRINGS: "its identifier or an allele is not text",
    kernel.VALUES: "a value does not match its stated type or length",
    kernel.NO_ALLELES: "it has no alleles",
}


def stream_bcf(
    header: VcfHeader,
    pieces: Iterable[list[bytes]],
    haploid: HaploidPolicies,
    filters: CallFilters,
    counts: DecodeCounts,
    pool: Executor | None,
    ahead: int,
) -> Iterator[SiteBatch]:
    """Decode the biallelic SNPs of a BCF file; see `popdesic.io.vcf.stream_sites`."""
    contigs, keys = read_dictionaries(header)
    policies = np.full(max(contigs, default=-1) + 1, -1, np.int64)
    for index, name in contigs.items():
        policies[index] = haploid.of(name)
    decode = partial(
        _decode,
        contigs=contigs,
        policies=policies,
        keys=keys,
        filters=filters,
        ignored=haploid.ignored(header.samples),
        haploid=haploid,
    )
    n_before = 0
    for data, batch, here, error in in_order(decode, _whole_records(header, pieces), pool, ahead):
        counts.merge(here)
        if error[0]:
            where = f"{header.path}, record {n_before + 1 + error[1]}"
            raise _error(where, error.tolist(), data, header, keys, any_gt=counts.sites > 0)
        batch.line += n_before + 1
        n_before += here.records
        if len(batch.chrom):
            yield batch


def read_dictionaries(header: VcfHeader) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names of contigs, and those of keys and filters, by the index that records use.

    The index is the line's IDX field or else the next free number. FILTER, INFO and FORMAT share
    one dictionary, which starts with PASS.

    Raises
    ------
    UserError
        An index is not a number or given twice, or a contig name cannot be written to a table.
    """
    contigs: dict[int, str] = {}
    keys: dict[int, str] = {0: "PASS"}
    known: dict[str, set[str]] = {"contig": set(), "key": {"PASS"}}
    ends = {"contig": 0, "key": 1}
    for line in _LINE.finditer(header.text):
        fields = dict(_FIELD.findall(line[2]))
        kind, table = ("contig", contigs) if line[1] == "contig" else ("key", keys)
        name = fields.get("ID")
        if name is None or name in known[kind]:  # INFO and FORMAT may share a key
            continue
        text = fields.get("IDX", str(ends[kind]))
        index = int(text) if re.fullmatch("[0-9]{1,9}", text) else MOST_NAMES
        if index >= MOST_NAMES or index in table:
            raise UserError(
                f"{header.path}: the index IDX={show(text)} of {show(name)} in the header is "
                f"{'given twice' if index in table else 'not a usable number'}; write the file "
                "again with bcftools view."
            )
        if kind == "contig" and unusable_name(name):
            raise UserError(
                f"{header.path}: the contig name {show(name)} contains a tab or a line end; rename "
                "the contig, for example with bcftools annotate --rename-chrs."
            )
        known[kind].add(name)
        table[index] = name
        ends[kind] = max(ends[kind], index + 1)
    return contigs, keys


def _whole_records(header: VcfHeader, pieces: Iterable[list[bytes]]) -> Iterator[tuple]:
    """Regroup pieces so that each ends at the end of a record; yield (bytes, records)."""
    pending: list[bytes] = []
    size, needed = 0, kernel.LENGTHS_BYTES
    n_before = 0
    for parts in pieces:
        pending += parts
        size += sum(map(len, parts))
        if size < needed:
            continue
        data = np.frombuffer(b"".join(pending), np.uint8)
        end, n_records, needed = kernel.split_records(data, size)
        if n_records:
            yield data[:end], n_records
        n_before += n_records
        if needed > LONGEST_RECORD:
            raise UserError(
                f"{header.path}, record {n_before + 1}: the record states a length of {needed} "
                f"bytes, above the limit of {LONGEST_RECORD}; the file is damaged, so copy or "
                "write it again."
            )
        pending, size = [data[end:].tobytes()], size - end
    if size:
        raise UserError(
            f"{header.path}, record {n_before + 1}: the file is cut short or damaged (it ends "
            "within the record); copy or write it again."
        )


def _decode(
    item: tuple[np.ndarray, int],
    contigs: dict[int, str],
    policies: np.ndarray,
    keys: dict[int, str],
    filters: CallFilters,
    ignored: np.ndarray,
    haploid: HaploidPolicies,
):
    """Decode whole records; return (bytes, batch, counts, error).

    Of polyploids rows have all layers, and counts are those of samples.
    """
    (data, n_records), n_samples = item, len(ignored)
    opened = None
    if filters.classes:
        data, n_records, opened = open_bcf_records(data, n_samples, contigs, keys, filters.classes)
    index_of = {name: index for index, name in reversed(keys.items())}
    n_columns, gt_key = n_samples, index_of.get("GT", -1)
    if haploid.kinds != (2,):
        ploidy, layers = haploid.of_samples(n_samples), most_layers(haploid.kinds)
        sizes = layers_each(ploidy, haploid.kinds)
        data = widen_records(data, ploidy, sizes, layers, gt_key)
        n_columns = n_samples * layers
    capacity = kernel.row_capacity(len(data), n_records, n_columns)
    genotypes = np.empty((capacity, n_columns), np.int8)
    widths = kernel.N_FIELDS, kernel.N_DROPPED, kernel.N_BLOCK
    out = DecodedRecords.room(genotypes, n_records, codes.N_COUNTS, widths)
    accepted = np.zeros(0, np.bool_)  # any
    if not filters.any_filter:
        accepted = np.zeros(max(keys) + 1, np.bool_)
        for index, name in keys.items():
            accepted[index] = not filters.failed(name)
    n_sites, n_dropped, n_blocks = kernel.decode_records(
        data,
        len(data),
        np.tile(ignored, n_columns // n_samples),
        policies,
        np.array([index_of.get(name, -1) for name in CALL_FIELDS], np.int64),
        accepted,
        filters.limits(),
        out,
    )
    table, error = out.fields[:n_sites], out.error
    ids = _identifiers(data, table, error)
    offsets = table[:, kernel.ALT]
    alt = np.where(offsets < 0, ord(UNKNOWN_ALLELE), data[np.maximum(offsets, 0)])
    batch = SiteBatch(
        chrom=[contigs[index] for index in table[:, kernel.CHROM].tolist()],
        pos=table[:, kernel.POS].copy(),
        id=ids,
        ref=list(data[table[:, kernel.REF]].tobytes().decode()),
        alt=list(alt.astype(np.uint8).tobytes().decode()),
        rows=pack_bed(genotypes[:n_sites]),
        n_samples=n_columns,
        line=table[:, kernel.RECORD].copy(),
    )
    counts = DecodeCounts()
    counts.add(out.counts)
    counts.add_removed(out.removed)
    dropped = out.dropped[:n_dropped]
    for at in dropped[dropped[:, kernel.AT_FILTER] >= 0, kernel.AT_FILTER].tolist():
        names = [keys.get(key, str(key)) for key in kernel.read_ints(data, at)]
        counts.filters.update(filters.failed(";".join(names)))
    where = [contigs[index] for index in dropped[:, kernel.AT_CHROM].tolist()]
    counts.add_dropped(where, dropped[:, kernel.AT_POS], dropped[:, kernel.AT_SIZE])
    block, sample = np.nonzero(out.block_rows[:n_blocks] == 0)
    if len(block):
        which = out.blocks[block]
        chrom = np.array([contigs[k] for k in which[:, kernel.BLOCK_CONTIG].tolist()], object)
        counts.blocks.append(
            (chrom, which[:, kernel.BLOCK_FROM], which[:, kernel.BLOCK_TO], sample)
        )
    if haploid.kinds != (2,) and not error[0]:
        batch, counts = as_samples(batch, counts, haploid.kinds, ploidy)
    elif haploid.kinds != (2,):
        error[4] %= n_samples
        if 0 < error[0] < codes.BAD_COLUMNS:  # a call: as the file has it
            number = error[1] if opened is None else opened.origin[error[1]]
            call, error[5] = other_call(item[0], number, error[4], n_samples, gt_key)
            mark = f"!{ploidy[error[4]]}!" if error[0] == codes.POLYPLOID else ""
            text = f"{mark}{_show_call(call, error[5])}".encode()
            data, error[2:4], error[5] = np.frombuffer(text, np.uint8), (0, len(text)), TEXT
    if opened is not None and error[0]:
        error[1] = opened.origin[error[1]]
        if error[0] < codes.BAD_COLUMNS and error[5] != TEXT:  # a call: as the file has it
            records = item[0], n_samples, contigs, keys
            data, error[5] = written_call(*records, int(error[1]), int(error[4]))
            error[2:4] = 0, len(data)
    elif opened is not None:
        settle_opened(opened, batch, counts, filters)
    return data, batch, counts, error


def _identifiers(data: np.ndarray, table: np.ndarray, error: np.ndarray) -> list[str]:
    """Return the ID of each row of the site table, up to the first unusable one (see `error`)."""
    view = memoryview(data)
    starts, ends = table[:, kernel.ID_START].tolist(), table[:, kernel.ID_END].tolist()
    raw = [bytes(view[start:end]) for start, end in zip(starts, ends, strict=True)]
    try:
        ids = b"\n".join(raw).decode("utf-8").split("\n") if raw else []
        if len(ids) == len(raw) and not unusable_name("".join(ids)):  # almost always
            return [name or "." for name in ids]
    except UnicodeDecodeError:
        pass
    ids = []
    for row, value in enumerate(raw):
        try:
            name = value.decode("utf-8") or "."
        except UnicodeDecodeError:
            name = None
        if name is None or unusable_name(name):
            code = codes.NOT_UTF8 if name is None else codes.BAD_NAME
            error[:4] = code, table[row, kernel.RECORD], starts[row], ends[row]
            break
        ids.append(name)
    return ids


def _error(
    where: str,
    error: list[int],
    data: np.ndarray,
    header: VcfHeader,
    keys: dict[int, str],
    any_gt: bool,
) -> UserError:
    """Return the UserError for an error of `bcf_records`."""
    code, _, first, last, sample, kind = error
    if code == kernel.DAMAGED:
        reason = _DAMAGE.get(first, f"it has {last} samples where the header has")
        if first == kernel.N_SAMPLES:
            reason += f" {len(header.samples)}"
        return UserError(
            f"{where}: the record is damaged ({reason}); copy or write the file again."
        )
    if code in (kernel.EMPTY_GT, kernel.STRANGE_GT):
        fault = "holds no alleles" if code == kernel.EMPTY_GT else "does not hold integers"
        return UserError(
            f"{where}: the genotype field (GT) {fault}; write the file again, for example with "
            "bcftools view, or remove the record."
        )
    value: str | bytes
    if kind == TEXT:
        value = data.tobytes()
    elif code == codes.BAD_POS:
        value = str(first)
    elif code == codes.NO_GT:
        value = ":".join(_format_keys(data, first, last, sample, len(header.samples), keys))
        sample = 0
    elif code in (codes.NOT_UTF8, codes.BAD_NAME):
        value = data[first:last].tobytes()
    else:
        value = _show_call(data[first:last].tobytes(), kind)
    return record_error(
        where, code, value=value, samples=header.samples, sample=sample, any_gt=any_gt
    )


def _format_keys(
    data: np.ndarray, start: int, end: int, n_keys: int, n_samples: int, keys: dict[int, str]
) -> list[str]:
    """Return the key names in the FORMAT part of a validated record."""
    names = []
    for _ in range(n_keys):
        key, start = kernel.read_key(data, start, end)
        names.append(keys.get(key, str(key)))
        start = kernel.skip_value(data, start, end, n_samples)
    return names


def _show_call(raw: bytes, kind: int) -> str:
    """Format a call as in VCF text."""
    letter = {kernel.INT8: "b", kernel.INT16: "h", kernel.INT32: "i"}[kind]
    missing = -(1 << (8 * struct.calcsize(letter) - 1))
    text = ""
    for k, (value,) in enumerate(struct.iter_unpack(f"<{letter}", raw)):
        if value == missing + 1:
            break
        separator = "" if k == 0 else "/|"[value & 1]
        allele = "." if value in (missing, 0, 1) else str((value >> 1) - 1)
        text += separator + allele
    return text
