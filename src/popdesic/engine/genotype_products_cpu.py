"""Products of standardised genotypes on the CPU: blocks of sites on threads, tables of sums."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ..core.threads import run_ordered
from . import flipped_sums_cpu
from .columns_cpu import CpuColumns
from .genotype_products import (
    BITS,
    FEW_BITS,
    SITE_BITS,
    Calls,
    Flips,
    GenotypeProducts,
    SampleSums,
    misses,
    rounded,
)
from .genotype_sums_cpu import (
    COLUMNS,
    ITEMS,
    by_person,
    by_site,
    count_differing,
    list_differing,
    sum_codes,
    sum_listed_people,
    sum_listed_sites,
    sum_missing,
    sum_values,
)
from .sample_sums import sample_sums

#: Words of blocks that stay in memory: reading and transposing them takes a fifth of a pass.
HELD_BYTES = 1 << 29
#: Bytes of rows in which missing genotypes are looked for at a time.
LOOKED_BYTES = 1 << 17
#: A site is listed where at most this share of the places of a row differs from one homozygote: a
#: carrier costs what about twelve genotypes cost in tables (tests/bench/bench_rare.py --passes).
LISTED_SHARE = 0.05
#: Sites of a block that are looked at, and the share of rare ones from which on lists are made.
LOOKED_SITES, LEAST_LISTED = 64, 0.25


class Block:
    """Words of codes of one block of sites (`engine.genotype_sums_cpu`), and if any is missing.

    Words are turned when they are first needed: `people`, by which sites are summed, and `sites`,
    by which people are; some passes need one of them.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows: np.ndarray | None = rows
        self.missing = _misses(rows)

    @cached_property
    def people(self) -> np.ndarray:
        return self._turned(by_site, "sites")

    @cached_property
    def sites(self) -> np.ndarray:
        return self._turned(by_person, "people")

    @cached_property
    def split(self) -> SplitBlock | None:
        """Rare sites apart, where that pays and the rows are still there."""
        return None if self._rows is None else SplitBlock.of(self._rows)

    def _turned(self, turn: Callable[[np.ndarray], np.ndarray], other: str) -> np.ndarray:
        found = turn(self._rows)
        if other in vars(self):  # nobody needs the rows any more
            self._rows = None
        return found

    @cached_property
    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Who is missing at each site (`flipped_sums.list_missing`), None where nobody is.

        None, too, if the list takes more memory than the words of `people`, which are then searched
        at every pass.
        """
        if not self.missing:
            return None
        n_sites = self.people.shape[1]
        starts, items = np.empty(n_sites + 1, np.int64), np.empty(self.people.size, np.int32)
        flipped_sums_cpu.list_missing_of_words(self.people, starts, items)
        return (starts, items[: starts[-1]].copy()) if starts[-1] <= len(items) else None


class SplitBlock:
    """Sites of a block that few people carry as lists of them, and a block of the others.

    A sum over people, or over sites, is that of the common code and what carriers add to it. These
    are integers: the sums are those of the whole block.

    Attributes
    ----------
    listed, others : int64 arrays
        Which sites of the block have lists, and which have not.
    rest : Block
        Of `others`.
    common : int64 array, (n_listed,)
        Code of nearly everyone: 3 (no ALT allele) or 0 (two).
    starts, items : arrays
        Of `genotype_sums_cpu.list_differing`; starts has the end as well.
    """

    def __init__(self, rows: np.ndarray, listed: np.ndarray, differing: np.ndarray) -> None:
        self.listed = np.flatnonzero(listed)
        self.others = np.flatnonzero(~listed)
        self.rest = Block(rows[self.others])
        differing = differing[:, self.listed]
        self.common = np.where(differing[0] <= differing[1], 3, 0)
        self.starts = np.concatenate([[0], np.cumsum(differing.min(axis=0))])
        self.items = np.empty(self.starts[-1], np.int32)
        words = rows.view(np.uint64)
        list_differing(words, self.listed, self.common, self.starts[:-1], self.items)

    @classmethod
    def of(cls, rows: np.ndarray) -> SplitBlock | None:
        """Of .bed rows of a block; None where some of them say that it does not pay."""
        few = np.ascontiguousarray(rows[:: max(1, len(rows) // LOOKED_SITES)])
        if len(few) == 0 or _rare(few)[0].mean() < LEAST_LISTED:
            return None
        return cls(rows, *_rare(rows))

    def sums_of_sites(self, numbers: np.ndarray, people: tuple[int, int]) -> np.ndarray:
        """Sums of genotype times number, and of numbers who is missing, at listed sites.

        Parameters
        ----------
        numbers : int64 array, (n_people, k)
            Of the places `people`, first and end.

        Returns
        -------
        int64 array, (2, n_listed, k)
        """
        out = np.empty((2, len(self.listed), numbers.shape[1]), np.int64)
        for first in range(0, numbers.shape[1], COLUMNS):
            few = _in_columns(numbers[:, first : first + COLUMNS])
            sum_listed_sites(self._lists, *people, few, first, out)
        return out

    def sums_of_people(self, values: list[np.ndarray], people: tuple[int, int]) -> np.ndarray:
        """Sums of values of listed sites for the places `people`: int64 (n_people, k).

        values: of two ALT alleles, one and none, int64 (n_block, k); missing genotypes count 0.
        """
        listed = tuple(value[self.listed] for value in values)
        out = np.empty((people[1] - people[0], listed[0].shape[1]), np.int64)
        for first in range(0, out.shape[1], COLUMNS):
            found = np.zeros((len(out), COLUMNS), np.int64)
            sum_listed_people(self._lists, *people, listed, first, found)
            out[:, first : first + COLUMNS] = found[:, : out.shape[1] - first]
        return out

    @property
    def _lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.starts, self.items, self.common


def _rare(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each site is rare, and how many places differ from 11 and from 00, (2, n_sites)."""
    differing = np.empty((2, len(rows)), np.int64)
    count_differing(rows.view(np.uint64), differing)
    return differing.min(axis=0) <= LISTED_SHARE * 4 * rows.shape[1], differing


