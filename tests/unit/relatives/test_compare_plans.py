"""Plans of identity searches and correlations on a GPU, and their arithmetic on the host."""

from __future__ import annotations

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
    assert site_pairs_plan.serves(HOPPER, complete)
    assert not site_pairs_plan.serves(AMPERE, complete)
    assert not site_pairs_plan.serves(HOPPER, masked)
    assert not site_pairs_plan.serves(HOPPER, Planes(complete.words, 20_001))


def test_fused_searches_are_for_devices_with_mma():
    assert matches_plan.can_find_matches(HOPPER, None)
    assert matches_plan.can_find_matches(AMPERE, "mma")
    assert not matches_plan.can_find_matches(HOPPER, "popc")
    assert not matches_plan.can_find_matches(TURING, None)
