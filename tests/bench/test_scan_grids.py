"""Grids have the sizes of the papers, each scanned for seconds, and whole scans are reckoned."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import scan_grids
import shares
from oracles.epistasis import random_scan
from scan_grids import GRIDS, Grid, parts, seconds_of, sizes, whole_seconds

from popdesic.engine.select import cpu_backend
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import score_tables


@pytest.mark.parametrize(
    ("name", "n", "most_combinations", "most_samples"),
    [
        ("cuda-cores", 16, 85_301_336_000, 8000),
        ("tensor-episdet", 60, 5_863_525e6, 262_144),
        ("epiclear", 32, 11_445e6, 2_097_152),
    ],
)
def test_sizes_are_those_that_the_papers_print(name, n, most_combinations, most_samples):
    cases = sizes(GRIDS[name])
    assert len(set(cases)) == len(cases) == n
    combinations = [math.comb(case.n_sites, case.order) for case in cases]
    assert max(combinations) == pytest.approx(most_combinations, rel=1e-4)
    assert max(case.controls + case.cases for case in cases) == most_samples
    assert all(case.controls == case.cases for case in cases)
    assert all(0 < math.fsum(case.frequencies) <= 1 + 1e-9 for case in cases)


@pytest.mark.parametrize("name", GRIDS)
def test_no_size_takes_long(name):
    """A scan by a share takes about as long as asked for, and so do all sizes of a grid."""
    taken = []
    for case in sizes(GRIDS[name]):
        spans = parts(case, 0.4)
        whole = math.comb(case.n_sites, case.order)
        of_each = [shares.count(case.n_sites, case.order, some) / whole for some in spans]
        seconds = [seconds_of(case) * share for share in of_each]
        assert max(seconds) <= 0.51
        if len(spans) > 1:  # whole first sites
            assert max(seconds) >= 0.35
            assert of_each[0] <= 0.35 * of_each[1]
        else:
            assert of_each == [1]
        taken.append(sum(seconds) + seconds[0])  # the first scan once more: it compiles
    assert sum(taken) <= 40


def test_whole_scans_are_reckoned_without_a_second_set_up():
    """0.4 s of set-up and a second for 1 000 combinations."""
    assert whole_seconds([0.4 + 0.05, 0.4 + 0.2], [50, 200], 4000) == pytest.approx(4.4)
    assert whole_seconds([3.0], [500], 500) == 3.0


def test_a_table_of_scans(capsys, monkeypatch):
    """Real scans on a CPU: a row for each size, some whole and some by shares."""
    monkeypatch.setitem(GRIDS, "few", Grid("a paper", (2, 3), (24, 60), (64,)))
    monkeypatch.setattr(scan_grids, "TESTS", 20_000)
    tables, backend = score_tables("k2", 32, 32), cpu_backend(1)
    scanned = []

    def load(case):
        rng = np.random.default_rng(1)
        return random_scan(rng, case.n_sites, (case.controls, case.cases), tables=tables)[0]

    def run(case, data, spans):
        scan = partial(scan_pairs if case.order == 2 else scan_triples, backend)
        scanned.append((case.order, case.n_sites, sum(map(len, spans))))
        return [scan(data, span, 5) for span in spans], 4.0

    scan_grids.measure("few", 0.4, load, run, 1e15, "the limit")
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "33/33" in line]
    assert [row[:4] for row in rows] == [
        ["2", "33/33/33", "24", "64"],
        ["2", "33/33/33", "60", "64"],
        ["3", "33/33/33", "24", "64"],
        ["3", "33/33/33", "60", "64"],
    ]
    assert [row[4] == "100.0%" for row in rows] == [True, True, True, False]
    assert "of the limit" in lines[2]
    first_sites = [n for order, n_sites, n in scanned if (order, n_sites) == (3, 60)]
    assert first_sites[0] == first_sites[1] < first_sites[2] < 60
