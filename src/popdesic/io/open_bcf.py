"""Open records of BCF, as `open_records` does those of VCF text."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from . import bcf_records_cpu as kernel
from .site_classes import STAND_IN, OpenedRecords, Record, is_plain, open_record, stand_ins

#: Contig, POS from 0, length on REF, numbers of INFO and alleles, and of FORMAT and samples: the
#: bytes of QUAL lie between the first three and the last two.
_PLACE, _NUMBERS = struct.Struct("<iii"), struct.Struct("<II")
_TYPES = {kernel.INT8: np.int8, kernel.INT16: np.int16, kernel.INT32: np.int32}
_ALLELES = b"".join(b"\x17" + one.encode() for one in STAND_IN)


class _Damaged(Exception):  # noqa: N818 (never seen: the record stays for the decoder)
    """A size does not fit."""


def open_bcf_records(
    data: np.ndarray,
    n_samples: int,
    contigs: Mapping[int, str],
    keys: Mapping[int, str],
    classes: Sequence[str],
) -> tuple[np.ndarray, int, OpenedRecords]:
    """Open whole records; one that is damaged stays as it is.

    Parameters
    ----------
    data : uint8 array, (n_bytes,)
    n_samples : int
    contigs, keys : dict
        `bcf.read_dictionaries`.
    classes : names of `site_classes.CLASSES`

    Returns
    -------
    data : uint8 array, (any,)
    n_records : int
    opened : OpenedRecords
    """
    raw, known = data.tobytes(), OpenedRecords()
    parts: list[bytes] = []
    start = copied = number = 0
    while start < len(raw):
        shared, calls = _NUMBERS.unpack_from(raw, start)
        end = start + kernel.LENGTHS_BYTES + shared + calls
        try:
            record = _Record(data, raw, start, end - calls, end, n_samples, contigs, keys)
            found = record.opened(number, classes, known)
        except _Damaged:
            found = []
        if found:
            parts += [raw[copied:start], *found]
            copied = end
        else:
            known.origin.append(number)
        start, number = end, number + 1
    whole = b"".join([*parts, raw[copied:]])
    return np.frombuffer(whole, np.uint8), len(known.origin), known


def written_call(
    data: np.ndarray,
    n_samples: int,
    contigs: Mapping[int, str],
    keys: Mapping[int, str],
    number: int,
    sample: int,
) -> tuple[np.ndarray, int]:
    """The call of a sample in the record of this number, before it was opened.

    Returns
    -------
    call : uint8 array, (n_bytes,)
    kind : int
        Type of its integers.
    """
    raw, start = data.tobytes(), 0
    for _ in range(number):
        start += kernel.LENGTHS_BYTES + sum(_NUMBERS.unpack_from(raw, start))
    shared, calls = _NUMBERS.unpack_from(raw, start)
    end = start + kernel.LENGTHS_BYTES + shared + calls
    record = _Record(data, raw, start, end - calls, end, n_samples, contigs, keys)
    blocks, _ = record.formats(several=False)
    found = next(block for block in blocks if isinstance(block, np.ndarray))
    kind = next(kind for kind, of in _TYPES.items() if of == found.dtype)
    return found.reshape(n_samples, -1)[sample].view(np.uint8), kind


class _Record:
    """One record, read as far as needed."""

    def __init__(self, data, raw, start, shared_end, end, n_samples, contigs, keys) -> None:
        self._data, self._raw, self._end, self._shared_end = data, raw, end, shared_end
        self._n_samples, self._contigs, self._keys = n_samples, contigs, keys
        self._start = start + kernel.LENGTHS_BYTES
        if shared_end - self._start < kernel.FIXED_BYTES:
            raise _Damaged
        self._contig, self._pos, _ = _PLACE.unpack_from(raw, self._start)
        alleles, formats = _NUMBERS.unpack_from(raw, self._start + _PLACE.size + 4)
        self._n_info, self._n_formats = alleles & 0xFFFF, formats >> 24
        self._id = place = self._start + kernel.FIXED_BYTES
        texts = []
        for _ in range(1 + (alleles >> 16)):
            text, place = self._text(place)
            texts.append(text)
        self._id_end = self._skip(self._id, shared_end, 1)
        self._alleles, self._filter = texts[1:], place
        if formats & 0xFFFFFF != n_samples or self._contig not in contigs or self._pos < 0:
            raise _Damaged

    def _type(self, place: int, end: int) -> tuple[int, int, int]:
        """Type, number and start of the values at a place."""
        raw = self._raw
        if place >= end:
            raise _Damaged
        kind, length = raw[place] & 15, raw[place] >> 4
        place += 1
        if length == 15:
            size = _TYPES.get(raw[place] & 15) if place < end and raw[place] >> 4 == 1 else None
            if size is None or end - place - 1 < size().itemsize:
                raise _Damaged
            length = int(np.frombuffer(raw, size, 1, place + 1)[0])
            place += 1 + size().itemsize
        if length < 0:
            raise _Damaged
        return kind, length, place

    def _text(self, place: int) -> tuple[str, int]:
        kind, length, place = self._type(place, self._shared_end)
        if length > self._shared_end - place or (length and kind != kernel.CHAR):
            raise _Damaged
        return self._raw[place : place + length].decode("latin-1"), place + length

    def _skip(self, place: int, end: int, count: int) -> int:
        place = kernel.skip_value(self._data, place, end, count)
        if place < 0:
            raise _Damaged
        return place

    def _key(self, place: int, end: int) -> tuple[str, int]:
        key, place = kernel.read_key(self._data, place, end)
        if key < 0:
            raise _Damaged
        return self._keys.get(key, ""), place

    def _ints(self, place: int) -> list[int]:
        kind, _, _ = self._type(place, self._shared_end)
        return kernel.read_ints(self._data, place) if kind in _TYPES else []

    def _info(self) -> tuple[str, str]:
        """FILTER, and SVLEN and END of INFO, as in VCF text."""
        place = self._skip(self._filter, self._shared_end, 1)
        failed = ";".join(self._keys.get(key, str(key)) for key in self._ints(self._filter))
        found = []
        for _ in range(self._n_info):
            key, place = self._key(place, self._shared_end)
            end = self._skip(place, self._shared_end, 1)  # which checks the value
            if key in ("SVLEN", "END"):
                kind, _, _ = self._type(place, self._shared_end)
                values = ",".join(_shown(value, kind) for value in self._ints(place))
                found.append(f"{key}={values}")
            place = end
        return failed, ";".join(found)

    def opened(self, number: int, classes: Sequence[str], known: OpenedRecords) -> list[bytes]:
        """The records that stand for this one; none if it stays as it is."""
        if len(self._alleles) < 2:
            return []
        ref, *alts = self._alleles
        others = stand_ins(alts)
        n_alts = len(alts) - len(others)
        if not n_alts or is_plain(ref, alts, others):
            return []
        failed, info = self._info()
        pos = self._pos + 1
        opened = open_record(pos, ref, alts, info, classes)
        blocks, n_formats = self.formats(n_alts > 1)
        record = Record(self._contigs[self._contig], pos, len(ref), n_alts, failed, others)
        called = any(isinstance(block, np.ndarray) for block in blocks)
        if pos == 0 or not called or not known.add(number, record, opened):
            return []
        id_and_alleles = self._raw[self._id : self._id_end] + _ALLELES
        filters = self._raw[self._filter : self._skip(self._filter, self._shared_end, 1)]
        quality = self._raw[self._start + _PLACE.size : self._start + _PLACE.size + 4]
        numbers = _NUMBERS.pack(2 << 16, n_formats << 24 | self._n_samples)
        found = []
        for site in opened.sites:
            place = _PLACE.pack(self._contig, site.pos - 1, 1)
            shared = place + quality + numbers + id_and_alleles + filters
            calls = b"".join(
                _chosen(block.reshape(self._n_samples, -1), site.allele, len(alts), others)
                if isinstance(block, np.ndarray)
                else block
                for block in blocks
            )
            found.append(_NUMBERS.pack(len(shared), len(calls)) + shared + calls)
        return found

    def formats(self, several: bool) -> tuple[list[bytes | np.ndarray], int]:
        """Blocks of FORMAT, the alleles of GT as integers; of several ALT without AD."""
        place, blocks, n_formats = self._shared_end, [], self._n_formats
        for _ in range(self._n_formats):
            first = place
            key, place = self._key(place, self._end)
            kind, length, start = self._type(place, self._end)
            place = self._skip(place, self._end, self._n_samples)
            if key == "GT" and kind in _TYPES:
                calls = np.frombuffer(self._raw, _TYPES[kind], length * self._n_samples, start)
                blocks += [self._raw[first:start], calls]
            elif key == "AD" and several:
                n_formats -= 1
            else:
                blocks.append(self._raw[first:place])
        return blocks, n_formats


def _shown(value: int, kind: int) -> str:
    """An integer as VCF text has it; each type keeps its lowest 8 values for those without."""
    return "." if value < np.iinfo(_TYPES[kind]).min + 8 else str(value)


def _chosen(calls: np.ndarray, allele: int, n_alts: int, others: tuple[int, ...]) -> bytes:
    """Alleles, ``(number + 1) << 1 | phased``, with 1 for the chosen one and 0 for others.

    Calls (n_samples, width) with an allele of `others` are missing.
    """
    number, phased = (calls >> 1) - 1, calls & 1
    known = (number >= 0) & (number <= n_alts)
    out = np.where(known, ((number == allele) + 1) << 1 | phased, calls)
    if others:
        missing = np.isin(number, others).any(axis=1, keepdims=True)
        out = np.where(missing & (number >= 0), phased, out)
    return out.astype(calls.dtype).tobytes()
