"""A .bed whose rare variants are lists of carriers.

Most sites of whole genomes are carried by few people, and a row of a .bed takes two bits of each
of the others, too. Such a file has records (`listed_rows_cpu`) of which each is shorter than its
row, or is its row. Whoever opens it reads the rows of the .bed that it stands for.

Content: LISTED_ROWS; little-endian int64 of the bytes of that .bed, of sites, of samples, and of
the records; the records; int64 (n_blocks + 1,), where each block of BLOCK sites begins.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import LISTED_ROWS, atomic_path
from .genotypes import BED_MAGIC, bed_row_bytes

#: Bytes of rows by which a file chooses; a smaller one has rows.
LEAST_LISTED = 1 << 24
#: Lists are chosen where they take at most one in so many bytes of the rows: other programs read
#: rows, and reading them is faster.
LEAST_GAIN = 2
#: Sites whose records are found by one number. On the way to the last of them the others are read.
BLOCK = 64
#: Bytes of rows that are encoded at a time.
ROWS_AT_ONCE = 1 << 24
_HEADER = len(LISTED_ROWS) + 4 * 8


class RowsFile:
    """A .bed in writing: rows, or lists where the first LEAST_LISTED bytes of rows are long.

    The bytes depend on the rows alone, not on the parts in which they come.
    """

    def __init__(self, path: Path, n_samples: int, lists: bool = True):
        """`lists`: whether the file may have lists."""
        self._n_samples, self._row_bytes = n_samples, bed_row_bytes(n_samples)
        self._file = open(path, "wb")  # noqa: SIM115 - `close` is its end
        self._file.write(BED_MAGIC)
        self._n_first = max(1, LEAST_LISTED // max(self._row_bytes, 1))
        self._first: list[np.ndarray] | None = [] if lists else None
        self._waiting, self._n_sites, self._listed = 0, 0, False
        self._begun = 0  # bytes of records that are written
        self._starts: list[np.ndarray] = []

    def add(self, rows: np.ndarray) -> None:
        """Add rows, uint8 (n, row_bytes), with zeros as padding."""
        if self._first is None:
            self._write(rows)
            return
        self._first.append(np.array(rows))
        self._waiting += len(rows)
        if self._waiting >= self._n_first:
            waiting, self._first = np.concatenate(self._first), None
            records, _ = _encoded(waiting[: self._n_first], self._n_samples)
            if self._row_bytes * self._n_first >= LEAST_GAIN * len(records):
                self._listed = True
                self._file.seek(0)
                self._file.write(bytes(_HEADER))
            self._write(waiting)

    def _write(self, rows: np.ndarray) -> None:
        if not self._listed:
            self._file.write(np.ascontiguousarray(rows).data)
            return
        n = max(1, ROWS_AT_ONCE // self._row_bytes)
        for first in range(0, len(rows), n):
            part = rows[first : first + n]
            records, ends = _encoded(part, self._n_samples)
            starts = self._begun + np.concatenate([[0], ends[:-1]])
            self._starts.append(starts[-self._n_sites % BLOCK :: BLOCK])
            self._file.write(records.data)
            self._begun += len(records)
            self._n_sites += len(part)

    def close(self) -> None:
        """Write what is left."""
        if self._file.closed:
            return
        for rows in self._first or ():
            self._write(rows)
        if self._listed:
            self._file.write(np.concatenate([*self._starts, [self._begun]]).astype("<i8").data)
            self._file.seek(0)
            meant = len(BED_MAGIC) + self._n_sites * self._row_bytes
            about = np.array([meant, self._n_sites, self._n_samples, self._begun], "<i8")
            self._file.write(LISTED_ROWS + about.tobytes())
        self._file.close()

    def __enter__(self) -> RowsFile:
        return self

    def __exit__(self, *failed) -> None:
        self.close()


def _encoded(rows: np.ndarray, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Records of rows, uint8, and their ends, int64 (n,)."""
    from . import listed_rows_cpu

    row_bytes = bed_row_bytes(n_samples)
    padded = np.zeros((len(rows), -(-row_bytes // 8) * 8), np.uint8)
    padded[:, :row_bytes] = rows
    out = np.empty(len(rows) * (row_bytes + listed_rows_cpu.SPARE), np.uint8)
    ends = np.empty(len(rows), np.int64)
    listed_rows_cpu.encode_rows(padded.view(np.uint64), n_samples, row_bytes, out, ends)
    return out[: ends[-1]], ends


def listed_bytes(rows: np.ndarray, n_samples: int) -> int:
    """Bytes of some rows, uint8 (n, row_bytes), as lists."""
    return len(_encoded(rows, n_samples)[0]) + 8 * len(rows) // BLOCK


def write_again(
    path: Path, rows: np.ndarray | ListedRows, kept: np.ndarray, n_samples: int
) -> None:
    """Write these rows of a .bed as a new one at `path`, where `rows` may lie themselves.

    Parameters
    ----------
    rows : array or ListedRows, (n_sites, row_bytes)
    kept : int64 array, (n_kept,)
        Numbers of the rows, rising.
    """
    n = max(1, ROWS_AT_ONCE // max(rows.shape[1], 1))
    with atomic_path(path) as rest, RowsFile(rest, n_samples) as file:
        for first in range(0, len(kept), n):
            file.add(rows[kept[first : first + n]])


class ListedRows:
    """Rows of a .bed of lists; made when they are read.

    Attributes
    ----------
    shape : (n_sites, row_bytes)
        As an array of these rows would have it.
    source : uint8 array
        The records.
    """

    def __init__(self, path: Path, n_samples: int, n_sites: int):
        """Open a file of lists.

        Raises
        ------
        UserError
            It is cut or damaged, or has other numbers of samples and sites.
        """
        self._path, self._n_samples = path, n_samples
        self.shape = (n_sites, bed_row_bytes(n_samples))
        n_blocks = -(-n_sites // BLOCK)
        size = path.stat().st_size
        with open(path, "rb") as file:
            file.seek(len(LISTED_ROWS))
            about = np.frombuffer(file.read(4 * 8).ljust(32, b"\xff"), "<i8").tolist()
            n_bytes = about[3]
            meant = len(BED_MAGIC) + n_sites * self.shape[1]
            if (
                about[:3] != [meant, n_sites, n_samples]
                or n_bytes < n_sites
                or size != _HEADER + n_bytes + 8 * (n_blocks + 1)
            ):
                raise self._damaged(f"does not have the {n_sites} sites of its .bim")
            file.seek(_HEADER + n_bytes)
            self._starts = np.frombuffer(file.read(), "<i8").astype(np.int64)
        if self._starts[0] != 0 or self._starts[-1] != n_bytes:
            raise self._damaged("has a damaged list of blocks")
        self.source = np.memmap(path, np.uint8, "r", offset=_HEADER, shape=(n_bytes,))

    def _damaged(self, what: str) -> UserError:
        return UserError(f"{self._path} {what}; delete it and run again.")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which) -> np.ndarray:
        """Rows `which`, a slice or an array: uint8 (n, row_bytes), padding bits zero.

        Raises
        ------
        UserError
            A record is damaged.
        """
        from . import listed_rows_cpu

        if isinstance(which, slice):
            numbers = np.arange(*which.indices(len(self)))
        else:
            numbers = np.asarray(which)
            numbers = np.flatnonzero(numbers) if numbers.dtype == bool else numbers.astype(np.int64)
            if numbers.size and not -len(self) <= numbers.min() <= numbers.max() < len(self):
                raise IndexError(f"{self._path} has {len(self)} sites")
            numbers = np.where(numbers < 0, numbers + len(self), numbers)
        out = np.empty((numbers.size, self.shape[1]), np.uint8)
        wrong = listed_rows_cpu.decode_rows(
            self.source, self._starts, BLOCK, np.atleast_1d(numbers), self._n_samples, out
        )
        if wrong >= 0:
            raise self._damaged(f"is damaged at site {wrong + 1}")
        return out if np.ndim(numbers) else out[0]

    def count(
        self, first: int, last: int, group: np.ndarray, n_groups: int, by_sample: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Count genotypes at sites `first` to `last` that have lists, without making their rows.

        Parameters
        ----------
        group : int64 array, (n_samples,)
            Group of each sample; -1: none.
        by_sample : int64 array, (n_samples, 4)
            Numbers of sites at which each sample has 0, 1, 2 ALT alleles and no call are added.

        Returns
        -------
        by_site : int64 array, (last - first, n_groups, 4)
            Samples of each group; zeros at sites that have their rows.
        rows : int64 array
            Numbers of those sites.

        Raises
        ------
        UserError
            A record is damaged.
        """
        from . import listed_rows_cpu

        by_site = np.empty((last - first, n_groups, 4), np.int64)
        sizes = np.bincount(group[group >= 0], minlength=n_groups)
        has_row = np.empty(last - first, np.bool_)
        wrong = listed_rows_cpu.count_records(
            *(self.source, self._starts, BLOCK, first, group, sizes, by_site, by_sample, has_row)
        )
        if wrong >= 0:
            raise self._damaged(f"is damaged at site {wrong + 1}")
        return by_site, first + np.flatnonzero(has_row)
