"""What single samples of packed genotypes sum up to: called and squared standardised genotypes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..genotype_products import Calls, misses, site_blocks
from ..threads import run_ordered
from .genotype_sums import ITEMS, by_person, by_site, sum_codes, sum_missing

#: Bits after the point of squared standardised genotypes, which are at most 4 n.
SQUARE_BITS = 30
#: They are summed in two digits, the lower of so many bits: of 2**20 people, both fit `sum_codes`.
DIGIT_BITS = 26


@dataclass(frozen=True)
class SampleSums:
    """What single samples sum up to, over the sites that count.

    Attributes
    ----------
    squares : float64 array, (n,)
        Of standardised genotypes, each rounded to 2**-SQUARE_BITS.
    called : int64 array, (n,)
        Called genotypes.
    joint : int64 array, (n_parts, n_parts)
        Sites called in both samples, over all ordered pairs of samples of two parts.
    """

    squares: np.ndarray
    called: np.ndarray
    joint: np.ndarray


def sample_sums(calls: Calls, threads: int = 1) -> SampleSums:
    """Sums of each sample and of pairs of parts, in one pass over the genotypes."""
    places, (mean, inverse) = calls.places, calls.standard
    kept = np.zeros((4 * calls.spans[-1][1], 1), np.int64)
    kept[places] = 1
    sizes = np.array([who.sum() for who in calls.keep])

    def work(bounds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        rows, own = calls.block(*bounds), slice(*bounds)
        use = inverse[own] > 0
        values = np.zeros((3, len(rows), 3), np.int64)
        for value, genotype in zip(values, (2, 1, 0), strict=True):
            one = (genotype - mean[own]) * inverse[own]
            square = np.rint(np.ldexp(one * one, SQUARE_BITS)).astype(np.int64)
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
    for sums, pairs in run_ordered(work, site_blocks(calls.n_sites), threads):
        total += sums
        joint += pairs
    squares = np.ldexp(total[:, 0].astype(np.float64), -SQUARE_BITS)
    return SampleSums(squares, total[:, 1], joint)
