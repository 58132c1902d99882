"""Haplotype copying: against the recurrence in float64, and the same bytes however it is run."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import copying as oracle

from popdesic.copying import copying, copying_cpu, copying_plan, fit
from popdesic.copying.copying import allele_share, haplotypes_of, impute_alleles, leave_out_alleles


def mosaics(n, n_sites, n_targets, seed, missing=0.05):
    """Haplotypes with shared stretches, a map with equal places, and mosaics of them."""
    rng = np.random.default_rng(seed)
    founders = rng.random((6, n_sites)) < rng.beta(0.4, 1.2, n_sites)
    cm = np.cumsum(rng.exponential(0.02, n_sites) * (rng.random(n_sites) < 0.9))

    def copies(source, count, rate, error):
        at = rng.integers(0, len(source), count)
        found = np.empty((count, n_sites), np.int8)
        for m in range(n_sites):
            jump = rng.random(count) < rate
            at[jump] = rng.integers(0, len(source), jump.sum())
            found[:, m] = source[at, m] ^ (rng.random(count) < error)
        return found

    panel = copies(founders, n, 0.02, 0.002)
    targets = copies(panel, n_targets, 0.02, 0.002)
    sites = np.flatnonzero(rng.random(n_sites) < 0.4)
    if not len(sites):
        sites = np.array([0])
    alleles = targets[:, sites].copy()
    alleles[rng.random(alleles.shape) < missing] = -1
    return panel, cm, sites, alleles


AWKWARD = [1, 2, 31, 32, 33, 63, 64, 65, 100, 1000]
MODEL = {"ne": 3000.0, "mismatch": 1e-3}


@pytest.mark.parametrize("n", AWKWARD)
@pytest.mark.parametrize("n_sites", [1, 15, 64, 65, 400])
def test_allele_counts_are_those_of_the_recurrence(n, n_sites):
    panel, cm, sites, alleles = mosaics(n, n_sites, 3, seed=n + n_sites)
    found = impute_alleles(haplotypes_of(panel, cm), sites, alleles, **MODEL, threads=1)
    for target, row in enumerate(allele_share(found)):
        expected = oracle.impute(panel, cm, sites, alleles[target], *MODEL.values())
        # Haplotypes with a small posterior share what they have evenly: up to 1/16 of it moves.
        np.testing.assert_allclose(row, expected, atol=0.02)
        assert np.abs(row - expected).mean() < 1e-3


def test_units_are_fine_enough(monkeypatch):
    """Without the short list of haplotypes, sums in whole units are as good as float64."""
    panel, cm, sites, alleles = mosaics(1000, 300, 4, seed=5)
    monkeypatch.setattr(copying, "SMALL_SHARE", 0.0)
    found = impute_alleles(haplotypes_of(panel, cm), sites, alleles, **MODEL)
    for row, target in zip(allele_share(found), alleles, strict=True):
        expected = oracle.impute(panel, cm, sites, target, *MODEL.values())
        np.testing.assert_allclose(row, expected, atol=3e-4)


def test_a_result_does_not_depend_on_batch_or_threads():
    panel, cm, sites, alleles = mosaics(333, 500, 7, seed=2)
    packed = haplotypes_of(panel, cm)
    together = impute_alleles(packed, sites, alleles, **MODEL, threads=2)
    np.testing.assert_array_equal(
        impute_alleles(packed, sites, alleles, **MODEL, threads=1), together
    )
    for target, row in enumerate(together):
        alone = alleles[target : target + 1]
        np.testing.assert_array_equal(impute_alleles(packed, sites, alone, **MODEL)[0], row)
        known = alone[0] >= 0  # a missing site is as one that is not typed
        fewer = impute_alleles(packed, sites[known], alone[:, known], **MODEL)
        np.testing.assert_array_equal(fewer[0], row)


def test_the_order_of_haplotypes_does_not_matter():
    panel, cm, sites, alleles = mosaics(130, 300, 3, seed=3)
    order = np.random.default_rng(1).permutation(130)
    found = [
        impute_alleles(haplotypes_of(rows, cm), sites, alleles, **MODEL)
        for rows in (panel, panel[order])
    ]
    np.testing.assert_array_equal(*found)


def test_own_haplotypes_are_as_if_they_were_not_in_the_panel():
    panel, cm, sites, alleles = mosaics(129, 300, 1, seed=4, missing=0)
    panel[[5, 128]] = 0
    panel[5, sites] = alleles[0]  # a perfect match, that must not be copied
    own = np.array([[5, 128, -1]])
    found = impute_alleles(haplotypes_of(panel, cm), sites, alleles, **MODEL, own=own)
    rest = np.delete(panel, [5, 128], axis=0)
    without = impute_alleles(haplotypes_of(rest, cm), sites, alleles, **MODEL)
    # Which allele is the minor one may differ: halves of a unit are then rounded otherwise.
    assert np.abs(found.astype(int) - without).max() <= 1


@pytest.mark.parametrize("n", AWKWARD[:-1])
@pytest.mark.parametrize("n_sites", [1, 15, 200])
def test_a_left_out_call_is_imputed_from_all_others(n, n_sites):
    panel, cm, sites, alleles = mosaics(n, n_sites, 2, seed=n + n_sites, missing=0.1)
    few = haplotypes_of(panel[:, sites], cm[sites])
    whole = slice(0, len(sites))
    found = leave_out_alleles(few, alleles, whole, **MODEL, threads=1)
    for row, target in zip(found, alleles, strict=True):
        known = target >= 0
        at = sites[known]
        expected = oracle.left_out(panel[:, at], cm[at], target[known], *MODEL.values())
        np.testing.assert_allclose(allele_share(row[known]), expected, atol=3e-4)
        assert not row[~known].any()


def test_left_out_calls_have_the_same_bytes_in_any_batch():
    panel, cm, sites, alleles = mosaics(129, 500, 5, seed=3)
    few, whole = haplotypes_of(panel[:, sites], cm[sites]), slice(0, len(sites))
    together = leave_out_alleles(few, alleles, whole, **MODEL, threads=2)
    for target, row in enumerate(together):
        alone = alleles[target : target + 1]
        np.testing.assert_array_equal(leave_out_alleles(few, alone, whole, **MODEL)[0], row)
    core = slice(70, 150)
    inside = leave_out_alleles(few, alleles, core, **MODEL)
    np.testing.assert_array_equal(inside[:, core], together[:, core])
    assert not inside[:, :70].any() and not inside[:, 150:].any()
    own = np.tile([5, 128, -1], (5, 1))
    rest = haplotypes_of(np.delete(panel[:, sites], [5, 128], axis=0), cm[sites])
    np.testing.assert_array_equal(
        leave_out_alleles(few, alleles, whole, **MODEL, own=own),
        leave_out_alleles(rest, alleles, whole, **MODEL),
    )


def test_windows_follow_the_map_alone():
    cm = np.concatenate([np.linspace(3, 60, 50), np.linspace(300, 400, 7)])
    windows = copying_plan.cut_windows(cm)
    covered = [site for w in windows for site in range(w.first, w.last)]
    assert covered == list(range(len(cm)))
    for w in windows:
        low, high = cm[w.first : w.last].min(), cm[w.first : w.last].max()
        assert high - low < copying_plan.WINDOW_CM
        edge = cm[0] + (low - cm[0]) // copying_plan.WINDOW_CM * copying_plan.WINDOW_CM
        assert w.start == np.searchsorted(cm, edge - copying_plan.MARGIN_CM)
        edge += copying_plan.WINDOW_CM + copying_plan.MARGIN_CM
        assert w.stop == np.searchsorted(cm, edge)
    assert len(windows) == 5


def test_windows_hardly_change_a_result(monkeypatch):
    panel, cm, sites, alleles = mosaics(200, 2000, 3, seed=6)
    packed = haplotypes_of(panel, cm)
    whole = impute_alleles(packed, sites, alleles, **MODEL)
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 5.0)
    assert len(copying_plan.cut_windows(cm)) > 4
    cut = impute_alleles(packed, sites, alleles, **MODEL)
    assert np.abs(allele_share(cut) - allele_share(whole)).max() < 0.01
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 0.0)
    without = impute_alleles(packed, sites, alleles, **MODEL)
    assert np.abs(allele_share(without) - allele_share(whole)).max() > 0.01


def test_without_called_sites_the_panel_is_the_answer():
    panel, cm, sites, alleles = mosaics(65, 70, 2, seed=7)
    alleles[:] = -1
    found = allele_share(impute_alleles(haplotypes_of(panel, cm), sites, alleles, **MODEL))
    np.testing.assert_allclose(found, np.tile(panel.mean(axis=0), (2, 1)), atol=2e-5)


def test_many_haplotypes_that_all_mismatch():
    """The largest panel, a monomorphic site and the largest loss: no sum vanishes."""
    n = copying_plan.MOST_HAPLOTYPES
    panel = np.zeros((n, 8), np.int8)
    panel[: n // 3, 2] = panel[:3, 5] = 1
    cm, sites = np.arange(8) * 1e-7, np.arange(0, 8, 2)
    alleles = np.ones((1, 4), np.int8)
    found = impute_alleles(haplotypes_of(panel, cm), sites, alleles, ne=100.0, mismatch=1e-5)
    expected = oracle.impute(panel, cm, sites, alleles[0], 100.0, 1e-5)
    np.testing.assert_allclose(allele_share(found)[0], expected, atol=1e-3)


def test_a_sum_of_parts_of_a_unit_is_counted_in_finer_units():
    """Twice 20 000 haplotypes match after a long match of another, each with 0.4 of a unit."""
    n = copying_plan.MOST_HAPLOTYPES
    panel = np.zeros((n, 14), np.int8)
    panel[0, :12] = 1
    panel[1:20_001, 12] = panel[20_001:40_001, 13] = 1
    alleles, cm, mismatch = np.ones(14, np.int8), np.arange(14) * 0.01, 1e-5
    rho = np.full(14, 0.4 * n / copying_plan.UNITS)
    rho[0] = 1.0
    packed = haplotypes_of(panel, cm)
    number, exponent = copying_cpu.likelihood_loop(
        packed.rows,
        np.arange(14),
        alleles,
        rho,
        packed.counted(np.empty(0, np.int64)),
        n,
        np.float32(mismatch / (1 - mismatch)),
    )
    found = np.log(number) + exponent * np.log(2) + 14 * np.log1p(-mismatch)
    ne = -np.log1p(-rho[1]) * n / (0.04 * 0.01)
    expected = oracle.posteriors(panel, cm, alleles, ne, mismatch)[1]
    # 25.6 of the finer units are counted as 26 by every haplotype, at two sites.
    np.testing.assert_allclose(found, expected, atol=0.05)


@pytest.mark.parametrize("ne", [1e-3, 1.0, 1e3, 1e5, 1e9])
def test_probability_of_a_new_haplotype(ne):
    cm = np.cumsum([0, 1e-9, 1e-4, 0.01, 1.0, 50.0, 1e4])
    steps = np.maximum(np.diff(cm), copying_plan.LEAST_CM)
    expected = -np.expm1(-np.minimum(0.04 * ne * steps / 100, 64))
    found = copying.recombination(cm, ne, 100)
    assert found[0] == 1
    np.testing.assert_allclose(found[1:], expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 33, 64, 65, 500])
def test_likelihood_is_that_of_the_recurrence(n):
    panel, cm, sites, alleles = mosaics(n, 300, 1, seed=8, missing=0)
    packed = haplotypes_of(panel[:, sites], cm[sites])
    expected = oracle.posteriors(panel[:, sites], cm[sites], alleles[0], *MODEL.values())[1]
    rho = copying.recombination(cm[sites], MODEL["ne"], n)
    number, exponent = copying_cpu.likelihood_loop(
        packed.rows,
        np.arange(len(sites)),
        alleles[0],
        rho,
        packed.counted(np.empty(0, np.int64)),
        n,
        np.float32(1e-3 / (1 - 1e-3)),
    )
    found = np.log(number) + exponent * np.log(2) + len(sites) * np.log1p(-1e-3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_fitted_numbers_have_the_highest_likelihood():
    """On a coarse grid, by the recurrence in float64: no point around the fitted one is higher."""
    panel, cm, _, _ = mosaics(40, 300, 1, seed=9)
    packed = haplotypes_of(panel, cm)
    owner = np.arange(40) // 2
    fitted = fit.fit_model(packed, owner)
    assert fit.fit_model(packed, owner, threads=1) == fitted
    share = panel.mean(axis=0)
    common = np.flatnonzero(np.minimum(share, 1 - share) >= fit.FITTED_MAF)
    stretch = (cm[common] - cm[common[0]]) // fit.FITTED_CM
    chosen = common[np.unique(stretch, return_index=True)[1]]

    def height(ne, mismatch):
        return sum(
            oracle.posteriors(
                np.delete(panel, [k - k % 2, k - k % 2 + 1], axis=0)[:, chosen],
                cm[chosen],
                panel[k, chosen],
                ne,
                mismatch,
            )[1]
            for k in range(40)
        )

    top = height(*fitted)
    for ne, mismatch in ((10**0.25, 1), (10**-0.25, 1), (1, 10**0.5), (1, 10**-0.5)):
        assert height(fitted[0] * ne, fitted[1] * mismatch) < top


def test_own_haplotypes_are_those_of_the_sample_also_where_some_have_one():
    """A haploid first sample shifts all pairs; a sample with two equal haplotypes must not copy."""
    rng = np.random.default_rng(10)
    single = (rng.random((20, 400)) < 0.3).astype(np.int8)
    panel = np.concatenate([single[:1], np.repeat(single[1:], 2, axis=0)])
    owner = np.concatenate([[0], 1 + np.arange(38) // 2])
    packed = haplotypes_of(panel, np.arange(400) * 0.01)
    # Nothing is like anything else: the most mismatches. By pairs 0 1, 2 3, ... twins copy.
    assert fit.fit_model(packed, owner)[1] > 10 * fit.fit_model(packed, np.arange(39) // 2)[1]
