"""Scans of quads by the kernels' sources, on a CPU, give the oracle's hits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oracles.epistasis import random_partners, random_scan, scan

from popdesic.epistasis.scan_data import Hits
from popdesic.epistasis.scan_sites import scan_quads
from popdesic.epistasis.scores import lr_bits, score_tables


def assert_same(found: Hits, expected: Hits) -> None:
    assert found.cost.tolist() == expected.cost.tolist()
    assert found.sites.tolist() == expected.sites.tolist()


def drawn(rng, score, n_sites, n_samples, missing):
    tables = score_tables(score, *n_samples)
    data, states, cases = random_scan(rng, n_sites, n_samples, missing=missing, tables=tables)
    return replace(data, lr_bits=lr_bits(score, sum(n_samples))), states, cases


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("kernel", "score"),
    [
        *(("mma", score) for score in ("k2", "k2_excess", "mutual_information", "gini")),
        ("popc", "k2"),
        ("mma", "interaction"),
    ],
)
def test_hits_equal_the_oracle(machine, rng, kernel, missing, score):
    from popdesic.engine.backend_gpu import GpuBackend

    machine.backward = missing > 0
    data, states, cases = drawn(rng, score, 7, (50, 61), missing)
    expected = scan(data, states, cases, 4, range(7), 20)
    assert_same(scan_quads(GpuBackend(kernel=kernel), data, range(7), 20), expected)
    # interactions are scanned on the CPU; else, of four w, three pair tables each and the quads
    launches = machine.launched.count("epistasis_scan")
    assert launches == 0 if score == "interaction" else launches >= 16