def _misses(rows: np.ndarray) -> bool:
    """`misses` of a few rows at a time: new memory for all would take longer than the bits."""
    step = max(1, LOOKED_BYTES // max(1, rows.shape[1]))
    return any(misses(rows[first : first + step]) for first in range(0, len(rows), step))


class CpuProducts(GenotypeProducts):
    """`GenotypeProducts` whose blocks of sites are shared among threads.

    The first blocks of a pass stay in memory for further passes of the same blocks.
    """

    def __init__(self, calls: Calls, threads: int = 1) -> None:
        super().__init__(calls, threads)
        #: Processes that share the blocks of a pass.
        self.shares = 1
        self._bounds: list[tuple[int, int]] = []
        self._held: dict[tuple[int, int], Block] = {}

    @property
    def columns(self) -> CpuColumns:
        return CpuColumns(self.threads)

    def sample_sums(self) -> SampleSums:
        return sample_sums(self.calls, self.threads)

    def _put(self, array: np.ndarray) -> np.ndarray:
        return array

    def _get(self, array: np.ndarray) -> np.ndarray:
        return array

    def _shares(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left.T @ right

    def _each(
        self, work: Callable[[Any, int, int], Any], blocks: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        blocks = list(blocks)
        if blocks != self._bounds:
            self._bounds, self._held = blocks, {}
        # Sites: a block holds its codes twice, and lists of the missing that are no larger; or
        # once, rare sites as lists, and its other sites twice.
        room = self.shares * HELD_BYTES // (3 * self.calls.spans[-1][1])

        def one(bounds: tuple[int, int]) -> Any:
            block = self._held.get(bounds)
            if block is None:
                block = Block(self.calls.block(*bounds))
                if bounds[1] <= room:
                    self._held[bounds] = block
            return work(block, *bounds)

        return run_ordered(one, blocks, self.threads)

    def _by_site(
        self, block: Block, numbers: np.ndarray, span: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        split = block.split
        if split is None:
            return self._dense_by_site(block, numbers, span)
        own = numbers[4 * span[0] : 4 * span[1]].astype(np.int64)
        found = split.sums_of_sites(own, (4 * span[0], 4 * span[1]))
        sums = np.zeros((2, len(split.listed) + len(split.others), own.shape[1]))
        sums[:, split.listed] = found
        if len(split.others):
            some, absent = self._dense_by_site(split.rest, numbers, span)
            sums[0, split.others] = some
            sums[1, split.others] = 0 if absent is None else absent
        return sums[0], sums[1] if block.missing else None

    def _dense_by_site(
        self, block: Block, numbers: np.ndarray, span: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """`_by_site` without lists."""
        words = block.people[4 * span[0] // ITEMS : 4 * span[1] // ITEMS]
        own = numbers[4 * span[0] : 4 * span[1]].astype(np.int64)
        sums = sum_codes(words, 2 * own, own, np.zeros_like(own)).astype(np.float64)
        if not block.missing:
            return sums, None
        if block.listed is None:
            return sums, sum_missing(words, own).astype(np.float64)
        absent = np.empty(sums.shape)
        for first in range(0, own.shape[1], COLUMNS):
            columns = slice(first, first + COLUMNS)
            few = _in_columns(own[:, columns], np.int32)
            found = _sum_listed(block, few, 4 * span[0], 4 * span[1])
            absent[:, columns] = found[:, : absent.shape[1] - first]
        return sums, absent

    def _by_person(
        self, block: Block, times: np.ndarray, less: np.ndarray, span: tuple[int, int]
    ) -> np.ndarray:
        times, less = times.astype(np.int64), less.astype(np.int64)
        people = 4 * span[0], 4 * span[1]
        values = [2 * times - less, times - less, -less]
        split = block.split
        if split is None:
            return sum_codes(block.sites, *values, people).astype(np.float64)
        sums = split.sums_of_people(values, people)
        if len(split.others):
            sums += sum_codes(split.rest.sites, *(one[split.others] for one in values), people)
        return sums.astype(np.float64)

    def _flipped(self, vectors: np.ndarray, flips: Flips) -> Callable[[Any, int, int], Any]:
        """As the general one, to the last bit, of COLUMNS columns at most in a few compiled calls.

        A block of one stretch has few sites: numpy would take longer than the sums.
        """
        k = vectors.shape[1]
        if k > COLUMNS:
            return super()._flipped(vectors, flips)
        numbers, powers = self._placed(vectors)
        numbers, scale = _in_columns(numbers, np.float64), _in_columns(np.ldexp(1.0, powers))
        known = self._scattered(flips.known)
        few = known.shape[1]
        whole, known_powers = rounded(np, known, FEW_BITS) if few else (known, np.zeros(0, int))
        whole, known_scale = whole.astype(np.int64), np.ldexp(1.0, known_powers)[:, None]
        signs = self._signs(flips)
        if k < COLUMNS:
            signs = np.concatenate(
                [signs, np.zeros((*signs.shape[:2], COLUMNS - k), np.int8)], axis=2
            )
        along = np.ascontiguousarray(flips.projections, np.float64)

        local = threading.local()

        def work(block: Block, first: int, last: int) -> np.ndarray:
            own, sites = signs[int(flips.stretch[first])], slice(first, last)
            if not hasattr(local, "values"):  # new memory for every block takes as long as turning
                local.values = np.zeros((self.n_places, 4, COLUMNS), np.int32)
                local.turned = np.empty((self.n_places, COLUMNS), np.int32)
            values, turned, total = local.values, local.turned, np.empty(COLUMNS)
            shares = np.zeros((few, COLUMNS), np.int64)
            flipped_sums_cpu.apply_signs(numbers, own, whole, values, turned, total, shares)
            sums = sum_values(block.people, values)
            absent = np.empty((0, COLUMNS), np.int64)
            if block.listed is not None:
                absent = _sum_listed(block, turned, 0, self.n_places)
            elif block.missing:
                absent = sum_missing(block.people, turned.astype(np.int64))
            values = np.zeros((ITEMS * len(block.sites), 4, COLUMNS), np.int32)
            back, left = np.empty(COLUMNS, np.int32), np.zeros((few, COLUMNS), np.int64)
            left_powers = np.empty((few, COLUMNS), np.int32)
            flipped_sums_cpu.standardise(
                *(sums, absent, total),
                flipped_sums_cpu.SiteScale(self.mean[sites], self.inverse[sites], along[sites]),
                *(scale, shares * (known_scale * scale)),
                flipped_sums_cpu.SiteValues(values, back, left, left_powers),
                *(BITS, SITE_BITS, FEW_BITS),
            )
            sums = sum_values(block.sites, values)
            parts = np.ldexp(left.astype(np.float64), left_powers)
            out = np.empty((self.n_places, k))
            flipped_sums_cpu.turn_back(sums, np.ldexp(1.0, back), known, parts, own, out)
            return out

        return work


def _in_columns(numbers: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Numbers of at most COLUMNS columns with zeros in the others, contiguous."""
    found = np.zeros((*numbers.shape[:-1], COLUMNS), dtype or numbers.dtype)
    found[..., : numbers.shape[-1]] = numbers
    return found


def _sum_listed(block: Block, numbers: np.ndarray, first: int, end: int) -> np.ndarray:
    """Sums of the numbers, int32 (end - first, 8), of who is missing: int64 (n_block, 8)."""
    starts, items = block.listed
    out = np.empty((len(starts) - 1, COLUMNS), np.int64)
    flipped_sums_cpu.sum_listed(starts, items, first, end, numbers, out)
    return out
