"""What zarr reads of an object store: chunks alone, or parts of them, of the versions listed.

zarr's own store of objects reads one that was deleted meanwhile as a chunk of fill values, which
are genotypes. This one reads what was listed, and knows what was not without a request.
Imported on first use, because zarr starts slowly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable
from typing import Any

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype

from ..core.errors import UserError


class ObjectZarr(Store):
    """A store of `Objects`, read only.

    Parameters
    ----------
    objects : remote.Objects
    headers : names
        Of objects that are no chunks; they are kept in memory.
    is_cut : function of bytes and their number
        Whether a chunk of an array in `blosc` is cut short.
    """

    supports_writes = supports_deletes = supports_partial_writes = False
    supports_listing = True

    def __init__(
        self, objects: Any, headers: Collection[str], is_cut: Callable[[bytes, int], bool]
    ) -> None:
        super().__init__(read_only=True)
        self.objects, self._headers, self._is_cut = objects, headers, is_cut
        self.blosc: Collection[str] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectZarr) and self.objects is other.objects

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return str(self.objects.remote)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        name = key.rpartition("/")[2]
        if (kept := self.objects.headers.get(key)) is not None:
            return prototype.buffer.from_bytes(kept)
        part: Any = None
        if isinstance(byte_range, RangeByteRequest):
            part = (byte_range.start, byte_range.end)
        elif isinstance(byte_range, OffsetByteRequest):
            part = {"offset": byte_range.offset}
        elif byte_range is not None:
            part = {"suffix": byte_range.suffix}
        data = await self.objects.read(key, part)
        if data is None:
            return None
        if name in self._headers:
            self.objects.headers[key] = data
        elif part is None and key.partition("/")[0] in self.blosc and self._is_cut(data, len(data)):
            raise UserError(
                f"{self.objects.remote}/{key} is cut short or damaged; copy the store again."
            )
        return prototype.buffer.from_bytes(data)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        return key in self.objects.stamps

    async def list(self) -> AsyncIterator[str]:
        for key in self.objects.stamps:
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        start = f"{prefix.rstrip('/')}/" if prefix else ""
        for key in self.objects.stamps:
            if key.startswith(start):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        below = len(prefix.rstrip("/")) + 1 if prefix else 0
        keys = [key async for key in self.list_prefix(prefix)]
        for name in dict.fromkeys(key[below:].partition("/")[0] for key in keys):
            yield name

    async def set(self, key: str, value: Buffer) -> None:
        raise UserError(f"{self.objects.remote} is only read.")

    async def delete(self, key: str) -> None:
        raise UserError(f"{self.objects.remote} is only read.")
