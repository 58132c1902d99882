"""Stream the decompressed bytes of a plain, gzip or BGZF (bgzip) file.

A BGZF file is a sequence of small independent gzip members, each of which states its size, so its
blocks are decompressed in parallel; a plain gzip file can only be read sequentially.
"""

import os
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from isal import igzip, igzip_lib, isal_zlib

from ..core.errors import UserError
from ..core.files import open_regular

# The empty block that ends every BGZF file (SAM specification, section 4.1.2).
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
BGZF_MAX_BLOCK = 1 << 16
# Of a block's header: gzip's begin, the mark of bgzip's field, and the block's size less one. Its
# last four bytes are the size of the text.
_HEADER = struct.Struct("<4s8x2s2xH")
_SIZE = struct.Struct("<I")

# Bytes read from a BGZF file at a time.
READ_BYTES = 1 << 20


def open_input(path: Path):
    """Open `path` for reading bytes; UserError if it is missing, not a file or unreadable."""
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; correct its path.") from None


def find_compression(path: Path) -> str:
    """Return 'none', 'gzip' or 'bgzf' from the first bytes and check the end of a BGZF file.

    Raises
    ------
    UserError
        The file is missing or empty, or a BGZF file lacks its end-of-file block.
    """
    with open_input(path) as file:
        head = file.read(18)
        if not head:
            raise UserError(f"{path} is empty; give a VCF, VCF.gz or BCF file.")
        if head[:2] != b"\x1f\x8b":
            return "none"
        if len(head) < 18 or not head[3] & 4 or head[12:14] != b"BC":
            return "gzip"
        file.seek(0, 2)
        file.seek(max(0, file.tell() - len(BGZF_END)))
        if file.read() != BGZF_END:
            raise UserError(
                f"{path} is cut short: the end-of-file block of bgzip is missing; "
                "copy or compress it again."
            )
        return "bgzf"


def in_order(function: Callable, items: Iterable, pool: Executor | None, ahead: int) -> Iterator:
    """Yield function(item) for each item in order, computing at most `ahead` results in advance.

    Unlike `Executor.map` this draws items only as results are consumed, which bounds memory. If
    drawing an item fails, the pending results are yielded first, so that the first error of a file
    is reported whatever the number of threads.
    """
    if pool is None:
        yield from map(function, items)
        return
    waiting: deque = deque()
    source = iter(items)
    failure = None
    while True:
        try:
            waiting.append(pool.submit(function, next(source)))
        except StopIteration:
            break
        except UserError as error:
            failure = error
            break
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
    if failure is not None:
        raise failure


#: Bytes of a file, decompressed, as parts that follow one another.
Parts = list[bytes | bytearray]


@dataclass(frozen=True)
class BgzfBlocks:
    """BGZF blocks that follow one another; they are decompressed when they are read, in any thread.

    `ends` are the ends of the blocks in `data`, and `size` the bytes of text that they state.
    """

    path: Path
    data: memoryview
    ends: list[int]
    size: int

    def read_into(self, text: memoryview) -> bool:
        """Decompress to `text` (size) without allocating memory; False if that fails.

        After False, `text` has any content, and `read` finds out what is wrong.
        """
        try:
            reader = igzip._GzipReader(self.data)  # the C class behind igzip.open
            done = 0
            while done < self.size:
                if not (n := reader.readinto(text[done:])):
                    return False
                done += n
            return not reader.read(1)
        except (EOFError, igzip.BadGzipFile, igzip_lib.IsalError):
            return False

    def read(self) -> Parts:
        """Return the text.

        Raises
        ------
        UserError
            A block is cut short or damaged.
        """
        if self.is_usual():
            text = bytearray(self.size)
            if self.read_into(memoryview(text)):
                return [text]
        try:
            return [
                igzip_lib.decompress(
                    self.data[start:end], flag=igzip_lib.DECOMP_GZIP, bufsize=BGZF_MAX_BLOCK
                )
                for start, end in pairwise([0, *self.ends])
            ]
        except (EOFError, igzip_lib.IsalError) as error:
            raise _damaged(self.path, str(error)) from None

    def is_usual(self) -> bool:
        """Whether `size` may be true: no block of bgzip has more text than BGZF_MAX_BLOCK."""
        return self.size <= len(self.ends) * BGZF_MAX_BLOCK


@dataclass(frozen=True)
class Plain:
    """A piece of a file that is not BGZF, already decompressed."""

    content: bytes

    def read(self) -> Parts:
        """Return the content."""
        return [self.content]


