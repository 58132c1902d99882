"""Read the headers of VCF and BCF files: samples, contigs, how the file is compressed.

Nothing compiled is imported here, because headers are also read while the workflow is parsed.
"""

import functools
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import UserError
from .bgen import MAGIC as BGEN
from .bgen import MAGIC_AT, bgen_text
from .bgzf import BgzfBlocks, Plain, find_compression, join_pieces, read_pieces
from .columns import LONGEST_HEADER
from .person_table import starts_person_table
from .sites import contig_lengths
from .trees import MAGIC, trees_text
from .vcf_errors import show

# Bytes read at a time where only the header is wanted.
HEADER_BYTES = 1 << 16
#: Longest line or record in bytes, so that damaged files are not read into memory whole: a million
#: samples of 500 bytes take half.
LONGEST_RECORD = 1 << 30

FIXED_COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]


@dataclass(frozen=True)
class VcfHeader:
    """Content of a VCF or BCF header.

    `kind` is 'vcf', 'bcf', 'bgen' or 'trees', `compression` 'none', 'gzip' or 'bgzf'. `text` is
    the header with LF line ends, for BCF only. `lengths` are those of contigs whose lines give one,
    `formats` the fields of calls that have a line, and `filters` the names of FILTER.
    """

    path: Path
    samples: list[str]
    contigs: list[str]
    kind: str
    compression: str
    n_lines: int
    text: str = field(default="", repr=False)
    lengths: dict[str, int] = field(default_factory=dict, repr=False)
    formats: frozenset[str] = frozenset()
    filters: frozenset[str] = frozenset()


