"""Read biallelic SNP genotypes from VCF text (plain, gzip, bgzip) and BCF, in bounded memory.

Text is split into buffers of whole lines, which `vcf_text` decodes in parallel, and BCF into
buffers of whole records for `bcf_records` (by `bcf`). Both formats follow the same rules and give
the same error sentences. Dropped and counted: multiallelic sites (never split), indels, symbolic
alleles, records at POS 0 (a telomere). Missing: half-calls and a single '.'. Haploid calls follow a
policy. Errors: calls of more than two alleles, dosages, anything malformed.

The compiled half is imported on first use: jobs that read no VCF do not need it.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from .batches import CHUNK_BYTES, DecodeCounts, HaploidPolicies, SiteBatch, unusable_name
from .bgzf import in_order
from .errors import UserError
from .genotypes import pack_bed
from .vcf_errors import record_error
from .vcf_header import LONGEST_RECORD, VcfHeader, read_head


def stream_sites(
    path: Path | str,
    *,
    haploid: str | Mapping[str, str] = "error",
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
    counts : DecodeCounts, optional
        Updated as batches are yielded, and complete when the iterator ends.
    threads : int
        1 decodes in the calling thread; more decode ahead of the caller in a thread pool.

    Raises
    ------
    UserError
        A file or record breaks the rules; the sentence names line and sample.
    """
    policies = HaploidPolicies.parse(haploid)
    path = Path(path)
    counts = DecodeCounts() if counts is None else counts
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    ahead = 2 * threads  # enough that no worker waits while the caller writes
    try:
        header, rest, pieces = read_head(path, _chunk_bytes, pool, ahead)
        if header.kind == "bcf":
            from .bcf import stream_bcf

            stream = stream_bcf
        else:
            stream = _stream_text
        yield from stream(header, chain([rest], pieces), policies, counts, pool, ahead)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


# --- text -----------------------------------------------------------------------------------


def _stream_text(
    header: VcfHeader,
    pieces: Iterable[list[bytes]],
    haploid: HaploidPolicies,
    counts: DecodeCounts,
    pool: Executor | None,
    ahead: int,
) -> Iterator[SiteBatch]:
    decode = partial(
        _decode_lines, n_samples=len(header.samples), haploid=haploid, memory=_Memory()
    )
    n_lines_before = header.n_lines
    parts = _whole_lines(header.path, pieces)
    for value, batch, values, n_lines, error in in_order(decode, parts, pool, ahead):
        counts.add(values)
        if error[0]:
            code, line, _, end, sample = error.tolist()
            raise record_error(
                f"{header.path}, line {n_lines_before + 1 + line}",
                code,
                value=value,
                number=end,
                samples=header.samples,
                sample=sample,
                any_gt=counts.snps > 0,
            )
        batch.line += n_lines_before + 1
        n_lines_before += n_lines
        if len(batch.chrom):
            yield batch


def _whole_lines(path: Path, pieces: Iterable[list[bytes]]) -> Iterator[list[bytes | memoryview]]:
    """Regroup pieces so that each ends at the end of a line; a last newline is added if missing."""
    pending: list[bytes | memoryview] = []
    size = 0  # bytes in `pending`
    for parts in pieces:
        for k in reversed(range(len(parts))):
            if cut := parts[k].rfind(b"\n") + 1:
                last = memoryview(parts[k])
                yield [*pending, *parts[:k], last[:cut]]
                pending = [last[cut:], *parts[k + 1 :]]
                size = sum(map(len, pending))
                break
        else:
            pending += parts
            size += sum(map(len, parts))
            if size > LONGEST_RECORD:
                raise UserError(
                    f"{path} has a line longer than the limit of {LONGEST_RECORD} bytes; the file "
                    "is damaged, so copy or write it again."
                )
    if any(len(part) for part in pending):
        yield [*pending, b"\n"]


class _Memory(threading.local):
    """Arrays that a thread uses again for all its pieces: fresh ones cost a page fault per 4 KB."""

    def __init__(self) -> None:
        self.text = np.empty(0, np.uint8)
        self.genotypes = np.empty(0, np.int8)

    def of_text(self, size: int) -> np.ndarray:
        """Return (size) uint8 of any content."""
        if len(self.text) < size:
            self.text = np.empty(size, np.uint8)
        return self.text[:size]

    def of_genotypes(self, n_sites: int, n_samples: int) -> np.ndarray:
        """Return (n_sites, n_samples) int8 of any content."""
        if len(self.genotypes) < n_sites * n_samples:
            self.genotypes = np.empty(n_sites * n_samples, np.int8)
        return self.genotypes[: n_sites * n_samples].reshape(n_sites, n_samples)


def _decode_lines(
    parts: list[bytes | memoryview], n_samples: int, haploid: HaploidPolicies, memory: _Memory
):
    """Decode whole lines; return (offending value, batch, counts, number of lines, error)."""
    from . import vcf_text as kernel

    size = sum(len(part) for part in parts)
    text = memory.of_text(size + kernel.PAD)
    end = 0
    for part in parts:  # numpy copies without the GIL, bytes.join would hold it
        text[end : end + len(part)] = np.frombuffer(part, np.uint8)
        end += len(part)
    text[size:] = 0
    capacity = kernel.row_capacity(size, n_samples)
    genotypes = memory.of_genotypes(capacity, n_samples)
    table = np.empty((capacity, kernel.N_FIELDS), np.int64)
    values = np.zeros(kernel.N_COUNTS, np.int64)
    error = np.zeros(5, np.int64)
    n_sites, n_lines = kernel.decode_records(
        text, size, n_samples, haploid.default, genotypes, table, values, error, *haploid.arrays()
    )
    if error[0] and b"\r\n" in (raw := text[:size].tobytes()):
        # CRLF line ends matter only if decoding fails: then retry with LF.
        return _decode_lines([raw.replace(b"\r\n", b"\n")], n_samples, haploid, memory)
    table = table[:n_sites]
    try:
        chrom, site_id = _names(text, table)
    except ValueError:
        error[:] = _first_unusable_name(text, table)
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
    return value, batch, values, n_lines, error


def _names(text: np.ndarray, table: np.ndarray) -> tuple[list[str], list[str]]:
    """Return CHROM and ID of each row of the site table.

    Raises
    ------
    ValueError
        A name is not UTF-8 (UnicodeDecodeError is a ValueError) or cannot be in a table.
    """
    from . import vcf_text as kernel

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
    from . import vcf_text as kernel

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
