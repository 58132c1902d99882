"""Write BGZF, and the CSI index of a sorted VCF (SAM and CSI specifications)."""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

import numpy as np

from .bgzf import BGZF_END

_BLOCK_BYTES = 65_280  # bgzip's own block size
#: The smallest bins of the index have 2**14 positions; five levels of eight bins cover 2**29, six
#: all positions of VCF.
_MIN_SHIFT, _DEPTH, _DEEPER = 14, 5, 6


class BgzfWriter:
    """Writes BGZF blocks (SAM specification, section 4.1), as read by bgzip and tabix.

    Attributes
    ----------
    size : int
        Bytes of text so far.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._waiting = file, bytearray()
        self._starts, self._end, self.size = [0], 0, 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self._waiting += data
        while len(self._waiting) >= _BLOCK_BYTES:
            self._block(bytes(self._waiting[:_BLOCK_BYTES]))
            del self._waiting[:_BLOCK_BYTES]

    def close(self) -> None:
        if self._waiting:
            self._block(bytes(self._waiting))
        self._file.write(BGZF_END)

    def places(self, offsets: np.ndarray) -> np.ndarray:
        """Virtual offsets of bytes of the text, uint64; after `close`."""
        block, within = np.divmod(np.asarray(offsets, np.int64), _BLOCK_BYTES)
        return np.array(self._starts, np.uint64)[block] << np.uint64(16) | within.astype(np.uint64)

    def _block(self, data: bytes) -> None:
        packer = zlib.compressobj(4, zlib.DEFLATED, -15)
        body = packer.compress(data) + packer.flush()
        # gzip header with the BC field, which holds the block size minus one.
        head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0"
        self._file.write(head + struct.pack("<H", len(body) + 25) + body)
        self._file.write(struct.pack("<II", zlib.crc32(data), len(data)))
        self._end += len(head) + 2 + len(body) + 8
        self._starts.append(self._end)


def write_csi(
    file: BinaryIO, text: BgzfWriter, contigs: list[str], pos: list[np.ndarray], ends: np.ndarray
) -> None:
    """Write the CSI index of a VCF with records of one base.

    Parameters
    ----------
    text : BgzfWriter
        The closed writer of the VCF.
    contigs : list of str
        In the order of the file.
    pos : list of int64 array
        Positions of the records of each contig, ascending.
    ends : int64 array, (n_records + 1,)
        Where the first record begins in the text, and where each ends.
    """
    depth = _DEPTH if max((at[-1] for at in pos if len(at)), default=0) <= 1 << 29 else _DEEPER
    first_bin = ((1 << 3 * depth) - 1) // 7
    names = b"".join(name.encode() + b"\0" for name in contigs)
    # VCF; columns of contig, begin and end; the mark of headers; lines to skip; length of names
    about = struct.pack("<7i", 2, 1, 2, 0, ord("#"), 0, len(names)) + names
    index = BgzfWriter(file)
    index.write(struct.pack("<4s3i", b"CSI\1", _MIN_SHIFT, depth, len(about)) + about)
    index.write(struct.pack("<i", len(contigs)))
    places, done = text.places(ends), 0
    for at in pos:
        leaves, first = np.unique((at - 1) >> _MIN_SHIFT, return_index=True)
        last = [*first[1:], len(at)][: len(leaves)]
        index.write(struct.pack("<i", len(leaves)))
        for leaf, low, high in zip(leaves.tolist(), first, last, strict=True):
            begin, end = places[done + low], places[done + high]
            index.write(struct.pack("<IQiQQ", first_bin + leaf, begin, 1, begin, end))
        done += len(at)
    index.close()
