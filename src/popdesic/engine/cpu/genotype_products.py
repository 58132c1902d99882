"""Products of standardised genotypes on the CPU: blocks of sites on threads, tables of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..genotype_products import Calls, GenotypeProducts, misses
from ..host.genotype_sums import ITEMS, by_person, by_site, sum_codes, sum_missing
from ..threads import run_ordered

#: Words of blocks that stay in memory: reading and transposing them takes a fifth of a pass.
HELD_BYTES = 1 << 29


@dataclass(frozen=True)
class Block:
    """Words of codes of one block of sites (`engine.host.genotype_sums`), and if any is missing."""

    people: np.ndarray
    sites: np.ndarray
    missing: bool


class CpuProducts(GenotypeProducts):
    """`GenotypeProducts` whose blocks of sites are shared among threads.

    The first blocks of a pass stay in memory for further passes of the same blocks.
    """

    def __init__(self, calls: Calls, threads: int = 1) -> None:
        super().__init__(calls, threads)
        self._bounds: list[tuple[int, int]] = []
        self._held: dict[tuple[int, int], Block] = {}

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
        room = HELD_BYTES // (2 * self.calls.spans[-1][1])  # sites; a block holds its codes twice

        def one(bounds: tuple[int, int]) -> Any:
            block = self._held.get(bounds)
            if block is None:
                rows = self.calls.block(*bounds)
                block = Block(by_site(rows), by_person(rows), bool(misses(rows)))
                if bounds[1] <= room:
                    self._held[bounds] = block
            return work(block, *bounds)

        return run_ordered(one, blocks, self.threads)

    def _by_site(
        self, block: Block, numbers: np.ndarray, span: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        words = block.people[4 * span[0] // ITEMS : 4 * span[1] // ITEMS]
        own = numbers[4 * span[0] : 4 * span[1]].astype(np.int64)
        sums = sum_codes(words, 2 * own, own, np.zeros_like(own)).astype(np.float64)
        if not block.missing:
            return sums, None
        return sums, sum_missing(words, own).astype(np.float64)

    def _by_person(
        self, block: Block, times: np.ndarray, less: np.ndarray, span: tuple[int, int]
    ) -> np.ndarray:
        times, less = times.astype(np.int64), less.astype(np.int64)
        people = 4 * span[0], 4 * span[1]
        sums = sum_codes(block.sites, 2 * times - less, times - less, -less, people)
        return sums.astype(np.float64)
