"""Products of standardised genotypes on the CPU: blocks of sites on threads, tables of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..genotype_products import GenotypeProducts, misses
from ..host.genotype_sums import ITEMS, by_person, by_site, sum_codes, sum_missing
from ..threads import run_ordered


@dataclass(frozen=True)
class Block:
    """Words of codes of one block of sites (`engine.host.genotype_sums`), and if any is missing."""

    people: np.ndarray
    sites: np.ndarray
    missing: bool


class CpuProducts(GenotypeProducts):
    """`GenotypeProducts` whose blocks of sites are shared among threads."""

    def _put(self, array: np.ndarray) -> np.ndarray:
        return array

    def _get(self, array: np.ndarray) -> np.ndarray:
        return array

    def _shares(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left.T @ right

    def _each(
        self, work: Callable[[Any, int, int], Any], blocks: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        def one(bounds: tuple[int, int]) -> Any:
            rows = self.calls.block(*bounds)
            block = Block(by_site(rows), by_person(rows), bool(misses(rows)))
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
        words = np.ascontiguousarray(block.sites[:, 4 * span[0] : 4 * span[1]])
        return sum_codes(words, 2 * times - less, times - less, -less).astype(np.float64)
