"""Passes over genotypes on the device in few launches (`kernels/engine/genotype_passes.cu`).

A pass of flipped genotypes has a block for each stretch of 10 Mb: launches of each block would take
longer than all sums. Here a launch works on a group of blocks: on as many as memory holds, of
genotypes that are on the device, and of those that are sent while others are multiplied. The bytes
are those of `GenotypeProducts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import cupy
import numpy as np

from ..io.sites import chunks
from .compile_gpu import load_function
from .devices import Device
from .genotype_plan import (
    GENOTYPES,
    MISSING,
    MOST_SHARERS,
    PASS_THREADS,
    PASSES,
    SHARED_PLACES,
    SUM_DIGITS,
    SUM_WARPS,
    TILE_COLUMNS,
    PassGroup,
    Room,
    column_tiles,
    plan_pass,
    plan_sums,
    site_words,
    words_before,
)
from .genotype_products import BLOCK_SITES, FEW_BITS, Calls, Flips, misses, rounded, site_blocks
from .layout import divide_up

#: What a kernel gets for an array that there is not.
NOTHING = np.uint64(0)


class OfGenotypes(Protocol):
    """What passes need of `GpuProducts`."""

    calls: Calls
    device: Device
    places: np.ndarray
    n_places: int
    row_bytes: int
    room: Room
    held: cupy.ndarray | None
    mean: cupy.ndarray
    inverse: cupy.ndarray
    _where: Any

    def turn(self, words: cupy.ndarray, out: cupy.ndarray) -> None: ...

    def sent(self, blocks: list[tuple[int, int]]) -> Iterator[cupy.ndarray]: ...

    def _placed(self, vectors: np.ndarray) -> tuple[Any, Any]: ...

    def _spans(self, factors: np.ndarray | None) -> list[tuple[int, int]]: ...


@dataclass
class DeviceBlocks:
    """Blocks of sites, and the codes of people in each, one block after another, if they are kept.

    `labels`: run of equal stretches that each block lies in, from 0. `groups`: the plans of passes
    so far, with their tables.
    """

    bounds: list[tuple[int, int]]
    labels: np.ndarray
    codes: cupy.ndarray | None
    groups: dict[tuple, list[tuple[PassGroup, list[cupy.ndarray]]]] = field(default_factory=dict)


@dataclass
class Known:
    """Flips as their pass needs them, and the components that they take out.

    `bounds`: sites of the blocks. `signs`: int8 (n_runs, n_places, k), of each run of sites of one
    stretch; 0 where nobody stands.
    `placed`, float64 (n_places, few); `whole`, int64, with `powers` (few,); `along`, float64
    (n_sites, few); `left`, int64, with `left_powers` (n_blocks, few).
    """

    flips: Flips
    bounds: list[tuple[int, int]]
    signs: cupy.ndarray
    placed: cupy.ndarray
    whole: cupy.ndarray
    powers: cupy.ndarray
    along: cupy.ndarray
    left: cupy.ndarray
    left_powers: cupy.ndarray

    @property
    def few(self) -> int:
        return self.placed.shape[1]


class Passes:
    """The passes of `GpuProducts`."""

    def __init__(self, products: OfGenotypes) -> None:
        self.products, self.device = products, products.device
        self.row_words = products.row_bytes // 4
        self.n_places, self.capability = products.n_places, products.device.capability
        self._missing: dict[tuple[int, int], bool] = {}
        self._blocks: DeviceBlocks | None = None
        self._known: Known | None = None

    def normal(self, vectors: Any, factors: np.ndarray | None) -> cupy.ndarray:
        """`GenotypeProducts.normal` of MOST_COLUMNS vectors at most, of all places."""
        n_sites = self.products.calls.n_sites
        blocks = self._cut(site_blocks(n_sites), np.zeros(n_sites, np.int64))
        weights = np.ones((1, 1)) if factors is None else np.asarray(factors, np.float64)
        total = cupy.zeros((self.n_places, vectors.shape[1]), np.float64)
        self._run(blocks, vectors, self.products._spans(factors), weights, None, total)
        return total

    def flipped(self, vectors: Any, flips: Flips) -> cupy.ndarray:
        """`GenotypeProducts.flipped` of MOST_COLUMNS vectors at most, of all places."""
        total = cupy.zeros((self.n_places, vectors.shape[1]), np.float64)
        self._flip(vectors, flips, total)
        return total

    def spread_by_person(self, flips: Flips) -> cupy.ndarray:
        """`GenotypeProducts.spread_by_person` of MOST_COLUMNS columns of signs at most."""
        vectors = np.ones((len(self.products.places), flips.signs.shape[2]))
        total = cupy.zeros(self.n_places, np.float64)
        self._flip(vectors, flips, total)
        return total

    def _flip(self, vectors: Any, flips: Flips, total: cupy.ndarray) -> None:
        blocks = self._cut(site_blocks(self.products.calls.n_sites, flips.stretch), flips.stretch)
        if self._known is None or self._known.flips is not flips:
            self._known = self._know(flips, blocks)
        (span,) = self.products._spans(None)
        self._run(blocks, vectors, [span], np.ones((1, 1)), self._known, total)

    def _cut(self, bounds: list[tuple[int, int]], labels: np.ndarray) -> DeviceBlocks:
        """Blocks of sites; those of the last pass are kept, with their codes if there is room."""
        if self._blocks is None or self._blocks.bounds != bounds:
            self._blocks, codes = None, None  # its memory first
            if self.products.held is not None and self.products.room.twice:
                codes = self._turn(self.products.held.view(np.uint32), bounds)
            # Stretches need not ascend: contigs are in the order of the genome, not of their names.
            own = labels[[first for first, _ in bounds]]
            runs = np.cumsum(np.diff(own, prepend=own[:1]) != 0)
            self._blocks = DeviceBlocks(bounds, runs, codes)
        return self._blocks

    def _turn(self, words: cupy.ndarray, bounds: list[tuple[int, int]]) -> cupy.ndarray:
        """Codes of people in blocks whose words, of the first block on, are given."""
        before, start = words_before(bounds, self.row_words).tolist(), bounds[0][0]
        codes = cupy.empty(before[-1], np.uint32)
        for (first, last), low, high in zip(bounds, before[:-1], before[1:], strict=True):
            out = codes[low:high].reshape(-1, site_words(last - first))
            self.products.turn(words[first - start : last - start], out)
        return codes

    def _words(
        self, blocks: DeviceBlocks, groups: list[tuple[PassGroup, list]]
    ) -> Iterator[tuple[cupy.ndarray, cupy.ndarray, bool]]:
        """Of each group: words of people of its sites, of sites of its people, any missing."""
        bounds = [(one.first_site, one.first_site + one.n_sites) for one, _ in groups]
        held = self.products.held
        if held is None:
            rows = self.products.sent(bounds)
        else:
            rows = (held[first:last] for first, last in bounds)
        before = words_before(blocks.bounds, self.row_words)
        for (group, _), key, own in zip(groups, bounds, rows, strict=True):
            first, last = group.first_block, group.first_block + len(group.blocks)
            words = own.view(np.uint32)
            if blocks.codes is not None:
                codes = blocks.codes[int(before[first]) : int(before[last])]
            else:
                codes = self._turn(words, blocks.bounds[first:last])
            if key not in self._missing:
                looked = chunks(len(own), BLOCK_SITES)
                self._missing[key] = any(bool(misses(own[slice(*part)])) for part in looked)
            yield words, codes, self._missing[key]

    def _know(self, flips: Flips, blocks: DeviceBlocks) -> Known:
        """`Known` of flips; draws of other signs often take out the same components."""
        old, self._known = self._known, None  # its memory first
        starts = [0, *(np.flatnonzero(np.diff(blocks.labels)) + 1).tolist()]
        stretches = np.array([flips.stretch[blocks.bounds[start][0]] for start in starts])
        there = old is not None and old.bounds is blocks.bounds
        if there and old.flips.signs is flips.signs and old.flips.stretch is flips.stretch:
            signs = old.signs
        else:
            drawn = cupy.asarray(flips.signs)[cupy.asarray(stretches)]
            signs = cupy.zeros((len(starts), self.n_places, drawn.shape[2]), np.int8)
            signs[:, self.products._where] = drawn
        if there and old.flips.known is flips.known and old.flips.projections is flips.projections:
            return replace(old, flips=flips, signs=signs)
        return Known(flips, blocks.bounds, signs, *self._components(flips, blocks.bounds))

    def _components(self, flips: Flips, bounds: list[tuple[int, int]]) -> Iterator[cupy.ndarray]:
        """What `Known` has of the components: exact numbers and whole ones."""
        placed = np.zeros((self.n_places, flips.known.shape[1]))
        placed[self.products.places] = flips.known
        few, along = placed.shape[1], np.ascontiguousarray(flips.projections, np.float64)
        powers, left_powers = np.zeros(few, np.int32), np.zeros((len(bounds), few), np.int32)
        whole, left = placed, along
        if few:
            whole, powers = rounded(np, placed, FEW_BITS)
            left = np.empty(along.shape)
            for block, (first, last) in enumerate(bounds):
                left[first:last], left_powers[block] = rounded(np, along[first:last], FEW_BITS)
        arrays = placed, whole.astype(np.int64), powers.astype(np.int32)
        return map(cupy.asarray, (*arrays, along, left.astype(np.int64), left_powers))

    def _groups(
        self, blocks: DeviceBlocks, spans: list[tuple[int, int]], tiles: int, whole_sets: bool
    ) -> list[tuple[PassGroup, list[cupy.ndarray]]]:
        key = tuple(spans), tiles, whole_sets
        if key not in blocks.groups:
            planned = plan_pass(
                *(blocks.bounds, blocks.labels, spans, self.row_words, tiles),
                whole_sets=whole_sets,
                room=self.products.room,
                multiprocessors=self.device.multiprocessors,
            )
            blocks.groups[key] = [
                (one, [cupy.asarray(t) for t in (one.blocks, one.site_tiles, one.person_tiles)])
                for one in planned
            ]
        return blocks.groups[key]

    def _run(
        self,
        blocks: DeviceBlocks,
        vectors: Any,
        spans: list[tuple[int, int]],
        weights: np.ndarray,
        known: Known | None,
        total: cupy.ndarray,
    ) -> None:
        """Add a pass to `total`: of people and columns, or the spreads of people."""
        tiles, spreads = column_tiles(vectors.shape[1]), total.ndim == 1
        numbers, powers = self.products._placed(vectors)
        places, weights = cupy.asarray(4 * np.array(spans, np.int64)), cupy.asarray(weights)
        groups = self._groups(blocks, spans, tiles, spreads)
        for group, (words, codes, missing) in zip(groups, self._words(blocks, groups), strict=True):
            one = _Pass(self, tiles, vectors.shape[1], len(spans), known, missing, *group)
            found = one.standardise(
                one.by_site(words, numbers, places), powers.astype(np.int32), weights
            )
            one.by_person(codes, found, places, total)


@dataclass
class _Pass:
    """The launches of one pass over a group of blocks; `tables`: of blocks, sites and people."""

    passes: Passes
    tiles: int
    n_columns: int
    n_spans: int
    known: Known | None
    missing: bool
    group: PassGroup
    tables: list[cupy.ndarray]

    @property
    def columns(self) -> int:
        return TILE_COLUMNS * self.tiles

    @property
    def few(self) -> int:
        return 0 if self.known is None else self.known.few

    def launch(self, name: str, grid: tuple, arguments: tuple, threads: int = PASS_THREADS) -> None:
        defines = (("TILES", self.tiles),)
        kernel = load_function(PASSES, name, defines, self.passes.capability)
        shared = 0
        if name == "sum_tiles":
            shared = plan_sums(1, 1, self.tiles, 1).shared
            kernel.max_dynamic_shared_size_bytes = shared
        kernel(grid, (threads,), arguments, shared_mem=shared)

    def own_signs(self) -> cupy.ndarray | np.uint64:
        """Signs of the group's sets."""
        if self.known is None:
            return NOTHING
        first = self.group.first_set
        return self.known.signs[first : first + self.group.n_sets]

    def sums(self, words: cupy.ndarray, digits: cupy.ndarray, tiles, n_rows: int, table: int):
        out = cupy.zeros((n_rows, self.columns), np.int64)
        arguments = words, digits, tiles, out, np.uint32(table)
        self.launch("sum_tiles", (len(tiles),), arguments, 32 * SUM_WARPS)
        return out

    def by_site(self, words: cupy.ndarray, numbers: cupy.ndarray, places: cupy.ndarray) -> tuple:
        """Sums of sites and of who is missing there, and shares of the components."""
        group, n = self.group, self.passes.n_places
        digits = cupy.empty((group.n_sets, SUM_DIGITS, self.columns, n), np.int8)
        sizes = np.int64(n), np.int32(self.n_columns)
        grid = divide_up(n, PASS_THREADS), group.n_sets
        self.launch("split_signed", grid, (numbers, self.own_signs(), digits, *sizes))
        shape = group.n_sets, self.n_spans, self.few + 1, self.columns
        shares = cupy.zeros(shape, np.int64)
        sharers = min(MOST_SHARERS, divide_up(n, SHARED_PLACES))
        self.launch(
            "share_numbers",
            (self.few + 1, self.n_spans * sharers, group.n_sets),
            (
                *(numbers, self.own_signs(), NOTHING if self.known is None else self.known.whole),
                *(places, shares, *sizes, np.int32(self.few), np.int32(self.n_spans)),
            ),
        )
        rows = group.n_sites * self.n_spans
        sums = self.sums(words, digits, self.tables[1], rows, GENOTYPES)
        if not self.missing:
            return sums, NOTHING, shares
        return sums, self.sums(words, digits, self.tables[1], rows, MISSING), shares

    def standardise(self, found: tuple, powers: cupy.ndarray, weights: cupy.ndarray) -> tuple:
        """Numbers of the way back: digits of both kinds, powers, sums, and the known's parts."""
        sums, absent, shares = found
        group, products = self.group, self.passes.products
        sites = slice(group.first_site, group.first_site + group.n_sites)
        n_blocks, size = len(group.blocks), group.padded * self.n_spans * SUM_DIGITS * self.columns
        times = cupy.empty(size, np.int8)
        less = cupy.empty(size, np.int8) if self.missing else NOTHING
        back = cupy.empty((n_blocks, self.n_spans, self.columns), np.int32)
        lesses = cupy.empty(back.shape, np.int64)
        parts = cupy.empty((n_blocks, self.few, self.columns), np.float64)
        known = (NOTHING,) * 4
        if self.known is not None:
            own = slice(group.first_block, group.first_block + n_blocks)
            known = self.known.along[sites], self.known.left[sites], self.known.left_powers[own]
            known += (self.known.powers,)
        scratch = cupy.empty((self.n_spans, group.n_sites, self.columns), np.float64)
        self.launch(
            "standardise_sites",
            (n_blocks, self.n_spans),
            (
                *(sums, absent, shares, products.mean[sites], products.inverse[sites], *known),
                *(powers, weights, self.tables[0], scratch, times, less, back, lesses, parts),
                *(np.int64(group.n_sites), np.int32(self.n_columns), np.int32(self.few)),
                np.int32(self.n_spans),
            ),
        )
        return times, less, back, lesses, parts

    def by_person(
        self, codes: cupy.ndarray, found: tuple, places: cupy.ndarray, total: cupy.ndarray
    ) -> None:
        """Sums of people, added to `total` block by block."""
        times, less, back, lesses, parts = found
        n, n_blocks = self.passes.n_places, len(self.group.blocks)
        sums = self.sums(codes, times, self.tables[2], n_blocks * n, GENOTYPES)
        absent = NOTHING
        if self.missing:
            absent = self.sums(codes, less, self.tables[2], n_blocks * n, MISSING)
        known = NOTHING if self.known is None else self.known.placed
        arrays = sums, absent, lesses, back, parts, known, self.own_signs(), self.tables[0]
        sizes = np.int64(n), np.int64(n_blocks), np.int32(self.n_columns), np.int32(self.few)
        if total.ndim == 1:
            self.launch("add_spreads", (divide_up(n, PASS_THREADS),), (*arrays, total, *sizes))
        else:
            grid = (divide_up(n * self.n_columns, PASS_THREADS),)
            arguments = (*arrays, places, total, *sizes, np.int32(self.n_spans))
            self.launch("add_people", grid, arguments)