def read_pieces(path: Path, compression: str, piece_bytes: int) -> Iterator[BgzfBlocks | Plain]:
    """Yield the content in order, in pieces of at most about `piece_bytes`.

    Raises
    ------
    UserError
        The compressed data are cut short or damaged.
    """
    if compression == "bgzf":
        yield from _block_runs(path, piece_bytes)
        return
    reader = open_input(path) if compression == "none" else igzip.open(path, "rb")
    with reader:
        try:
            while piece := reader.read(piece_bytes):
                yield Plain(piece)
        except (EOFError, igzip.BadGzipFile, igzip_lib.IsalError) as error:
            raise _damaged(path, str(error)) from None


def read_near(path: Path, compression: str, start: int, n_bytes: int) -> tuple[bytes, int]:
    """About `n_bytes` of text or more from a place of the file on, and the bytes it takes there.

    A BGZF file is entered at its first block from `start` on; a plain gzip file at its beginning
    alone.

    Raises
    ------
    UserError
        The data are cut short or damaged.
    """
    with open_input(path) as file:
        if compression == "gzip":
            data = file.read(max(n_bytes // 8, READ_BYTES))
            text = isal_zlib.decompressobj(wbits=31).decompress(data)
            return text, len(data)
        file.seek(start)
        if compression == "none":
            text = file.read(n_bytes)
            return text, len(text)
        data = file.read(2 * BGZF_MAX_BLOCK)
        first = data.find(BGZF_END[:4])
        while first >= 0 and (
            data[first + 12 : first + 14] != b"BC"
            or data[(end := _block_end(path, data, first)) : end + 4] not in (BGZF_END[:4], b"")
        ):
            first = data.find(BGZF_END[:4], first + 1)
        if first < 0:
            raise _damaged(path, "no block begins where one must")
        file.seek(start + first)
        text, taken = bytearray(), 0
        while len(text) < n_bytes and (data := file.read(READ_BYTES)):
            at = 0
            while (end := _block_end(path, data, at)) <= len(data) and len(text) < n_bytes:
                text += b"".join(BgzfBlocks(path, memoryview(data)[at:end], [end - at], 0).read())
                at = end
            if at == 0:
                raise _damaged(path, "its last block is incomplete")
            taken += at
            file.seek(at - len(data), os.SEEK_CUR)
        return bytes(text), taken


def join_pieces(records: Iterable[bytes], piece_bytes: int) -> Iterator[Plain]:
    """Yield records that are made one by one in pieces of about `piece_bytes`."""
    parts: list[bytes] = []
    size = 0
    for record in records:
        parts.append(record)
        size += len(record)
        if size >= piece_bytes:
            yield Plain(b"".join(parts))
            parts, size = [], 0
    if parts:
        yield Plain(b"".join(parts))


def _damaged(path: Path, reason: str) -> UserError:
    reason = reason.rstrip(".")
    return UserError(f"{path} is cut short or damaged ({reason}); copy or compress it again.")


def _block_runs(path: Path, piece_bytes: int) -> Iterator[BgzfBlocks]:
    """Yield runs of whole BGZF blocks with about `piece_bytes` of text, the last of a read less."""
    with open_input(path) as file:
        while data := file.read(READ_BYTES):
            view = memoryview(data)
            first = start = size = 0
            ends: list[int] = []
            while (end := _block_end(path, data, start)) <= len(data):
                size += _SIZE.unpack_from(data, end - 4)[0]
                ends.append(end - first)
                start = end
                if size >= piece_bytes:
                    yield BgzfBlocks(path, view[first:start], ends, size)
                    first, ends, size = start, [], 0
            if start == 0:  # a block is far smaller than what is read
                raise _damaged(path, "its last block is incomplete")
            if ends:
                yield BgzfBlocks(path, view[first:start], ends, size)
            file.seek(start - len(data), os.SEEK_CUR)  # a block that was not whole is read again


def _block_end(path: Path, data: bytes, start: int) -> int:
    """Return the end of the block at `start`; it lies past `data` if the block is incomplete."""
    if len(data) - start < _HEADER.size:
        return len(data) + 1
    begin, mark, last = _HEADER.unpack_from(data, start)
    if begin != BGZF_END[:4] or mark != b"BC":
        raise _damaged(path, "a block does not start with a bgzip header")
    return start + max(last + 1, 26)
