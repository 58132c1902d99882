"""Plans of identity searches and correlations on a GPU, and their arithmetic on the host."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles.reference import draw_genotypes, make_planes
from support.launches import AMPERE, HOPPER, TURING
from support.operands import planes_of

from popdesic.engine import site_pairs_plan
from popdesic.engine.terms import Planes
from popdesic.relatives import matches, matches_plan
from popdesic.relatives.matches_plan import CANDIDATES, PROFILES_A_STEP, QUERIES


def bits_of(words: np.ndarray, n_sites: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")[..., :n_sites]


@pytest.mark.parametrize("n_sites", [1, 63, 64, 65, 511, 513])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_planes_of_queries_equal_their_genotypes(n_sites, missing):
    genotypes = draw_genotypes(np.random.default_rng(n_sites), 5, n_sites, missing)
    letters = matches_plan.query_words(planes_of(genotypes, masked=missing > 0))
    assert letters.shape[:2] == (4 if missing else 3, QUERIES)
    assert letters.shape[2] % 16 == 0  # padded to 64 bytes
    bits = bits_of(letters, n_sites)
    for state in range(3):
        assert (bits[state, :5] == (genotypes == state)).all()
    if missing:
        assert (bits[3, :5] == (genotypes >= 0)).all()
    assert bits_of(letters, letters.shape[2] * 32).sum() == bits[:, :5].sum()  # zero elsewhere


@pytest.mark.parametrize("k", [1, 10, 256])
def test_candidates_of_a_piece_fit_their_buffer(k):
    first = matches_plan.piece_size(k, 0, cautious=False)
    assert first % PROFILES_A_STEP == 0
    assert k + first <= CANDIDATES
    assert matches_plan.piece_size(k, 10**7, cautious=True) == first
    later = matches_plan.piece_size(k, 10**7, cautious=False)
    assert k * later / 10**7 <= CANDIDATES / 4  # expected number of candidates


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (10, 10), (1000, 64), (0, 1)])
def test_parts_are_whole_steps(n, expected):
    assert matches_plan.part_rows(n, 16, 1024) == expected


def test_blocks_of_a_range_of_rows():
    blocks = np.array([(i, j) for i in range(6) for j in range(i, 6)], np.int32)
    found = site_pairs_plan.blocks_of_rows(blocks, range(2, 4), 5)
    assert found.tolist() == [[2, 2], [2, 3], [2, 4], [3, 3], [3, 4]]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_mismatches_equal_their_definition(missing):
    rng = np.random.default_rng(2)
    genotypes = draw_genotypes(rng, 9, 130, missing)
    words = make_planes(genotypes, masked=missing > 0)
    wrong, called = matches.count_mismatches(words[0], words[1:], 130)
    for row, other in enumerate(genotypes[1:]):
        both = (genotypes[0] >= 0) & (other >= 0)
        assert called[row] == both.sum()
        assert wrong[row] == (genotypes[0] != other)[both].sum()


def test_a_mask_is_added_where_the_other_side_has_one():
    genotypes = draw_genotypes(np.random.default_rng(3), 4, 70, 0)
    found = matches_plan.with_planes(planes_of(genotypes, masked=False), 3)
    assert found.words.shape[1] == 3
    assert bits_of(np.ascontiguousarray(found.words[:, 2]), 128).sum(axis=1).tolist() == [70] * 4


def test_fused_correlations_are_for_hopper_and_complete_sites():
    complete, masked = (
        Planes(np.zeros((2, 2, 8), np.uint64), 500),
        Planes(np.zeros((2, 3, 8), np.uint64), 500),
    )
    needed = site_pairs_plan.fused_bytes(complete)
    assert site_pairs_plan.serves(HOPPER, complete, needed)
    assert not site_pairs_plan.serves(HOPPER, complete, needed - 1)
    assert not site_pairs_plan.serves(AMPERE, complete, needed)
    assert not site_pairs_plan.serves(HOPPER, masked, needed)
    most = site_pairs_plan.MOST_SAMPLES
    assert site_pairs_plan.serves(HOPPER, Planes(complete.words, most), needed)
    assert not site_pairs_plan.serves(HOPPER, Planes(complete.words, most + 1), needed)


@pytest.mark.parametrize("n", [30, 20_001, 500_000, site_pairs_plan.MOST_SAMPLES])
def test_float32_misses_a_correlation_by_less_than_the_margin(n):
    """The steps of `squared_correlation` in bitgemm_wgmma.cu, beside fractions."""
    rng, worst, one = np.random.default_rng(n), 0.0, np.float32
    for _ in range(300):
        shares = rng.dirichlet(np.full(9, rng.choice([0.03, 0.3, 3])))
        table = rng.multinomial(n, shares).reshape(3, 3).tolist()
        if rng.random() < 0.5:  # sites that are alike
            table = [
                [x if i == j or i * j == 2 else 0 for j, x in enumerate(row)]
                for i, row in enumerate(table)
            ]
        total, by_a = sum(map(sum, table)), [sum(row) for row in table]
        by_b = [sum(column) for column in zip(*table, strict=True)]
        product = sum(i * j * table[i][j] for i in range(3) for j in range(3))
        sums, spreads = [], []
        for counts in (by_a, by_b):
            sums.append(counts[1] + 2 * counts[2])
            spreads.append(total * (counts[1] + 4 * counts[2]) - sums[-1] ** 2)
        if min(spreads) <= 0:
            continue
        covariance = total * product - sums[0] * sums[1]
        assert max(abs(covariance), *spreads) < 2**63
        assert product < 2**31
        scales = [one(1 / np.sqrt(np.float64(spread))) for spread in spreads]
        r = one(np.int64(covariance)) * scales[0] * scales[1]
        exact = Fraction(covariance**2, spreads[0] * spreads[1])
        worst = max(worst, abs(float(Fraction(float(r * r)) - exact)))
    assert 0 < worst <= 1.3e-6 < site_pairs_plan.ROUNDING


@pytest.mark.parametrize(
    ("n", "width", "most"), [(1, 1, 100), (50, 7, 20), (64, 64, 16), (90, 0, 9)]
)
def test_tiles_hold_every_pair_of_the_windows_once(n, width, most, monkeypatch):
    monkeypatch.setattr(site_pairs_plan, "LEAST_SIDE", 8)
    rows = np.arange(n)
    ends = np.minimum(rows + 1 + np.random.default_rng(n).integers(0, width + 1, n), n)
    ends = np.maximum.accumulate(ends)
    times = np.zeros((n, n), int)
    for (first, last), (at, end) in site_pairs_plan.tiles_of_windows(ends, most):
        assert 0 < last - first <= most
        assert 0 < end - at <= most
        times[first:last, at:end] += 1
    inside = (rows > rows[:, None]) & (rows < ends[:, None])
    assert (times[inside] == 1).all()


def test_fused_searches_are_for_devices_with_mma():
    assert matches_plan.can_find_matches(HOPPER, None)
    assert matches_plan.can_find_matches(AMPERE, "mma")
    assert not matches_plan.can_find_matches(HOPPER, "popc")
    assert not matches_plan.can_find_matches(TURING, None)
