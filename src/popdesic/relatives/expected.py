"""Kinship of all pairs beside the genotypes that their ancestries let expect (PC-Relate).

Each genotype g has a residual r = g - 2 mu and a spread s = sqrt(mu (1 - mu)). `ExpectedKinship`
holds ``sum r_i r_j / (4 sum s_i s_j)`` of all pairs, and has a few operations on them.

**The same bytes everywhere.** Residuals are rounded to multiples of 2**-RESIDUAL_BITS and spreads
to multiples of 1 / SPREAD. Their products are sums of integers, exact in any order: threads, blocks
and devices play no role. All else is single operations of IEEE arithmetic on each pair. Over m
sites the rounding of residuals changes a kinship by about ``8e-4 / sqrt(m)``, and that of spreads
by about ``4e-4 / sqrt(m)`` of itself; chance alone gives unrelated people ``0.5 / sqrt(m)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

#: Bits of residuals after the point; and what spreads, at most 1/2, are multiplied by. Whole
#: numbers are at most LARGEST.
RESIDUAL_BITS, SPREAD, LARGEST = 10, 4094, 2047
#: Sites whose products int32 holds: DEPTH * LARGEST**2 is below 2**31.
DEPTH = 512
#: What the ratio of both sums is multiplied by.
UNIT = SPREAD**2 / 4.0 ** (RESIDUAL_BITS + 1)
#: Most sites that a backend must take: int32 then holds sums of products of digits of 8 bits.
MOST_SITES = 1 << 17
#: Kinships are rounded to 2**-SQUARE_BITS, and are MOST_KINSHIP at most, where their squares are
#: added: a tile of 2**14 pairs fits int64.
SQUARE_BITS, MOST_KINSHIP = 20, 8
#: Range of a sample's frequencies that count: outside, the fitted line says little about a
#: frequency, and small denominators dominate.
FREQUENCIES = (0.01, 0.99)


class ExpectedKinship(ABC):
    """Kinship of all pairs of n people.

    Parameters
    ----------
    basis : float64 array, (n, n_axes)
        Axes of ancestry: the expected ALT frequency of a person is its row times the coefficients
        of a site, added in their order.
    n_sites : int
        Sites to come.
    """

    def __init__(self, basis: np.ndarray, n_sites: int) -> None:
        self.n, self.n_axes = basis.shape
        self.n_sites = n_sites
        self.basis = basis

    @abstractmethod
    def add(self, first: int, genotypes: np.ndarray, coefficients: np.ndarray) -> None:
        """Take the sites from `first` on.

        Parameters
        ----------
        first : int
            A multiple of 64.
        genotypes : int8 array, (n_chunk, n)
            -1 if missing.
        coefficients : float64 array, (n_chunk, n_axes)
            NaN at sites that do not count.
        """

    @abstractmethod
    def divide(self) -> None:
        """After the last site: the ratios. NaN where no site counts."""

    @abstractmethod
    def subtract(self, right: np.ndarray, shares: np.ndarray) -> None:
        """Subtract ``sum over axes of basis_i right_j - shares_i basis_j`` from pairs i <= j.

        Parameters
        ----------
        right, shares : float64 arrays, (n_axes, n)
        """

    @abstractmethod
    def scale(self, roots: np.ndarray) -> None:
        """Divide each kinship by the product of two people's roots, float64 (n,)."""

    @abstractmethod
    def squares(self, marked: np.ndarray) -> tuple[int, int]:
        """Sum of squares of kinships of different marked people, bool (n,), and their pairs.

        The sum is a whole number, times 2**(-2 SQUARE_BITS). NaN does not count.
        """

    @abstractmethod
    def close(self, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and kinships of pairs i < j with at least `least`, sorted by both."""

    @abstractmethod
    def of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Kinships of listed pairs, rows <= columns: float64 (n_pairs,)."""

    @abstractmethod
    def block(self, first: int, last: int) -> np.ndarray:
        """Of some neighbouring people: float64 (m, m), meaningful above and on the diagonal."""

    def own(self) -> np.ndarray:
        """Of each person with itself, float64 (n,)."""
        everyone = np.arange(self.n)
        return self.of(everyone, everyone)

    def matrix(self) -> np.ndarray:
        """All, float64 (n, n), symmetric."""
        upper = self.block(0, self.n)
        return np.triu(upper) + np.triu(upper, 1).T