def read_header(path: Path | str) -> VcfHeader:
    """Read and check the header of a VCF or BCF file.

    Raises
    ------
    UserError
        The file is missing, not a regular file, empty, cut short, not VCF or BCF, or not UTF-8; its
        header does not end; or it has no samples or duplicated ones.
    """
    path = Path(path)
    try:
        about = path.stat()
    except (OSError, ValueError):  # said by the reader
        return read_head(path, HEADER_BYTES)[0]
    # The time of the last change of any kind too: a copy can have the same size and date.
    return _read_once(path, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@functools.lru_cache(maxsize=512)
def _read_once(path: Path, *state: int) -> VcfHeader:
    """A header; planning asks for that of each file three times."""
    return read_head(path, HEADER_BYTES)[0]


def read_head(
    path: Path, piece_bytes: int
) -> tuple[VcfHeader, bytes, Iterator[BgzfBlocks | Plain]]:
    """Return the header, the first bytes after it, and the pieces that follow (`read_pieces`)."""
    compression = find_compression(path)
    pieces = read_pieces(path, compression, piece_bytes)
    head = bytearray()
    while len(head) < MAGIC_AT + len(BGEN) and (piece := next(pieces, None)) is not None:
        head += b"".join(piece.read())
    if head.startswith(MAGIC):
        text, records = trees_text(path)
        header = _parse_header(path, text, "trees", compression)
        return header, b"", join_pieces(records, piece_bytes)
    if head.startswith(BGEN, MAGIC_AT):
        text, records = bgen_text(path)
        header = _parse_header(path, text, "bgen", compression)
        return header, b"", join_pieces(records, piece_bytes)
    if head.startswith(b"BCF\x02"):
        # Magic (5 bytes), length of the text (4 bytes), the text, zero-terminated.
        if head[4:5] not in (b"", b"\x02"):
            raise UserError(
                f"{path} is BCF version 2.{head[4]}, but only 2.2 can be read; write it again "
                "with bcftools view."
            )
        size = 9 + struct.unpack_from("<I", head, 5)[0] if len(head) >= 9 else 9
        if size > LONGEST_HEADER:
            raise _header_without_end(path)
        while len(head) < size and (piece := next(pieces, None)) is not None:
            head += b"".join(piece.read())
        if len(head) < size:
            raise UserError(f"{path} is cut short in its header; copy or write it again.")
        text = bytes(head[9:size]).rstrip(b"\0")
        header = _parse_header(path, text, "bcf", compression)
        return header, bytes(head[size:]), pieces
    if not head.startswith(b"##fileformat=VCF"):
        if starts_person_table(bytes(head)):
            raise UserError(
                f"{path} is a table of one person's genotypes, which names no REF: `popdesic place "
                f"{path.name} --study STUDY` compares it with a study; a cohort needs a VCF."
            )
        raise UserError(
            f"{path} is not a VCF or BCF file: it starts with {show(head[:16])}, not with "
            "'##fileformat=VCF'; correct the path or convert the file."
        )
    end = looked_at = 0
    while True:  # over the lines, up to the first that does not start with '##'
        newline = head.find(b"\n", looked_at)
        if newline < 0:
            if len(head) > LONGEST_HEADER:
                raise _header_without_end(path)
            piece = next(pieces, None)
            if piece is not None:
                looked_at = len(head)  # scan no byte twice: a line may be endless
                head += b"".join(piece.read())
                continue
            newline = len(head)
        is_meta = head.startswith(b"##", end)
        end = looked_at = min(newline + 1, len(head))
        if not is_meta or end == len(head) == newline:
            break
    return _parse_header(path, bytes(head[:end]), "vcf", compression), bytes(head[end:]), pieces


def _header_without_end(path: Path) -> UserError:
    return UserError(
        f"{path}: the header does not end within {LONGEST_HEADER >> 20} MB; the file is damaged or "
        "not VCF or BCF, so correct its path or write it again."
    )


def _parse_header(path: Path, raw: bytes, kind: str, compression: str) -> VcfHeader:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        n_line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {n_line}: the header is not UTF-8 text (byte "
            f"0x{raw[error.start]:02x}); convert it, for example with iconv."
        ) from None
    text = text.replace("\r\n", "\n")
    for letter, what in (("\0", "a zero byte"), ("\r", "a carriage return within a line")):
        if letter in text:
            n_line = text.count("\n", 0, text.index(letter)) + 1
            raise UserError(
                f"{path}, line {n_line}: the header contains {what}; remove it, for example with "
                "bcftools reheader."
            )
    lines = text.rstrip("\n").split("\n")
    where = f"{path}, line {len(lines)}"
    columns = lines[-1].split("\t")
    if not lines[-1].startswith("#CHROM"):
        raise UserError(
            f"{where}: the header ends without its #CHROM line; add the line that names the "
            "columns and samples."
        )
    if columns[:8] != FIXED_COLUMNS[:8] or columns[8:9] not in ([], ["FORMAT"]):
        raise UserError(
            f"{where}: the #CHROM line must name {' '.join(FIXED_COLUMNS)} and then the samples, "
            "separated by tabs; correct that line."
        )
    samples = columns[9:]
    if not samples:
        raise UserError(
            f"{path} has no samples (line {len(lines)} names none); give a file with genotypes."
        )
    if "" in samples:
        raise UserError(
            f"{where}: sample {samples.index('') + 1} has an empty name; name every sample."
        )
    name, n_times = Counter(samples).most_common(1)[0]
    if n_times > 1:
        raise UserError(
            f"{where}: the sample name {name!r} occurs {n_times} times; rename or remove the "
            "duplicates, for example with bcftools reheader."
        )
    contigs = re.findall(r"^##contig=<(?:[^\n]*?,)?ID=([^,>\n]+)", text, re.MULTILINE)
    kept = text if kind == "bcf" else ""
    formats, filters = (
        frozenset(re.findall(rf"^##{key}=<(?:[^\n]*?,)?ID=([^,>\n]+)", text, re.MULTILINE))
        for key in ("FORMAT", "FILTER")
    )
    lengths = contig_lengths(text)
    return VcfHeader(
        path,
        samples,
        contigs,
        kind,
        compression,
        len(lines),
        kept,
        lengths,
        formats,
        filters,
    )
