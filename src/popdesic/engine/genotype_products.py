"""Products of standardised genotypes with vectors, without a matrix of all pairs of samples.

With X the standardised genotypes (n_samples, n_sites), (g - 2p) / sqrt(2p (1 - p)), 0 where
missing, `normal` gives X X' V of vectors V in one pass over the packed genotypes. A backend
implements two sums of integers, people of each site and sites of each person; all other arithmetic
is here, once, for numpy and CuPy.

**The same bytes everywhere.** Vectors are rounded to whole numbers of at most BITS bits, column by
column, relative to a power of two. Their sums over genotypes are integers, exact in any order, so
threads, tiles and devices play no role. What is left are single operations of IEEE arithmetic on
each element, and sums of blocks of BLOCK_SITES sites in the order of the sites. Rounding costs
2**-BITS of the largest entry of a column, about what float32 costs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .columns import Columns

#: Sites of a block: their sums are added in float64, block after block.
BLOCK_SITES = 4096
#: Bits of rounded vectors: three signed digits of 8 bits.
BITS = 22
#: Bits of what sites are multiplied by: twice as much, for the mean genotype, fits as well.
SITE_BITS = 21
#: Bits of the components to be taken out: products of both, summed over 2**20 people, fit int64.
FEW_BITS = 20
#: Each part starts at a multiple of so many bytes of a row: a step of the GPU's kernel.
ALIGNED = 64
#: Bits that pad a row: code 11, no ALT allele.
PADDING = 0xFF


@dataclass(frozen=True)
class Calls:
    """Packed genotypes of some samples at some sites, as their .bed files hold them.

    Attributes
    ----------
    parts : tuple of uint8 arrays, (n_panel, row_bytes)
        One a cohort, for instance memory maps; anything that gives such rows by slices and arrays.
    rows : int64 array, (n_sites,), or None
        Which rows count, ascending; all by default.
    keep : tuple of bool arrays
        Which samples of each part count, n in total.
    af : float64 array, (n_sites,)
        ALT frequencies. Sites with 0, 1 or NaN count nothing.
    """

    parts: tuple[np.ndarray, ...]
    rows: np.ndarray | None
    keep: tuple[np.ndarray, ...]
    af: np.ndarray

    @property
    def n_sites(self) -> int:
        return len(self.af)

    @property
    def standard(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean genotype and 1 / standard deviation of each site, 0 where it does not count."""
        scale = np.sqrt(2 * self.af * (1 - self.af))
        use = scale > 0  # False for NaN
        inverse = np.divide(1.0, scale, out=np.zeros(len(scale)), where=use)
        return np.where(use, 2 * self.af, 0.0), inverse

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Bytes of a row, padded, that each part takes."""
        ends = np.cumsum([-(-part.shape[1] // ALIGNED) * ALIGNED for part in self.parts]).tolist()
        return list(zip([0, *ends[:-1]], ends, strict=True))

    @property
    def places(self) -> np.ndarray:
        """Where each sample stands among the 4 row_bytes of a padded row, int64 (n,)."""
        pairs = zip(self.spans, self.keep, strict=True)
        return np.concatenate([4 * first + np.flatnonzero(who) for (first, _), who in pairs])

    def block(self, first: int, last: int, out: np.ndarray | None = None) -> np.ndarray:
        """Padded rows of sites, uint8 (last - first, row_bytes), in `out` if given."""
        rows = slice(first, last)
        if self.rows is not None:
            rows = self.rows[first:last]
            if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
                rows = slice(rows[0], rows[-1] + 1)
        if out is None:
            out = np.empty((last - first, self.spans[-1][1]), np.uint8)
        for (start, end), part in zip(self.spans, self.parts, strict=True):
            out[:, start : start + part.shape[1]] = part[rows]
            out[:, start + part.shape[1] : end] = PADDING
        return out


def misses(rows: Any) -> Any:
    """Whether any genotype of .bed rows is missing: code 01 in some pair of bits."""
    return ((rows & ~(rows >> 1)) & 0x55).any()


def site_blocks(n_sites: int, labels: np.ndarray | None = None) -> list[tuple[int, int]]:
    """Bounds of blocks of at most BLOCK_SITES sites, each within one run of equal `labels`."""
    cuts = [0, n_sites]
    if labels is not None:
        cuts[1:1] = (np.flatnonzero(np.diff(labels)) + 1).tolist()
    return [
        (first, min(first + BLOCK_SITES, end))
        for start, end in pairwise(cuts)
        for first in range(start, end, BLOCK_SITES)
    ]


def rounded(xp: Any, vectors: Any, bits: int = BITS) -> tuple[Any, Any]:
    """Columns as whole numbers below 2**bits, float64, and the powers of two that they stand for.

    ``vectors`` is about ``numbers * 2.0**powers``.
    """
    _, powers = xp.frexp(xp.abs(vectors).max(axis=0))
    powers = powers - bits
    return xp.rint(xp.ldexp(vectors, -powers)), powers


def _variances(columns: Any) -> Any:
    """Variance of each row, (n, k) to (n,), in the same order of sums everywhere."""
    k = columns.shape[1]
    mean = sum(columns[:, j] for j in range(k)) / k
    apart = columns - mean[:, None]
    apart = apart * apart
    return sum(apart[:, j] for j in range(k)) / (k - 1)


@dataclass(frozen=True)
class SampleSums:
    """What single samples sum up to, over the sites that count.

    Attributes
    ----------
    squares : float64 array, (n,)
        Of standardised genotypes, each rounded to 2**-SQUARE_BITS (`engine.sample_sums`).
    called : int64 array, (n,)
        Called genotypes.
    joint : int64 array, (n_parts, n_parts)
        Sites called in both samples, over all ordered pairs of samples of two parts.
    """

    squares: np.ndarray
    called: np.ndarray
    joint: np.ndarray


@dataclass(frozen=True)
class Flips:
    """Signs of samples, stretch of sites by stretch, and components that are taken out first.

    With K = `known`, for each stretch and column of the vectors, the genotypes X less X K K'
    are multiplied by the samples' signs.

    Attributes
    ----------
    signs : int8 array, (n_stretches, n, n_columns)
        1 or -1.
    stretch : int64 array, (n_sites,)
        Stretch of each site.
    known : float64 array, (n, k)
        Orthonormal.
    projections : float64 array, (n_sites, k)
        X' K, of `GenotypeProducts.project`.
    """

    signs: np.ndarray
    stretch: np.ndarray
    known: np.ndarray
    projections: np.ndarray


class GenotypeProducts(ABC):
    """Products with the standardised genotypes of `Calls`.

    Parameters
    ----------
    threads : int
        Of the CPU.
    """

    #: The array library of blocks and sums.
    xp: Any = np

    def __init__(self, calls: Calls, threads: int = 1) -> None:
        self.calls, self.places, self.threads = calls, calls.places, threads
        self.n_places = 4 * calls.spans[-1][1]
        self.mean, self.inverse = calls.standard
        #: The signs of the last flips, and where the sums are computed: many passes use them.
        self._placed_signs: tuple[np.ndarray, Any] | None = None

    # What a backend implements

    @abstractmethod
    def _put(self, array: np.ndarray) -> Any:
        """An array for `xp`, which may be one already."""

    @abstractmethod
    def _get(self, array: Any) -> np.ndarray:
        """An array of `xp` for the host."""

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """Arithmetic of blocks of vectors where the sums are computed."""

    def columns_for(self, n_bytes: int) -> Columns:
        """`columns`, or those of the host if so many bytes do not fit beside the genotypes."""
        return self.columns

    @abstractmethod
    def sample_sums(self) -> SampleSums:
        """What single samples sum up to, in one pass over the genotypes."""

    @abstractmethod
    def _each(
        self, work: Callable[[Any, int, int], Any], blocks: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        """``work(block, first, last)`` of every block of sites, in order."""

    @abstractmethod
    def _by_site(self, block: Any, numbers: Any, span: tuple[int, int]) -> tuple[Any, Any]:
        """Sums over the people of a span of bytes, for each site of a block.

        `numbers`: whole numbers of all places, float64 (n_places, k).

        Returns
        -------
        float64 arrays, (n_block, k)
            Sum of genotype times number over called people; sum over people who are missing, or
            None where nobody is.
        """

    @abstractmethod
    def _by_person(self, block: Any, times: Any, less: Any, span: tuple[int, int]) -> Any:
        """Sums over the block's called sites of genotype x `times` - `less`, whole numbers
        (n_block, k), for the people of a span of bytes: float64 (4 (end - start), k)."""

    # What is the same for all

    def _shares(self, left: Any, right: Any) -> Any:
        """Products of columns of whole numbers, int64 (j, k) of (n, j) and (n, k); exact."""
        return (left[:, :, None] * right[:, None, :]).sum(axis=0)

    def normal(self, vectors: Any, factors: np.ndarray | None = None) -> Any:
        """X X' V, float64 (n, k), on the host or where `vectors` are.

        Parameters
        ----------
        vectors : float64 array, (n, k)
            Of the host or of `xp`.
        factors : float64 array, (n_parts, n_parts), optional
            By which the products of the samples of two parts are multiplied.
        """
        xp, spans = self.xp, self._spans(factors)
        numbers, powers = self._placed(vectors)
        weights = np.ones((1, 1)) if factors is None else factors

        def work(block, first, last):
            found = [self._standard(block, numbers, powers, span, first, last) for span in spans]
            parts = []
            for row, span in zip(weights, spans, strict=True):
                mixed = found[0] * float(row[0])
                for weight, one in zip(row[1:], found[1:], strict=True):
                    mixed = mixed + one * float(weight)
                parts.append(self._back(block, mixed, span, first, last))
            return parts[0] if len(parts) == 1 else xp.concatenate(parts)

        total = self._sum(work, site_blocks(self.calls.n_sites), vectors.shape[1])
        return total if isinstance(vectors, xp.ndarray) else self._get(total)

    def joint(self, vectors: np.ndarray) -> np.ndarray:
        """C V, with C the sites called in both samples: float64 (n, k)."""
        numbers, powers = self._placed(vectors)
        (span,) = self._spans(None)

        def work(block, first, last):
            _, absent = self._by_site(block, numbers, span)
            total = numbers.sum(axis=0)
            total = total - (0 if absent is None else absent)
            use = self._put(1.0 * (self.inverse[first:last] > 0))[:, None]
            less, more = rounded(self.xp, total * use, SITE_BITS)
            found = self._by_person(block, self.xp.zeros_like(less), -less, span)
            return self.xp.ldexp(found, more + powers)

        return self._get(self._sum(work, site_blocks(self.calls.n_sites), vectors.shape[1]))

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """X' V: standardised genotypes of each site times vectors, float64 (n_sites, k)."""
        numbers, powers = self._placed(vectors)
        (span,) = self._spans(None)

        def work(block, first, last):
            return self._get(self._standard(block, numbers, powers, span, first, last))

        found = list(self._each(work, site_blocks(self.calls.n_sites)))
        return np.concatenate(found) if found else np.zeros((0, vectors.shape[1]))

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """X W: standardised genotypes of each sample times weights of sites, float64 (n, k).

        Weights, (n_sites, k), are rounded to SITE_BITS bits of the largest of a block of sites.
        """
        (span,) = self._spans(None)

        def work(block, first, last):
            found = self._put(weights[first:last].astype(np.float64))
            return self._back(block, found, span, first, last)

        return self._get(self._sum(work, site_blocks(self.calls.n_sites), weights.shape[1]))

    def flipped(self, vectors: Any, flips: Flips) -> Any:
        """`normal` of the genotypes that `flips` makes of X, other signs for every column."""
        work = self._flipped(vectors, flips)
        blocks = site_blocks(self.calls.n_sites, flips.stretch)
        total = self._sum(work, blocks, vectors.shape[1])
        return total if isinstance(vectors, self.xp.ndarray) else self._get(total)

    def spread_by_person(self, flips: Flips) -> np.ndarray:
        """Estimate the squares of products of each person with others, stretch by stretch.

        With M the product of one stretch, X X' without the known components, and z random signs,
        z_a (M z)_a is M_aa plus a random sum of M_ab, a != b. So its variance over columns of signs
        estimates the sum of M_ab**2 over b without bias.

        Returns
        -------
        float64 array, (n,)
            Sum over stretches of that variance; `flips` needs two columns at least.
        """
        k = flips.signs.shape[2]
        work = self._flipped(np.ones((len(self.places), k)), flips)
        blocks = site_blocks(self.calls.n_sites, flips.stretch)
        total, own, last = self._put(np.zeros(self.n_places)), None, None
        for (first, _), one in zip(blocks, self._each(work, blocks), strict=True):
            if last is not None and flips.stretch[first] != last:
                total = total + _variances(own)
                own = None
            own = one if own is None else own + one
            last = flips.stretch[first]
        if own is not None:
            total = total + _variances(own)
        return self._get(total)[self.places]

    def _flipped(self, vectors: Any, flips: Flips) -> Callable[[Any, int, int], Any]:
        """What `flipped` adds up over blocks of sites, each within one stretch."""
        xp, (span,) = self.xp, self._spans(None)
        numbers, powers = self._placed(vectors)
        known = self._scattered(flips.known)
        whole, known_powers = rounded(xp, known, FEW_BITS) if known.shape[1] else (known, None)
        whole = whole.astype(np.int64)
        signs = self._signs(flips)

        def work(block, first, last):
            own = signs[int(flips.stretch[first])]
            turned = numbers * own
            found = self._standard(block, turned, powers, span, first, last)
            along = self._put(flips.projections[first:last])
            if known.shape[1]:
                shares = self._shares(whole, turned.astype(np.int64)).astype(np.float64)
                shares = xp.ldexp(shares, known_powers[:, None] + powers)
                for k in range(known.shape[1]):
                    found = found - along[:, k, None] * shares[k]
            out = self._back(block, found, span, first, last)
            if known.shape[1]:
                left, left_powers = rounded(xp, along, FEW_BITS)
                right, right_powers = rounded(xp, found)
                shares = self._shares(left.astype(np.int64), right.astype(np.int64))
                shares = shares.astype(np.float64)
                shares = xp.ldexp(shares, left_powers[:, None] + right_powers)
                for k in range(known.shape[1]):
                    out = out - known[:, k, None] * shares[k]
            return out * own

        return work

    def _signs(self, flips: Flips) -> Any:
        """Signs of all places, 0 where no sample stands: int8 (n_stretches, n_places, k)."""
        if self._placed_signs is None or self._placed_signs[0] is not flips.signs:
            stretches, _, k = flips.signs.shape
            placed = np.zeros((stretches, self.n_places, k), np.int8)
            placed[:, self.places] = flips.signs
            self._placed_signs = flips.signs, self._put(placed)
        return self._placed_signs[1]

    def _spans(self, factors: np.ndarray | None) -> list[tuple[int, int]]:
        spans = self.calls.spans
        return [(0, spans[-1][1])] if factors is None else spans

    def _scattered(self, vectors: Any) -> Any:
        placed = self.xp.zeros((self.n_places, vectors.shape[1]), np.float64)
        placed[self._where] = self._put(vectors)
        return placed

    @cached_property
    def _where(self) -> Any:
        """The places of the samples for `xp`: a slice where there are no others between them."""
        first, n = int(self.places[0]) if len(self.places) else 0, len(self.places)
        if np.array_equal(self.places, np.arange(first, first + n)):
            return slice(first, first + n)
        return self._put(self.places)

    def _placed(self, vectors: Any) -> tuple[Any, Any]:
        """Vectors as whole numbers at the places of the samples, and their powers of two."""
        numbers, powers = rounded(self.xp, self._put(vectors))
        return self._scattered(numbers), powers

    def _standard(self, block, numbers, powers, span, first, last):
        """Standardised genotypes of a block times the numbers of a span, float64 (n_block, k)."""
        sums, absent = self._by_site(block, numbers, span)
        total = numbers[4 * span[0] : 4 * span[1]].sum(axis=0)
        if absent is not None:
            total = total - absent
        mean, inverse = (self._put(one[first:last])[:, None] for one in (self.mean, self.inverse))
        return self.xp.ldexp((sums - mean * total) * inverse, powers)

    def _back(self, block, found, span, first, last):
        """Standardised genotypes of a span's people times `found`, float64 (people, k)."""
        mean, inverse = (self._put(one[first:last])[:, None] for one in (self.mean, self.inverse))
        times, powers = rounded(self.xp, found * inverse, SITE_BITS)
        less = self.xp.rint(mean * times)
        return self.xp.ldexp(self._by_person(block, times, less, span), powers)

    def _sum(self, work, blocks: list[tuple[int, int]], k: int) -> Any:
        """Sums of all blocks for each sample, (n, k)."""
        total = self.xp.zeros((self.n_places, k), np.float64)
        for one in self._each(work, blocks):
            total += one
        return total[self._where]
