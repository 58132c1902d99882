"""Lines of text from columns of numbers, as Python's ``%.9g`` writes them, many times as fast.

Python and pandas format a number in a quarter of a microsecond, and a matrix of 4 000 samples has
16 million; writers of CSV in other libraries have no format of significant digits.
Here a number of d digits is the integer nearest to x 10^k: one multiplication or division by an
exact power of ten, so that its error is below one part in 2^52. Where the product lies so near to
the middle of two integers that this error might decide, and for numbers that need larger powers,
Python formats it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from .files import atomic_path
from .threads import run_ordered

#: Powers of ten that are exact in float64, 10^0 to 10^22.
_POWERS = np.array([float(10**k) for k in range(23)])
#: Distance from the middle of two integers below 10^12 within which Python decides.
_NEAR = 1e-3
#: Numbers of a block of a matrix.
BLOCK_NUMBERS = 1 << 20
#: zlib's level of compressed tables: higher ones take longer for a few per cent.
LEVEL = 4
#: A gzip header without name, time and system.
_GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


@dataclass(frozen=True)
class Fields:
    """The texts of one column.

    Attributes
    ----------
    text : uint8 array, (m, width)
        ASCII or UTF-8; what comes after the end of a text means nothing.
    length : int64 array, (m,)
    index : int64 array, (n,)
        Row of `text` for each line.
    """

    text: np.ndarray
    length: np.ndarray
    index: np.ndarray

    def at(self, lines: np.ndarray) -> Fields:
        """The texts of these lines, in this order."""
        return Fields(self.text, self.length, self.index[lines])


def number_fields(values: np.ndarray, digits: int) -> Fields:
    """Numbers as ``f"{x:.{digits}g}"`` gives them.

    Parameters
    ----------
    values : float64 array, (n,)
    digits : int
        Significant digits, 1 to 12.
    """
    text = np.empty((len(values), digits + 8), np.uint8)
    length = np.zeros(len(values), np.int64)
    write_numbers(np.ascontiguousarray(values, np.float64), digits, _POWERS, text, length)
    for k in np.flatnonzero(length == 0):
        _put(text, length, k, f"{values[k]:.{digits}g}".encode())
    return Fields(text, length, np.arange(len(values)))


def integer_fields(values: np.ndarray) -> Fields:
    """Integers, int64 (n,)."""
    text = np.empty((len(values), 20), np.uint8)
    length = np.zeros(len(values), np.int64)
    write_integers(np.ascontiguousarray(values, np.int64), text, length)
    return Fields(text, length, np.arange(len(values)))


def string_fields(strings: Sequence[str]) -> Fields:
    """Strings."""
    encoded = [string.encode() for string in strings]
    length = np.fromiter(map(len, encoded), np.int64, len(encoded))
    longest = max(1, int(length.max(initial=0)))
    text = np.array(encoded, f"S{longest}").view(np.uint8).reshape(len(encoded), longest)
    return Fields(text, length, np.arange(len(encoded)))


def join_fields(columns: Sequence[Fields]) -> bytes:
    """Lines of tab-separated columns."""
    sizes = np.full(len(columns[0].index), len(columns))
    for column in columns:
        sizes += column.length[column.index]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(starts[-1], np.uint8)
    at = starts[:-1].copy()
    for k, column in enumerate(columns):
        end = ord("\n" if k == len(columns) - 1 else "\t")
        append_loop(column.text, column.length, column.index, end, at, out)
    return out.tobytes()


def matrix_text(rows: np.ndarray, digits: int) -> bytes:
    """Rows of numbers, float64 (m, n), as lines of tab-separated text."""
    fields = number_fields(rows.ravel(), digits)
    sizes = fields.length + 1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(starts[-1], np.uint8)
    append_loop(fields.text, fields.length, fields.index, ord("\t"), starts[:-1].copy(), out)
    out[starts[rows.shape[1] :: rows.shape[1]] - 1] = ord("\n")
    return out.tobytes()


def write_matrix(path: Path, matrix: np.ndarray, threads: int = 1, digits: int = 9) -> None:
    """Write `matrix_text` of a float64 (m, n) matrix."""
    size = max(1, BLOCK_NUMBERS // max(matrix.shape[1], 1))
    blocks = (slice(first, first + size) for first in range(0, len(matrix), size))
    write_blocks(path, lambda rows: matrix_text(matrix[rows], digits), blocks, threads)


def write_blocks(
    path: Path,
    text_of: Callable[[Any], bytes],
    blocks: Iterable[Any],
    threads: int = 1,
    before: Iterable[bytes] = (),
) -> None:
    """Write the texts of blocks one after the other, made by several threads.

    Parameters
    ----------
    path : Path
        A file whose name ends in .gz holds each text as one gzip member.
    before : iterable of bytes
        Texts before those of the blocks.
    """
    packed = gzip_member if path.suffix == ".gz" else bytes
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.writelines(map(packed, before))
        file.writelines(run_ordered(lambda block: packed(text_of(block)), blocks, threads))


def gzip_member(text: bytes) -> bytes:
    """Text as one member of a gzip file; the same bytes on every system with the same zlib."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = packer.compress(text) + packer.flush()
    sums = zlib.crc32(text), len(text) & 0xFFFFFFFF
    return _GZIP + body + b"".join(x.to_bytes(4, "little") for x in sums)


