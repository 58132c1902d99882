"""Best matches of profiles by the kernels' source, on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.reference import draw_genotypes
from support.operands import planes_of

from popdesic.cohort.site_planes import site_planes
from popdesic.engine import site_pairs
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.site_pairs import band_r2, r2_pairs
from popdesic.engine.terms import Planes
from popdesic.relatives.find_matches import top_matches

CPU = CpuBackend(2)


def assert_same_matches(queries, database, k, min_called=1) -> None:
    from popdesic.engine.backend_gpu import GpuBackend

    ours = top_matches(GpuBackend(), queries, database, k, min_called)
    slow = top_matches(CPU, queries, database, k, min_called)
    there = slow.index >= 0
    for name in ("key", "mismatches", "called"):
        np.testing.assert_array_equal(
            np.where(there, getattr(ours, name), 0), np.where(there, getattr(slow, name), 0), name
        )
    np.testing.assert_array_equal(ours.index, slow.index)


@pytest.mark.parametrize("n_sites", [1, 63, 64, 65, 511, 513, 1500])
@pytest.mark.parametrize("missing", [(0, 0), (0.2, 0.2), (0.2, 0)])
def test_matches_of_every_number_of_sites(machine, rng, n_sites, missing):
    """Few sites make ties, which the earlier profile wins."""
    machine.backward = n_sites % 2 == 0
    a, b = draw_genotypes(rng, 5, n_sites, missing[0]), draw_genotypes(rng, 100, n_sites)
    b[rng.random(b.shape) < missing[1]] = -1
    queries = planes_of(a, masked=missing[0] > 0)
    database = planes_of(b, fill=rng.integers(0, 3, b.shape), masked=missing[1] > 0)
    assert_same_matches(queries, database, 7, min_called=max(1, n_sites // 2))
    assert {"scan_profiles", "keep_best"} <= set(machine.launched)


@pytest.mark.parametrize("n_queries", [1, 33])
@pytest.mark.parametrize("n_profiles", [1, 15, 16, 17, 4200])
def test_matches_of_every_number_of_profiles(rng, n_queries, n_profiles):
    words = rng.integers(0, 2**63, (n_profiles, 2, 2), dtype=np.uint64)
    words[:, 1] &= words[:, 0]
    queries = Planes(words[rng.integers(0, n_profiles, n_queries)], 128)
    assert_same_matches(queries, Planes(words, 128), 10)


@pytest.mark.parametrize("missing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(("n_sites", "n_samples"), [(1, 5), (40, 63), (130, 65), (70, 2100)])
def test_correlations_of_narrow_windows_have_the_bytes_of_the_cpu(
    machine, rng, n_sites, n_samples, missing, monkeypatch
):
    """Sites that do not vary, windows of no site, runs of rows that begin behind the first."""
    from popdesic.engine.backend_gpu import GpuBackend

    genotypes = draw_genotypes(rng, n_sites, n_samples, missing)
    genotypes[rng.random(n_sites) < 0.1] = 2
    planes, rows = site_planes(genotypes), np.arange(n_sites)
    ends = np.minimum(np.maximum.accumulate(rows + rng.integers(0, 30, n_sites)), n_sites)
    backend = GpuBackend()
    for first, last in ((0, n_sites), (n_sites // 3, n_sites // 2 + 1)):
        machine.backward = not machine.backward
        found = band_r2(backend, planes, ends, first, last)
        assert found.tobytes() == band_r2(CPU, planes, ends, first, last).tobytes()
    for name, one, other in zip(
        ("rows", "columns", "r2"),
        r2_pairs(backend, planes, ends, 0.05),
        r2_pairs(CPU, planes, ends, 0.05),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other, name)
    # Several runs of rows in one call of the GPU, the last one shorter.
    monkeypatch.setattr(site_pairs, "BLOCK_SITES", 16)
    monkeypatch.setattr(site_pairs, "SENT_SITES", 50)
    shown = []
    for own in (backend, CPU):
        parts = []
        pairs = r2_pairs(own, planes, ends, 0.05, lambda *part, parts=parts: parts.append(part))
        shown.append(b"".join(one.tobytes() for part in [pairs, *parts] for one in part))
    assert shown[0] == shown[1]
    assert "band_r2" in machine.launched or n_sites == 1
