"""Passes of vectors over genotypes on a GPU, in a few launches a block of sites.

`GenotypeProducts.normal` of samples that are treated alike, and `flipped`: sums of people,
`standardise_sites` or `standardise_flipped`, sums of sites, `add_people` or `add_flipped`
(kernels/pca/standardise.cu, flips.cu). The general way launches forty and ninety kernels of CuPy a
block, for the same bytes, which takes longer than the sums of fewer than a hundred thousand people.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..genotype_products import BLOCK_SITES
from .code_sums import Block, CodeSums
from .compile import load_function
from .genotype_plans import (
    FLIPPED,
    GENOTYPES,
    MISSING,
    NORMAL,
    TILE_COLUMNS,
    pass_defines,
    tiles_of,
)
from .layout import SUM_DIGITS, divide_up

#: Most bytes of shares of known components in shared memory.
SHARES_BYTES = 32 << 10


class _Pass:
    """What all passes have: sums of a block of sites, and what is added up.

    Parameters
    ----------
    sums : CodeSums
    numbers : float64 array, (n_places, k)
        Vectors as whole numbers, k at least 1 and at most MOST_TILES tiles.
    powers : int32 array, (k,)
        Powers of two that they stand for.
    mean, inverse : float64 arrays, (n_sites,)
        Mean genotype and 1 / standard deviation of each site.

    Attributes
    ----------
    total : float64 array, (n_places, k)
    """

    kernels = NORMAL

    def __init__(
        self,
        sums: CodeSums,
        numbers: cupy.ndarray,
        powers: cupy.ndarray,
        mean: cupy.ndarray,
        inverse: cupy.ndarray,
    ) -> None:
        self.sums, self.mean, self.inverse = sums, mean, inverse
        self.n_places, self.columns = numbers.shape
        self.tiles = tiles_of(self.columns)
        self.width = TILE_COLUMNS * self.tiles
        self.powers = cupy.zeros(self.width, np.int32)
        self.powers[: self.columns] = powers
        self.total = cupy.zeros((self.n_places, self.columns), np.float64)
        self.less_total = cupy.zeros(self.width, np.int64)
        self.back = cupy.zeros(self.width, np.int32)
        self.called = self._buffers()
        #: The same of missing genotypes, once a block has some.
        self.missing: tuple[Any, ...] | None = None

    def _buffers(self) -> tuple[cupy.ndarray, ...]:
        """Sums of sites and of people, and digits of sites."""
        sizes = BLOCK_SITES, self.n_places
        digits = cupy.zeros(SUM_DIGITS * self.width * BLOCK_SITES, np.int8)
        return *(cupy.zeros((size, self.width), np.int64) for size in sizes), digits

    def _multiply(self, block: Block, digits: cupy.ndarray, standardise: Any, add: Any) -> None:
        """Add the products of one block.

        ``standardise(sites, absent, digits, less, padded)`` and ``add(people, absent, n_people)``
        launch what is between and after the sums; `absent` and `less` are null where no genotype
        is missing.
        """
        sums, (sites, people, times) = self.sums, self.called
        n_people, site_words = block.sites.shape
        absent = absent_people = less = np.uint64(0)
        sums.add(block.people, digits, sites, self.tiles, GENOTYPES)
        if block.missing:
            self.missing = self.missing or self._buffers()
            absent, absent_people, less = self.missing
            sums.add(block.people, digits, absent, self.tiles, MISSING)
        standardise(sites, absent, times, less, np.int64(16 * site_words))
        sums.add(block.sites, times, people, self.tiles, GENOTYPES)
        if block.missing:
            sums.add(block.sites, less, absent_people, self.tiles, MISSING)
        add(people, absent_people, np.int64(n_people))

    def _run(self, function: str, blocks: tuple, arguments: tuple, shared: int = 0) -> None:
        file, threads = self.kernels
        defines = pass_defines(self.width, threads)
        kernel = load_function(file, function, defines, self.sums.device.capability)
        kernel(blocks, (threads,), arguments, shared_mem=shared)

    def _blocks(self, items: int) -> tuple[int]:
        return (divide_up(items, self.kernels[1]),)


class NormalPass(_Pass):
    """Standardised genotypes of people times those of others times vectors, times `weight`."""

    def __init__(self, sums, numbers, powers, mean, inverse, weight: float) -> None:
        super().__init__(sums, numbers, powers, mean, inverse)
        self.weight = np.float64(weight)
        self.totals = cupy.zeros(self.width, np.float64)
        self.totals[: self.columns] = numbers.sum(axis=0)
        self.digits = sums.split(numbers, self.n_places, self.tiles)

    def add(self, block: Block, first: int, last: int) -> None:
        """Add the products of one block of sites."""
        own, n_sites = slice(first, last), np.int64(last - first)

        def standardise(sites, absent, digits, less, padded) -> None:
            numbers = self.totals, self.powers, self.mean[own], self.inverse[own], self.weight
            outputs = digits, less, self.less_total, self.back
            arguments = (sites, absent, *numbers, n_sites, padded, *outputs)
            self._run("standardise_sites", (self.columns,), arguments)

        def add(people, absent, n_people) -> None:
            numbers = self.less_total, self.back, self.total, n_people, np.int32(self.columns)
            self._run(
                "add_people", self._blocks(int(n_people) * self.width), (people, absent, *numbers)
            )

        self._multiply(block, self.digits, standardise, add)


class FlippedPass(_Pass):
    """The same with the signs of samples flipped, stretch by stretch (`Flips`).

    Parameters
    ----------
    signs : int8 array, (n_stretches, n_places, k)
    stretch : int64 array, (n_sites,)
        Of the host.
    known : float64 array, (n_places, K), with `whole`, int64, and `known_powers`, int32 (K,)
        Components that are taken out, and as whole numbers.
    along : float64 array, (n_sites, K), with `left`, int64, and `left_powers` by first site
        Their values at sites, and as whole numbers of each block.
    """

    kernels = FLIPPED

    def __init__(
        self, sums, numbers, powers, mean, inverse, *, signs, stretch, known, along
    ) -> None:
        super().__init__(sums, numbers, powers, mean, inverse)
        self.numbers, self.signs, self.stretch = numbers, signs, stretch
        self.known, self.whole, self.known_powers = known
        self.along, self.left, self.left_powers = along
        self.n_known = self.known.shape[1]
        digits = (SUM_DIGITS, self.width, self.n_places)
        self.digits = cupy.zeros(digits, np.int8)
        self.turned = cupy.zeros((self.n_places, self.width), np.int32)
        self.found = cupy.zeros((BLOCK_SITES, self.width), np.int32)
        self.values = cupy.zeros((BLOCK_SITES, self.width), np.float64)
        self.powers_found = cupy.zeros(self.width, np.int32)
        #: Sums of the numbers, and the components' shares of people and of sites.
        self.shares = cupy.zeros((1 + 2 * self.n_known, self.width), np.int64)

    def add(self, block: Block, first: int, last: int) -> None:
        """Add the products of one block of sites, all of one stretch."""
        own, n_sites, k = slice(first, last), last - first, self.n_known
        signs, columns = self.signs[int(self.stretch[first])], np.int32(self.columns)
        totals, of_people, of_sites = self.shares[0], self.shares[1 : 1 + k], self.shares[1 + k :]
        self.shares.fill(0)
        turned = self.digits, self.turned, totals, np.int64(self.n_places), columns
        self._run("turn_numbers", self._blocks(self.n_places), (self.numbers, signs, *turned))
        self._share(self.whole, self.turned, of_people, self.n_places)

        def standardise(sites, absent, digits, less, padded) -> None:
            numbers = totals, self.powers, self.mean[own], self.inverse[own]
            components = self.along[own], of_people, self.known_powers, np.int32(k)
            outputs = self.values, digits, less, self.less_total, self.back
            found = self.found, self.powers_found
            arguments = *numbers, *components, np.int64(n_sites), padded, *outputs, *found
            self._run("standardise_flipped", (self.columns,), (sites, absent, *arguments), 8 * k)
            self._share(self.left[own], self.found, of_sites, n_sites)

        def add(people, absent, n_people) -> None:
            components = self.known, of_sites, self.left_powers[first], self.powers_found
            outputs = signs, self.total, n_people, np.int32(k), columns
            arguments = people, absent, self.less_total, self.back, *components, *outputs
            blocks = self._blocks(int(n_people) * self.width)
            self._run("add_flipped", blocks, arguments, 8 * k * self.width)

        self._multiply(block, self.digits, standardise, add)

    def _share(self, left: Any, right: Any, shares: Any, n: int) -> None:
        if self.n_known:
            blocks = min(self._blocks(n)[0], 64), self.n_known
            numbers = np.int64(n), np.int32(self.n_known), np.int32(self.columns)
            self._run("add_shares", blocks, (left, right, shares, *numbers))
