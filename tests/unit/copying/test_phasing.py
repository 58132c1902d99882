"""Phasing: sweeps against likelihoods of whole haplotypes, certain phases, the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import copying as oracle

from popdesic.copying import copying_plan, phasing, phasing_cpu, phasing_plan
from popdesic.copying.copying import haplotypes_of, recombination
from popdesic.copying.phasing import phase_alleles

MODEL = {"ne": 2000.0, "mismatch": 1e-3}


def people(n, n_sites, n_targets, seed, *, changes=0.01, errors=0.0):
    """Haplotypes of a panel, a map, and targets that are mosaics of them."""
    rng = np.random.default_rng(seed)
    ancestors = (rng.random((8, n_sites)) < rng.beta(0.8, 0.8, n_sites)).astype(np.int8)

    def copies(source, count, rate):
        change = rng.random((n_sites, count)) < rate
        change[0] = True
        at = rng.integers(0, len(source), (n_sites, count))
        last = np.maximum.accumulate(np.where(change, np.arange(n_sites)[:, None], 0), axis=0)
        at = np.take_along_axis(at, last, axis=0)
        return np.take_along_axis(source.T, at, axis=1).T ^ (rng.random((count, n_sites)) < errors)

    panel = copies(ancestors, n, 0.02).astype(np.int8)
    targets = copies(panel, 2 * n_targets, changes).astype(np.int8).reshape(n_targets, 2, n_sites)
    return panel, np.arange(n_sites) * 0.01, targets


def lots_for(n):
    return (np.arange(n) + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def switches(found, truth):
    """Pairs of consecutive heterozygous sites in the wrong relation."""
    hets = np.flatnonzero(truth[0] != truth[1])
    straight = found[0, hets] == truth[0, hets]
    return int((straight[1:] != straight[:-1]).sum())


def test_random_numbers_are_those_of_philox():
    """Known answers of Random123 (philox4x32, 10 rounds)."""
    for counter, key, expected in (
        ((0, 0), 0, 0xE169C58D6627E8D5),
        ((2**64 - 1, 2**64 - 1), 2**64 - 1, 0x41C83B0E408F276D),
        ((0x85A308D3243F6A88, 0x0370734413198A2E), 0x299F31D0A4093822, 0x94FDCCEBD16CFE09),
    ):
        words = tuple(np.uint64(word) for word in counter)
        assert phasing_cpu.philox_words(words, np.uint64(key)) == expected


@pytest.mark.parametrize(("n", "n_sites", "block"), [(5, 40, 40), (33, 40, 7), (64, 40, 1)])
def test_sweeps_draw_by_likelihoods_of_whole_haplotypes(n, n_sites, block):
    panel, cm, targets = people(n, n_sites, 2, seed=n, changes=0.1, errors=0.02)
    packed = haplotypes_of(panel, cm)
    none, sites = np.empty(0, np.int64), np.arange(n_sites)
    checked = 0
    for lot, pair in zip(lots_for(2), targets, strict=True):
        genotypes = pair.sum(axis=0).astype(np.int8)
        hets = np.flatnonzero(genotypes == 1)
        drawn = np.zeros((5, len(hets)), np.int8)
        numbers = sites + 100
        phasing_cpu.phase_loop(
            *(packed.rows, sites, numbers, genotypes, recombination(cm, MODEL["ne"], n)),
            *(packed.counted(none), n, np.float32(1e-3 / (1 - 1e-3)), (lot, 0, 0)),
            *(block, phasing.unphased_alleles(genotypes), drawn),
        )
        before = None
        for iteration, row in enumerate(drawn):
            uniforms = [
                (int(phasing_cpu.philox_words(words, lot)) >> 11) / 2**53
                for words in (
                    (np.uint64(numbers[m] + (iteration << 32)), np.uint64(0)) for m in hets
                )
            ]
            expected, near = oracle.sweep(panel, cm, genotypes, before, uniforms, *MODEL.values())
            assert near.min() > 1e-4  # no draw that rounding could turn
            np.testing.assert_array_equal(row, expected[0, hets])
            checked += len(hets)
            before = expected
    assert checked >= 50


def test_a_certain_phase_is_found():
    """Each target has two haplotypes of the panel, and the first changes once."""
    rng = np.random.default_rng(4)
    panel = (rng.random((60, 400)) < 0.4).astype(np.int8)
    targets = np.stack([panel[0:20:2], panel[1:20:2]], axis=1)
    targets[:, 0, 200:] = panel[20:30, 200:]
    genotypes = targets.sum(axis=1).astype(np.int8)
    found = phase_alleles(
        haplotypes_of(panel, np.arange(400) * 0.01),
        np.arange(400),
        genotypes,
        lots_for(10),
        **MODEL,
    )
    for one, truth, genotype in zip(found, targets, genotypes, strict=True):
        assert switches(one, truth) == 0
        hets = np.flatnonzero(genotype == 1)
        assert one[0, hets[0]] == 0
        np.testing.assert_array_equal(one.sum(axis=0), genotype)


def test_mosaics_are_phased_nearly_without_switches():
    panel, cm, targets = people(200, 1000, 6, seed=1)
    genotypes = targets.sum(axis=1).astype(np.int8)
    found = phase_alleles(
        haplotypes_of(panel, cm), np.arange(1000), genotypes, lots_for(6), **MODEL
    )
    wrong = sum(switches(one, truth) for one, truth in zip(found, targets, strict=True))
    assert wrong < 0.01 * (genotypes == 1).sum()


def test_a_sample_has_the_bytes_that_it_has_among_others(monkeypatch):
    panel, cm, targets = people(97, 600, 5, seed=2, errors=0.002)
    packed, lots = haplotypes_of(panel, cm), lots_for(5)
    genotypes = targets.sum(axis=1).astype(np.int8)
    genotypes[np.random.default_rng(1).random(genotypes.shape) < 0.03] = -1
    sites = np.sort(np.random.default_rng(2).permutation(600)[:500])
    typed = np.ascontiguousarray(genotypes[:, sites])
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 2.0)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 0.5)
    together = phase_alleles(packed, sites, typed, lots, **MODEL, threads=2)
    missing = np.broadcast_to((typed < 0)[:, None], together.shape)
    assert ((together < 0) == missing).all()
    one = phase_alleles(packed, sites, typed, lots, **MODEL, threads=1)
    np.testing.assert_array_equal(one, together)
    for k in (3, 0):
        known = typed[k] >= 0  # a missing site is as one that is not typed
        alone = phase_alleles(
            packed, sites[known], typed[k : k + 1, known], lots[k : k + 1], **MODEL
        )
        np.testing.assert_array_equal(alone[0], together[k][:, known])
    monkeypatch.setattr(phasing_plan, "STATE_BYTES", 100_000)
    assert phasing_plan.block_length(100, 128) < 100
    np.testing.assert_array_equal(phase_alleles(packed, sites, typed, lots, **MODEL), together)
    other = phase_alleles(packed, sites, typed, lots[::-1].copy(), **MODEL)
    assert (other != together).any()


def test_draws_of_a_site_do_not_depend_on_how_many_are_heterozygous():
    """One more heterozygous site at the beginning: far from it all relations stay."""
    panel, cm, targets = people(150, 800, 1, seed=3)
    genotypes = targets.sum(axis=1).astype(np.int8)
    more = genotypes.copy()
    more[0, np.flatnonzero(genotypes[0] != 1)[0]] = 1
    packed = haplotypes_of(panel, cm)
    rows = [
        phase_alleles(packed, np.arange(800), given, lots_for(1), **MODEL)[0, 0]
        for given in (genotypes, more)
    ]
    far = np.flatnonzero(genotypes[0] == 1)
    far = far[far > 200]
    np.testing.assert_array_equal(*(np.diff(row[far]) for row in rows))


def test_windows_are_joined_by_relations_alone(monkeypatch):
    panel, cm, targets = people(200, 1000, 4, seed=5)
    genotypes = targets.sum(axis=1).astype(np.int8)
    packed = haplotypes_of(panel, cm)
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 2.0)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 1.0)
    found = phase_alleles(packed, np.arange(1000), genotypes, lots_for(4), **MODEL)
    wrong = sum(switches(one, truth) for one, truth in zip(found, targets, strict=True))
    assert wrong < 0.01 * (genotypes == 1).sum()


def test_own_haplotypes_are_not_copied():
    """A target whose own haplotypes are in the panel is phased as if they were not."""
    panel, cm, targets = people(64, 300, 1, seed=6, changes=0.1)
    genotypes = targets.sum(axis=1).astype(np.int8)
    own = np.array([[10, 64, -1]])
    more = np.insert(panel, 10, targets[0, 0], axis=0)
    more = np.insert(more, 64, targets[0, 1], axis=0)
    found = phase_alleles(
        haplotypes_of(more, cm), np.arange(300), genotypes, lots_for(1), **MODEL, own=own
    )
    without = phase_alleles(
        haplotypes_of(panel, cm), np.arange(300), genotypes, lots_for(1), **MODEL
    )
    np.testing.assert_array_equal(found, without)
    with_them = phase_alleles(
        haplotypes_of(more, cm), np.arange(300), genotypes, lots_for(1), **MODEL
    )
    assert switches(with_them[0], targets[0]) < switches(found[0], targets[0])


@pytest.mark.parametrize("n", [1, 2, 64, 1000])
@pytest.mark.parametrize("n_sites", [1, 2, 65])
def test_awkward_sizes(n, n_sites):
    panel, cm, targets = people(n, n_sites, 2, seed=n)
    genotypes = targets.sum(axis=1).astype(np.int8)
    genotypes[1] = -1
    found = phase_alleles(
        haplotypes_of(panel, cm), np.arange(n_sites), genotypes, lots_for(2), **MODEL
    )
    np.testing.assert_array_equal(found[0].sum(axis=0), genotypes[0])
    assert set(np.unique(found[0])) <= {0, 1} and (found[1] == -1).all()


def test_a_vote_is_by_relation_of_consecutive_sites():
    drawn = np.zeros((1 + phasing_plan.BURN_IN + phasing_plan.VOTING, 3), np.int8)
    drawn[: 1 + phasing_plan.BURN_IN] = [0, 1, 0]  # not counted
    drawn[-5:] = [1, 1, 0]
    drawn[-9:-5] = [0, 1, 1]
    assert phasing._crossed(drawn[1 + phasing_plan.BURN_IN :]).tolist() == [False, False, True]
