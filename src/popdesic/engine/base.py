"""What every backend can do: the two semiring products that all analyses stand on.

`bitgemm` sums weighted popcounts of ANDed bit-planes, `minplus` is the (min, +) matrix product
(DESIGN: "Two semiring matrix products carry all the heavy work"). An analysis states *what* it
wants as :class:`Terms`; *how* the sums are formed (AND products on tensor cores, XOR forms and
carry-save counters on a CPU) is the backend's own business, as long as the integers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

#: One bit a site. u, v and c are stored (carrier: genotype >= 1, hom: genotype = 2, called);
#: the others follow from them, over called sites only: z = (g = 0), e = (g = 1), h = z | v.
PLANE_LETTERS = "uvczeh"

#: Value of each letter's bit for the genotypes 0, 1, 2 and missing (index 3).
PLANE_BITS = {
    "u": (0, 1, 1, 0),
    "v": (0, 0, 1, 0),
    "c": (1, 1, 1, 0),
    "z": (1, 0, 0, 0),
    "e": (0, 1, 0, 0),
    "h": (1, 0, 1, 0),
}


class Product(NamedTuple):
    """One weighted product: ``outputs[output] += weight * popcount(a & b)``."""

    output: int
    weight: int
    plane_a: str
    plane_b: str


@dataclass(frozen=True)
class Terms:
    """A named list of products; `outputs` names the integer matrices that they sum to."""

    outputs: tuple[str, ...]
    products: tuple[Product, ...]

    def value(self, output: int, genotype_a: int, genotype_b: int) -> int:
        """What one site adds to `output` for two genotypes in 0, 1, 2, 3 (3 = missing)."""
        return sum(
            p.weight * PLANE_BITS[p.plane_a][genotype_a] * PLANE_BITS[p.plane_b][genotype_b]
            for p in self.products
            if p.output == output
        )

    @property
    def symmetric(self) -> bool:
        """Whether every output stays the same when the two blocks change places."""
        return all(
            self.value(o, x, y) == self.value(o, y, x)
            for o in range(len(self.outputs))
            for x in range(4)
            for y in range(x)
        )


def _terms(**outputs: list[tuple[int, str, str]]) -> Terms:
    return Terms(
        tuple(outputs),
        tuple(
            Product(index, *product)
            for index, products in enumerate(outputs.values())
            for product in products
        ),
    )


_SQUARED = [(4, "z", "v"), (4, "v", "z"), (1, "h", "e"), (1, "e", "h")]
_CALLED = [(1, "c", "c")]
_IBS0 = [(1, "z", "v"), (1, "v", "z")]

#: Squared Euclidean distance and site count over jointly called sites (DESIGN section 5).
SQUARED = _terms(squared=_SQUARED, called=_CALLED)
#: The same with the number of opposite homozygotes, from which every other metric follows:
#: Manhattan = squared - 2 ibs0, IBS1 = squared - 4 ibs0, IBS2 = called - IBS1 - ibs0.
SQUARED_IBS0 = _terms(squared=_SQUARED, called=_CALLED, ibs0=_IBS0)
#: The same with each sample's sum of genotypes and of their squares, all over jointly called sites:
#: what distances between individuals divided by their own sum follow from.
SQUARED_SUMS = _terms(
    squared=_SQUARED,
    called=_CALLED,
    sums_a=[(1, "u", "c"), (1, "v", "c")],
    squares_a=[(1, "u", "c"), (3, "v", "c")],
    sums_b=[(1, "c", "u"), (1, "c", "v")],
    squares_b=[(1, "c", "u"), (3, "c", "v")],
)
#: What two samples have in common, over jointly called sites: opposite homozygotes, sites at which
#: both, the first, the second are heterozygous, and all. From these follow KING-robust kinship,
#: genotype mismatches (het_a + het_b - 2 both_het + ibs0) and the alleles of one that the other
#: lacks (ibs0 + het_a - both_het sites).
KINSHIP = _terms(
    ibs0=_IBS0,
    both_het=[(1, "e", "e")],
    het_a=[(1, "e", "c")],
    het_b=[(1, "c", "e")],
    called=_CALLED,
)
#: Sum of a * b, three products instead of four.
_PRODUCT = [(2, "u", "u"), (2, "v", "v"), (-1, "e", "e")]
#: Sum of a * b alone: all that the r2 of two sites without missing genotypes needs.
PRODUCT = _terms(product=_PRODUCT)
#: What the r2 of two sites needs over jointly called samples: sum a = carrier_a + hom_a, sum a^2 =
#: carrier_a + 3 hom_a.
LD = _terms(
    called=_CALLED,
    carrier_a=[(1, "u", "c")],
    hom_a=[(1, "v", "c")],
    carrier_b=[(1, "c", "u")],
    hom_b=[(1, "c", "v")],
    product=_PRODUCT,
)


@dataclass(frozen=True)
class Planes:
    """Bit-planes of a block of samples, as stored in `planes.npy`.

    Attributes
    ----------
    words : uint64 array, (n_samples, n_planes, n_words)
        Little-endian bits, one a site, zero beyond `n_sites`. Planes u, v and, unless every
        genotype is called, c. Bits of u and v at missing genotypes may hold imputed values;
        whatever reads c as well must mask them.
    n_sites : int
        Number of sites; ``n_words >= ceil(n_sites / 64)``.
    """

    words: np.ndarray
    n_sites: int

    @property
    def complete(self) -> bool:
        """True when no genotype is missing (or missing ones count as imputed)."""
        return self.words.shape[1] == 2

    @property
    def n_samples(self) -> int:
        return self.words.shape[0]

    def without_mask(self) -> Planes:
        """The same genotypes with imputed values taken at their word."""
        return Planes(self.words[:, :2], self.n_sites)


@dataclass(frozen=True)
class OneHot:
    """Stored genotypes of all scanned sites in one phenotype class, one bit a sample.

    Attributes
    ----------
    words : uint64 array, (n_sites, n_states, n_words)
        Variant-major, little-endian bits, zero from bit `n_samples` on. State 0 holds the samples
        with the site's rarest genotype, state 1 those with the second rarest, both ranked over
        all classes together; state 2, present for every site if any genotype of the scan is
        missing, those whose genotype is missing. Carriers of the third genotype are not stored:
        their counts follow from margins (DESIGN section 8).
    n_samples : int
        Samples of this class; ``n_words >= ceil(n_samples / 64)``.
    """

    words: np.ndarray
    n_samples: int


@dataclass(frozen=True)
class ScanData:
    """What a scan of pairs or triples reads.

    The cost of a contingency table is an exact integer, the lower the better:
    ``sum over cells (total[n0 + n1] - part[n0] - part[n1])`` minus the same expression of the one
    cell that holds all samples called at every site of the pair or triple. n0 and n1 count the
    controls and cases of a cell. K2: total = lnGamma(n + 2), part = lnGamma(n + 1); mutual
    information: total = part = n ln n, which gives -N times the information in nats. The
    subtraction makes pairs with different missingness comparable; without missing genotypes it is
    a constant.

    Attributes
    ----------
    classes : tuple of two OneHot
        Controls, then cases; the same sites, the same number of states.
    total, part : int64 arrays, (n_samples + 1,)
        Natural logarithms scaled by a power of two (`epistasis.scores.score_tables`); n_samples
        counts both classes.
    rank : int32 array, (n_sites,)
        Index of each site in panel order. Sites are ordered by the number of samples in their
        stored states, fewest first, so the smallest index of a triple has the least to compact.
    allowed : uint64 array, (n_sites, ceil(n_sites / 64)), or None
        Bit j of row i: sites i and j may be partners (symmetric); None permits all.
    """

    classes: tuple[OneHot, OneHot]
    total: np.ndarray
    part: np.ndarray
    rank: np.ndarray
    allowed: np.ndarray | None = None

    @property
    def n_sites(self) -> int:
        return len(self.rank)

    @property
    def n_samples(self) -> int:
        return self.classes[0].n_samples + self.classes[1].n_samples


@dataclass(frozen=True)
class Hits:
    """The best pairs or triples of a scan, best first.

    Attributes
    ----------
    cost : int64 array, (k,)
    sites : int32 array, (k, order)
        Indices into the scanned sites, ascending in a row. Rows are ordered by cost, then by the
        row's panel ranks in ascending order: the same list from every backend.
    """

    cost: np.ndarray
    sites: np.ndarray


def aligned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """uint64 zeros that start on a 64-byte boundary: a vector register never spans two lines."""
    size = int(np.prod(shape)) * 8
    buffer = np.zeros(size + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size].view(np.uint64).reshape(shape)


#: Largest number of individuals that become intermediate nodes together in a closure that runs
#: where its matrix lies, and the block that Floyd-Warshall closes.
PANEL, BASE = 512, 128
#: Largest weight in fixed point, standing for infinity: the sum of two still fits.
INFINITY_INT32, INFINITY_INT64 = np.int32(2**30 - 1), np.int64(2**62 - 1)


def infinity(dtype) -> np.generic:
    """The weight that stands for 'no edge' in `dtype`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return INFINITY_INT32 if dtype == np.int32 else INFINITY_INT64
    return dtype.type(np.inf)


