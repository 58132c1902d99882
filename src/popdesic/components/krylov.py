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

Vectors lie where the products are made, on the CPU or on a GPU (`engine.columns`: the same bytes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.columns import WIDTH, Basis, Columns, lengths_of, orthonormal

#: Vectors of one pass, largest angle, smallest residual (products are exact to about 1e-7).
COLUMNS, ANGLE, FLOOR = WIDTH, 2e-3, 1e-6
#: Passes at most, unless the caller says otherwise.
MOST_PASSES = 60
#: Basis vectors in memory at most, in bytes and number; at a restart a third is kept.
BASIS_BYTES, BASIS_COLUMNS = 1 << 31, 640


class Krylov:
    """The space of the passes so far, and the matrix in it.

    Parameters
    ----------
    product : callable
        The matrix times vectors: blocks (n, COLUMNS) of `columns` to such blocks.
    start : float64 array, (n, k)
        The first vectors, COLUMNS at most.
    columns : Columns
        Where vectors are; changes no byte.
    """

    def __init__(self, product: Callable[[Any], Any], start: np.ndarray, columns: Columns) -> None:
        self.product, self.passes, self.columns = product, 0, columns
        n = len(start)
        self.most = int(np.clip(BASIS_BYTES // (16 * n), 6 * COLUMNS, BASIS_COLUMNS))
        self._next, self._width = orthonormal(columns, columns.put(start))
        self._basis, self._image = Basis(columns, n), Basis(columns, n)
        self._small = np.empty((0, 0))

    @property
    def exhausted(self) -> bool:
        """Whether the space is invariant: what is found is exact."""
        return not self._width

    def step(self) -> None:
        """One pass: multiply the next block of vectors and add it to the basis."""
        if len(self._basis) + self._width > self.most:
            self._restart()
        basis, own = self._basis, self._width
        image = self.product(self._next)
        basis.append(self._next, own)
        self._image.append(image, own)
        new = basis.gram(image, own)
        k = len(self._small)
        small = np.empty((k + own, k + own))
        small[:k, :k], small[:, k:], small[k:, :k] = self._small, new, new[:k].T
        small[k:, k:] = (new[k:] + new[k:].T) / 2
        self._small = small
        sizes = lengths_of(self.columns, image)
        left = self.columns.copy(image)
        basis.subtract(left, new)
        basis.subtract(left, basis.gram(left, own))
        left, width = orthonormal(self.columns, left, sizes)
        # Once more: what was enlarged is orthogonal to the basis no longer.
        basis.subtract(left, basis.gram(left, width))
        left, width = orthonormal(self.columns, left)
        self._width = min(width, basis.n - len(basis))
        left[:, self._width :] = 0
        self._next = left
        self.passes += 1

    def _restart(self) -> None:
        kept = self.most // 3
        values, turn = self._ritz()
        turn = turn[:, :kept]
        self._basis, self._image = self._basis.times(turn), self._image.times(turn)
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
        values, vectors = values[:k], self._basis.times(turn[:, :k])
        return values, vectors.get(), self._residuals(vectors, values, turn[:, :k])

    def _residuals(self, vectors: Basis, values: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """Lengths of the matrix times vectors less values times vectors."""
        left = self._image.times(turn)
        first = 0
        for block, vector, used in zip(left.blocks, vectors.blocks, vectors.widths, strict=True):
            shares = np.zeros((1, WIDTH, WIDTH))
            shares[0, range(used), range(used)] = -values[first : first + used]
            self.columns.add(block, [vector], shares)
            first += used
        return left.lengths()

    def found(self, k: int) -> np.ndarray:
        """Which of the leading k components are found, bool (k,)."""
        values, turn = self._ritz()
        k = min(k, len(values))
        if self.exhausted:
            return np.ones(k, bool)
        vectors = self._basis.times(turn[:, :k])
        residuals = self._residuals(vectors, values[:k], turn[:, :k])
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
