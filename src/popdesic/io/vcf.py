"""Read biallelic SNP genotypes from VCF text (plain, gzip, bgzip) and BCF, in bounded memory.

Text is cut into buffers of whole lines, which `vcf_text` decodes side by side; BCF into buffers of
whole records for `bcf_records` (`bcf`). Both follow the same rules and give the same sentences on
an error: multiallelic sites are dropped and never split, indels and symbolic alleles are dropped,
and so are records at POS 0 (a telomere); half calls and a single '.' are missing, haploid calls
follow a policy, and more than two alleles in a call, dosages and anything malformed stop the
reading.

The compiled half is imported where it is first needed: jobs that read no VCF do without.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from .bgzf import in_order
from .errors import UserError
from .vcf_errors import record_error
from .vcf_header import LONGEST_RECORD, VcfHeader, read_head

HAPLOID_POLICIES = ("error", "diploidize", "missing")
#: Key of the policy of all contigs that a mapping does not name.
OTHER_CONTIGS = "default"

# Bytes of text decoded at a time: large against the cost of a call, small against memory.
# `tests/bench/bench_ingest.py` measures it.
CHUNK_BYTES = 2 << 20


@dataclass(frozen=True)
class HaploidPolicies:
    """What haploid calls become: index into HAPLOID_POLICIES, by contig or for all others."""

    default: int
    by_contig: dict[str, int]

    @classmethod
    def parse(cls, haploid: str | Mapping[str, str]) -> "HaploidPolicies":
        """From the configuration's `encode.haploid`; ValueError for an unknown policy."""
        given = {OTHER_CONTIGS: haploid} if isinstance(haploid, str) else dict(haploid)
        for policy in given.values():
            if policy not in HAPLOID_POLICIES:
                raise ValueError(f"haploid must be one of {HAPLOID_POLICIES}, got {policy!r}")
        codes = {contig: HAPLOID_POLICIES.index(policy) for contig, policy in given.items()}
        return cls(codes.pop(OTHER_CONTIGS, 0), codes)

    def of(self, contig: str) -> int:
        """The policy of one contig."""
        return self.by_contig.get(contig, self.default)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Names joined, where each ends, and policies, as the compiled decoder takes them."""
        names = [contig.encode() for contig in self.by_contig]
        return (
            np.array(list(b"".join(names)), np.uint8),
            np.cumsum([len(name) for name in names], dtype=np.int64),
            np.array(list(self.by_contig.values()), np.int64),
        )


@dataclass
class DecodeCounts:
    """What was read, dropped and kept; the last six speak of the kept sites (`snps`) alone.

    Each record is counted once: records = multiallelic + indel + symbolic + star + no_alt +
    non_acgt + unplaced + snps. `indel` holds every REF or ALT longer than one base, `no_alt` also
    an ALT equal to REF, `unplaced` any record without a position, whatever its alleles: POS 0 (a
    telomere), in PLINK files also chromosome 0 or a position below 0. Each genotype of a kept site
    is missing, phased or unphased, or else a haploid call that was counted twice; half calls are
    among the missing.
    """

    records: int = 0
    multiallelic: int = 0
    indel: int = 0
    symbolic: int = 0
    star: int = 0
    no_alt: int = 0
    non_acgt: int = 0
    unplaced: int = 0
    snps: int = 0
    missing: int = 0
    half_calls: int = 0
    haploid_calls: int = 0
    phased: int = 0
    unphased: int = 0

    def add(self, values) -> None:
        """Add `values`, one number a field in the order of the fields."""
        for field, value in zip(fields(self), values, strict=True):
            setattr(self, field.name, getattr(self, field.name) + int(value))

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)

    def dropped(self) -> dict[str, int]:
        """Return how many records each filter took, without the filters that took none."""
        names = [field.name for field in fields(self)][1:8]
        return {name: getattr(self, name) for name in names if getattr(self, name)}


@dataclass
class SiteBatch:
    """Consecutive biallelic SNPs of a file, in file order.

    Attributes
    ----------
    chrom, id, ref, alt : list of str
        (n_sites) each, exactly as in the file.
    pos : (n_sites) int64
    genotypes : (n_sites, n_samples) int8
        ALT counts 0, 1, 2, or -1 for missing.
    line : (n_sites) int64
        Line of the file, from 1; for BCF and PLINK files the record, from 1.
    """

    chrom: list[str]
    pos: np.ndarray
    id: list[str]
    ref: list[str]
    alt: list[str]
    genotypes: np.ndarray
    line: np.ndarray


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
        What a call of one allele becomes: an error, twice that allele, or missing. A mapping's
        ``default`` (error if it has none) is for the contigs that it does not name.
    counts : DecodeCounts, optional
        Is added to as batches are given out, and complete when the iterator ends.
    threads : int
        1 works in the calling thread; more work ahead of the caller in a pool.

    Raises
    ------
    UserError
        A file or record that cannot be read by the rules, with its line and sample.
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
    decode = partial(_decode_lines, n_samples=len(header.samples), haploid=haploid)
    n_lines_before = header.n_lines
    parts = _whole_lines(header.path, pieces)
    for text, batch, values, n_lines, error in in_order(decode, parts, pool, ahead):
        counts.add(values)
        if error[0]:
            code, line, start, end, sample = error.tolist()
            raise record_error(
                f"{header.path}, line {n_lines_before + 1 + line}",
                code,
                value=text[start:end].tobytes(),
                number=end,
                samples=header.samples,
                sample=sample,
                any_gt=counts.snps > 0,
            )
        batch.line += n_lines_before + 1
        n_lines_before += n_lines
        if len(batch.chrom):
            yield batch


def unusable_name(name: str) -> bool:
    """Whether a name holds what ends a field or a line of a table: it could not come out again."""
    return any(letter in name for letter in "\0\t\n\r")


def _whole_lines(path: Path, pieces: Iterable[list[bytes]]) -> Iterator[list[bytes | memoryview]]:
    """Regroup pieces so that each ends at the end of a line; a last newline is added if missing."""
    pending: list[bytes | memoryview] = []
    size = 0  # of what is pending
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
                    f"{path} has a line of more than {LONGEST_RECORD} bytes, and longer ones are "
                    "not read; the file is damaged, so copy or write it again."
                )
    if any(len(part) for part in pending):
        yield [*pending, b"\n"]


def _decode_lines(parts: list[bytes | memoryview], n_samples: int, haploid: HaploidPolicies):
    """Decode whole lines; return (text, batch, counts, number of lines, error)."""
    from . import vcf_text as kernel

    size = sum(len(part) for part in parts)
    text = np.empty(size + kernel.PAD, np.uint8)
    end = 0
    for part in parts:  # numpy copies without the interpreter lock, bytes.join would hold it
        text[end : end + len(part)] = np.frombuffer(part, np.uint8)
        end += len(part)
    text[size:] = 0
    capacity = kernel.row_capacity(size, n_samples)
    genotypes = np.empty((capacity, n_samples), np.int8)
    table = np.empty((capacity, kernel.N_FIELDS), np.int64)
    values = np.zeros(kernel.N_COUNTS, np.int64)
    error = np.zeros(5, np.int64)
    n_sites, n_lines = kernel.decode_records(
        text, size, n_samples, haploid.default, genotypes, table, values, error, *haploid.arrays()
    )
    if error[0] and b"\r\n" in (raw := text[:size].tobytes()):
        # Line ends of Windows do harm only where they end in an error: that is where to look.
        return _decode_lines([raw.replace(b"\r\n", b"\n")], n_samples, haploid)
    table = table[:n_sites]
    try:
        chrom, site_id = _names(text, table)
    except ValueError:
        error[:] = _find_unusable(text, table)
        chrom = site_id = []
    batch = SiteBatch(
        chrom=chrom,
        pos=table[:, kernel.POS].copy(),
        id=site_id,
        ref=list(text[table[:, kernel.REF]].tobytes().decode()),
        alt=list(text[table[:, kernel.ALT]].tobytes().decode()),
        genotypes=genotypes[:n_sites],
        line=table[:, kernel.LINE].copy(),
    )
    return text, batch, values, n_lines, error


def _names(text: np.ndarray, table: np.ndarray) -> tuple[list[str], list[str]]:
    """Return CHROM and ID of each row of the site table.

    Raises
    ------
    ValueError
        One is not UTF-8 (UnicodeDecodeError is one, too) or no name that a table can hold.
    """
    from . import vcf_text as kernel

    view = memoryview(text)
    starts, ends = table[:, kernel.CHROM_START], table[:, kernel.CHROM_END]
    changes = np.flatnonzero(np.diff(starts, prepend=-1))  # neighbours share a range
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
        raise ValueError("a name that no table can hold")
    return chrom, site_id


def _find_unusable(text: np.ndarray, table: np.ndarray) -> tuple[int, int, int, int, int]:
    """Return the error of the first CHROM or ID for which `_names` stopped."""
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
    raise AssertionError("every name can be used")
