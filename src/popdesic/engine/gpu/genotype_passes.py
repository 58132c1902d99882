"""One pass of vectors over genotypes on a GPU, in five launches a block of sites.

`GenotypeProducts.normal` of samples that are treated alike: sums of people, `standardise_sites`
(kernels/pca/standardise.cu), sums of sites, `add_people`. The general way launches some forty
kernels of CuPy a block, for the same bytes, which takes longer than the sums of fewer than a
hundred thousand people.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..genotype_products import BLOCK_SITES, SITE_BITS
from .code_sums import Block, CodeSums
from .compile import load_function
from .genotype_plans import GENOTYPES, MISSING, TILE_COLUMNS, tiles_of
from .layout import SUM_DIGITS, divide_up

#: The file of the kernels between and after the sums, and threads of their thread blocks.
KERNEL, THREADS = "pca/standardise", 1024


class NormalPass:
    """Sums over blocks of sites of their standardised genotypes' products with vectors.

    Parameters
    ----------
    sums : CodeSums
    numbers : float64 array, (n_places, k)
        Vectors as whole numbers, k at least 1 and at most MOST_TILES tiles.
    powers : int32 array, (k,)
        Powers of two that they stand for.
    mean, inverse : float64 arrays, (n_sites,)
        Mean genotype and 1 / standard deviation of each site.
    weight : float
        By which products are multiplied.

    Attributes
    ----------
    total : float64 array, (n_places, k)
    """

    def __init__(
        self,
        sums: CodeSums,
        numbers: cupy.ndarray,
        powers: cupy.ndarray,
        mean: cupy.ndarray,
        inverse: cupy.ndarray,
        weight: float,
    ) -> None:
        self.sums, self.weight = sums, np.float64(weight)
        self.mean, self.inverse = mean, inverse
        self.n_places, self.columns = numbers.shape
        self.tiles = tiles_of(self.columns)
        self.width = TILE_COLUMNS * self.tiles
        self.totals = cupy.zeros(self.width, np.float64)
        self.totals[: self.columns] = numbers.sum(axis=0)
        self.powers = cupy.zeros(self.width, np.int32)
        self.powers[: self.columns] = powers
        self.digits = sums.split(numbers, self.n_places, self.tiles)
        self.total = cupy.zeros((self.n_places, self.columns), np.float64)
        self.less_total = cupy.empty(self.width, np.int64)
        self.back = cupy.empty(self.width, np.int32)
        self.sites, self.people = self._zeros()
        #: The same of missing genotypes, once a block has some.
        self.absent: tuple[Any, Any] | None = None

    def _zeros(self) -> tuple[cupy.ndarray, cupy.ndarray]:
        sizes = BLOCK_SITES, self.n_places
        return tuple(cupy.zeros((size, self.width), np.int64) for size in sizes)

    def add(self, block: Block, first: int, last: int) -> None:
        """Add the products of one block of sites."""
        sums, n_sites = self.sums, last - first
        n_people, site_words = block.sites.shape
        padded = 16 * site_words
        times = cupy.zeros((SUM_DIGITS, self.width, padded), np.int8)
        if block.missing and self.absent is None:
            self.absent = self._zeros()
        sites, people = self.absent if block.missing else (None, None)
        less = cupy.zeros_like(times) if block.missing else None
        sums.add(block.people, self.digits, self.sites, self.tiles, GENOTYPES)
        if block.missing:
            sums.add(block.people, self.digits, sites, self.tiles, MISSING)
        own = slice(first, last)
        self._load("standardise_sites")(
            (self.columns,),
            (THREADS,),
            (
                *(self.sites, _pointer(sites), self.totals, self.powers),
                *(self.mean[own], self.inverse[own], self.weight),
                *(np.int64(n_sites), np.int64(padded), times, _pointer(less)),
                *(self.less_total, self.back),
            ),
        )
        sums.add(block.sites, times, self.people, self.tiles, GENOTYPES)
        if block.missing:
            sums.add(block.sites, less, people, self.tiles, MISSING)
        self._load("add_people")(
            (divide_up(n_people * self.width, THREADS),),
            (THREADS,),
            (
                *(self.people, _pointer(people), self.less_total, self.back, self.total),
                *(np.int64(n_people), np.int32(self.columns)),
            ),
        )

    def _load(self, function: str) -> cupy.RawKernel:
        defines = ("N_COLUMNS", self.width), ("SITE_BITS", SITE_BITS)
        return load_function(KERNEL, function, defines, self.sums.device.capability)


def _pointer(array: cupy.ndarray | None) -> Any:
    return np.uint64(0) if array is None else array
