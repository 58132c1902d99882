"""Sites with missing genotypes come first if they are few; hits do not depend on it."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.engine.select import cpu_backend
from popdesic.epistasis import reorder
from popdesic.epistasis.scan_sites import scanner
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
