"""Quality of imputed sites, measured at hidden called genotypes."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from scenes.mosaics import make_haplotypes, make_target, prepare, write_reference

from popdesic.cohort import imputation_quality
from popdesic.cohort.accuracy_sums import squared_correlation
from popdesic.cohort.beagle import Beagle, fill_window
from popdesic.cohort.imputation_quality import (
    FOLDS,
    draw_folds,
    measure_quality,
    quality_of,
)
from popdesic.cohort.impute import write_windows
from popdesic.cohort.panel import load_panel
from popdesic.io.genotypes import MISSING

needs_beagle = pytest.mark.skipif(
    shutil.which("beagle") is None, reason="beagle is not installed; apt-get install beagle"
)
SETTINGS = Beagle(memory_mb=300)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 65])
def test_the_squared_correlation_equals_numpys(n):
    rng = np.random.default_rng(n)
    truth, imputed = rng.integers(0, 3, (2, 40, n)).astype(np.int8)
    imputed[:20] = truth[:20]
    imputed[5], imputed[6] = 2 - truth[5], 1
    which = rng.random(truth.shape) < 0.8
    which[7] = False
    found = squared_correlation(truth, imputed, which)
    for k in range(40):
        t, d = truth[k][which[k]], imputed[k][which[k]]
        expected = 0.0
        if len(t) > 1 and np.ptp(t) and np.ptp(d):
            expected = max(np.corrcoef(t, d)[0, 1], 0.0) ** 2
        assert found[k] == pytest.approx(expected, abs=1e-12), k
    assert found[5] == found[6] == found[7] == 0, "genotypes the wrong way round are worth nothing"


def test_every_genotype_of_a_measured_site_is_hidden_once_whatever_the_window(monkeypatch):
    genotypes, measured = np.zeros((90, 31), np.int8), np.arange(90) % 3 == 0
    whole = draw_folds((5, "c", "1"), 0, measured, genotypes)
    assert (whole[~measured] == -1).all()
    shares = np.bincount(whole[measured].ravel(), minlength=FOLDS) / whole[measured].size
    assert len(shares) == FOLDS and np.abs(shares - 1 / FOLDS).max() < 0.05
    monkeypatch.setattr(imputation_quality, "CHUNK_SITES", 7)
    part = draw_folds((5, "c", "1"), 13, measured[13:64], genotypes[13:64])
    np.testing.assert_array_equal(part, whole[13:64])


@pytest.mark.slow
@needs_beagle
def test_quality_tells_sites_that_neighbours_predict_from_those_that_they_do_not(tmp_path):
    truth, shown, sites = make_target(n_sites=150, n=60, missing=0.1)
    noise = np.arange(150) % 10 == 4
    rng = np.random.default_rng(6)
    truth[noise] = rng.binomial(2, 0.4, truth[noise].shape)
    shown = np.where(shown == MISSING, MISSING, truth).astype(np.int8)
    shown[11], shown[12] = truth[11], MISSING
    shown[13] = 0  # monomorphic among the called
    shown[13, :4] = MISSING
    sites.loc[140:, "chrom"] = "2"
    paths = prepare(tmp_path, shown, sites)
    windows = tmp_path / "windows.tsv"
    write_windows(load_panel(paths["panel_path"])[0], windows, window_mb=0, overlap_mb=0)
    r2 = []
    for number in (1, 2):
        for out in (tmp_path / f"q{number}.npy", tmp_path / "again.npy"):
            measure_quality(*paths.values(), windows, number, out, cohort="c", settings=SETTINGS)
        assert out.read_bytes() == (tmp_path / f"q{number}.npy").read_bytes()
        r2.append(np.load(out))
    panel = load_panel(paths["panel_path"])[0]
    rows = panel.id.str[1:].astype(int).to_numpy()
    quality = np.full(150, -1.0)
    quality[rows] = np.concatenate(r2)
    assert np.isnan(quality[11]), "nothing is missing there"
    assert (quality[[k for k in (12, 13) if k in rows]] == 0).all()
    usual = np.isin(np.arange(150), [11, 12, 13, *range(140, 150)], invert=True)
    assert np.median(quality[usual & ~noise]) > 0.8
    assert quality[usual & noise].max() < 0.4
    # The truth at genotypes that were really missing: sites above the limit are what they promise.
    filled, _, _ = fill_window(shown[:140], sites[:140], "1", SETTINGS, tmp_path)
    missing = shown[:140] == MISSING
    good = (np.nan_to_num(quality) >= 0.8)[:140]
    assert good.sum() > 60
    right = filled == truth[:140]
    assert right[missing & good[:, None]].mean() > 0.95
    assert right[missing & noise[:140, None]].mean() < 0.7


@needs_beagle
def test_sites_without_calls_take_beagles_own_estimate(tmp_path):
    _, shown, sites = make_target(n=24)
    shown[[30, 60]] = MISSING
    haplotypes = make_haplotypes(120, 160, seed=9)
    haplotypes[60] = np.random.default_rng(4).random(160) < 0.5  # nothing predicts it
    reference = write_reference(tmp_path / "reference.vcf", sites, haplotypes, "1")
    settings = Beagle(memory_mb=300, reference=reference)
    measured = (shown == MISSING).any(axis=1)
    folds = draw_folds((1, "c", "1"), 0, measured, shown)
    r2, hidden = quality_of(shown, folds, measured, sites, "1", settings, tmp_path)
    quality = np.full(120, np.nan)
    quality[measured] = r2
    assert hidden == (shown != MISSING)[measured].sum()
    dr2 = np.full(120, np.nan)
    fill_window(shown, sites, "1", settings, tmp_path, dr2=dr2)
    assert quality[30] > 3 * quality[60]
    assert (quality[[30, 60]] <= dr2[[30, 60]] + 0.05).all()
    assert quality[[30, 60]] == pytest.approx(dr2[[30, 60]], abs=0.2)
    print(quality[[30, 60]], dr2[[30, 60]])
    assert dr2[0] == 1, "Beagle's own number where some are called says nothing"


def test_without_beagle_no_site_is_good_enough(tmp_path, monkeypatch, caplog):
    _, shown, sites = make_target(40, n=10)
    paths = prepare(tmp_path, shown, sites)
    windows = tmp_path / "windows.tsv"
    write_windows(load_panel(paths["panel_path"])[0], windows, window_mb=0, overlap_mb=0)
    monkeypatch.setenv("PATH", str(tmp_path))
    out = tmp_path / "q.npy"
    measure_quality(*paths.values(), windows, 1, out, cohort="c", settings=SETTINGS)
    assert not np.nan_to_num(np.load(out)).any()
    assert "apt-get install beagle" in caplog.text
