"""Arrays for R: the file that `saveRDS` writes, for ADMIXTOOLS 2.

Format: R Internals, section "Serialization Formats", version 2, XDR.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.files import atomic_path

_NULL, _SYMBOL, _PAIRLIST, _STRING, _INTEGER, _REAL, _STRINGS, _LIST = (
    *(254, 1, 2, 9, 13, 14, 16, 19),
)
_HAS_ATTRIBUTES, _HAS_TAG = 1 << 9, 1 << 10
_UTF8 = 1 << 15
#: R 3.5.0 wrote it, R 2.3.0 can read it: version 2 of the format.
_VERSIONS = (2, 0x030500, 0x020300)


def write_rds_array(path: Path, values: np.ndarray, names: Sequence[Sequence[str]]) -> None:
    """Write a float64 array with names of all its dimensions; R reads it with `readRDS`.

    Parameters
    ----------
    values : float64 array
        NaN becomes NaN.
    names : sequence of sequences of str
        Of each dimension.
    """
    parts = [b"X\n", struct.pack(">iii", *_VERSIONS)]
    flat = np.asarray(values, np.float64).ravel(order="F")
    parts += [_word(_REAL | _HAS_ATTRIBUTES), _word(len(flat)), flat.astype(">f8").tobytes()]
    parts += [_tag("dim"), _word(_INTEGER), _word(values.ndim)]
    parts += [np.array(values.shape, ">i4").tobytes()]
    parts += [_tag("dimnames"), _word(_LIST), _word(values.ndim)]
    for own in names:
        parts += [_word(_STRINGS), _word(len(own)), *map(_text, own)]
    parts.append(_word(_NULL))
    with atomic_path(path) as temporary:
        temporary.write_bytes(gzip.compress(b"".join(parts), 6, mtime=0))


def _word(number: int) -> bytes:
    return struct.pack(">i", number)


def _text(text: str) -> bytes:
    data = text.encode()
    return _word(_STRING | _UTF8) + _word(len(data)) + data


def _tag(name: str) -> bytes:
    """The name of an attribute that was not mentioned before."""
    return _word(_PAIRLIST | _HAS_TAG) + _word(_SYMBOL) + _text(name)
