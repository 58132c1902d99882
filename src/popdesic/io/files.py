"""Files on disk: atomic writing, and the PLINK 1 files that hold genotypes."""

import hashlib
import json
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from .bed import BED_MAGIC, bed_row_bytes
from .errors import UserError

BIM_COLUMNS = ["chrom", "id", "cm", "pos", "alt", "ref"]
FAM_COLUMNS = ["family", "sample", "father", "mother", "sex", "phenotype"]

# Bytes of a file taken at a time for its checksum.
CHECKSUM_BYTES = 1 << 22
# Results that are folders, by the ends of their names.
RESULT_FOLDERS = (".vcz",)
# What Snakemake puts into a folder that is a result.
FOLDER_STAMP = ".snakemake_timestamp"
# Rows of a .bim file taken at a time.
TABLE_ROWS = 1 << 16
# Bytes of a line of a .bim or .fam file at most: without a limit a file that has no line end would
# be taken into memory whole.
LINE_BYTES = 1 << 20

# A position as it is written, also by programs that write 100000 as 1e+05.
_POSITION = re.compile(r"[+-]?[0-9]{1,40}(\.0{1,40})?|[+-]?[0-9](\.[0-9]{1,40})?[eE]\+?[0-9]{1,4}")


def is_file(path: Path | str) -> bool:
    """Whether a regular file is there; no for a name that no file can have (too long, NUL)."""
    return os.path.isfile(path)  # noqa: PTH113 - the method of Path raises for such names


def path_exists(path: Path | str) -> bool:
    """Whether anything is there; as `is_file`."""
    return os.path.exists(path)  # noqa: PTH110 - as in is_file


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` if the block succeeds.

    On success the file is flushed to disk and renamed, so that readers see all of it or none, and
    the checksum of a result is kept beside it for `popdesic audit`; on any exception it is removed
    and an older `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_orphans(path)
    unique = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{unique}.tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        with checksum_kept(path, temporary):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def checksum_kept(path: Path, temporary: Path) -> Iterator[None]:
    """Keep the checksum of `temporary`, which becomes `path` in the block, beside `path`."""
    kept = "results" in path.absolute().parts  # of a study; nothing else is audited
    checksum = checksum_of(temporary) if kept else ""
    for about in (checksum_path(path), record_path(path)):
        about.unlink(missing_ok=True)  # never that of another content
    yield
    if kept:
        checksum_path(path).write_text(f"{checksum}\n")


def checksum_path(path: Path) -> Path:
    """Where the checksum of a result lies: a hidden file beside it."""
    return path.with_name(f".{path.name}.crc32")


def record_path(path: Path) -> Path:
    """Where the record of what a result was made of lies (`popdesic.study.records`)."""
    return path.with_name(f".{path.name}.record")


def result_files(results: Path) -> Iterator[Path]:
    """All results below a folder; a folder that is one result (`RESULT_FOLDERS`) counts as one."""
    for folder, names, _ in walk_results(results):
        yield from (Path(folder, name) for name in names)


def walk_results(results: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    """Give each folder of results, its results in order of their names, and its hidden files."""
    for folder, folders, names in os.walk(results):
        whole = [name for name in folders if name.endswith(RESULT_FOLDERS)]
        folders[:] = sorted(n for n in folders if n not in whole and not n.startswith("."))
        hidden = {name for name in names if name.startswith(".")}
        yield folder, sorted({*whole, *names} - hidden), hidden


def checksum_of(path: Path) -> str:
    """CRC-32 and size in text, of a file or of all files of a folder with their names.

    It finds accidents, not forgeries, at 10 GB/s.
    """
    from isal import isal_zlib  # what only plans does without

    value, size = 0, 0
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.name != FOLDER_STAMP:
                about = checksum_of(file)
                line = f"{file.relative_to(path).as_posix()} {about}\n"
                value = isal_zlib.crc32(line.encode(), value)
                size += int(about.split()[1])
        return f"{value:08x} {size}"
    with open(path, "rb") as file:
        while block := file.read(CHECKSUM_BYTES):
            value = isal_zlib.crc32(block, value)
            size += len(block)
    return f"{value:08x} {size}"


def _remove_orphans(path: Path) -> None:
    """Remove temporaries of `path` that a killed process of this machine has left."""
    prefix = f".{path.name}.{socket.gethostname()}."
    for left in path.parent.iterdir():
        if left.name.startswith(prefix) and left.name.endswith(".tmp"):
            pid = left.name.removeprefix(prefix).split(".")[0]
            if pid.isdigit() and not _is_alive(int(pid)):
                left.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def digest(text: str) -> str:
    """A short content key for file names and metadata."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def write_json(path: Path | str, content: Any) -> None:
    """Write `content` as indented JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: Path | str) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text("utf-8"))