def closure_panel(n: int) -> int:
    """Individuals that become intermediate nodes together in a closure of n.

    A panel costs its own length squared times n; a short one reads the matrix more often. It
    decides how float sums are split, so it is the same for all backends (measured on a CPU and an
    H200: tests/bench/bench_minplus.py, bench_minplus_gpu.py).
    """
    return BASE if n <= PANEL else PANEL // 2 if n <= 8 * PANEL else PANEL


@dataclass
class Bounds:
    """What lets a min-plus product c = min(c, a * b) skip work without changing its result.

    A run of k is skipped for a tile of c when ``floor_a + floor_b >= ceiling`` there. Tiles and
    runs are those of the backend's `bound_tiles`.

    Attributes
    ----------
    floor_a : array, (runs, row tiles)
        Smallest entry of each run of columns of a, by tile of its rows.
    floor_b : array, (runs, column tiles)
    ceiling : array, (row tiles, column tiles)
        No entry of c is larger, now or earlier.
    skipped : int
        Operations left out so far, added to by the backend.
    """

    floor_a: np.ndarray
    floor_b: np.ndarray
    ceiling: np.ndarray
    skipped: int = 0


class Backend(Protocol):
    """The array primitives that one kind of device provides. Results are numpy arrays."""

    name: str

    def describe(self) -> str:
        """One line for the log: which device and which kernels will do the work."""
        ...

    def bitgemm(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        """Weighted AND+popcount products between all samples of `a` and of `b`.

        Parameters
        ----------
        a, b : Planes
            Blocks of m and n samples over the same sites. ``b=None`` means `a` against itself:
            only one triangle is computed, then mirrored.
        terms : Terms
            Letters are evaluated over called genotypes. Where a block is complete its c is all
            ones. With ``b=None`` a GPU computes terms that
            are not symmetric in full, a CPU only half of them.

        Returns
        -------
        int64 array, (n_outputs, m, n)
            Exact. Missing genotypes add nothing.
        """
        ...

    def minplus(
        self,
        c: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        *,
        symmetric: bool = False,
        bounds: Bounds | None = None,
    ) -> None:
        """In place ``c[i, j] = min(c[i, j], min_k a[i, k] + b[k, j])``.

        Parameters
        ----------
        c, a, b : arrays (m, n), (m, k), (k, n), of one dtype: int32, int64, float32 or float64
            Any strides, in host memory or on the backend's device. `c` may not overlap `a` or
            `b`. Values are not negative, integers at most `infinity`, so that no sum overflows.
        symmetric : bool
            The caller promises that the product and `c` are symmetric and reads the upper
            triangle alone: entries below the diagonal may be left as they are (see `mirror`).
        bounds : Bounds, optional
            What may be skipped.
        """
        ...

    def close_block(self, w: np.ndarray) -> None:
        """Floyd-Warshall of a symmetric block of at most 128; its upper triangle is read."""
        ...

    def mirror(self, w: np.ndarray) -> None:
        """Copy the upper triangle of a square matrix onto the lower, in place."""
        ...

    def transpose(self, source: np.ndarray, target: np.ndarray) -> None:
        """``target = source.T`` for two blocks whose rows are contiguous."""
        ...

    def bound_tiles(self, dtype: np.dtype) -> tuple[int, int, int]:
        """Rows and columns of the tiles, and length of the runs, that `Bounds` speak of."""
        ...

    def tile_minima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        """The smallest entry of each height x width block of `x`; the last ones may be cut."""
        ...

    def tile_maxima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        """The largest entry of each height x width block of `x`."""
        ...

    def hold(self, w: np.ndarray) -> np.ndarray:
        """A square matrix of weights where this backend works on it.

        It may be larger than `w`: the individuals added have no edges. A CPU returns `w` itself.
        """
        ...

    def fetch(self, held: np.ndarray, w: np.ndarray) -> None:
        """What has become of the matrix that `hold` made of `w`, back into `w`."""
        ...

    def panel(self, w: np.ndarray) -> int:
        """Individuals that become intermediate nodes together in the closure of `w`.

        `closure_panel`, except for a matrix that exceeds the device: its floats may then differ
        in the last places.
        """
        ...

    def scan_pairs(self, data: ScanData, first: range, top: int, cutoff: int | None = None) -> Hits:
        """The best `top` pairs x < y with x in `first` and `allowed` partners.

        Parameters
        ----------
        data : ScanData
        first : range
            The smallest site index of the pairs: a unit of work.
        top : int
            How many to keep, at least 1.
        cutoff : int, optional
            The caller needs no pair whose cost is above it (equal ones it does need).
        """
        ...

    def scan_triples(
        self, data: ScanData, first: range, top: int, cutoff: int | None = None
    ) -> Hits:
        """The best `top` triples x < y < z, x in `first`, all three pairs allowed.

        Parameters as in `scan_pairs`.
        """
        ...
