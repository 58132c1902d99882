"""Sites with missing genotypes come first if they are few; hits do not depend on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from popdesic.core.errors import UserError
from popdesic.engine.select import cpu_backend
from popdesic.epistasis import reorder, scan
from popdesic.epistasis.scan import with_random_residuals
from popdesic.epistasis.scan_sites import scan_residual_pairs, scanner
from popdesic.epistasis.scores import make_scan_data

CONTROLS, CASES = 130, 110


def drawn(rng, n_sites: int, n_incomplete: int) -> np.ndarray:
    """Genotypes (n_sites, samples) of which some sites, anywhere, lack a few."""
    n = CONTROLS + CASES
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.5, (n_sites, 1)), (n_sites, n)).astype(np.int8)
    for site in rng.permutation(n_sites)[:n_incomplete]:
        genotypes[site, rng.random(n) < 0.1] = -1
        genotypes[site, 0] = -1
    return genotypes


def planes_of(genotypes: np.ndarray):
    words, sites, _ = reorder.reorder_sites(
        lambda part: genotypes[part], np.arange(len(genotypes)), CONTROLS
    )
    return words, sites


@pytest.mark.parametrize(("n_incomplete", "grouped"), [(0, 0), (1, 1), (10, 10), (11, 0), (20, 0)])
def test_at_most_half_of_the_sites_come_first(n_incomplete, grouped):
    words, sites = planes_of(drawn(np.random.default_rng(4), 20, n_incomplete))
    stored = np.bitwise_count(words).sum(axis=(1, 2))
    runs = [stored[:grouped], stored[grouped:]]
    assert all((np.diff(run.astype(int)) >= 0).all() for run in runs)
    if grouped:
        assert ((sites["n_missing"] > 0) == (np.arange(20) < grouped)).all()


@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information", "gini", "interaction"])
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("n_incomplete", [2, 10])
def test_hits_are_those_of_one_order_of_all_sites(monkeypatch, score, order, n_incomplete):
    found = []
    genotypes = drawn(np.random.default_rng(order), 20, n_incomplete)
    for most in (reorder.MOST_INCOMPLETE, 0.0):
        monkeypatch.setattr(reorder, "MOST_INCOMPLETE", most)
        words, sites = planes_of(genotypes)
        data = make_scan_data(words, sites, CONTROLS, CASES, score)
        hits = scanner(cpu_backend(1), order)(data, range(20), 100)
        found.append((hits.cost.tolist(), np.sort(data.rank[hits.sites], axis=1).tolist()))
    assert found[0] == found[1]
    assert len(found[0][0]) > 10


@pytest.mark.parametrize("n_incomplete", [0, 1, 10, 15])
def test_scan_data_say_from_where_on_sites_are_complete(n_incomplete):
    words, sites = planes_of(drawn(np.random.default_rng(4), 20, n_incomplete))
    data = make_scan_data(words, sites, CONTROLS, CASES, "k2")
    lacking = np.flatnonzero((words[:, 2:] != 0).any(axis=(1, 2)))
    assert data.complete_from == (lacking[-1] + 1 if len(lacking) else 0)
    if 0 < n_incomplete <= 10:
        assert data.complete_from == n_incomplete


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("score", ["k2", "interaction"])
def test_hits_do_not_depend_on_where_in_a_large_panel_sites_lie(order, score):
    """Equal costs are ordered by the panel, also of 2 000 million sites."""
    rng = np.random.default_rng(6)
    genotypes = np.repeat(drawn(rng, 5, 0), 4, axis=0)  # each site four times: many ties
    words, sites = planes_of(genotypes)
    data = make_scan_data(words, sites, CONTROLS, CASES, score)
    far = np.sort(rng.choice(2**31 - 1, len(sites), replace=False)).astype(np.int32)
    found = [
        scanner(cpu_backend(1), order)(one, range(20), 30)
        for one in (data, replace(data, rank=far[data.rank]))
    ]
    assert len(np.unique(found[0].cost)) < 30
    np.testing.assert_array_equal(found[0].sites, found[1].sites)
    np.testing.assert_array_equal(found[0].cost, found[1].cost)


def test_equal_pairs_by_residuals_are_ordered_by_a_large_panel():
    rng = np.random.default_rng(7)
    words, sites = planes_of(np.repeat(drawn(rng, 5, 0), 4, axis=0))
    data = with_random_residuals(make_scan_data(words, sites, CONTROLS, CASES, "k2"))
    far = np.sort(rng.choice(2**31 - 1, len(sites), replace=False)).astype(np.int32)
    found = [
        scan_residual_pairs(cpu_backend(1), one, range(20), 30).sites
        for one in (data, replace(data, rank=far[data.rank]))
    ]
    np.testing.assert_array_equal(*found)


def test_more_sites_than_a_cpu_can_combine_are_refused_before_any_scan(tmp_path, monkeypatch):
    words, sites = planes_of(drawn(np.random.default_rng(8), 20, 0))
    np.save(tmp_path / "onehot.npy", words)
    place = {"chrom": "1", "pos": 1, "id": "s", "ref": "A", "alt": "G"}
    sites.assign(**place).to_csv(tmp_path / "sites.tsv", sep="\t", index=False)
    classes = ["control"] * CONTROLS + ["case"] * CASES
    pd.DataFrame({"class": classes}).to_csv(tmp_path / "samples.tsv", sep="\t", index=False)
    given = {"orders": [2], "score": "k2", "permutations": {2: 0}, "screen": 0, "top": 5}
    given |= {"max_device_hours": 1.0}
    monkeypatch.setattr(scan, "MOST_SITES", 19)
    with pytest.raises(UserError, match="20 sites are more than the 19 that a scan on a CPU"):
        scan.plan_scan(tmp_path, cpu_backend(1), tmp_path / "plan.json", **given)


@pytest.mark.parametrize("n_incomplete", [0, 5])
def test_permuted_planes_are_made_in_pieces(monkeypatch, n_incomplete):
    words, sites = planes_of(drawn(np.random.default_rng(9), 20, n_incomplete))
    data = make_scan_data(words, sites, CONTROLS, CASES, "k2")
    people = pd.DataFrame({"stratum": "all"}, index=range(CONTROLS + CASES))
    whole = scan.permuted(words, people, data, 1, 0)
    monkeypatch.setattr(scan, "PERMUTED_GENOTYPES", 3 * len(people))
    pieces = scan.permuted(words, people, data, 1, 0)
    for one, other, before in zip(pieces.classes, whole.classes, data.classes, strict=True):
        np.testing.assert_array_equal(one.words, other.words)
        assert (one.words != before.words).any()
