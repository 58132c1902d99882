"""Planes and groups of samples for tests of counts, and an oracle that counts genotypes."""

from __future__ import annotations

import numpy as np
from oracles.reference import draw_genotypes

from popdesic.population.count_groups import count_groups
from popdesic.population.group_counts import GroupCounts


def pack_filled(rng, genotypes: np.ndarray, masked: bool) -> np.ndarray:
    """Planes of genotypes int8 (n, n_sites); where -1, the bits are those of imputed ones."""
    n, n_sites = genotypes.shape
    filled = np.where(genotypes < 0, rng.integers(0, 3, genotypes.shape), genotypes)
    planes = [filled >= 1, filled == 2, *([genotypes >= 0] if masked else [])]
    bits = np.zeros((n, len(planes), -(-n_sites // 64) * 64), np.uint8)
    bits[:, :, :n_sites] = np.stack(planes, axis=1)
    return np.packbits(bits, axis=2, bitorder="little").view("<u8")


def draw_groups(rng, n: int, n_groups: int) -> np.ndarray:
    """Group of each sample, -1 for about a fifth of them; not every group has samples."""
    group = rng.integers(0, n_groups, n)
    group[rng.random(n) < 0.2] = -1
    return group


def count_slowly(
    genotypes: np.ndarray, used: np.ndarray, values: np.ndarray, group: np.ndarray
) -> GroupCounts:
    """From genotypes int8 (n, n_sites), -1 missing; used bool, values int64 (n_sites,)."""
    shown = genotypes[:, used]
    sums = np.column_stack(
        [(shown >= 0).sum(axis=1), (shown == 1).sum(axis=1), (shown < 0) @ values[used]]
    )
    groups = np.array(sorted(set(group[group >= 0].tolist())), np.int64)
    counts = np.zeros((genotypes.shape[1], len(groups), 3), np.int64)
    for k, one in enumerate(groups):
        for state in range(3):
            counts[used, k, state] = (shown[group == one] == state).sum(axis=0)
    sizes = np.array([(group == one).sum() for one in groups], np.int64)
    return GroupCounts(sums, groups, sizes, counts)


def check_counts(backend, rng, n: int, n_sites: int, n_groups: int, missing: float) -> None:
    """Counts of random genotypes are those of the oracle; imputed genotypes count as missing."""
    genotypes = draw_genotypes(rng, n, n_sites, missing)
    words = pack_filled(rng, genotypes, missing > 0)
    n_bits = 64 * words.shape[2]
    used = np.zeros(n_bits, bool)
    used[:n_sites] = rng.random(n_sites) < 0.8
    values = np.where(used, rng.integers(0, 2**36, n_bits), 0)
    group = draw_groups(rng, n, n_groups)
    wanted = count_slowly(genotypes, used[:n_sites], values[:n_sites], group)
    calls = []

    def grouping(first: int, part: np.ndarray, sums: np.ndarray) -> np.ndarray:
        np.testing.assert_array_equal(part, words[first : first + len(part)])
        np.testing.assert_array_equal(sums, wanted.sums[first : first + len(part)])
        calls.append((first, first + len(part)))
        return group[first : first + len(part)]

    bits = np.packbits(used, bitorder="little").view(np.uint64)
    found = count_groups(backend, words, bits, values, n_sites, grouping, n_groups)
    assert [a for a, _ in calls] == [0, *(b for _, b in calls[:-1])] and calls[-1][1] == n
    for name in ("sums", "groups", "sizes", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    assert found.counts.dtype == np.uint16 and found.sums.dtype == np.int64
