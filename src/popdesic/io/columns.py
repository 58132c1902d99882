"""Read plain tables of strings in parts: .bim, .fam, .pvar, .psam.

Lines end in LF or CRLF. Values are taken literally: no quotes, no comments, nothing stripped.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import open_regular

# Rows read at a time.
TABLE_ROWS = 1 << 16
# Longest line, in bytes: without a limit, a file without line ends would be read into memory whole.
LINE_BYTES = 1 << 20
#: Columns of a .fam.
FAM_COLUMNS = ["family", "sample", "father", "mother", "sex", "phenotype"]
#: Endings of the files that are one data set.
TOGETHER = ((".bed", ".bim", ".fam"), (".pgen", ".pvar", ".psam"), (".geno", ".snp", ".ind"))
#: Longest header in bytes: a million samples and a million contigs take less than half of it.
#: Without a limit, a file without line ends would be read into memory whole.
LONGEST_HEADER = 256 << 20
# A position as text, also from programs that write 100000 as 1e+05.
_POSITION = re.compile(r"[+-]?[0-9]{1,40}(\.0{1,40})?|[+-]?[0-9](\.[0-9]{1,40})?[eE]\+?[0-9]{1,4}")


def missing_file(path: Path) -> UserError:
    """Return the error of a file that is not beside the others of its format."""
    together = next(ends for ends in TOGETHER if path.suffix in ends)
    names = f"{', '.join(together[:2])} and {together[2]}"
    return UserError(f"{path} does not exist; {names} must be in the same folder.")


def iterate_columns(
    path: Path, names: list[str], n_rows: int = TABLE_ROWS, n_skip: int = 0
) -> Iterator[dict[str, list[str]]]:
    """Yield the columns of parts of a table, at least one part.

    Parameters
    ----------
    names : list of str
        Columns that each line must have, separated by tabs or else by spaces and tabs.
    n_skip : int
        Lines before the table.

    Raises
    ------
    UserError
        The file is missing, or a line does not have exactly these columns, or is not text.
    """
    n_before = n_skip
    by_tab = False
    try:
        file = open_regular(path)
    except FileNotFoundError:
        raise missing_file(path) from None
    with file:
        for _ in range(n_skip):
            file.readline()
        while lines := list(islice(iter(partial(file.readline, LINE_BYTES), b""), n_rows)):
            text = decode_lines(path, lines, n_before).replace("\r\n", "\n")
            if not text.endswith("\n"):
                text += "\n"
            if n_before == n_skip:
                by_tab = text[: text.index("\n")].count("\t") == len(names) - 1
            values = _split_even(text, len(names)) if by_tab else None
            if values is None:
                values = _split_each(path, text, names, by_tab, n_before)
            yield {name: values[k :: len(names)] for k, name in enumerate(names)}
            n_before += len(lines)
    if n_before == n_skip:
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


def decode_lines(path: Path, lines: list[bytes], n_before: int) -> str:
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


def read_positions(path: Path, texts: list[str], n_before: int) -> np.ndarray:
    """Return positions as int64.

    Parameters
    ----------
    n_before : int
        Lines of the file before the first of `texts`.

    Raises
    ------
    UserError
        A position is not a whole number below 2**31.
    """
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


def require_unique_names(path: Path, names: list[str], n_before: int = 0) -> None:
    """Refuse a table of samples that is empty or repeats a name; `n_before`: its header lines."""
    if not names:
        raise UserError(f"{path} has no samples; give a file with genotypes.")
    name, n_times = Counter(names).most_common(1)[0]
    if n_times > 1:
        line = n_before + len(names) - names[::-1].index(name)
        raise UserError(
            f"{path}, line {line}: the sample name {name!r} occurs {n_times} times (family IDs "
            "do not distinguish samples); rename or remove the duplicates."
        )


def count_lines(path: Path) -> int:
    """Return the number of lines of a file, of which the last may lack its newline."""
    with open_regular(path) as file:
        n_lines = 0
        last = b"\n"
        while block := file.read(1 << 20):
            n_lines += block.count(b"\n")
            last = block[-1:]
        return n_lines + (last != b"\n")
