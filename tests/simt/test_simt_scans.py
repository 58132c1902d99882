"""Scans of pairs and triples by the kernels' sources, on a CPU, give the oracle's hits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference_trait
from reference_epistasis import random_partners, random_scan, scan

from popdesic.engine.base import Hits
from popdesic.engine.cpu.backend import CpuBackend
from popdesic.epistasis.scores import lr_bits, score_tables


def assert_same(found: Hits, expected: Hits) -> None:
    assert found.cost.tolist() == expected.cost.tolist()
    assert found.sites.tolist() == expected.sites.tolist()


def run(backend, order, data, first, top, cutoff=None):
    return (backend.scan_pairs if order == 2 else backend.scan_triples)(data, first, top, cutoff)


def drawn(rng, score, n_sites, n_samples, missing):
    tables = score_tables(score, *n_samples)
    data, states, cases = random_scan(rng, n_sites, n_samples, missing=missing, tables=tables)
    return replace(data, lr_bits=lr_bits(score, sum(n_samples))), states, cases


@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("score", ["k2", "interaction"])
@pytest.mark.parametrize(("order", "n_sites", "n_samples"), [(2, 33, (40, 31)), (3, 11, (50, 61))])
def test_hits_equal_the_oracle(machine, rng, kernel, missing, score, order, n_sites, n_samples):
    from popdesic.engine.gpu.backend import GpuBackend

    data, states, cases = drawn(rng, score, n_sites, n_samples, missing)
    expected = scan(data, states, cases, order, range(n_sites), 20)
    assert_same(run(GpuBackend(kernel=kernel), order, data, range(n_sites), 20), expected)
    assert machine.launched.count("epistasis_scan") >= order - 1
