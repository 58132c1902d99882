"""Symmetric matrices on disk: the upper triangle alone, read as rows of the whole.

The file is a one-dimensional `.npy` of runs of BLOCK rows, each from the run's first column to the
last one. Rows of the whole matrix are put together when they are read. Of int32 numbers that lie
within a range of 16 bits (`narrow`), the file has uint16 and, in its last four entries, the int64
that is added to them.

Where the numbers lie in other files already, the `.npy` names these (`Tiled`); rows of the
whole are read from them. `PackedCounts` reads their numbers of two or three bytes.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
import zipfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import UserError
from .files import atomic_path, content_key, kept_checksum, require_space

#: Rows of a run: of columns that are read as rows, a cache holds the lines.
BLOCK = 256
#: Entries of uint16 that hold an int64, and the high one of an int32.
TAIL = 4
HIGH = int(sys.byteorder == "little")


def _runs(n: int) -> Iterator[tuple[int, int, int]]:
    """First and last row of each run, and where its numbers begin in the file."""
    start = 0
    for first in range(0, n, BLOCK):
        last = min(n, first + BLOCK)
        yield first, last, start
        start += (last - first) * (n - first)


def triangle_size(n: int) -> int:
    """Numbers in the file of a matrix of so many rows."""
    return sum((last - first) * (n - first) for first, last, _ in _runs(n))


def write_triangle(path: Path, matrix: np.ndarray) -> None:
    """Write the upper triangle of a symmetric matrix, (n, n), in the matrix's number type."""
    n, least = len(matrix), least_of_narrow(matrix)
    dtype = matrix.dtype if least is None else np.dtype(np.uint16)
    size = triangle_size(n) + (0 if least is None else TAIL)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        require_space(path, size * dtype.itemsize)
        descr = np.lib.format.dtype_to_descr(dtype)
        about = {"descr": descr, "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(file, about)
        for first, last, _ in _runs(n):
            part = matrix[first:last, first:]
            file.write(np.ascontiguousarray(narrow(part, least)).data)
        if least is not None:
            file.write(np.int64(least).tobytes())


def least_of_narrow(matrix: np.ndarray, bits: int = 16) -> int | None:
    """The least of int32 numbers that lie within a range of so many bits; None for others."""
    if matrix.dtype != np.int32 or not matrix.size:
        return None
    least = int(matrix.min())
    return least if int(matrix.max()) - least < 1 << bits else None


def narrow(matrix: np.ndarray, least: int | None) -> np.ndarray:
    """Numbers less `least`, as uint16; as they are if it is None."""
    return matrix if least is None else (matrix - np.int32(least)).astype(np.uint16)


def upper_triangle(matrix: np.ndarray) -> np.ndarray:
    """The runs of a matrix, (n, n), that `write_triangle` writes, as a 1-D array."""
    return np.concatenate([matrix[a:b, a:].reshape(-1) for a, b, _ in _runs(len(matrix))])


class Triangle:
    """A matrix that `write_triangle` wrote, memory-mapped; ``triangle[rows]`` are rows of (n, n).

    Parameters
    ----------
    source : Path or 1-D array
        The file, or an `upper_triangle`.

    Raises
    ------
    ValueError
        The file holds something else.
    """

    def __init__(self, source: Path | np.ndarray) -> None:
        stored = np.load(source, mmap_mode="r") if isinstance(source, Path) else source
        self.dtype, self._least = stored.dtype, 0
        if stored.dtype == np.uint16 and isinstance(source, Path):
            self._least = int.from_bytes(stored[-TAIL:].tobytes(), "little", signed=True)
            self.dtype, stored = np.dtype(np.int32), stored[:-TAIL]
        n = bisect_left(range(math.isqrt(2 * stored.size) + 1), stored.size, key=triangle_size)
        if stored.ndim != 1 or triangle_size(n) != stored.size:
            raise ValueError(f"{source} does not hold the triangle of a matrix")
        self.shape, self._n = (n, n), n
        self._blocks = [
            stored[start : start + (last - first) * (n - first)].reshape(last - first, n - first)
            for first, last, start in _runs(n)
        ]

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        which = np.arange(self._n)[rows]
        out = np.empty((len(which), self._n), self.dtype)
        of_run = which // BLOCK
        for run in np.unique(of_run).tolist():
            places = _as_slice(np.flatnonzero(of_run == run))
            own = _as_slice(which[places] - run * BLOCK)
            out[places, run * BLOCK :] = self._blocks[run][own]
            for earlier, block in enumerate(self._blocks[:run]):
                first = earlier * BLOCK
                columns = block[:, (run - earlier) * BLOCK : (run - earlier + 1) * BLOCK]
                out[places, first : first + BLOCK] = columns[:, own].T
        if self._least:
            out += self.dtype.type(self._least)
        return out


def _as_slice(numbers: np.ndarray) -> np.ndarray | slice:
    """Consecutive numbers as a slice, which copies nothing; others as they are."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


@dataclass(frozen=True)
class PackedCounts:
    """Whole numbers of `pack_counts`: ``packed[rows]`` are int32, or of their type if not packed.

    Attributes
    ----------
    low : array or Triangle
        The two low bytes, uint16; or the numbers themselves.
    high : array or Triangle, optional
        The third byte.
    least : int
        Added to all.
    """

    low: np.ndarray | Triangle
    high: np.ndarray | Triangle | None = None
    least: int = 0

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], name: str) -> PackedCounts:
        """The matrix of this name, of which an `upper_triangle` may have been packed."""
        parts = [arrays[one] for one in (name, f"{name}_high") if one in arrays]
        opened = [Triangle(part) if part.ndim == 1 else part for part in parts]
        return cls(*opened, least=int(arrays[f"{name}_least"]) if f"{name}_least" in arrays else 0)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    def __getitem__(self, which: Any) -> np.ndarray:
        low = self.low[which]
        if low.dtype != np.uint16:
            return low
        out = np.empty(low.shape, np.int32)
        self.put(out, which, low)
        return out

    def put(
        self, out: np.ndarray, which: Any, low: np.ndarray | None = None, *, turned: bool = False
    ) -> None:
        """Set `out` to rows and columns `which` of the numbers, or of the turned matrix."""
        low = self.low[which] if low is None else low
        out[:] = low.T if turned else low
        if self.high is not None:
            high = self.high[which]
            out.view(np.uint16)[..., HIGH::2] = high.T if turned else high
        if self.least:
            out += out.dtype.type(self.least)


def pack_counts(name: str, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays of whole numbers in two bytes each, or in three, for `PackedCounts.of`."""
    least = least_of_narrow(matrix, 24)
    if least is None:
        return {name: matrix}
    above = matrix - np.int32(least)
    packed = {name: above.astype(np.uint16), f"{name}_least": np.int32(least)}
    high = (above >> 16).astype(np.uint8)
    return packed | ({f"{name}_high": high} if high.any() else {})


class Tiled:
    """A symmetric matrix of tiles in other files; ``tiled[rows]`` are rows of (n, n).

    Parameters
    ----------
    folder : Path
        Where paths of tiles begin.
    about : dict
        What `write` has written.

    Raises
    ------
    UserError
        A tile is missing, or is not the one that was meant.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self._folder, self._about, self.dtype = folder, about, np.dtype(about["dtype"])
        self._starts = np.cumsum([0, *about["sizes"]])
        self._n = int(self._starts[-1])
        self.shape = (self._n, self._n)

    def __len__(self) -> int:
        return self._n

    @functools.cached_property
    def _tiles(self) -> dict[tuple[int, int], PackedCounts]:
        opened, name = {}, self._about["name"]
        for one, other, path, key in self._about["tiles"]:
            tile = Path(os.path.normpath(self._folder / path))
            kept, wrong = " ".join(kept_checksum(tile)[:2]), ""
            npy = at_fault = self._folder / f"{name}.npy"
            if not tile.is_file() or kept not in ("", key):
                wrong = "is another one now" if tile.is_file() else "is missing"
            elif key.split()[1] != str(tile.stat().st_size):
                wrong, at_fault = "was cut or edited", tile
            if wrong:
                raise UserError(
                    f"{npy} names the tile {tile}, which {wrong}; delete {at_fault} and run again."
                )
            opened[one, other] = PackedCounts.of(map_npz(tile, name), name)
        return opened

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        which = np.arange(self._n)[rows]
        out = np.empty((len(which), self._n), self.dtype)
        of_part = np.searchsorted(self._starts, which, "right") - 1
        for part in np.unique(of_part).tolist():
            places = _as_slice(np.flatnonzero(of_part == part))
            own = _as_slice(which[places] - self._starts[part])
            for other in range(len(self._starts) - 1):
                columns = slice(*self._starts[other : other + 2])
                found = out[places, columns]  # a copy unless the rows are consecutive
                if part <= other:
                    self._tiles[part, other].put(found, own)
                else:
                    self._tiles[other, part].put(found, (slice(None), own), turned=True)
                if not isinstance(places, slice):
                    out[places, columns] = found
        return out

    @classmethod
    def of(
        cls,
        folder: Path,
        name: str,
        sizes: Mapping[str, int],
        tiles: Mapping[tuple[str, str], Path],
        dtype: type,
    ) -> Tiled:
        """Of tiles that `write` is to name.

        Parameters
        ----------
        folder : Path
            Where the file will be.
        name : str
            The matrix in each tile, from `pack_counts`.
        sizes : dict
            Rows of each part of the matrix, in order.
        tiles : dict
            `.npz` of each two parts, the first one's rows by the other's columns; of a part with
            itself, an `upper_triangle`.
        dtype
            Of the numbers that were packed.
        """
        number = {part: k for k, part in enumerate(sizes)}
        listed = [
            (number[a], number[b], os.path.relpath(tile, folder), content_key(tile))
            for (a, b), tile in tiles.items()
        ]
        rows = list(sizes.values())
        about = {"name": name, "dtype": np.dtype(dtype).name, "sizes": rows, "tiles": listed}
        return cls(folder, about)

    def write(self) -> None:
        """Write the names of the tiles, and keys of their contents, as one text in a `.npy`."""
        out = self._folder / f"{self._about['name']}.npy"
        with atomic_path(out) as temporary, open(temporary, "wb") as file:
            np.save(file, np.array(json.dumps(self._about).encode()))


def map_npz(path: Path, start: str) -> dict[str, np.ndarray]:
    """Memory-map the arrays of an uncompressed .npz whose names begin with `start`."""
    mapped, found = np.memmap(path, np.uint8, "r"), {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for member in archive.infolist():
            if member.filename.startswith(start):
                # Lengths of its name and of what else comes before its content.
                file.seek(member.header_offset + 26)
                lengths = np.frombuffer(file.read(4), "<u2")
                file.seek(int(lengths.sum()), os.SEEK_CUR)
                np.lib.format.read_magic(file)
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                array = np.ndarray(shape, dtype, mapped, file.tell())
                found[member.filename.removesuffix(".npy")] = array
    return found


def open_symmetric(path: Path) -> Triangle | Tiled | np.ndarray:
    """A symmetric matrix: a file of its triangle, of the names of tiles, or `.npy` (n, n)."""
    stored = np.load(path, mmap_mode="r")
    if stored.dtype.kind == "S":
        return Tiled(path.parent, json.loads(stored.item()))
    return Triangle(path) if stored.ndim == 1 else stored
