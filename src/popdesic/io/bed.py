"""PLINK 1 files: .bed memory-mapped, .bim and .fam as tables."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from .errors import UserError
from .files import atomic_path, open_regular
from .genotypes import BED_MAGIC, bed_row_bytes

BIM_COLUMNS = ["chrom", "id", "cm", "pos", "alt", "ref"]
FAM_COLUMNS = ["family", "sample", "father", "mother", "sex", "phenotype"]
# Rows of a .bim file read at a time.
TABLE_ROWS = 1 << 16
# Longest line of a .bim or .fam file, in bytes: without a limit, a file without line ends would be
# read into memory whole.
LINE_BYTES = 1 << 20
# A position as text, also from programs that write 100000 as 1e+05.
_POSITION = re.compile(r"[+-]?[0-9]{1,40}(\.0{1,40})?|[+-]?[0-9](\.[0-9]{1,40})?[eE]\+?[0-9]{1,4}")


def beside(prefix: Path | str, suffix: str) -> Path:
    """Return prefix + suffix; unlike `Path.with_suffix` this keeps dots in the prefix."""
    return Path(f"{prefix}{suffix}")


def read_bim(prefix: Path | str) -> pd.DataFrame:
    """Read {prefix}.bim.

    Returns
    -------
    DataFrame with columns chrom, id, cm, pos, alt, ref
        (n_sites) rows; pos is int64, all others are strings exactly as in the file.

    Raises
    ------
    UserError
        The file is missing, or a line does not have six columns or an integer position below 2**31.
    """
    return pd.concat(iterate_bim(prefix))


def iterate_bim(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[pd.DataFrame]:
    """Yield the table of `read_bim` in parts of at most `n_rows` rows, at least one part."""
    n_before = 0
    for columns in iterate_bim_columns(prefix, n_rows):
        rows = pd.RangeIndex(n_before, n_before + len(columns["pos"]))
        n_before = rows.stop
        positions = columns.pop("pos")
        table = pd.DataFrame(columns, rows, dtype=str)
        table.insert(BIM_COLUMNS.index("pos"), "pos", positions)
        yield table


def iterate_bim_columns(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[dict]:
    """Yield the parts of `iterate_bim` as columns by name: lists of str, and int64 `pos`."""
    path = beside(prefix, ".bim")
    n_before = 0
    for columns in _iterate_columns(path, BIM_COLUMNS, n_rows):
        columns["pos"] = _positions(path, columns["pos"], n_before)
        n_before += len(columns["pos"])
        yield columns


def _positions(path: Path, texts: list[str], n_before: int) -> np.ndarray:
    """Positions as int64; UserError for one that is not an integer or is out of range."""
    joined = "".join(texts)
    if joined.isascii() and joined.isdigit() and max(map(len, texts)) < 10:  # almost always
        return np.array(list(map(int, texts)), np.int64)
    values = np.empty(len(texts), np.int64)
    for row, text in enumerate(texts):
        value = float(text) if _POSITION.fullmatch(text) else 0.5
        if value % 1 == 0 and abs(value) < 2**31:
            values[row] = value
            continue
        shown = repr(text if len(text) <= 40 else text[:37] + "...")
        fault = f"{shown} is not a whole number"
        if abs(value) >= 2**31:
            fault = f"{shown[1:-1]} is beyond 2**31"
        raise UserError(f"{path}, line {n_before + row + 1}: position {fault}; correct it.")
    return values


def read_fam(prefix: Path | str) -> pd.DataFrame:
    """Read {prefix}.fam.

    Returns
    -------
    DataFrame with columns family, sample, father, mother, sex, phenotype
        (n_samples) rows of strings exactly as in the file.

    Raises
    ------
    UserError
        The file is missing, or a line does not have six columns.
    """
    parts = _iterate_columns(beside(prefix, ".fam"), FAM_COLUMNS, TABLE_ROWS)
    return pd.concat([pd.DataFrame(part, dtype=str) for part in parts], ignore_index=True)


def write_fam(prefix: Path | str, fam: pd.DataFrame) -> None:
    """Write the table of `read_fam` to {prefix}.fam, atomically."""
    with atomic_path(beside(prefix, ".fam")) as temporary:
        lines = map("\t".join, fam[FAM_COLUMNS].itertuples(index=False))
        temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _iterate_columns(path: Path, names: list[str], n_rows: int) -> Iterator[dict[str, list[str]]]:
    """Yield the columns of parts of a table without a header, separated by tabs or else by spaces and tabs.

    Lines end in LF or CRLF. Values are taken literally: no quotes, no comments, nothing
    stripped.
    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        raise _missing_file(path) from None
    n_before = 0
    by_tab = False
    with file:
        while lines := list(islice(iter(partial(file.readline, LINE_BYTES), b""), n_rows)):
            text = _decode_lines(path, lines, n_before).replace("\r\n", "\n")
            if not text.endswith("\n"):
                text += "\n"
            if n_before == 0:
                by_tab = text[: text.index("\n")].count("\t") == len(names) - 1
            values = _split_even(text, len(names)) if by_tab else None
            if values is None:
                values = _split_each(path, text, names, by_tab, n_before)
            yield {name: values[k :: len(names)] for k, name in enumerate(names)}
            n_before += len(lines)
    if n_before == 0:
        yield {name: [] for name in names}


