"""Calls of polyploids in BCF as those of diploids, one for each layer, as `layer_text_cpu` in text.

Records get as many columns as their samples have layers. Columns after the first layer have GT and
no value in the other fields of calls, so limits on calls count once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from . import bcf_records_cpu as kernel

_TYPES = {kernel.INT8: np.int8, kernel.INT16: np.int16, kernel.INT32: np.int32}
_NUMBERS = struct.Struct("<II")
#: Of the lengths and the fixed fields of a record: where the number of samples is.
_SAMPLES = kernel.LENGTHS_BYTES + 20
_MISSING_FLOAT = struct.pack("<I", 0x7F800001)
#: What ends a call of fewer alleles than others have, in each type.
_ENDS = (-127, -32_767, -(2**31) + 1)
#: A call of three alleles, 0/0/0, which the decoder refuses where it reads it.
_REFUSED = (2, 2, 2)


def widen_records(
    data: np.ndarray, ploidy: np.ndarray, sizes: np.ndarray, layers: int, gt_key: int
) -> np.ndarray:
    """Whole records with one column for each layer of each sample; a damaged one stays as it is.

    Parameters
    ----------
    data : uint8 array, (n_bytes,)
    ploidy, sizes : int64 arrays, (n_samples,)
    layers : int
        As `layer_text_cpu.widen_lines` takes them.
    gt_key : int
        Number of GT.

    Returns
    -------
    uint8 array, (any,)
    """
    parts, start = [], 0
    while start < len(data):
        shared, calls = _NUMBERS.unpack(data[start : start + kernel.LENGTHS_BYTES].tobytes())
        end = start + kernel.LENGTHS_BYTES + shared + calls
        fields = _widen_fields(data, start, end - calls, end, ploidy, sizes, layers, gt_key)
        if fields is None:
            parts.append(data[start:end].tobytes())
        else:
            head = bytearray(data[start : end - calls].tobytes())
            number = struct.unpack_from("<I", head, _SAMPLES)[0] >> 24 << 24
            struct.pack_into("<I", head, _SAMPLES, number | len(sizes) * layers)
            struct.pack_into("<I", head, 4, len(fields))
            parts += [bytes(head), fields]
        start = end
    return np.frombuffer(b"".join(parts), np.uint8)


def other_call(
    data: np.ndarray, number: int, sample: int, n_samples: int, gt_key: int
) -> tuple[bytes, int]:
    """The call of a sample in a record, by its number among whole ones, and its type."""
    start = 0
    for _ in range(number):
        start += kernel.LENGTHS_BYTES + sum(_NUMBERS.unpack(data[start : start + 8].tobytes()))
    shared, calls = _NUMBERS.unpack(data[start : start + kernel.LENGTHS_BYTES].tobytes())
    p = start + kernel.LENGTHS_BYTES + shared
    for key, kind, length, values in _fields_of(data, p, p + calls, n_samples) or ():
        if key == gt_key:
            size = length * np.dtype(_TYPES[kind]).itemsize
            return data[values + sample * size :][:size].tobytes(), kind
    return b"", kernel.INT8


def numbers_of_alleles(
    data: np.ndarray, n_samples: int, gt_key: int
) -> Iterator[tuple[int, list[int]]]:
    """Contig of each whole record, and alleles of its calls, 0 where none is called."""
    end, start = kernel.split_records(data, len(data))[0], 0
    while start < end:
        shared, calls = _NUMBERS.unpack(data[start : start + kernel.LENGTHS_BYTES].tobytes())
        p = start + kernel.LENGTHS_BYTES + shared
        contig = struct.unpack("<i", data[start + kernel.LENGTHS_BYTES :][:4].tobytes())[0]
        start = p + calls
        for key, kind, length, values in _fields_of(data, p, start, n_samples) or ():
            if key == gt_key and length and kind in _TYPES:
                calls_of = _calls(data, values, n_samples, kind, length)
                present = ~np.isin(calls_of, _ENDS)
                called = (present & (calls_of > 1)).any(axis=1)
                yield contig, np.where(called, present.sum(axis=1), 0).tolist()


def _calls(data: np.ndarray, values: int, n_samples: int, kind: int, length: int) -> np.ndarray:
    """GT of a record as it is, int64 (n_samples, length)."""
    dtype = np.dtype(_TYPES[kind]).newbyteorder("<")
    raw = data[values : values + n_samples * length * dtype.itemsize].tobytes()
    return np.frombuffer(raw, dtype).reshape(n_samples, length).astype(np.int64)


def _fields_of(
    data: np.ndarray, p: int, end: int, n_samples: int
) -> list[tuple[int, int, int, int]] | None:
    """Key, type, values a sample, and first byte of each field of calls; None if damaged."""
    found = []
    while p < end:
        key, p = kernel.read_key(data, p, end)
        behind = -1 if key < 0 or p >= end else kernel.skip_value(data, p, end, n_samples)
        if behind < 0:
            return None
        kind, length = int(data[p]) & 15, int(data[p]) >> 4
        p += 1
        if length == 15:
            length, p = kernel.read_key(data, p, end)
        found.append((int(key), kind, int(length), int(p)))
        p = behind
    return found


def _widen_fields(
    data: np.ndarray,
    start: int,
    p: int,
    end: int,
    ploidy: np.ndarray,
    sizes: np.ndarray,
    layers: int,
    gt_key: int,
) -> bytes | None:
    n = len(sizes)
    if p - start < _SAMPLES + 4 or end > len(data):
        return None
    (number,) = struct.unpack("<I", data[start + _SAMPLES :][:4].tobytes())
    fields = _fields_of(data, p, end, n) if number & 0xFFFFFF == n else None
    if fields is None or len(fields) != number >> 24:
        return None
    parts, began, known = [], p, False
    for key, kind, length, values in fields:
        behind = int(kernel.skip_value(data, _descriptor(data, began, end), end, n))
        if key == gt_key and not known and length and kind in _TYPES:
            known = True
            wide = _widen_calls(_calls(data, values, n, kind, length), ploidy, sizes, layers)
            key_bytes = data[began : _descriptor(data, began, end)].tobytes()
            parts += [key_bytes, bytes([wide.shape[1] << 4 | kernel.INT8]), wide.tobytes()]
        else:
            parts.append(data[began:behind].tobytes())
            parts.append((layers - 1) * n * _missing(kind, length))
        began = behind
    return b"".join(parts)


def _descriptor(data: np.ndarray, p: int, end: int) -> int:
    """Where the descriptor of the values begins that follow a key."""
    return int(kernel.read_key(data, p, end)[1])


def _missing(kind: int, length: int) -> bytes:
    """A sample's values, all missing."""
    if not length:
        return b""
    if kind in _TYPES:
        return length * np.array([np.iinfo(_TYPES[kind]).min], _TYPES[kind]).tobytes()
    return length * _MISSING_FLOAT if kind == kernel.FLOAT else b"." + bytes(length - 1)


