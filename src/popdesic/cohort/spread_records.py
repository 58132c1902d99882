"""Records from all over a file: what the whole of it will take.

Of bgzipped and plain text VCF some lines are read at places all over the file; of others, which
cannot be entered anywhere, the first records.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UserError
from ..io.bgzf import find_compression, read_near, read_pieces
from ..io.formats import PLINK, VCF, count_sites, find_format, read_sample_names
from ..io.genotypes import bed_row_bytes, take_samples, unpack_bed
from ..io.listed_rows import LEAST_GAIN, LEAST_LISTED, listed_bytes
from ..io.vcf_header import read_head

#: Decodes the first bytes of a file: `batch`, `counts`, `whole` as of `FirstRecords`.
Decode = Callable[[Path | str, int], Any]
#: Sites that are looked at and bytes of text that are read for it, of all files of a study, and
#: places in one file.
SITES, MOST_BYTES, PLACES = 4096, 1 << 29, 64
#: Least text of one place, in lines and in bytes.
LEAST_LINES, LEAST_TEXT = 4, 60_000
#: Multiples of it, less whole numbers, are spread evenly.
GOLDEN = 0.618034
#: Sites whose genotypes are in memory at a time.
AT_ONCE = 64


class Content(NamedTuple):
    """What a source holds, estimated from some of its sites.

    Attributes
    ----------
    sites : float
        Sites that are read.
    common : float
        Those of them whose minor allele is at least as frequent as was asked.
    rows, listed : float
        Bytes of their rows in a .bed, and as lists of carriers.
    looked : int
        Sites that were looked at.
    """

    sites: float
    common: float
    rows: float
    listed: float
    looked: int

    @classmethod
    def of_files(cls, found: Collection[Content]) -> Content:
        """Of all files of a cohort."""
        return cls(*map(sum, zip(*found, strict=True)))

    @property
    def has_lists(self) -> bool:
        """Whether `raw.bed` will have lists (`io.listed_rows`)."""
        return self.rows >= max(LEAST_LISTED, LEAST_GAIN * self.listed)


def expected_content(
    source: Path | str,
    names: Collection[str],
    min_maf: float,
    share: tuple[int, int],
    decode: Decode,
) -> Content | None:
    """Estimate what a source holds; None where its records cannot be read.

    Parameters
    ----------
    names : collection of str
        Samples that are read.
    min_maf : float
    share : (int, int)
        Number of this file and of all, among which the work is shared. Places differ by file.
    decode : function of a path and a number of bytes
        `first_records.first_records` of the first bytes.
    """
    try:
        listed = read_sample_names(source)
        wanted = frozenset(names)
        chosen = np.array([k for k, name in enumerate(listed) if name in wanted])
        kind, path = find_format(source)
        compression = find_compression(path) if kind == VCF else ""
        if compression in ("bgzf", "none") and _is_text(path, compression):
            parts = list(_spread(path, compression, len(listed), share, decode))
        else:
            parts = [_beginning(source, path, len(listed), share[1], decode)]
    except (UserError, OSError):
        return None
    rows = [one.batch.rows for *_, one in parts if one.batch is not None]
    if not rows:
        return None
    n, looked = len(chosen), sum(map(len, rows))
    common = listed_size = 0
    for own in (one[k : k + AT_ONCE] for one in rows for k in range(0, len(one), AT_ONCE)):
        own = own if n == len(listed) else take_samples(own, chosen)
        listed_size += listed_bytes(own, n)
        genotypes = unpack_bed(own, n)
        called = (genotypes >= 0).sum(axis=1)
        af = np.maximum(genotypes, 0).sum(axis=1) / np.maximum(2 * called, 1)
        common += int((np.minimum(af, 1 - af) >= min_maf).sum())
    sites = _stated_sites(source, len(listed))
    if sites is None:
        # Not the mean of quotients: blocks are met as often as they are, not as they are large.
        sites = sum(one[0] for one in parts) / sum(one[1] for one in parts)
    each = sites / looked
    row_bytes = bed_row_bytes(n) * sites
    # Places of a small file overlap.
    looked = min(looked, round(sites))
    return Content(sites, common * each, row_bytes, listed_size * each, looked)


def _stated_sites(source: Path | str, n_samples: int) -> int | None:
    """Number of sites that a source states; of PLINK 1 files by the size of the .bed."""
    kind, path = find_format(source)
    if kind == PLINK:
        return Path(f"{path}.bed").stat().st_size // bed_row_bytes(n_samples)
    return count_sites(source)


def _is_text(path: Path, compression: str) -> bool:
    return b"".join(next(read_pieces(path, compression, 16)).read())[:2] == b"##"


def _spread(
    path: Path, compression: str, n_samples: int, share: tuple[int, int], decode: Decode
) -> Iterator[tuple[float, float, Any]]:
    """Sites at each of some places, the share of the file that they take, and the records there."""
    head, size, (number, n_files) = _head(path, compression), path.stat().st_size, share
    line = max(1, *map(len, read_near(path, compression, size // 2, 1)[0].split(b"\n")))
    line = max(line, 4 * n_samples)
    text = min(MOST_BYTES // n_files, max(SITES // n_files, LEAST_LINES) * line)
    each = max(LEAST_LINES * line, LEAST_TEXT)
    places = max(1, min(PLACES, text // each))
    each = max(each, text // places)
    phase = (number + 0.5) * GOLDEN % 1
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder, "records.vcf")
        for k in range(places):
            text, taken = read_near(path, compression, int((k + phase) * size / places), each)
            first, last = text.find(b"\n") + 1, text.rfind(b"\n") + 1
            lines = b"".join(line for line in text[first:last].splitlines(True) if line[:1] != b"#")
            if not lines:
                continue
            few.write_bytes(head + lines)
            found = decode(few, few.stat().st_size + 1)
            yield found.counts.sites * len(text) / len(lines), taken / size, found


def _head(path: Path, compression: str) -> bytes:
    """The header as it is, up to the end of the line of the samples."""
    text = b""
    for piece in read_pieces(path, compression, LEAST_TEXT):
        text += b"".join(piece.read())
        begin = text.find(b"\n#CHROM")
        end = text.find(b"\n", begin + 1)
        if begin >= 0 and end >= 0:
            return text[: end + 1]
    return text


def _beginning(
    source: Path | str, path: Path, n_samples: int, n_files: int, decode: Decode
) -> tuple[float, float, Any]:
    """As `_spread`, of the first records alone."""
    n_bytes = min(MOST_BYTES // n_files, max(SITES // n_files, LEAST_LINES) * 2 * n_samples)
    n_bytes = max(n_bytes, LEAST_TEXT)
    found = decode(source, n_bytes)
    if found.whole or _stated_sites(source, n_samples) is not None:
        return float(found.counts.sites), 1.0, found
    header, text, _ = read_head(path, n_bytes)
    records = _count_bcf(text) if header.kind == "bcf" else (text.count(b"\n"), len(text))
    shown, taken = read_near(path, header.compression, 0, n_bytes)
    sites = len(shown) * records[0] / records[1] * found.counts.sites / found.counts.records
    return sites, taken / path.stat().st_size, found


def _count_bcf(text: bytes) -> tuple[int, int]:
    """Number of records of which `text` has the beginning, and their bytes."""
    n = at = 0
    while at + 8 <= len(text):
        at += 8 + sum(struct.unpack_from("<2I", text, at))
        n += 1
    return n, at
