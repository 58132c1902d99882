"""Write BCF files byte by byte from the specification, valid or with chosen errors."""

from __future__ import annotations

import struct
from collections.abc import Iterable

INT8, INT16, INT32, FLOAT, CHAR = 1, 2, 3, 5, 7
_LETTERS = {INT8: "b", INT16: "h", INT32: "i", FLOAT: "f"}
#: The first of two reserved values, "missing"; the next one marks the end of a short vector.
UNKNOWN = {INT8: -(2**7), INT16: -(2**15), INT32: -(2**31)}

META = (
    "##fileformat=VCFv4.2\n"
    '##FILTER=<ID=PASS,Description="All filters passed",IDX=0>\n'
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype",IDX=1>\n'
    '##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth",IDX=2>\n'
    '##INFO=<ID=AC,Number=A,Type=Integer,Description="Count",IDX=3>\n'
    "##contig=<ID=1,IDX=0>\n##contig=<ID=X,IDX=1>\n"
)
COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
GT, DP, AC = 1, 2, 3


def header_of(samples: Iterable[str], meta: str = META) -> bytes:
    """A header's text."""
    return (meta + "\t".join([COLUMNS, *samples]) + "\n").encode()


def descriptor(kind: int, length: int) -> bytes:
    """The descriptor of a typed value: type and length."""
    if length < 15:
        return bytes([length << 4 | kind])
    return bytes([0xF0 | kind]) + typed([length])


def typed(values: list[int], kind: int | None = None) -> bytes:
    """Integers with their descriptor, in the smallest type that holds them."""
    if kind is None:
        far = max((abs(value) for value in values), default=0)
        kind = INT8 if far < 120 else INT16 if far < 32_000 else INT32
    return descriptor(kind, len(values)) + struct.pack(f"<{len(values)}{_LETTERS[kind]}", *values)


def typed_text(text: bytes | str) -> bytes:
    """A text with its descriptor."""
    raw = text.encode() if isinstance(text, str) else text
    return descriptor(CHAR, len(raw)) + raw


def calls_of(calls: list[str], kind: int = INT8, width: int | None = None) -> bytes:
    """Genotypes such as '0/1', '.', '1|0' as one vector with its descriptor, without a key."""
    rows = []
    for call in calls:
        phased = [0] + [letter == "|" for letter in call if letter in "/|"]
        alleles = call.replace("|", "/").split("/")
        numbers = [0 if a == "." else int(a) + 1 for a in alleles]
        rows.append([n << 1 | p for n, p in zip(numbers, phased, strict=True)])
    width = max(map(len, rows)) if width is None else width
    values = [v for row in rows for v in [*row, *[UNKNOWN[kind] + 1] * width][:width]]
    return descriptor(kind, width) + struct.pack(f"<{len(values)}{_LETTERS[kind]}", *values)


def format_of(key: int, vector: bytes) -> bytes:
    """One FORMAT field: key and vector."""
    return typed([key]) + vector


def record_of(
    formats: list[bytes],
    *,
    n_samples: int,
    contig: int = 0,
    pos: int = 1,
    name: bytes | str = ".",
    alleles: Iterable[bytes | str] = ("A", "C"),
    n_alleles: int | None = None,
    n_formats: int | None = None,
    filters: bytes = b"\x11\x00",
    info: Iterable[bytes] = (),
    longer: tuple[int, int] = (0, 0),
) -> bytes:
    """One record; POS is 1-based, `longer` is added to the two lengths stated in the record."""
    alleles, info = list(alleles), list(info)
    count = len(alleles) if n_alleles is None else n_alleles
    fields = len(formats) if n_formats is None else n_formats
    shared = struct.pack("<iiif", contig, pos - 1, 1, 0.0)
    shared += struct.pack("<II", count << 16 | len(info), fields << 24 | n_samples)
    shared += typed_text(name) + b"".join(map(typed_text, alleles)) + filters + b"".join(info)
    own = b"".join(formats)
    return struct.pack("<II", len(shared) + longer[0], len(own) + longer[1]) + shared + own


def bcf_of(header: bytes, records: Iterable[bytes], magic: bytes = b"BCF\x02\x02") -> bytes:
    """A whole uncompressed file."""
    return magic + struct.pack("<I", len(header) + 1) + header + b"\0" + b"".join(records)