def _split_even(text: str, n_columns: int) -> list[str] | None:
    """Split lines of `n_columns` values each; None if a line is short or long or a value empty."""
    data = np.frombuffer(text.encode(), np.uint8)
    ends = data[(data == ord("\t")) | (data == ord("\n"))] == ord("\n")
    if len(ends) % n_columns or (ends.reshape(-1, n_columns).argmax(axis=1) < n_columns - 1).any():
        return None
    values = text.replace("\n", "\t").split("\t")
    values.pop()  # after the last line
    return None if "" in values else values


def _split_each(path: Path, text: str, names: list[str], by_tab: bool, n_before: int) -> list[str]:
    """As `_split_even`, line by line; UserError for a line without exactly one value per name."""
    values: list[str] = []
    for n, line in enumerate(text[:-1].split("\n"), n_before + 1):
        row = line.split("\t") if by_tab else line.replace("\t", " ").split(" ")
        row = row if by_tab else [value for value in row if value]
        if len(row) != len(names) or "" in row:
            raise UserError(
                f"{path}, line {n}: {len(names)} columns are expected ({' '.join(names)}), all of "
                "them filled; correct the line."
            )
        values += row
    return values


def _decode_lines(path: Path, lines: list[bytes], n_before: int) -> str:
    """Decode the lines of a table; UserError for bytes that no table can hold."""
    raw = b"".join(lines)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        n = n_before + raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {n}: the file is not UTF-8 text (byte 0x{raw[error.start]:02x}); "
            "convert it, for example with iconv."
        ) from None
    fault, line = "", 0
    if n_before == 0 and text.startswith("\ufeff"):
        fault = "starts with a byte order mark"
    elif found := re.search(r"\0|\r(?!\n)", text):
        fault = "holds a zero byte" if found[0] == "\0" else "holds a carriage return"
        line = text.count("\n", 0, found.start())
    elif max(map(len, lines)) == LINE_BYTES:
        fault = f"is longer than {LINE_BYTES} bytes"
        line = list(map(len, lines)).index(LINE_BYTES)
    if fault:
        raise UserError(
            f"{path}, line {n_before + line + 1}: the line {fault}; write the file as plain text "
            "again, with a newline at the end of each line."
        )
    return text


def _missing_file(path: Path) -> UserError:
    return UserError(f"{path} does not exist; .bed, .bim and .fam must be in the same folder.")


def open_bed(
    prefix: Path | str, *, n_samples: int | None = None, n_sites: int | None = None
) -> np.ndarray:
    """Memory-map the genotypes of {prefix}.bed, read-only.

    Parameters
    ----------
    n_samples, n_sites : int, optional
        By default the number of lines of .fam and .bim.

    Returns
    -------
    (n_sites, ceil(n_samples / 4)) uint8
        PLINK 1 two-bit codes; see `popdesic.io.genotypes`.

    Raises
    ------
    UserError
        A file is missing, or the .bed has a wrong magic number or size.
    """
    path = beside(prefix, ".bed")
    n_samples = _count_lines(beside(prefix, ".fam")) if n_samples is None else n_samples
    n_sites = _count_lines(beside(prefix, ".bim")) if n_sites is None else n_sites
    try:
        with open_regular(path) as file:
            magic = file.read(len(BED_MAGIC))
            size = file.seek(0, 2)
    except FileNotFoundError:
        raise _missing_file(path) from None
    if magic == BED_MAGIC[:2] + b"\x00":
        raise UserError(f"{path} is in sample-major order; write it again with plink --make-bed.")
    if magic != BED_MAGIC:
        raise UserError(
            f"{path} is not a PLINK 1 .bed file: it starts with {magic.hex(' ') or 'nothing'}, "
            f"not with {BED_MAGIC.hex(' ')}; write it again with plink --make-bed."
        )
    shape = (n_sites, bed_row_bytes(n_samples))
    expected = len(BED_MAGIC) + shape[0] * shape[1]
    if size != expected:
        raise UserError(
            f"{path} has {size} bytes where {n_sites} sites of {n_samples} samples take "
            f"{expected}; make sure that .bed, .bim and .fam belong together and are complete."
        )
    if 0 in shape:
        return np.empty(shape, np.uint8)
    return np.memmap(path, np.uint8, "r", offset=len(BED_MAGIC), shape=shape)


def _count_lines(path: Path) -> int:
    try:
        with open_regular(path) as file:
            n_lines = 0
            last = b"\n"
            while block := file.read(1 << 20):
                n_lines += block.count(b"\n")
                last = block[-1:]
            return n_lines + (last != b"\n")
    except FileNotFoundError:
        raise _missing_file(path) from None
