"""Leading eigenvectors of a symmetric matrix of which only products with vectors are known.

Block Lanczos iteration (Golub and Underwood 1977) with full orthogonalisation and restarts (Wu and
Simon 2000): each pass multiplies COLUMNS vectors, and all passes together span the space in which
the eigenvectors are sought. So a component that stands out by a gap takes a few passes, where the
power iteration of a subspace needs its passes again for every digit. Callers limit BLAS to one
thread to fix the order of sums.

A component is found when its residual r says that its vector lies within ANGLE of the true one: the
sine of the angle is at most r / gap, with the gap to the next eigenvalue (Davis and Kahan 1970). So
its correlation with the exact vector is at least 1 - ANGLE**2 / 2, and the relative error of its
eigenvalue is of order ANGLE**2. Components in a crowd of equal eigenvalues have no gap and no
direction of their own; for those a residual of FLOOR of the largest eigenvalue ends the search.

Products of more than ROWS rows are made by blocks of so many, which threads share, and sums over
blocks are in their order; orthonormal bases too (TSQR: Demmel, Grigori, Hoemmen and Langou 2012).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..engine.threads import run_tasks
from ..io.sites import chunks

#: Vectors of one pass, largest angle, smallest residual (products are exact to about 1e-7).
COLUMNS, ANGLE, FLOOR = 16, 2e-3, 1e-6
#: Passes at most, unless the caller says otherwise.
MOST_PASSES = 60
#: Basis vectors in memory at most, in bytes and number; at a restart a third is kept.
BASIS_BYTES, BASIS_COLUMNS = 1 << 31, 640
#: Columns that lose all but this share of their length to the basis are dropped.
DEPENDENT = 1e-10
#: Rows of one task. More rows than that have other last digits than in one block.
ROWS = 1 << 16


class Krylov:
    """The space of the passes so far, and the matrix in it.

    Parameters
    ----------
    product : callable
        The matrix times vectors, float64 (n, k) to (n, k).
    start : float64 array, (n, k)
        The first vectors.
    threads : int
        Of everything but `product`; changes no byte.
    """

    def __init__(
        self, product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, threads: int = 1
    ) -> None:
        self.product, self.passes, self.threads = product, 0, threads
        n = len(start)
        self.most = int(np.clip(BASIS_BYTES // (16 * n), 6 * COLUMNS, BASIS_COLUMNS))
        self._next = _orthonormal(start, threads=threads)
        self._basis = self._image = np.empty((n, 0))
        self._small = np.empty((0, 0))

    @property
    def exhausted(self) -> bool:
        """Whether the space is invariant: what is found is exact."""
        return not self._next.shape[1]

    def step(self) -> None:
        """One pass: multiply the next block of vectors and add it to the basis."""
        if self._basis.shape[1] + self._next.shape[1] > self.most:
            self._restart()
        image = self.product(self._next)
        self._basis = _joined(self._basis, self._next, self.threads)
        self._image = _joined(self._image, image, self.threads)
        new = self._onto_basis(image)
        k, own = len(self._small), image.shape[1]
        small = np.empty((k + own, k + own))
        small[:k, :k], small[:, k:], small[k:, :k] = self._small, new, new[:k].T
        small[k:, k:] = (new[k:] + new[k:].T) / 2
        self._small = small
        left = self._without_basis(image, new)
        sizes = np.linalg.norm(image, axis=0)
        room = len(self._basis) - self._basis.shape[1]
        left = self._without_basis(left, self._onto_basis(left))
        self._next = _orthonormal(left, sizes, self.threads)[:, :room]
        # Once more: what QR enlarges is orthogonal to the basis no longer.
        left = self._without_basis(self._next, self._onto_basis(self._next))
        self._next = _orthonormal(left, threads=self.threads)
        self.passes += 1

    def _onto_basis(self, block: np.ndarray) -> np.ndarray:
        """The basis times some columns, (k, m)."""
        basis = self._basis

        def work(first: int, last: int) -> np.ndarray:
            return basis[first:last].T @ block[first:last]

        total, *parts = _by_rows(work, len(basis), self.threads)
        for part in parts:
            total += part
        return total

    def _without_basis(self, block: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Columns less the shares of the basis in them."""
        basis = self._basis

        def work(first: int, last: int) -> None:
            left[first:last] = block[first:last] - basis[first:last] @ shares

        left = np.empty(block.shape)
        _by_rows(work, len(block), self.threads)
        return left

    def _restart(self) -> None:
        kept = self.most // 3
        values, turn = self._ritz()
        turn = turn[:, :kept]
        self._basis = _times(self._basis, turn, self.threads)
        self._image = _times(self._image, turn, self.threads)
        self._small = np.diag(values[:kept])

    def _ritz(self) -> tuple[np.ndarray, np.ndarray]:
        values, turn = np.linalg.eigh(self._small)
        return values[::-1], turn[:, ::-1]

    @property
    def values(self) -> np.ndarray:
        """All eigenvalues in the space, largest first; each is at most the exact one."""
        return self._ritz()[0]

    def pairs(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Leading values (k,), vectors (n, k) and residuals (k,); fewer if there are fewer."""
        values, turn = self._ritz()
        values, turn = values[:k], turn[:, :k]
        vectors = _times(self._basis, turn, self.threads)
        image = _times(self._image, turn, self.threads)
        residuals = np.linalg.norm(image - vectors * values, axis=0)
        return values, vectors, residuals

    def found(self, k: int) -> np.ndarray:
        """Which of the leading k components are found, bool (k,)."""
        values = self.values
        k = min(k, len(values))
        _, _, residuals = self.pairs(k)
        if self.exhausted:
            return np.ones(k, bool)
        gaps = -np.diff(values[: k + 1], prepend=np.inf, append=[-np.inf] * (k == len(values)))
        gap = np.minimum(gaps[:k], gaps[1 : k + 1])
        return residuals <= np.maximum(ANGLE * gap, FLOOR * abs(values[0]))

    def search(self, k: int, most_passes: int = MOST_PASSES) -> bool:
        """Pass until the leading k components are found; whether they are."""
        if not self.passes:
            self.step()
        if k < 1:
            return True
        while not (done := bool(self.found(k).all()) and len(self._small) >= k):
            if self.exhausted or self.passes >= most_passes:
                return self.exhausted
            self.step()
        return done


def _by_rows(work: Callable, n: int, threads: int) -> list:
    """Results of ``work(first, last)`` of blocks of n rows, in order."""
    return run_tasks(work, chunks(n, ROWS), threads)


def _times(tall: np.ndarray, small: np.ndarray, threads: int) -> np.ndarray:
    """A product (n, k) by (k, m)."""
    out = np.empty((len(tall), small.shape[1]))

    def work(first: int, last: int) -> None:
        np.matmul(tall[first:last], small, out=out[first:last])

    _by_rows(work, len(tall), threads)
    return out


def _joined(one: np.ndarray, other: np.ndarray, threads: int) -> np.ndarray:
    """Columns side by side."""
    out = np.empty((len(one), one.shape[1] + other.shape[1]))

    def work(first: int, last: int) -> None:
        np.concatenate([one[first:last], other[first:last]], axis=1, out=out[first:last])

    _by_rows(work, len(one), threads)
    return out


def _qr(block: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal columns (n, k) and the triangle (k, k); those of the blocks, joined."""

    def work(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.qr(block[first:last])

    parts = _by_rows(work, len(block), threads)
    if len(parts) == 1:
        return parts[0]
    turn, corner = np.linalg.qr(np.concatenate([one for _, one in parts]))
    ends = np.cumsum([len(one) for _, one in parts])[:-1]
    out = np.empty((len(block), turn.shape[1]))

    def turned(first: int, last: int, own: np.ndarray, by: np.ndarray) -> None:
        np.matmul(own, by, out=out[first:last])

    owned = [own for own, _ in parts]
    tasks = zip(chunks(len(block), ROWS), owned, np.split(turn, ends), strict=True)
    run_tasks(turned, [(*bounds, own, by) for bounds, own, by in tasks], threads)
    return out, corner


def _orthonormal(
    block: np.ndarray, sizes: np.ndarray | None = None, threads: int = 1
) -> np.ndarray:
    """An orthonormal basis of the columns that are not next to nothing compared with `sizes`."""
    if not block.shape[1]:
        return block
    left = np.linalg.norm(block, axis=0)
    sizes = np.maximum(left, 1e-300) if sizes is None else sizes
    vectors, corner = _qr(block[:, left > DEPENDENT * sizes], threads)
    if not corner.size:
        return np.empty((len(block), 0))
    diagonal = np.abs(np.diag(corner))
    return vectors[:, diagonal > DEPENDENT * max(float(sizes.max()), 1e-300)]
