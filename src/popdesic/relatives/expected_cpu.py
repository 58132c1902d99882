"""`ExpectedKinship` on a CPU: products of 16-bit integers."""

from __future__ import annotations

import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks
from .expected import (
    DEPTH,
    FREQUENCIES,
    MOST_KINSHIP,
    RESIDUAL_BITS,
    SPREAD,
    SQUARE_BITS,
    UNIT,
    ExpectedKinship,
)

#: People on a side of a block: their numbers at DEPTH sites fit into the second level of cache.
BLOCK = 512


class CpuExpected(ExpectedKinship):
    """`ExpectedKinship` on some threads, in blocks of the upper triangle."""

    def __init__(self, basis: np.ndarray, n_sites: int, threads: int = 1) -> None:
        super().__init__(basis, n_sites)
        self.threads = threads
        self.bounds = list(chunks(self.n, BLOCK))
        numbers = range(len(self.bounds))
        self.pairs = [(a, b) for a in numbers for b in numbers[a:]]
        #: Sums of both products, in whole runs of people, until they are divided.
        self.sums = {pair: self._zeros(*pair) for pair in self.pairs}
        self.blocks: dict[tuple[int, int], np.ndarray] = {}

    def _zeros(self, a: int, b: int) -> np.ndarray:
        from .expected_genotypes_cpu import padded_samples

        return np.zeros(
            (2, *(padded_samples(np.ptp(self.bounds[one])) for one in (a, b))), np.int64
        )

    def add(self, first: int, genotypes: np.ndarray, coefficients: np.ndarray) -> None:
        for start, end in chunks(len(genotypes), DEPTH):
            self._add(genotypes[start:end], coefficients[start:end])

    def _add(self, genotypes: np.ndarray, coefficients: np.ndarray) -> None:
        from .expected_genotypes_cpu import add_pair_products, residuals

        scales = float(1 << RESIDUAL_BITS), float(SPREAD)

        def expect(one: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            own = genotypes[:, one:last]
            return residuals(own, coefficients, self.basis[one:last], scales, FREQUENCIES)

        parts = run_tasks(expect, self.bounds, self.threads)

        def multiply(a: int, b: int) -> None:
            for left, right, total in zip(parts[a], parts[b], self.sums[a, b], strict=True):
                add_pair_products(left, right, total)

        run_tasks(multiply, self.pairs, self.threads)

    def divide(self) -> None:
        def work(a: int, b: int) -> None:
            m, k = np.ptp(self.bounds[a]), np.ptp(self.bounds[b])
            shared, spread = self.sums.pop((a, b))[:, :m, :k].astype(np.float64)
            shared *= UNIT
            spread[spread == 0] = np.nan
            shared /= spread
            self.blocks[a, b] = shared

        run_tasks(work, self.pairs, self.threads)

    def subtract(self, right: np.ndarray, shares: np.ndarray) -> None:
        from .expected_genotypes_cpu import subtract_products

        def work(a: int, b: int) -> None:
            rows, columns = slice(*self.bounds[a]), slice(*self.bounds[b])
            own, others = self.basis[rows].T, self.basis[columns].T
            subtract_products(self.blocks[a, b], own, right[:, columns], shares[:, rows], others)

        run_tasks(work, self.pairs, self.threads)

    def scale(self, roots: np.ndarray) -> None:
        def work(a: int, b: int) -> None:
            left, right = roots[slice(*self.bounds[a])], roots[slice(*self.bounds[b])]
            self.blocks[a, b] /= left[:, None] * right

        run_tasks(work, self.pairs, self.threads)

    def squares(self, marked: np.ndarray) -> tuple[int, int]:
        def work(a: int, b: int) -> tuple[int, int]:
            block = self.blocks[a, b]
            counted = np.outer(marked[slice(*self.bounds[a])], marked[slice(*self.bounds[b])])
            counted = np.triu(counted, 1) if a == b else counted
            counted &= ~np.isnan(block)
            whole = np.clip(block[counted], -MOST_KINSHIP, MOST_KINSHIP) * 2.0**SQUARE_BITS
            whole = np.rint(whole).astype(np.int64)
            # 2**18 pairs of a block, 2**46 each
            return sum(int(part @ part) for part in np.array_split(whole, 32)), len(whole)

        found = run_tasks(work, self.pairs, self.threads)
        return sum(total for total, _ in found), sum(pairs for _, pairs in found)

    def close(self, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        def work(a: int, b: int) -> np.ndarray:
            block = self.blocks[a, b]
            with np.errstate(invalid="ignore"):
                near = np.triu(block >= least, 1) if a == b else block >= least
            i, j = np.nonzero(near)
            return np.stack([i + self.bounds[a][0], j + self.bounds[b][0], block[near]])

        found = np.concatenate(run_tasks(work, self.pairs, self.threads), axis=1)
        rows, columns = found[:2].astype(np.int64)
        order = np.lexsort((columns, rows))
        return rows[order], columns[order], found[2][order]

    def of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        found = np.empty(len(rows))
        for place, (i, j) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            block = self.blocks[i // BLOCK, j // BLOCK]
            found[place] = block[i % BLOCK, j % BLOCK]
        return found

    def block(self, first: int, last: int) -> np.ndarray:
        found = np.zeros((last - first, last - first))
        for a, b in self.pairs:
            block = self.blocks[a, b]
            (top, bottom), (left, right) = self.bounds[a], self.bounds[b]
            rows = max(first, top), min(last, bottom)
            columns = max(first, left), min(last, right)
            if rows[0] < rows[1] and columns[0] < columns[1]:
                part = block[rows[0] - top : rows[1] - top, columns[0] - left : columns[1] - left]
                to_rows, to_columns = (slice(x - first, y - first) for x, y in (rows, columns))
                found[to_rows, to_columns] = part
        return found
