"""Stream the decompressed bytes of a plain, gzip or BGZF (bgzip) file.

A BGZF file is a sequence of small independent gzip members, each of which states its size, so its
blocks are decompressed in parallel; a plain gzip file can only be read sequentially.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from pathlib import Path

from isal import igzip, igzip_lib

from .errors import UserError
from .files import open_regular

# The empty block that ends every BGZF file (SAM specification, section 4.1.2).
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
BGZF_MAX_BLOCK = 1 << 16

# Bytes read from a BGZF file at a time.
READ_BYTES = 1 << 20


def open_input(path: Path):
    """Open `path` for reading bytes; UserError if it is missing, not a file or unreadable."""
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise UserError(
            f"{path} does not exist; correct its path in the sheet of cohorts."
        ) from None


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


def read_pieces(
    path: Path, compression: str, piece_bytes: int, pool: Executor | None = None, ahead: int = 0
) -> Iterator[list[bytes]]:
    """Yield the decompressed content in order, as lists of bytes of about `piece_bytes` a list.

    Raises
    ------
    UserError
        The compressed data are cut short or damaged.
    """
    if compression == "bgzf":
        yield from in_order(_decompress_blocks, _block_groups(path, piece_bytes), pool, ahead)
        return
    reader = open_input(path) if compression == "none" else igzip.open(path, "rb")
    with reader:
        try:
            while piece := reader.read(piece_bytes):
                yield [piece]
        except (EOFError, igzip.BadGzipFile, igzip_lib.IsalError) as error:
            raise _damaged(path, str(error)) from None


def _damaged(path: Path, reason: str) -> UserError:
    reason = reason.rstrip(".")
    return UserError(f"{path} is cut short or damaged ({reason}); copy or compress it again.")


def _block_groups(path: Path, piece_bytes: int) -> Iterator[tuple[Path, list[memoryview]]]:
    """Yield runs of whole BGZF blocks that decompress to about `piece_bytes`."""
    group: list[memoryview] = []
    size = 0
    rest = b""
    with open_input(path) as file:
        while data := file.read(READ_BYTES):
            data = rest + data
            view = memoryview(data)
            start = 0
            while (end := _block_end(path, data, start)) <= len(data):
                group.append(view[start:end])
                size += struct.unpack_from("<I", data, end - 4)[0]
                start = end
                if size >= piece_bytes:
                    yield path, group
                    group, size = [], 0
            rest = data[start:]
    if rest:
        raise _damaged(path, "its last block is incomplete")
    if group:
        yield path, group


def _block_end(path: Path, data: bytes, start: int) -> int:
    """Return the end of the block at `start`; it lies past `data` if the block is incomplete."""
    if len(data) - start < 18:
        return len(data) + 1
    if data[start : start + 4] != BGZF_END[:4] or data[start + 12 : start + 14] != b"BC":
        raise _damaged(path, "a block does not start with a bgzip header")
    return start + max(struct.unpack_from("<H", data, start + 16)[0] + 1, 26)


def _decompress_blocks(group: tuple[Path, list[memoryview]]) -> list[bytes]:
    path, blocks = group
    try:
        return [
            igzip_lib.decompress(block, flag=igzip_lib.DECOMP_GZIP, bufsize=BGZF_MAX_BLOCK)
            for block in blocks
        ]
    except (EOFError, igzip_lib.IsalError) as error:
        raise _damaged(path, str(error)) from None
