"""Candidates of a scan in the order of p, corrected for fewer tests where sites have effects."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis import evidence
from popdesic.epistasis.evidence import Prior, candidates_of
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.partners import hardly_correlated
from popdesic.epistasis.phantoms import CIS_BP, in_cis
from popdesic.epistasis.priority import SHARE, correction_factors, strength_of
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_data import Hits
from popdesic.epistasis.scan_sites import scanner
from popdesic.epistasis.scores import make_scan_data
from popdesic.epistasis.significance import hit_tables
from popdesic.epistasis.single_sites import SiteTests

BACKEND = CpuBackend(1)
CONTROLS, CASES = 420, 380
N = CONTROLS + CASES


def draw(seed, n_sites, missing=0.02):
    """Genotypes (n_sites, N), controls first; odds grow with the first three sites."""
    rng = np.random.default_rng(seed)
    genotypes = rng.binomial(2, rng.uniform(0.08, 0.5, (n_sites, 1)), (n_sites, 4 * N))
    odds = 0.6 * genotypes[:3].sum(axis=0)
    case = rng.random(4 * N) < 1 / (1 + np.exp(odds.mean() - odds))
    people = np.r_[np.flatnonzero(~case)[:CONTROLS], np.flatnonzero(case)[:CASES]]
    genotypes = genotypes[:, people].astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes


class Study:
    """Planes and sites of a scan; `place[row]`: where a row of `genotypes` is."""

    def __init__(self, genotypes, chrom=None, pos=None):
        self.genotypes = genotypes
        every = np.arange(len(genotypes))
        self.words, sites, _ = reorder_sites(lambda part: genotypes[part], every, CONTROLS)
        chrom = [str(k) for k in every] if chrom is None else chrom
        where = pd.DataFrame({"chrom": chrom, "pos": every if pos is None else pos})
        self.sites = sites.join(where, on="rank")
        self.place = np.argsort(sites["rank"].to_numpy())
        null = fit_null((np.arange(N) >= CONTROLS).astype(float), np.empty((N, 0)), "logistic")
        self.strength = strength_of(SiteTests(null).test(genotypes[sites["rank"]]))

    def scan(self, order, top):
        data = make_scan_data(self.words, self.sites, CONTROLS, CASES, "interaction")
        return scanner(BACKEND, order)(data, range(data.n_sites), top)

    def candidates(self, kept, top=10**4, **rules):
        prior = Prior(self.strength, BACKEND, **rules)
        return candidates_of(
            kept, self.words, self.sites, (CONTROLS, CASES), prior, tests=-1, top=top
        )

    def rows(self, hits):
        """Combinations as rows of `genotypes`."""
        return [tuple(sorted(members)) for members in self.sites["rank"].to_numpy()[hits.sites]]


def expected(study, order):
    """Corrected ln p of every combination, and what p is multiplied with, one by one."""
    ranks = np.empty(len(study.sites), int)
    ranks[np.argsort(-study.strength, kind="stable")] = np.arange(1, len(ranks) + 1)
    found = {}
    for members in itertools.combinations(range(len(ranks)), order):
        lr, freedom, _ = interaction_test(hit_tables(study.genotypes[list(members)], CONTROLS))
        last = np.array([ranks[study.place[list(members)]].max()])
        tests = correction_factors(last, len(ranks), order)[0]
        found[members] = stats.chi2.logsf(lr, freedom) + math.log(tests), tests
    return found


@pytest.mark.parametrize(("order", "n_sites"), [(2, 14), (3, 9)])
def test_all_combinations_are_ordered_by_corrected_p(order, n_sites):
    study = Study(draw(order, n_sites))
    want = expected(study, order)
    best = study.candidates(study.scan(order, 10**4))
    rows = study.rows(best.hits)
    assert sorted(rows) == sorted(want), "each combination once"
    assert rows == sorted(want, key=lambda members: (round(want[members][0] * 2**20), members))
    np.testing.assert_allclose(best.tests, [want[row][1] for row in rows])
    assert len(set(best.tests)) >= 2 and best.hits.cost.tolist() != sorted(best.hits.cost)


@pytest.mark.parametrize("order", [2, 3])
def test_sites_of_strong_effects_need_not_be_kept_by_the_scan(order, monkeypatch):
    study = Study(draw(3, 12))
    want = expected(study, order)
    strong = set(range(3))  # the sites with effects
    assert set(np.argsort(-study.strength)[:3]) == set(study.place[:3])
    kept = study.scan(order, 4)
    monkeypatch.setitem(evidence.STRONG_SITES, order, 3)
    rows = study.rows(study.candidates(kept).hits)
    further = {row for row in want if set(row) <= strong}
    assert sorted(rows) == sorted({*study.rows(kept), *further})
    assert rows == sorted(rows, key=lambda row: round(want[row][0] * 2**20))
    assert study.rows(study.candidates(kept, top=2).hits) == rows[:2]


def test_rules_for_partners_hold_for_the_strongest_sites():
    genotypes = draw(4, 8, missing=0)
    genotypes[1] = np.where(np.arange(N) % 9 > 0, genotypes[0], genotypes[1])
    study = Study(genotypes, ["1", "2", "3", "3", "4", "5", "6", "7"], [1, 1, 1, 99, 1, 1, 1, 1])
    none = Hits(np.zeros(0, np.int64), np.zeros((0, 2), np.int32))
    rows = study.rows(study.candidates(none, min_distance_bp=98, max_r2=0.2).hits)
    assert len(rows) == math.comb(8, 2) - 1 and (0, 1) not in rows and (2, 3) in rows
    rows = study.rows(study.candidates(none, min_distance_bp=99, max_r2=1.0).hits)
    assert len(rows) == math.comb(8, 2) - 1 and (0, 1) in rows and (2, 3) not in rows


def test_combinations_in_cis_have_no_part_in_the_share_of_main_effects():
    genotypes = draw(5, 10, missing=0)
    genotypes[1] = np.where(np.arange(N) % 3 > 0, genotypes[0], genotypes[1])  # r2 above 0.02
    study = Study(genotypes, ["1", "2", "3", "3", *"abcdef"], [1, 1, 1, CIS_BP, *range(6)])
    best = study.candidates(study.scan(2, 99))
    whole = math.comb(10, 2) / (1 - SHARE)
    of_cis = [
        row
        for row, t in zip(study.rows(best.hits), best.tests, strict=True)
        if np.isclose(t, whole)
    ]
    assert sorted(of_cis) == [(0, 1), (2, 3)]
    assert (1 / best.tests).sum() < 1


def test_correlated_sites_are_in_cis_as_on_the_page():
    """As the column `cis` has it (`phantoms.in_cis`), at correlations around its limit."""
    genotypes = draw(7, 16, missing=0.05)
    rng = np.random.default_rng(7)
    for k in range(1, 16):  # 5 to 40 % of the people have the genotype of the site before
        same = rng.random(N) < 0.05 + 0.35 * k / 15
        genotypes[k] = np.where(same, genotypes[k - 1], genotypes[k])
    study = Study(genotypes)
    best = study.candidates(study.scan(2, 999), top=999)
    whole = math.comb(16, 2) / (1 - SHARE)
    far = np.arange(2)
    want = [in_cis(far, far, genotypes[list(row)]) for row in study.rows(best.hits)]
    assert 4 < sum(want) < 40
    np.testing.assert_array_equal(np.isclose(best.tests, whole), want)


def test_each_table_may_have_its_own_limit_of_correlation():
    tables = np.zeros((2, 3, 9), np.int64)
    tables[0] = [30, 5, 5, 5, 30, 5, 5, 5, 30]  # r2 = 0.39
    assert hardly_correlated(tables, 1).all() and not hardly_correlated(tables, 0.3).any()
    assert hardly_correlated(tables, np.array([0.3, 0.5, 1.0])).tolist() == [False, True, True]
    assert len(hardly_correlated(tables[:, :0], np.zeros(0))) == 0


def test_without_main_effects_nothing_changes():
    study = Study(draw(6, 9))
    kept = study.scan(2, 20)
    best = candidates_of(kept, study.words, study.sites, (CONTROLS, CASES), None, tests=36, top=7)
    assert best.hits.cost.tolist() == kept.cost[:7].tolist() and best.tests.tolist() == [36] * 7
