"""Samples phased from each other: switches, missing alleles, windows, duplicates, same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import copying as oracle
from scenes.copied import draw_mosaics

from popdesic.copying import copying_plan, phasing_cpu
from popdesic.copying.copying import haplotypes_of, recombination
from popdesic.copying.founders import phase_together
from popdesic.core.random_numbers import lots_of

N, N_SITES = 60, 240


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, ...]:
    """Haplotypes (n, 2, n_sites), a map, genotypes with missing ones, and lots."""
    rng = np.random.default_rng(5)
    ancestors = (rng.random((10, N_SITES)) < rng.beta(0.8, 0.8, N_SITES)).astype(np.int8)
    change = rng.random((2 * N, N_SITES)) < 1 / 80
    last = np.maximum.accumulate(np.where(change, np.arange(N_SITES), 0), axis=1)
    who = np.take_along_axis(rng.integers(0, 10, (2 * N, N_SITES)), last, axis=1)
    truth = ancestors[who, np.arange(N_SITES)].reshape(N, 2, N_SITES)
    cm = np.cumsum(rng.exponential(0.05, N_SITES))
    shown = truth.sum(axis=1).astype(np.int8)
    shown[np.random.default_rng(6).random(shown.shape) < 0.04] = -1
    return truth, cm, shown, lots_of(range(N))


def switches(found, truth) -> tuple[int, int]:
    wrong = pairs = 0
    for one, true in zip(found, truth, strict=True):
        hets = np.flatnonzero((true[0] != true[1]) & (one[0] != one[1]))
        straight = one[0, hets] == true[0, hets]
        wrong += int((straight[1:] != straight[:-1]).sum())
        pairs += max(len(hets) - 1, 0)
    return wrong, pairs


@pytest.fixture(scope="module")
def phased(people) -> np.ndarray:
    _, cm, shown, lots = people
    return phase_together(shown, cm, lots, threads=1)


def test_most_pairs_of_sites_are_right_and_calls_stay(people, phased):
    truth, _, shown, _ = people
    genotypes, called = phased.sum(axis=1), shown >= 0
    np.testing.assert_array_equal(genotypes[called], shown[called])
    assert set(np.unique(phased)) == {0, 1}
    wrong, pairs = switches(phased, truth)
    assert pairs > 2000 and wrong < 0.04 * pairs
    right = (genotypes == truth.sum(axis=1))[~called].mean()
    assert right > 0.9


def test_bytes_depend_neither_on_threads_nor_on_blocks(people, phased, monkeypatch):
    _, cm, shown, lots = people
    monkeypatch.setattr("popdesic.copying.phasing_plan.STATE_BYTES", 200_000)
    again = phase_together(shown, cm, lots, threads=2)
    np.testing.assert_array_equal(again, phased)
    other = phase_together(shown, cm, lots + np.uint64(1), threads=2)
    assert (other != phased).any()


def test_windows_are_joined_by_relations(people, monkeypatch):
    truth, cm, shown, lots = people
    monkeypatch.setattr(copying_plan, "WINDOW_CM", cm[-1] / 3)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", cm[-1] / 9)
    found = phase_together(shown, cm, lots)
    wrong, pairs = switches(found, truth)
    assert wrong < 0.05 * pairs
    called = shown >= 0
    np.testing.assert_array_equal(found.sum(axis=1)[called], shown[called])


def test_kin_is_not_copied(people):
    """Copies of a sample confirm each other's phase, unless they are named."""
    truth, cm, shown, lots = people
    some = np.concatenate([shown[:20], shown[:1].repeat(3, axis=0)])
    lots = lots_of(range(23))
    same = [0, 20, 21, 22]
    kin = [np.array(same) if k in same else np.empty(0, np.int64) for k in range(23)]
    alone = phase_together(shown[:20], cm, lots[:20], threads=1)
    masked = phase_together(some, cm, lots, kin=kin, threads=1)
    free = phase_together(some, cm, lots, threads=1)
    wrong = [switches(one[:1], truth[:1])[0] for one in (alone, masked, free)]
    assert abs(wrong[0] - wrong[1]) <= 3 and wrong[2] > wrong[1]


def test_awkward_cohorts():
    lots = lots_of(range(3))
    for genotypes in ([[1], [0], [-1]], [[1, 1], [1, -1], [2, 1]], [[-1, -1]] * 3):
        given = np.array(genotypes, np.int8)
        found = phase_together(given, np.arange(given.shape[1]) * 0.1, lots)
        called = given >= 0
        np.testing.assert_array_equal(found.sum(axis=1)[called], given[called])
        assert set(np.unique(found)) <= {0, 1}


def test_missing_alleles_are_drawn_by_their_probability():
    """One missing genotype among homozygous ones: both alleles by the oracle's posterior."""
    panel, cm, *_ = draw_mosaics(np.random.default_rng(9), 12, 30, 1)
    ne, mismatch = 3000.0, 0.02
    one = panel[3] ^ (np.arange(30) % 9 == 4)
    packed, genotypes = haplotypes_of(panel, cm), (2 * one).astype(np.int8)
    shares = oracle.left_out(panel, cm, one, ne, mismatch)
    site = int(np.argmin(np.abs(shares - 0.3)))
    genotypes[site] = -1
    share = float(shares[site] * (1 - mismatch) + (1 - shares[site]) * mismatch)
    assert 0.1 < share < 0.5
    drawn = []
    for lot in lots_of(range(1500)):
        alleles = np.stack([genotypes // 2] * 2).astype(np.int8)
        phasing_cpu.phase_loop(
            *(packed.rows, np.arange(30), np.arange(30), genotypes),
            recombination(cm, ne, 12),
            *(packed.counted(np.empty(0, np.int64)), 12, np.float32(mismatch / (1 - mismatch))),
            *((lot, 0, 3), 30, alleles, np.zeros((1, 0), np.int8)),
        )
        drawn.append(alleles[:, site])
    drawn = np.array(drawn)
    for h in range(2):
        assert abs(drawn[:, h].mean() - share) < 5 * np.sqrt(share * (1 - share) / 1500)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.15
