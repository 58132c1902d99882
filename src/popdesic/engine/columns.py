"""Blocks of a few long columns: sums over rows and combinations of columns, in one order of sums.

Vectors of many samples are kept as blocks of WIDTH columns, float64 (n, WIDTH); unused columns are
zero. A backend implements two operations, product and sum rounded one by one, so that the same
numbers come from any device and any number of threads: inner products of columns, in order within
blocks of GRAM_ROWS rows and then over blocks, and the addition of combinations of columns, column
after column. Small matrices are those of the host. `Bases` have a basis for each of NARROW
columns, and two operations of their own.

Orthonormal columns come from the eigenvectors of their inner products (SVQB: Stathopoulos and
Wu 2002), twice: the first time leaves errors of the square of their condition, the second none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

#: Columns of a block, and of the blocks of `Bases`.
WIDTH, NARROW = 16, 8
#: Rows of one partial sum of inner products.
GRAM_ROWS = 2048
#: Columns that lose all but this share of their length to a basis are dropped.
DEPENDENT = 1e-10
#: Directions of unit columns are dropped where their squared length, summed over the columns, is
#: below this: inner products are exact to about 1e-14.
LEAST_SQUARE = 1e-12


class Columns(ABC):
    """Arithmetic of blocks of columns on one device."""

    #: The array library of blocks.
    xp: Any = np

    @abstractmethod
    def put(self, array: np.ndarray) -> Any:
        """A block from at most WIDTH columns of the host, float64 (n, k)."""

    @abstractmethod
    def get(self, block: Any) -> np.ndarray:
        """A block for the host, float64 (n, WIDTH)."""

    @abstractmethod
    def zeros(self, n: int) -> Any:
        """A block of zeros."""

    @abstractmethod
    def copy(self, block: Any) -> Any:
        """Another block with the same numbers."""

    @abstractmethod
    def gram(self, left: list, right: Any) -> np.ndarray:
        """Inner products of the columns of blocks with those of one, (len, WIDTH, WIDTH)."""

    @abstractmethod
    def add(self, out: Any, blocks: list, shares: np.ndarray) -> None:
        """Add to a block the columns of others times shares, float64 (len, WIDTH, WIDTH)."""

    @abstractmethod
    def rows(self, most: int, n: int) -> Any:
        """Room for narrow blocks, float64 (most, n, NARROW), not filled."""

    @abstractmethod
    def own_products(self, blocks: Any, right: Any) -> np.ndarray:
        """Inner products of columns of narrow blocks (len, n, NARROW) with those of the same
        number of one, (len, NARROW)."""

    @abstractmethod
    def add_own(self, out: Any, blocks: Any, shares: np.ndarray) -> None:
        """Add to each column of a narrow block those of the same number of others times shares,
        float64 (len, NARROW), block after block."""


class Basis:
    """Columns in blocks, of which each uses its first so many.

    Parameters
    ----------
    columns : Columns
    n : int
        Rows.
    """

    def __init__(self, columns: Columns, n: int) -> None:
        self.columns, self.n = columns, n
        self.blocks: list = []
        self.widths: list[int] = []

    def __len__(self) -> int:
        return sum(self.widths)

    def append(self, block: Any, width: int) -> None:
        self.blocks.append(block)
        self.widths.append(width)

    def gram(self, block: Any, width: int) -> np.ndarray:
        """Inner products with the first columns of a block, (len, width)."""
        if not self.blocks:
            return np.zeros((0, width))
        found = self.columns.gram(self.blocks, block)
        own = zip(found, self.widths, strict=True)
        return np.concatenate([one[:used, :width] for one, used in own])

    def subtract(self, block: Any, shares: np.ndarray) -> None:
        """Take the basis times shares (len, width) out of a block, in place."""
        if self.blocks:
            self.columns.add(block, self.blocks, -self._spread(shares))

    def times(self, shares: np.ndarray) -> Basis:
        """The basis times shares (len, m): m new columns."""
        found = Basis(self.columns, self.n)
        for first in range(0, shares.shape[1], WIDTH):
            part = shares[:, first : first + WIDTH]
            block = self.columns.zeros(self.n)
            self.columns.add(block, self.blocks, self._spread(part))
            found.append(block, part.shape[1])
        return found

    def _spread(self, shares: np.ndarray) -> np.ndarray:
        """Shares of each block's columns, with zeros for those unused: (blocks, WIDTH, WIDTH)."""
        out = np.zeros((len(self.blocks), WIDTH, WIDTH))
        ends = np.cumsum(self.widths)
        for one, used, end in zip(out, self.widths, ends, strict=True):
            one[:used, : shares.shape[1]] = shares[end - used : end]
        return out

    def lengths(self) -> np.ndarray:
        """Length of each column, (len,)."""
        pairs = zip(self.blocks, self.widths, strict=True)
        parts = [lengths_of(self.columns, block)[:used] for block, used in pairs]
        return np.concatenate(parts) if parts else np.zeros(0)

    def get(self) -> np.ndarray:
        """For the host, (n, len)."""
        out = np.empty((self.n, len(self)))
        ends = np.cumsum(self.widths)
        for block, used, end in zip(self.blocks, self.widths, ends, strict=True):
            out[:, end - used : end] = self.columns.get(block)[:, :used]
        return out


