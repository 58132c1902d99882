"""What single samples of packed genotypes sum up to: called and squared standardised genotypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.threads import run_ordered
from .genotype_products import Calls, SampleSums, misses, site_blocks
from .genotype_sums_cpu import ITEMS, by_person, by_site, sum_codes, sum_missing

#: Bits after the point of squared standardised genotypes, which are at most 4 n.
SQUARE_BITS = 30
#: They are summed in two digits, the lower of so many bits: of 2**20 people, both fit `sum_codes`.
DIGIT_BITS = 26
#: On a GPU they are summed in so many signed digits of so many bits.
DIGITS, PART_BITS = 3, 21


def squares_of_codes(mean: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares of the standardised genotypes 0, 1 and 2, int64 (3, n_sites), and which sites count.

    In units of 2**-SQUARE_BITS.
    """
    one = (np.arange(3.0)[:, None] - mean) * inverse
    return np.rint(np.ldexp(one * one, SQUARE_BITS)).astype(np.int64), inverse > 0


def digits_of(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers below 2**62 in DIGITS digits, float64 (n, DIGITS); each fits `sum_codes`."""
    out = np.empty((len(numbers), DIGITS))
    for digit in range(DIGITS):
        low = ((numbers + (1 << PART_BITS - 1)) & ((1 << PART_BITS) - 1)) - (1 << PART_BITS - 1)
        out[:, digit] = low
        numbers = (numbers - low) >> PART_BITS
    return out


def whole_of(sums: Any) -> Any:
    """Sums of `digits_of` as whole numbers, float64 (n, DIGITS or more) to int64 (n,)."""
    parts = [sums[:, digit].astype(np.int64) << (PART_BITS * digit) for digit in range(DIGITS)]
    return sum(parts[1:], parts[0])


def unscaled(squares: np.ndarray) -> np.ndarray:
    """Sums of squares in their own unit, float64."""
    return np.ldexp(squares.astype(np.float64), -SQUARE_BITS)


def sample_sums(calls: Calls, threads: int = 1) -> SampleSums:
    """Sums of each sample and of pairs of parts, in one pass over the genotypes."""
    return finished_sums(*whole_sums(calls, threads, site_blocks(calls.n_sites)))


def finished_sums(sums: np.ndarray, joint: np.ndarray) -> SampleSums:
    """What `whole_sums` of all blocks add up to."""
    return SampleSums(unscaled(sums[:, 0]), sums[:, 1], joint)


def whole_sums(
    calls: Calls, threads: int, blocks: list[tuple[int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over blocks of sites as whole numbers, exact in any order.

    Returns
    -------
    int64 array, (n, 2)
        Squares, in units of 2**-SQUARE_BITS, and called genotypes of each sample.
    int64 array, (n_parts, n_parts)
        `SampleSums.joint`.
    """
    places, (mean, inverse) = calls.places, calls.standard
    kept = np.zeros((4 * calls.spans[-1][1], 1), np.int64)
    kept[places] = 1
    sizes = np.array([who.sum() for who in calls.keep])

    def work(bounds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        rows, own = calls.block(*bounds), slice(*bounds)
        squares, use = squares_of_codes(mean[own], inverse[own])
        values = np.zeros((3, len(rows), 3), np.int64)
        for value, square in zip(values, squares[::-1], strict=True):
            value[:, 0], value[:, 1] = square & ((1 << DIGIT_BITS) - 1), square >> DIGIT_BITS
            value[:, 2] = use
        called = np.tile(sizes, (len(rows), 1))
        if misses(rows):
            words = by_site(rows)
            for part, (start, end) in enumerate(calls.spans):
                few = slice(4 * start // ITEMS, 4 * end // ITEMS)
                called[:, part] -= sum_missing(words[few], kept[4 * start : 4 * end])[:, 0]
        called *= use[:, None]
        sums = sum_codes(by_person(rows), *values)[places]
        whole = sums[:, 0] + (sums[:, 1] << DIGIT_BITS)
        return np.stack([whole, sums[:, 2]], axis=1), called.T @ called

    total = np.zeros((len(places), 2), np.int64)
    joint = np.zeros((len(sizes),) * 2, np.int64)
    for sums, pairs in run_ordered(work, blocks, threads):
        total += sums
        joint += pairs
    return total, joint
