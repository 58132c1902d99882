"""A share of a scan holds as many combinations as it says, from the whole range."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
import shares
from oracles.epistasis import random_scan

from popdesic.engine.select import cpu_backend
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import score_tables


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("n_sites", [3, 8, 17, 40])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 1.0])
def test_combinations_are_counted(order, n_sites, share):
    spans = shares.first_sites(n_sites, order, share)
    chosen = {x for span in spans for x in span}
    assert len(chosen) == sum(map(len, spans))  # no first site twice
    listed = [c for c in itertools.combinations(range(n_sites), order) if c[0] in chosen]
    assert shares.count(n_sites, order, spans) == len(listed) > 0
    assert (share < 1) or len(listed) == math.comb(n_sites, order)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
def test_runs_have_equal_parts_from_the_whole_range(order, share):
    n_sites, whole = 16_384, math.comb(16_384, order)
    spans = shares.first_sites(n_sites, order, share)
    parts = [shares.count(n_sites, order, [span]) / whole for span in spans]
    assert parts == pytest.approx([share / shares.RUNS] * shares.RUNS, rel=0.12)
    assert sum(parts) == pytest.approx(share, rel=0.02)
    middles = [shares.count(n_sites, order, [range(s.start)]) / whole for s in spans]
    step = np.diff(middles)
    assert step == pytest.approx([1 / shares.RUNS] * (shares.RUNS - 1), rel=0.02)
    assert f"{sum(parts):.2%}" in shares.describe(n_sites, order, spans)


@pytest.mark.parametrize("order", [2, 3])
def test_a_scan_of_the_runs_finds_as_many_combinations(order):
    """Without a limit of the hits, each combination of the share is a hit."""
    n_sites, rng = 30, np.random.default_rng(3)
    data, _, _ = random_scan(rng, n_sites, (40, 31), tables=score_tables("k2", 40, 31))
    backend, spans = cpu_backend(1), shares.first_sites(n_sites, order, 0.3)
    scan = partial(scan_pairs if order == 2 else scan_triples, backend)
    found = sum(len(scan(data, span, math.comb(n_sites, order)).cost) for span in spans)
    assert found == shares.count(n_sites, order, spans)
