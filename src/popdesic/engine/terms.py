"""What an analysis asks of the bit-GEMM: bit-planes, and products of them as :class:`Terms`.

An analysis states *what* it wants as terms; *how* the sums are formed (AND products on tensor
cores, XOR forms and carry-save counters on a CPU) is the backend's own business, as long as the
integers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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

#: Squared Euclidean distance and site count over jointly called sites (kernels/README.md).
SQUARED = _terms(squared=_SQUARED, called=_CALLED)
#: The same without the count.
SQUARES = _terms(squared=_SQUARED)
#: The same with the number of opposite homozygotes, from which every other metric follows:
#: Manhattan = squared - 2 ibs0, IBS1 = squared - 4 ibs0, IBS2 = called - IBS1 - ibs0.
SQUARED_IBS0 = _terms(squared=_SQUARED, called=_CALLED, ibs0=_IBS0)
#: Alleles that differ, squared - 2 ibs0, at once: all that Manhattan and IBS distances need.
ALLELES = _terms(
    alleles=[(2, "z", "v"), (2, "v", "z"), (1, "h", "e"), (1, "e", "h")], called=_CALLED
)
#: The same with each sample's sum of genotypes and of their squares, all over jointly called sites:
#: what distances between samples divided by their own sum follow from.
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
        """The same genotypes, with imputed values counted as called."""
        return Planes(self.words[:, :2], self.n_sites)

    def with_mask(self) -> Planes:
        """The same genotypes with plane c, a copy where it is not stored."""
        if not self.complete:
            return self
        bits = np.zeros(self.words.shape[2] * 64, np.uint8)
        bits[: self.n_sites] = 1
        mask = np.packbits(bits, bitorder="little").view(np.uint64)
        mask = np.broadcast_to(mask, (self.n_samples, 1, len(mask)))
        return Planes(np.concatenate([np.asarray(self.words), mask], axis=1), self.n_sites)


def aligned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """uint64 zeros that start on a 64-byte boundary, so that no vector spans two cache lines."""
    size = int(np.prod(shape)) * 8
    buffer = np.zeros(size + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size].view(np.uint64).reshape(shape)
