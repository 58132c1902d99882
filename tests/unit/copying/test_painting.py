"""Painting: against joint posteriors, the same bytes, one donor, none, windows."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import painting as oracle

from popdesic.copying import copying_plan
from popdesic.copying.copying import haplotypes_of
from popdesic.copying.painting import paint_alleles, stretch_numbers
from popdesic.copying.painting_plan import MOST_STRETCHES

MODEL = {"ne": 2000.0, "mismatch": 0.01}


def mosaics(n, n_sites, seed, missing=0.1):
    """Haplotypes of a panel, a map, and alleles of others."""
    rng = np.random.default_rng(seed)
    ancestors = (rng.random((5, n_sites)) < 0.4).astype(np.int8)
    at = np.repeat(rng.integers(0, 5, (2 * n, n_sites // 10 + 1)), 10, axis=1)[:, :n_sites]
    rows = ancestors[at, np.arange(n_sites)] ^ (rng.random((2 * n, n_sites)) < 0.02)
    others = rows[n:].astype(np.int8)
    others[rng.random(others.shape) < missing] = -1
    return rows[:n].astype(np.int8), np.cumsum(rng.random(n_sites)) * 0.1, others


@pytest.mark.parametrize(("n", "n_sites"), [(2, 1), (6, 33), (33, 130), (65, 64)])
def test_lengths_and_segments_are_those_of_joint_posteriors(n, n_sites):
    panel, cm, alleles = mosaics(n, n_sites, seed=n)
    alleles[0, 0] = 1  # a call at least
    owner, stretches = np.arange(n) // 2, np.arange(n_sites) * 3 // n_sites
    targets = np.arange(n) // 2
    own = np.stack([np.arange(n), np.where(np.arange(n) % 3, -1, (np.arange(n) + 1) % n)], axis=1)
    own = own if n > 2 else None
    found = paint_alleles(
        haplotypes_of(panel, cm), alleles, targets, owner, stretches, own=own, threads=1, **MODEL
    )
    lengths, segments = np.zeros(found.lengths.shape), np.zeros(found.segments.shape)
    for one in range(n):
        called = np.flatnonzero(alleles[one] >= 0)
        if not len(called):
            continue
        others = np.setdiff1d(np.arange(n), own[one] if own is not None else [])
        by_site, count = oracle.paint(
            panel[others][:, called], cm[called], alleles[one, called], *MODEL.values(), cm[[0, -1]]
        )
        to = owner[others]
        for row, stretch in zip(by_site, stretches[called], strict=True):
            np.add.at(lengths[stretch, targets[one]], to, row)
        np.add.at(segments[targets[one]], to, count)
    # Posteriors are whole units of 2^-22.
    np.testing.assert_allclose(found.lengths, lengths, atol=2e-5 * max(cm[-1] - cm[0], 1e-3))
    np.testing.assert_allclose(found.segments, segments, rtol=1e-4, atol=2e-5 * n_sites)


def test_a_sample_has_the_bytes_that_it_has_among_others(monkeypatch):
    panel, cm, alleles = mosaics(40, 300, seed=2)
    packed, owner, stretches = haplotypes_of(panel, cm), np.arange(40) // 2, stretch_numbers(cm)
    together = paint_alleles(packed, alleles, owner, owner, stretches, threads=3, **MODEL)
    for sample in (0, 7, 19):
        rows = alleles[2 * sample : 2 * sample + 2]
        alone = paint_alleles(packed, rows, np.zeros(2, int), owner, stretches, threads=1, **MODEL)
        assert alone.lengths[:, 0].tobytes() == together.lengths[:, sample].tobytes()
        assert alone.segments[0].tobytes() == together.segments[sample].tobytes()
    # Windows: what lies beyond the margin says next to nothing.
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 4.0)
    cut = paint_alleles(packed, alleles, owner, owner, stretches, threads=2, **MODEL)
    assert cut.lengths.tobytes() != together.lengths.tobytes()
    np.testing.assert_allclose(cut.lengths.sum(axis=0), together.lengths.sum(axis=0), atol=0.01)
    np.testing.assert_allclose(cut.segments.sum(axis=1), together.segments.sum(axis=1), rtol=1e-3)


def test_a_copy_copies_its_original_alone():
    rng = np.random.default_rng(3)
    panel = (rng.random((20, 500)) < 0.5).astype(np.int8)
    cm = np.arange(500) * 0.02
    alleles = np.stack([panel[4], np.r_[panel[6, :250], panel[11, 250:]]])
    found = paint_alleles(
        haplotypes_of(panel, cm),
        alleles,
        np.arange(2),
        np.arange(20),
        np.zeros(500, int),
        ne=50.0,
        mismatch=1e-4,
    )
    lengths = found.lengths[0]
    assert lengths[0, 4] == pytest.approx(cm[-1], abs=0.02)
    assert lengths[1, [6, 11]] == pytest.approx(cm[-1] / 2, abs=0.1)
    assert found.segments.sum(axis=1) == pytest.approx([1, 2], abs=0.02)
    assert lengths.sum(axis=1) == pytest.approx(cm[-1], abs=1e-6)


def test_without_calls_all_donors_are_alike():
    panel, cm, _ = mosaics(8, 60, seed=5)
    alleles, own = np.full((2, 60), -1, np.int8), np.array([[0, 1], [0, 1]])
    found = paint_alleles(
        haplotypes_of(panel, cm),
        alleles,
        np.zeros(2, int),
        np.arange(8) // 2,
        np.zeros(60, int),
        own=own,
        **MODEL,
    )
    np.testing.assert_allclose(found.lengths[0, 0], np.r_[0, [2 * (cm[-1] - cm[0]) / 3] * 3])
    nobody = haplotypes_of(panel, cm), alleles[:0], np.zeros(0, int), np.arange(8) // 2
    assert paint_alleles(*nobody, np.zeros(60, int), **MODEL).lengths.shape == (1, 0, 4)


def test_stretches_are_equal_parts_of_the_map():
    cm = np.arange(0, 64, 0.5)
    assert np.bincount(stretch_numbers(cm)).tolist() == pytest.approx([128 / 12] * 12, abs=1)
    assert stretch_numbers(np.array([3.0])).tolist() == [0]
    assert stretch_numbers(np.linspace(0, 1e4, 999)).max() == MOST_STRETCHES - 1