def _put(text: np.ndarray, length: np.ndarray, k: int, string: bytes) -> None:
    text[k, : len(string)] = np.frombuffer(string, np.uint8)
    length[k] = len(string)


@numba.njit(nogil=True, cache=True)
def append_loop(text, length, index, end, at, out):
    for line in range(len(index)):
        k = index[line]
        start = at[line]
        for c in range(length[k]):
            out[start + c] = text[k, c]
        out[start + length[k]] = end
        at[line] = start + length[k] + 1


@numba.njit(nogil=True, cache=True)
def write_integers(values, text, length):
    for k in range(len(values)):
        x, at = values[k], 0
        if x < 0:
            text[k, 0] = 45  # -
            at = 1
        rest = np.uint64(-x) if x < 0 else np.uint64(x)
        places, power = 1, np.uint64(10)
        while places < 19 and rest >= power:
            places += 1
            power *= np.uint64(10)
        for place in range(at + places - 1, at - 1, -1):
            text[k, place] = 48 + rest % np.uint64(10)
            rest //= np.uint64(10)
        length[k] = at + places


@numba.njit(nogil=True, cache=True)
def write_numbers(values, digits, powers, text, length):
    """Leaves length 0 where Python must write."""
    limit = powers[digits]
    digit = np.empty(digits, np.uint8)
    for k in range(len(values)):
        x = values[k]
        size = abs(x)
        if size == 0.0:
            # the sign of zero
            negative = np.signbit(x)
            text[k, 0] = 45 if negative else 48
            text[k, 1] = 48
            length[k] = 2 if negative else 1
            continue
        if not 1e-9 < size < 1e20:
            continue
        exponent = int(np.floor(np.log10(size)))
        scaled = _scaled(size, digits - 1 - exponent, powers)
        if scaled < powers[digits - 1]:  # log10 was rounded up
            exponent -= 1
            scaled = _scaled(size, digits - 1 - exponent, powers)
        whole = np.floor(scaled)
        part = scaled - whole
        if abs(part - 0.5) < _NEAR:
            continue
        if part > 0.5:
            whole += 1
        if whole >= limit:
            exponent += 1
            whole = powers[digits - 1]
        number, place = np.uint64(whole), digits
        while place >= 2:
            rest = number // np.uint64(100)
            pair = number - rest * np.uint64(100)
            place -= 2
            tens = pair // np.uint64(10)
            digit[place], digit[place + 1] = tens, pair - tens * np.uint64(10)
            number = rest
        if place:
            digit[0] = number
        shown = digits
        while shown > 1 and digit[shown - 1] == 0:
            shown -= 1
        length[k] = _lay_out(text[k], digit, shown, digits, exponent, x < 0)


@numba.njit(nogil=True, cache=True, inline="always")
def _scaled(size, power, powers):
    return size * powers[power] if power >= 0 else size / powers[-power]


@numba.njit(nogil=True, cache=True)
def _lay_out(text, digit, shown, digits, exponent, negative):
    """Write digits by the rules of %g; the length."""
    at = 0
    if negative:
        text[at] = 45  # -
        at += 1
    if exponent < -4 or exponent >= digits:
        for place in range(shown):
            text[at] = 48 + digit[place]
            at += 1
            if place == 0 and shown > 1:
                text[at] = 46  # .
                at += 1
        text[at] = 101  # e
        text[at + 1] = 45 if exponent < 0 else 43
        size = abs(exponent)
        text[at + 2], text[at + 3] = 48 + size // 10, 48 + size % 10
        return at + 4
    if exponent < 0:
        text[at], text[at + 1] = 48, 46
        at += 2
        for _ in range(-1 - exponent):
            text[at] = 48
            at += 1
    for place in range(max(shown, exponent + 1)):
        if place and place == exponent + 1:
            text[at] = 46
            at += 1
        text[at] = 48 + (digit[place] if place < shown else 0)
        at += 1
    return at
