"""The scan of half the sites that gives a scan of triples its first cutoff."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scenes.interactions.scenes import draw_structure

from popdesic.epistasis import scan_cpu
from popdesic.epistasis.partners import partners_of
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_cpu import scan_triples
from popdesic.epistasis.scan_data import ScanData
from popdesic.epistasis.scores import make_scan_data

SITES, TOP = 90, 400


def scan_of(genotypes: np.ndarray, case: np.ndarray, max_r2: float = 1.0) -> ScanData:
    ordered = genotypes.T[:, np.argsort(case, kind="stable")]
    sizes = int((~case).sum()), int(case.sum())
    words, sites, _ = reorder_sites(lambda part: ordered[part], np.arange(SITES), sizes[0])
    sites = sites.assign(chrom="1", pos=1000 * np.arange(len(sites)))
    return make_scan_data(words, sites, *sizes, "interaction", partners_of(sites, 3000, max_r2))


@pytest.fixture
def cutoffs(monkeypatch):
    """Cutoffs that pilots gave."""
    seen, whole = [], scan_cpu._cutoff_by_half

    def noted(*arguments):
        seen.append(whole(*arguments))
        return seen[-1]

    monkeypatch.setattr(scan_cpu, "_cutoff_by_half", noted)
    return seen


def with_and_without(monkeypatch, data, first: range):
    hits = scan_triples(data, first, TOP, threads=2)
    monkeypatch.setattr(scan_cpu, "PILOT_TESTS", 0)
    return hits, scan_triples(data, first, TOP)


@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("first", [range(SITES), range(7, 40)])
def test_hits_are_those_of_a_scan_without(monkeypatch, cutoffs, missing, first):
    rng = np.random.default_rng(4)
    genotypes, case, _ = draw_structure(rng, 300, SITES)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    ours, slow = with_and_without(monkeypatch, scan_of(genotypes, case, 0.1), first)
    assert len(cutoffs) == 1 and slow.cost[-1] <= cutoffs[0] < 0
    np.testing.assert_array_equal(ours.cost, slow.cost)
    np.testing.assert_array_equal(ours.sites, slow.sites)


def test_a_half_that_holds_all_interactions_costs_time_and_no_hits(monkeypatch, cutoffs):
    """Every second site is nearly a copy of one of three that interact."""
    rng, half = np.random.default_rng(5), SITES // 2
    genotypes = rng.binomial(2, 0.5, (400, SITES)).astype(np.int8)
    three = rng.binomial(2, 0.5, (400, 3)).astype(np.int8)
    core = three[:, rng.integers(0, 3, half)]
    genotypes[:, :half] = np.where(rng.random(core.shape) < 0.9, core, genotypes[:, :half])
    odd = (three % 2).sum(axis=1) % 2 == 1
    data = scan_of(genotypes, odd ^ (rng.random(400) < 0.05))
    order = np.empty(SITES, int)
    order[::2], order[1::2] = (np.flatnonzero((data.rank < half) == copy) for copy in (1, 0))
    classes = tuple(replace(one, words=one.words[order]) for one in data.classes)
    data = replace(data, classes=classes, rank=data.rank[order], partners=None)
    ours, slow = with_and_without(monkeypatch, data, range(SITES))
    assert slow.cost[-1] > cutoffs[0]  # the half promised too much
    np.testing.assert_array_equal(ours.cost, slow.cost)
    np.testing.assert_array_equal(ours.sites, slow.sites)
