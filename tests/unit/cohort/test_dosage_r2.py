"""LD of polyploids: correlations of numbers of alleles, by numpy; and pruning by them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.cohort.dosage_r2 import dosage_r2
from popdesic.cohort.prune import pruned
from popdesic.cohort.site_planes import site_planes
from popdesic.components.axis_sites import choose_sites
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.site_pairs import r2_block
from popdesic.engine.terms import Planes
from popdesic.io.layers import columns_there, layers_each, most_layers, split_layers

BACKEND = CpuBackend(1)


def drawn(ploidy: np.ndarray, n_sites: int, seed: int, missing: float = 0.1) -> np.ndarray:
    """Sites of which each is like the one before it in most samples: int8 (n_sites, n_samples)."""
    rng = np.random.default_rng(seed)
    out = np.empty((n_sites, len(ploidy)), np.int8)
    for k in range(n_sites):
        fresh = rng.binomial(ploidy, rng.uniform(0.2, 0.8))
        like = rng.random(len(ploidy)) < (0.8 if k % 5 else 0)
        out[k] = np.where(like, out[k - 1], fresh)
    return np.where(rng.random(out.shape) < missing, -1, out).astype(np.int8)


@pytest.mark.parametrize("ploidy", [1, 2, 3, 4, 6, 15])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_squared_correlations_are_those_of_numpy(ploidy, missing):
    genotypes = drawn(np.full(23, ploidy), 17, ploidy, missing)
    genotypes[3] = ploidy  # monomorphic
    found = dosage_r2(genotypes[:9], genotypes, 2)
    for i, a in enumerate(genotypes[:9]):
        for j, b in enumerate(genotypes):
            both = (a >= 0) & (b >= 0)
            if a[both].min() == a[both].max() or b[both].min() == b[both].max():
                assert np.isnan(found[i, j])
            else:
                expected = np.corrcoef(a[both], b[both])[0, 1] ** 2
                assert found[i, j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_of_diploids_they_are_those_of_planes(missing):
    """Bit for bit, and so is what pruning removes."""
    genotypes = drawn(np.full(40, 2), 300, 2, missing)
    planes = site_planes(genotypes)
    few = Planes(planes.words[:20], planes.n_sites)
    found = dosage_r2(genotypes[:20], genotypes)
    np.testing.assert_array_equal(found, r2_block(few, planes, BACKEND))
    sites = pd.DataFrame({"chrom": np.repeat(["1", "2"], 150), "pos": np.tile(np.arange(150), 2)})
    for window in ((7, "bp", 1, 0.2), (40, "sites", 5, 0.1)):
        expected = pruned(planes, sites, window, BACKEND)
        found = pruned(planes, sites, window, BACKEND, genotypes)
        np.testing.assert_array_equal(found, expected)
        assert 20 < expected.sum() < 280


@pytest.mark.parametrize("kinds", [(4,), (3,), (2, 4)])
def test_axes_rest_on_sites_without_correlated_neighbours(kinds):
    """From layers: no two sites that are kept within a window are correlated, by numpy."""
    ploidy = np.resize(kinds, 30)
    genotypes = drawn(ploidy, 200, 7)
    layers, sizes = most_layers(kinds), layers_each(ploidy, kinds)
    sums = np.where(genotypes < 0, -1, genotypes * (2 * sizes // ploidy)).astype(np.int8)
    columns = split_layers(sums, layers, sizes)[:, columns_there(sizes, layers)]
    shares = np.where(sums < 0, -1, sums * (2 * layers // (2 * sizes))).astype(np.int8)
    sites = pd.DataFrame({"chrom": "1", "pos": 10 * np.arange(200)})
    chosen = choose_sites(
        lambda first, last: site_planes(columns[first:last]),
        sites,
        BACKEND,
        read_alleles=lambda first, last: shares[first:last],
        pruning=(60, "bp", 1, 0.4),
        regions=[],
    )
    rows = chosen.rows
    assert 20 < len(rows) < 190 and chosen.r2 == pytest.approx(0.4)
    share = np.where(genotypes < 0, 0, genotypes).sum(1) / ((genotypes >= 0) * ploidy).sum(1)
    np.testing.assert_allclose(chosen.af, share[rows], rtol=1e-12)
    kept, removed = [], np.setdiff1d(np.arange(200), rows)

    def r2(i, j):
        both = (genotypes[i] >= 0) & (genotypes[j] >= 0)
        a, b = (genotypes[k][both] / ploidy[both] for k in (i, j))
        return np.corrcoef(a, b)[0, 1] ** 2

    near = [(i, j) for i in rows for j in rows if i < j <= i + 6]
    kept = [r2(i, j) for i, j in near]
    assert max(kept) <= 0.4
    for i in removed:  # something within the window is why
        assert max(r2(i, j) for j in range(max(0, i - 6), min(200, i + 7)) if j != i) > 0.4
