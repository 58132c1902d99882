"""Text of the files that a configuration names beside the sheets."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isal import igzip, igzip_lib

from .errors import UserError
from .files import is_file, path_exists

#: Bytes that are looked at before any job runs.
FIRST_BYTES = 1 << 16
#: What no text file holds; tabs and line ends are no control characters here.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_LINE_END = re.compile("\r\n|\r|\n")


@contextmanager
def opened(path: Path, key: str) -> Iterator:
    """The bytes of a file, gunzipped where it is compressed; `key` names it in the configuration.

    Raises
    ------
    UserError
        The file is missing, unreadable or empty, or its compressed data are damaged, which may show
        only while it is read.
    """
    shown = f"{path} ({key})"
    if not is_file(path):
        what = "is no file" if path_exists(path) else "does not exist"
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
    """A file's text; with `beginning` the whole lines of its first FIRST_BYTES alone.

    Raises
    ------
    UserError
        As `opened`; or the file is no text in UTF-8.
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
            f"{path} ({key}), row {row}: the control character U+{ord(found[0]):04X}, so this is "
            "no text file; correct the path or write the file again."
        )
    if cut:  # the last line is not whole, nor is its last letter
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    return text


def rows_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """Number (from 1) and words of each line that has any."""
    for number, line in enumerate(_LINE_END.split(text), 1):
        if words := line.split():
            yield number, words
