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
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Vectors of one pass, largest angle, smallest residual (products are exact to about 1e-7).
COLUMNS, ANGLE, FLOOR = 16, 2e-3, 1e-6
#: Passes at most, unless the caller says otherwise.
MOST_PASSES = 60
#: Basis vectors in memory at most, in bytes and number; at a restart a third is kept.
BASIS_BYTES, BASIS_COLUMNS = 1 << 31, 640
#: Columns that lose all but this share of their length to the basis are dropped.
DEPENDENT = 1e-10


class Krylov:
    """The space of the passes so far, and the matrix in it.

    Parameters
    ----------
    product : callable
        The matrix times vectors, float64 (n, k) to (n, k).
    start : float64 array, (n, k)
        The first vectors.
    """

    def __init__(self, product: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> None:
        self.product, self.passes = product, 0
        n = len(start)
        self.most = int(np.clip(BASIS_BYTES // (16 * n), 6 * COLUMNS, BASIS_COLUMNS))
        self._next = _orthonormal(start)
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
        self._basis = np.concatenate([self._basis, self._next], axis=1)
        self._image = np.concatenate([self._image, image], axis=1)
        new = self._basis.T @ image
        k, own = len(self._small), image.shape[1]
        small = np.empty((k + own, k + own))
        small[:k, :k], small[:, k:], small[k:, :k] = self._small, new, new[:k].T
        small[k:, k:] = (new[k:] + new[k:].T) / 2
        self._small = small
        left = image - self._basis @ new
        sizes = np.linalg.norm(image, axis=0)
        room = len(self._basis) - self._basis.shape[1]
        self._next = _orthonormal(left - self._basis @ (self._basis.T @ left), sizes)[:, :room]
        # Once more: what QR enlarges is orthogonal to the basis no longer.
        self._next = _orthonormal(self._next - self._basis @ (self._basis.T @ self._next))
        self.passes += 1

    def _restart(self) -> None:
        kept = self.most // 3
        values, turn = self._ritz()
        turn = turn[:, :kept]
        self._basis, self._image = self._basis @ turn, self._image @ turn
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
        vectors = self._basis @ turn
        residuals = np.linalg.norm(self._image @ turn - vectors * values, axis=0)
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


def _orthonormal(block: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
    """An orthonormal basis of the columns that are not next to nothing compared with `sizes`."""
    if not block.shape[1]:
        return block
    left = np.linalg.norm(block, axis=0)
    sizes = np.maximum(left, 1e-300) if sizes is None else sizes
    vectors, corner = np.linalg.qr(block[:, left > DEPENDENT * sizes])
    if not corner.size:
        return np.empty((len(block), 0))
    diagonal = np.abs(np.diag(corner))
    return vectors[:, diagonal > DEPENDENT * max(float(sizes.max()), 1e-300)]
