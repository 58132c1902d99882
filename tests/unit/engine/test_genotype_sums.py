"""Sums over two-bit codes: exact, at awkward sizes."""

import numpy as np
import pytest

from popdesic.engine.genotype_sums_cpu import (
    VALUE_BITS,
    by_person,
    by_site,
    sum_codes,
    sum_missing,
)

#: The code of a missing genotype.
MISSING = 1


def coded(rng, n_sites: int, row_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Random codes (n_sites, 4 row_bytes) and their .bed rows."""
    codes = rng.integers(0, 4, (n_sites, 4 * row_bytes)).astype(np.uint8)
    packed = codes.reshape(n_sites, row_bytes, 4) << np.array([0, 2, 4, 6], np.uint8)
    return codes, np.bitwise_or.reduce(packed, axis=2).astype(np.uint8)


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 33, 63, 64, 65, 130])
@pytest.mark.parametrize("row_bytes", [4, 8, 36])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 16])
def test_sums_are_those_of_the_codes(n_sites, row_bytes, k):
    rng = np.random.default_rng(n_sites)
    codes, rows = coded(rng, n_sites, row_bytes)
    limit = 1 << VALUE_BITS
    values = rng.integers(1 - limit, limit, (codes.shape[1], 4, k))
    values[rng.random(values.shape) < 0.5] = limit - 1  # sums of one word nearly fill int32
    values[:, MISSING] = 0
    expected = np.stack([values[np.arange(codes.shape[1]), row].sum(axis=0) for row in codes])
    found = sum_codes(by_site(rows), values[:, 0], values[:, 2], values[:, 3])
    np.testing.assert_array_equal(found, expected)
    numbers = rng.integers(-(1 << 40), 1 << 40, (codes.shape[1], k))
    expected = (codes == MISSING).astype(np.int64) @ numbers
    np.testing.assert_array_equal(sum_missing(by_site(rows), numbers), expected)
    values = values[rng.integers(0, len(values), n_sites)]
    expected = np.stack([values[np.arange(n_sites), own].sum(axis=0) for own in codes.T])
    found = sum_codes(by_person(rows), values[:, 0], values[:, 2], values[:, 3])
    np.testing.assert_array_equal(found, expected)
