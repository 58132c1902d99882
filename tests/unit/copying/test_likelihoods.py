"""Copying from genotype likelihoods: draws, doses of pairs, phase, the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import likelihoods as oracle

from popdesic.copying import copying_plan, likelihoods_cpu, phasing_cpu, phasing_plan
from popdesic.copying.copying import haplotypes_of, recombination
from popdesic.copying.copying_plan import DOSE_UNITS
from popdesic.copying.likelihoods import Likely, impute_windows
from popdesic.core.phreds import MOST_PHRED, likelihoods_of_phreds, phreds_of, phreds_of_shares

NE, MISMATCH = 2000.0, 1e-3
MODEL = {"ne": NE, "mismatch": MISMATCH}


def lots_for(n):
    return (np.arange(n) + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def people(n, n_sites, n_targets, seed):
    """A panel of mosaics of eight haplotypes, a map, and targets that are mosaics of the panel."""
    rng = np.random.default_rng(seed)
    ancestors = (rng.random((8, n_sites)) < rng.beta(0.8, 0.8, n_sites)).astype(np.int8)

    def copies(source, count, rate=0.02):
        at = np.cumsum(rng.random((count, n_sites)) < rate, axis=1)
        chosen = rng.integers(0, len(source), (count, n_sites + 1))
        return np.take_along_axis(source, np.take_along_axis(chosen, at, axis=1), axis=0)

    panel = copies(ancestors, n)
    targets = copies(panel, 2 * n_targets, 0.005).reshape(n_targets, 2, n_sites)
    return panel, np.arange(n_sites) * 0.01, targets


def sequenced(targets, depth, seed, error=0.01):
    """Phreds (n, n_sites, 3) of reads of these haplotypes."""
    rng = np.random.default_rng(seed)
    genotypes = targets.sum(axis=1)
    chance = np.array([error, 0.5, 1 - error])
    reads = rng.poisson(depth, genotypes.shape)
    alt = rng.binomial(reads, chance[genotypes])
    logs = alt[..., None] * np.log10(chance) + (reads - alt)[..., None] * np.log10(1 - chance)
    return phreds_of(-10 * logs)


def likely(phreds, sites=None, lots=None, haploid=False):
    sites = np.arange(phreds.shape[1]) if sites is None else sites
    lots = lots_for(len(phreds)) if lots is None else lots
    return Likely(sites, phreds, np.full(len(phreds), haploid), lots)


def test_phreds_are_rounded_and_have_their_likelihoods():
    assert phreds_of(np.array([[7.4, 7.0, 900.0]])).tolist() == [[0, 0, MOST_PHRED]]
    found = likelihoods_of_phreds()
    np.testing.assert_allclose(found, 10 ** (-np.arange(MOST_PHRED + 1) / 10), rtol=1e-14)
    np.testing.assert_array_equal(
        phreds_of_shares(0.3 * found[:, None] * [[0, 1]] + [[0.3, 0]])[:, 1],
        np.arange(MOST_PHRED + 1),
    )
    assert phreds_of_shares(np.array([[0.9, 0.1, 0.0]])).tolist() == [[0, 10, MOST_PHRED]]


@pytest.mark.parametrize("block", [30, 7, 1])
def test_a_row_is_drawn_by_likelihoods_of_all_reads(block):
    panel, cm, targets = people(33, 30, 1, seed=5)
    packed, none = haplotypes_of(panel, cm), np.empty(0, np.int64)
    phreds = sequenced(targets, 1.0, 6)[0]
    one = np.ascontiguousarray(likelihoods_of_phreds()[phreds][:, :2])
    emitted = oracle.emissions(np.array([[0] * 30, [1] * 30]), one, MISMATCH)
    losses = (emitted.min(axis=0) / emitted.max(axis=0)).astype(np.float32)
    numbers, alleles = np.arange(30) + 100, np.zeros(30, np.int8)
    for lot in lots_for(3):
        likelihoods_cpu.draw_loop(
            *(packed.rows, (np.arange(30), numbers)),
            *((np.argmax(emitted, axis=0).astype(np.int8), losses, one),),
            *(recombination(cm, NE, 33), packed.counted(none), 33),
            *(np.float32(MISMATCH / (1 - MISMATCH)), (lot, 3, 2), block, alleles),
        )
        uniforms = [
            (int(phasing_cpu.philox_words(words, lot)) >> 11) / 2**53
            for words in ((np.uint64(at + (3 << 32)), np.uint64(2 << 32)) for at in numbers)
        ]
        expected, near = oracle.drawn(panel, cm, one, uniforms, NE, MISMATCH)
        assert near.min() > 1e-5  # no draw that rounding could turn
        np.testing.assert_array_equal(alleles, expected)


def test_a_haploid_sample_has_the_exact_posterior():
    panel, cm, targets = people(40, 60, 2, seed=7)
    phreds = sequenced(np.repeat(targets[:, :1], 2, axis=1), 1.0, 8)
    phreds[:, :, 1] = phreds[:, :, 2]
    phreds[:, :, 2] = 255
    found = impute_windows(haplotypes_of(panel, cm), likely(phreds, haploid=True), **MODEL)
    assert not found[:, 1].any()
    for row, own in zip(found[:, 0] / DOSE_UNITS, phreds, strict=True):
        told = own[:, 0] != own[:, 1]
        given = likelihoods_of_phreds()[own[told, :2]]
        expected = oracle.shares(panel[:, told], cm[told], given, NE, MISMATCH)
        np.testing.assert_allclose(row[told], expected, atol=1e-4)


def test_mean_doses_are_those_of_pairs_of_haplotypes():
    """The chain of many lots beside forward and backward passes over all pairs."""
    panel, cm, targets = people(6, 25, 1, seed=2)
    phreds = sequenced(targets, 1.5, 4)
    lots = lots_for(1500)
    given = likely(np.repeat(phreds, len(lots), axis=0), lots=lots)
    found = impute_windows(haplotypes_of(panel, cm), given, ne=60.0, mismatch=0.02)
    exact = oracle.pairs(panel, cm, likelihoods_of_phreds()[phreds[0]], 60.0, 0.02)
    told = phreds[0].any(axis=1)
    assert told.sum() >= 15 and np.ptp(exact[told]) > 0.2
    doses = found.sum(axis=1) / DOSE_UNITS
    np.testing.assert_allclose(doses.mean(axis=0)[told], exact[told], atol=0.025)


def test_doses_at_low_coverage_are_nearly_right_and_reads_decide_at_high():
    panel, cm, targets = people(150, 400, 6, seed=1)
    genotypes = targets.sum(axis=1)
    phreds = sequenced(targets, 1.0, 3)
    found = impute_windows(haplotypes_of(panel, cm), likely(phreds), **MODEL)
    frequency = panel.mean(axis=0)
    shares = np.stack([(1 - frequency) ** 2, 2 * frequency * (1 - frequency), frequency**2], axis=1)
    weights = likelihoods_of_phreds()[phreds] * shares
    alone = (weights[..., 1] + 2 * weights[..., 2]) / weights.sum(axis=2)
    r2 = [np.corrcoef(x.ravel(), genotypes.ravel())[0, 1] ** 2 for x in (found.sum(axis=1), alone)]
    assert r2[0] > 0.9 > r2[1] + 0.1
    sure = np.full((*genotypes.shape, 3), MOST_PHRED, np.uint8)
    np.put_along_axis(sure, genotypes[..., None], 0, axis=2)
    found = impute_windows(haplotypes_of(panel, cm), likely(sure), **MODEL)
    np.testing.assert_array_equal((found >= DOSE_UNITS // 2).sum(axis=1), genotypes)


def test_windows_are_joined_in_phase(monkeypatch):
    panel, cm, targets = people(150, 600, 4, seed=9)
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 1.0)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 0.3)
    found = impute_windows(haplotypes_of(panel, cm), likely(sequenced(targets, 8.0, 3)), **MODEL)
    alleles = found >= DOSE_UNITS // 2
    wrong = hets = 0
    for one, truth in zip(alleles, targets, strict=True):
        at = np.flatnonzero((truth[0] != truth[1]) & (one[0] != one[1]))
        straight = one[0, at] == truth[0, at]
        wrong += (straight[1:] != straight[:-1]).sum()
        hets += len(at)
        assert not one[0, np.flatnonzero(one[0] != one[1])[0]]
    assert hets > 400 and wrong < 0.02 * hets


def test_a_sample_has_the_bytes_that_it_has_among_others(monkeypatch):
    panel, cm, targets = people(97, 400, 4, seed=2)
    packed, lots = haplotypes_of(panel, cm), lots_for(4)
    sites = np.sort(np.random.default_rng(2).permutation(400)[:350])
    phreds = sequenced(targets, 0.7, 5)[:, sites]
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 2.0)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 0.5)
    together = impute_windows(packed, likely(phreds, sites), **MODEL, threads=2)
    for k in (3, 0):
        told = phreds[k].any(axis=1)  # a site without reads is as one that is not typed
        assert not told.all()
        given = likely(phreds[k : k + 1, told], sites[told], lots[k : k + 1])
        np.testing.assert_array_equal(impute_windows(packed, given, **MODEL)[0], together[k])
    monkeypatch.setattr(phasing_plan, "STATE_BYTES", 100_000)
    given = likely(phreds, sites)
    np.testing.assert_array_equal(impute_windows(packed, given, **MODEL, threads=1), together)
    other = impute_windows(packed, likely(phreds, sites, lots[::-1].copy()), **MODEL)
    assert (other != together).any()


def test_a_sample_without_reads_has_the_frequencies():
    panel, cm, _ = people(50, 40, 1, seed=3)
    given = likely(np.zeros((1, 40, 3), np.uint8))
    found = impute_windows(haplotypes_of(panel, cm), given, **MODEL)
    expected = np.rint(panel.mean(axis=0) * DOSE_UNITS)
    np.testing.assert_allclose(found[0], [expected, expected], atol=1)
