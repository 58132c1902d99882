"""Read text files that the configuration names, such as maps and references."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isal import igzip, igzip_lib

from .errors import UserError
from .files import is_file, path_exists

#: Bytes of a file that are checked before any job runs.
FIRST_BYTES = 1 << 16
#: Control characters that no text file contains; tabs and line ends are allowed.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_LINE_END = re.compile("\r\n|\r|\n")


@contextmanager
def opened(path: Path, key: str) -> Iterator:
    """Open a file for reading bytes, decompressed if gzipped; `key` is its configuration key.

    Raises
    ------
    UserError
        The file is missing, unreadable or empty, or its compressed data are damaged, which may be
        noticed only while reading.
    """
    shown = f"{path} ({key})"
    if not is_file(path):
        what = "is not a file" if path_exists(path) else "does not exist"
        raise UserError(f"{shown} {what}; correct the path, relative to the study folder.")
    try:
        with open(path, "rb") as raw:
            start = raw.read(2)
    except OSError as error:
        raise UserError(
            f"{shown} cannot be read ({error.strerror}); correct its permissions."
        ) from None
    if not start:
        raise UserError(f"{shown} is empty; correct the path or write the file again.")
    try:
        with igzip.open(path, "rb") if start == b"\x1f\x8b" else open(path, "rb") as file:
            yield file
    except (EOFError, igzip.BadGzipFile, igzip_lib.IsalError) as error:
        reason = str(error).rstrip(".")
        raise UserError(
            f"{shown} is cut short or damaged ({reason}); copy or compress it again."
        ) from None


def read_text(path: Path, key: str, *, beginning: bool = False) -> str:
    """Read a file's text; with `beginning` only the whole lines in its first FIRST_BYTES.

    Raises
    ------
    UserError
        As `opened`, or the file is not UTF-8 text.
    """
    with opened(path, key) as file:
        raw = file.read(FIRST_BYTES) if beginning else file.read()
    cut = beginning and len(raw) == FIRST_BYTES
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw, final=not cut)
    except UnicodeDecodeError as error:
        row = len(_LINE_END.findall(raw[: error.start].decode("utf-8", "replace"))) + 1
        raise UserError(
            f"{path} ({key}), row {row}: not UTF-8 text (byte 0x{raw[error.start]:02x}); save it "
            "as UTF-8, or correct the path."
        ) from None
    if found := _CONTROL.search(text):
        row = len(_LINE_END.findall(text, 0, found.start())) + 1
        raise UserError(
            f"{path} ({key}), row {row}: control character U+{ord(found[0]):04X}, so this is not "
            "a text file; correct the path or write the file again."
        )
    if cut:  # the last line and its last character may be incomplete
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    return text


def rows_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield number (from 1) and words of each line that is not blank."""
    for number, line in enumerate(_LINE_END.split(text), 1):
        if words := line.split():
            yield number, words