class Bases:
    """An orthonormal basis for each of NARROW columns, all of the same size.

    Parameters
    ----------
    columns : Columns
    first : block, (n, NARROW)
        Unit columns, where `columns` has them.
    most : int
        Vectors of a basis at most; memory is used as they come, on a GPU at once.

    Attributes
    ----------
    last : block, (n, NARROW)
        The newest vector of each.
    """

    def __init__(self, columns: Columns, first: Any, most: int) -> None:
        self.columns, self.size = columns, 0
        self._rows = columns.rows(most, len(first))
        self.add(first)

    def add(self, block: Any) -> None:
        self._rows[self.size] = block
        self.last = block
        self.size += 1

    def subtract(self, block: Any) -> None:
        """Take the parts along the bases out of a block, in place: Gram-Schmidt twice, enough.

        (Giraud, Langou and Rozloznik 2005.)
        """
        blocks = self._rows[: self.size]
        for _ in range(2):
            self.columns.add_own(block, blocks, -self.columns.own_products(blocks, block))


def own_lengths(columns: Columns, block: Any) -> np.ndarray:
    """Length of each column of a narrow block, (NARROW,)."""
    return np.sqrt(columns.own_products(block[None], block)[0])


def lengths_of(columns: Columns, block: Any) -> np.ndarray:
    """Length of each column of a block, (WIDTH,)."""
    return np.sqrt(np.diag(columns.gram([block], block)[0]))


def orthonormal(columns: Columns, block: Any, sizes: np.ndarray | None = None) -> tuple[Any, int]:
    """An orthonormal basis of the columns that are not next to nothing compared with `sizes`.

    Parameters
    ----------
    sizes : float64 array, (WIDTH,), optional
        Lengths before anything was taken out of the columns; those that they have, by default.

    Returns
    -------
    block, int
        And how many of its columns are used.
    """
    used = 0
    for least in (LEAST_SQUARE, 0.5):
        inner = columns.gram([block], block)[0]
        lengths = np.sqrt(np.diag(inner))
        if sizes is None:
            sizes = lengths
        kept = np.flatnonzero(lengths > DEPENDENT * np.maximum(sizes, 1e-300))
        sizes = None
        if not len(kept):
            return columns.zeros(len(block)), 0
        scaled = inner[np.ix_(kept, kept)] / np.outer(lengths[kept], lengths[kept])
        values, turn = np.linalg.eigh(scaled)
        values, turn = values[::-1], turn[:, ::-1]
        wide = values > least * (values[0] if least < 0.5 else 1)
        used = int(wide.sum())
        shares = np.zeros((1, WIDTH, WIDTH))
        shares[0, kept, :used] = turn[:, wide] / lengths[kept, None] / np.sqrt(values[wide])
        found = columns.zeros(len(block))
        columns.add(found, [block], shares)
        block = found
    return block, used