#: What a path may lead to that is no file, by the bits of its mode.
_NO_FILES = {stat.S_IFIFO: "a FIFO (a pipe)", stat.S_IFSOCK: "a socket"}
_NO_FILES |= dict.fromkeys((stat.S_IFCHR, stat.S_IFBLK), "a device")


def open_regular(path: Path | str) -> BinaryIO:
    """Open a file for reading bytes.

    Raises
    ------
    FileNotFoundError
        It is not there: what that means is the caller's to say.
    UserError
        It is a FIFO, which would wait for a writer, a socket, a device or a folder, or cannot be
        read.
    """
    try:
        kind = stat.S_IFMT(Path(path).stat().st_mode)
        if kind in _NO_FILES:
            raise UserError(
                f"{path} is {_NO_FILES[kind]} and not a file; write its content into a file and "
                "name that."
            )
        return open(path, "rb")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        shown = str(path).replace("\0", "\\0")
        raise UserError(
            f"{shown} cannot be read ({reason}); correct its path or its permissions."
        ) from None


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
        The file is missing, or a line has not six columns or no whole position below 2**31.
    """
    return pd.concat(iterate_bim(prefix))


def iterate_bim(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[pd.DataFrame]:
    """Yield the table of `read_bim` in parts of at most `n_rows` rows, at least one part."""
    path = beside(prefix, ".bim")
    for table in _iterate_columns(path, BIM_COLUMNS, n_rows):
        table["pos"] = _positions(path, table["pos"])
        yield table


def _positions(path: Path, written: pd.Series) -> np.ndarray:
    """Positions as int64; UserError for one that is not whole or beyond 2**31 on either side."""
    texts = written.tolist()
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
        raise UserError(f"{path}, line {written.index[row] + 1}: position {fault}; correct it.")
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
        The file is missing, or a line has not six columns.
    """
    return pd.concat(_iterate_columns(beside(prefix, ".fam"), FAM_COLUMNS, TABLE_ROWS))


def write_fam(prefix: Path | str, fam: pd.DataFrame) -> None:
    """Write the table of `read_fam` to {prefix}.fam, atomically."""
    with atomic_path(beside(prefix, ".fam")) as temporary:
        lines = map("\t".join, fam[FAM_COLUMNS].itertuples(index=False))
        temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _iterate_columns(path: Path, names: list[str], n_rows: int) -> Iterator[pd.DataFrame]:
    """Yield parts of a table without a header, separated by tabs or else by spaces and tabs.

    Lines end with a newline, or with a carriage return and a newline. Values are what stands
    between: no quotes, no comments, nothing stripped.
    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        raise _not_beside(path) from None
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
            columns = {name: values[k :: len(names)] for k, name in enumerate(names)}
            yield pd.DataFrame(columns, pd.RangeIndex(n_before, n_before + len(lines)), dtype=str)
            n_before += len(lines)
    if n_before == 0:
        yield pd.DataFrame({name: pd.Series(dtype=str) for name in names})


def _split_even(text: str, n_columns: int) -> list[str] | None:
    """All values of lines of `n_columns` each, row by row; None if one is short, long or empty."""
    data = np.frombuffer(text.encode(), np.uint8)
    ends = data[(data == ord("\t")) | (data == ord("\n"))] == ord("\n")
    if len(ends) % n_columns or (ends.reshape(-1, n_columns).argmax(axis=1) < n_columns - 1).any():
        return None
    values = text.replace("\n", "\t").split("\t")
    values.pop()  # after the last line
    return None if "" in values else values


def _split_each(path: Path, text: str, names: list[str], by_tab: bool, n_before: int) -> list[str]:
    """The same, line by line; UserError for a line that has not a value for each name."""
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
    """Join lines of a table; UserError for what no line of it can hold."""
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


def _not_beside(path: Path) -> UserError:
    return UserError(f"{path} does not exist; .bed, .bim and .fam must lie beside each other.")


def open_bed(
    prefix: Path | str, *, n_samples: int | None = None, n_sites: int | None = None
) -> np.ndarray:
    """Map the genotypes of {prefix}.bed into memory, read-only.

    Parameters
    ----------
    n_samples, n_sites : int, optional
        Counted from the lines of .fam and .bim where not given.

    Returns
    -------
    (n_sites, ceil(n_samples / 4)) uint8
        PLINK 1 two-bit codes; see `popdesic.io.bed`.

    Raises
    ------
    UserError
        A file is missing, or the .bed has not the magic number or the size it must have.
    """
    path = beside(prefix, ".bed")
    n_samples = _count_lines(beside(prefix, ".fam")) if n_samples is None else n_samples
    n_sites = _count_lines(beside(prefix, ".bim")) if n_sites is None else n_sites
    try:
        with open_regular(path) as file:
            magic = file.read(len(BED_MAGIC))
            size = file.seek(0, 2)
    except FileNotFoundError:
        raise _not_beside(path) from None
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
            f"{expected}; make sure that .bed, .bim and .fam belong together and are whole."
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
        raise _not_beside(path) from None
