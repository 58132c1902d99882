"""Sites with and without missing genotypes are scanned apart: the hits of one scan of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference_epistasis import make_scan

from popdesic.engine.select import cpu_backend
from popdesic.epistasis.scores import lr_bits, score_tables
from simt.test_simt_scans import assert_same, run


def blocks(rng, score, n_incomplete, n_complete, n_samples, missing=0.1):
    """Scan data whose first sites lack genotypes and whose last ones do not, and their states."""
    cases = np.arange(sum(n_samples)) >= n_samples[0]
    states = np.empty((n_incomplete + n_complete, sum(n_samples)), np.int8)
    for i, row in enumerate(states):
        row[:] = rng.choice([0, 1, 3], size=len(row), p=np.sort(rng.dirichlet((2, 2, 2))))
        if i < n_incomplete:
            row[rng.random(len(row)) < missing] = 2
    states[max(0, n_incomplete - 1), 0] = 2
    rank = rng.permutation(len(states)).astype(np.int32)
    data = make_scan(states, cases, rank, *score_tables(score, *n_samples))
    return replace(data, lr_bits=lr_bits(score, sum(n_samples))), states, cases


@pytest.fixture
def two_blocks(machine, monkeypatch):
    """Lets a block begin at any multiple of 64 sites, however few there are behind it."""
    from popdesic.engine.gpu import epistasis_parts

    monkeypatch.setattr(epistasis_parts, "LEAST_BLOCK", 0.0)
    return machine


@pytest.mark.parametrize(
    ("kernel", "score"), [("mma", "k2"), ("mma", "interaction"), ("popc", "k2"), ("mma", "mutual_information")]
)
@pytest.mark.parametrize(("order", "first"), [(2, range(50, 80)), (3, range(62, 66))])
def test_hits_of_all_parts_are_those_of_the_cpu(two_blocks, rng, kernel, score, order, first):
    from popdesic.engine.gpu.backend import GpuBackend

    two_blocks.backward = kernel == "popc"
    data, _, _ = blocks(rng, score, 60, 30, (70, 61))
    expected = run(cpu_backend(1), order, data, first, 60)
    assert_same(run(GpuBackend(kernel=kernel), order, data, first, 60), expected)