def _widen_calls(
    calls: np.ndarray, ploidy: np.ndarray, sizes: np.ndarray, layers: int
) -> np.ndarray:
    """GT of all layers, int8 (layers * n, 2), or 3 where the decoder must refuse a call.

    `calls`: int64 (n, width), as BCF has them, of 8, 16 or 32 bits.
    """
    present = ~np.isin(calls, _ENDS)
    called = present & (calls > 1)
    alleles = (calls >> 1) - 1
    n_present, known = present.sum(axis=1), called.sum(axis=1)
    alt = (called & (alleles == 1)).sum(axis=1) * np.where(sizes == ploidy, 2, 1)
    high = (called & (alleles > 1)).any(axis=1)
    phased = (present[:, 1:] & (calls[:, 1:] & 1 > 0) & (calls[:, 1:] > 0)).any(axis=1)
    broken = (present[:, 1:] & ~present[:, :-1]).any(axis=1)
    refused = broken | ((known > 0) & ((known != ploidy) | (n_present != ploidy)))
    layer = np.arange(layers)[:, None]
    own = np.clip(alt - 2 * layer, 0, 2)
    one, two = np.where(high, 2, own > 0), np.where(high, 2, own > 1)
    none = (known == 0) | refused | (layer >= sizes)
    one, two = np.where(none, 0, 2 * one + 2), np.where(none, 0, 2 * two + 2)
    two[0] |= phased
    if not refused.any():
        return np.stack([one, two], axis=2).astype(np.int8).reshape(-1, 2)
    wide = np.stack([one, two, np.full_like(one, -127)], axis=2)
    wide[0, refused] = _REFUSED
    return wide.astype(np.int8).reshape(-1, 3)
