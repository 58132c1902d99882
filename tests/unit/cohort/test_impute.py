"""Imputation: windows, what Beagle cannot impute, the called mask, and measured accuracy."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from scenes.mosaics import make_haplotypes, make_sites, make_target, prepare, write_reference
from support.study import make_cohorts, write_raw

from popdesic.cohort.accuracy import (
    by_mode,
    evaluate_window,
    hidden,
    measures,
    summarize_evaluation,
)
from popdesic.cohort.beagle import Beagle, fill_window, heap_mb, impute_window
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.impute import check_files, find_contig_file, plan_windows, write_windows
from popdesic.cohort.panel import load_panel
from popdesic.cohort.planes import load_planes
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.core.files import read_json
from popdesic.io.genotypes import MISSING, unpack_bed

needs_beagle = pytest.mark.skipif(
    shutil.which("beagle") is None, reason="beagle is not installed; apt-get install beagle"
)
# --- windows --------------------------------------------------------------------------------


@pytest.mark.parametrize("window_mb", [0, 0.05, 0.3, 1, 50])
@pytest.mark.parametrize("overlap_mb", [0, 0.1])
def test_windows_cover_every_site_once(window_mb, overlap_mb):
    panel = pd.concat([make_sites(n, c) for c, n in (("2", 70), ("chrX|a", 1), ("3", 33))])
    panel = panel.reset_index(drop=True)
    windows, table = plan_windows(panel, window_mb, overlap_mb)
    assert [k for w in windows for k in range(w.first, w.last)] == list(range(len(panel)))
    for w, row in zip(windows, table.itertuples(), strict=True):
        assert set(panel.chrom[w.start : w.stop]) == {w.contig}
        pos = panel.pos.to_numpy()
        if window_mb:
            size, wing = window_mb * 1e6, overlap_mb * 1e6
            low = (pos[w.first] - 1) // size * size + 1
            near = (panel.chrom == w.contig) & (pos >= low - wing) & (pos <= low - 1 + size + wing)
            assert list(np.flatnonzero(near)) == list(range(w.start, w.stop))
        else:
            assert (w.start, w.stop) == (w.first, w.last)
        assert (row.start, row.end) == (pos[w.first], pos[w.last - 1])


def test_files_of_contigs_are_found_under_either_name(tmp_path):
    (tmp_path / "ref.chr22.vcf").touch()
    (tmp_path / "all.vcf").touch()
    assert find_contig_file("ref.{contig}.vcf", "22", tmp_path) == "ref.chr22.vcf"
    assert find_contig_file("ref.{contig}.vcf", "chr22", tmp_path) == "ref.chr22.vcf"
    assert find_contig_file("ref.{contig}.vcf", "21", tmp_path) is None
    assert find_contig_file("all.vcf", "21", tmp_path) == "all.vcf"
    check_files({"reference": "ref.{contig}.vcf", "map": ""}, tmp_path, "c")
    with pytest.raises(UserError, match=r"genetic_map is 'm\.txt'"):
        check_files({"reference": "", "map": "m.txt"}, tmp_path, "c")


# --- Beagle ---------------------------------------------------------------------------------


@needs_beagle
def test_beagle_keeps_what_is_called_and_beats_the_mode(tmp_path):
    truth, shown, sites = make_target()
    results = [fill_window(shown, sites, "1", Beagle(threads=t), tmp_path) for t in (1, 2)]
    filled, dosage, by_beagle = results[0]
    for other, first in zip(results[1], results[0], strict=True):
        np.testing.assert_array_equal(other, first)
    called = shown != MISSING
    np.testing.assert_array_equal(filled[called], truth[called])
    np.testing.assert_array_equal(dosage, filled)
    # Complete sites need no imputation; Beagle has filled all others.
    np.testing.assert_array_equal(by_beagle[:, 0], ~called.all(axis=1))
    mode = np.broadcast_to(sites["mode"].to_numpy()[:, None], truth.shape)
    wrong = (filled != truth)[~called].mean()
    assert wrong < 0.5 * (mode != truth)[~called].mean()
    assert not list(tmp_path.iterdir())  # no temporary files are left


@needs_beagle
@pytest.mark.parametrize("contig", ["chr7", "7"])
def test_reference_with_swapped_alleles_and_the_other_contig_name(tmp_path, contig):
    truth, shown, sites = make_target()
    absent = np.arange(3, 120, 10)  # the cohort lacks these sites
    only_cohort = np.arange(5, 120, 10)  # the reference lacks these
    shown[absent] = MISSING
    haplotypes = make_haplotypes(120, 60, seed=9)
    swapped = np.arange(3, 120, 4)
    there = sites.copy()
    there.loc[swapped, ["ref", "alt"]] = sites.loc[swapped, ["alt", "ref"]].to_numpy()
    haplotypes[swapped] = 1 - haplotypes[swapped]
    keep = np.setdiff1d(np.arange(120), only_cohort)
    reference = write_reference(
        tmp_path / "reference.vcf", there.iloc[keep], haplotypes[keep], contig
    )
    filled, dosage, by_beagle = fill_window(
        shown, sites, "7", Beagle(reference=reference), tmp_path
    )
    called = shown != MISSING
    np.testing.assert_array_equal(filled[called], truth[called])
    assert by_beagle[~called.all(axis=1)].all()
    assert (filled[absent] == truth[absent]).mean() > 0.7
    assert np.abs(dosage[absent] - truth[absent]).mean() < 0.4
    assert (filled == truth)[only_cohort].mean() > 0.9


@needs_beagle
def test_windows_that_beagle_cannot_impute_take_the_mode(tmp_path):
    _, shown, sites = make_target()
    for chosen, who in (
        (slice(4, 5), slice(None)),  # one site
        (slice(0, 120), slice(0, 1)),  # one sample
    ):
        part, rows = shown[chosen, who].copy(), sites.iloc[chosen]
        part[0, 0] = MISSING
        filled, _, by_beagle = fill_window(part, rows, "1", Beagle(), tmp_path)
        mode = np.broadcast_to(rows["mode"].to_numpy()[:, None], part.shape)
        np.testing.assert_array_equal(filled, np.where(part == MISSING, mode, part))
        assert not by_beagle.any()
    shown[7] = MISSING  # no sample is called there
    filled, _, by_beagle = fill_window(shown, sites, "1", Beagle(), tmp_path)
    assert (filled[7] == sites["mode"][7]).all()
    assert not by_beagle[7]
    assert by_beagle[6] or (shown[6] != MISSING).all()
    # Beagle treats two sites at one position as one position.
    two = sites.iloc[[0, 1]].assign(pos=10_000)
    _, _, by_beagle = fill_window(shown[:2], two, "1", Beagle(), tmp_path)
    assert not by_beagle.any()


@needs_beagle
def test_contigs_absent_from_the_reference_are_imputed_without_it(tmp_path):
    _, shown, sites = make_target()
    reference = write_reference(
        tmp_path / "reference.vcf", sites, make_haplotypes(120, 60, seed=9), "5"
    )
    (tmp_path / "map.txt").write_text("5 . 0 1\n5 . 3 3000000\n")
    alone = fill_window(shown, sites, "6", Beagle(), tmp_path)
    settings = Beagle(reference=reference, map=tmp_path / "map.txt")
    for a, b in zip(alone, fill_window(shown, sites, "6", settings, tmp_path), strict=True):
        np.testing.assert_array_equal(a, b)


@needs_beagle
def test_references_that_beagle_cannot_use_give_a_one_sentence_error(tmp_path):
    _, shown, sites = make_target(40)
    haplotypes = make_haplotypes(40, 8, seed=2)
    path = write_reference(tmp_path / "r.vcf", sites, haplotypes, "1")
    text = path.read_text()
    for broken, words in (
        (text.replace("|", "/"), "is not phased"),
        (text.replace("0|0", ".|0", 1), "missing genotype"),
        ("nonsense\n", "is not a VCF"),
    ):
        path.write_text(broken)
        with pytest.raises(UserError, match=words):
            fill_window(shown, sites, "1", Beagle(reference=path), tmp_path)


def test_without_beagle_the_mode_is_used_and_a_warning_says_so(tmp_path, monkeypatch, caplog):
    _, shown, sites = make_target(40)
    monkeypatch.setenv("PATH", str(tmp_path))
    filled, dosage, by_beagle = fill_window(shown, sites, "1", Beagle(), tmp_path)
    mode = sites["mode"].to_numpy()[:, None]
    np.testing.assert_array_equal(filled, np.where(shown == MISSING, mode, shown))
    np.testing.assert_array_equal(dosage, filled)
    assert not by_beagle.any()
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 1 and "apt-get install beagle" in said[0]


@needs_beagle
def test_the_error_message_of_beagle_is_passed_on(tmp_path):
    _, shown, sites = make_target(40)
    (tmp_path / "map.txt").write_text("1 . 5 1\n1 . 5 900000\n")
    with pytest.raises(UserError, match=r"Beagle stopped on contig '1': .*same genetic position"):
        fill_window(shown, sites, "1", Beagle(map=tmp_path / "map.txt"), tmp_path)


# --- a cohort -------------------------------------------------------------------------------


@needs_beagle
def test_cohort_by_windows_keeps_the_called_mask(tmp_path):
    truth, shown, sites = make_target(n_sites=150)
    sites.loc[100:148, "chrom"] = "2"
    sites.loc[149, "chrom"] = "Un_1"  # a contig of one site
    paths = prepare(tmp_path, shown, sites)
    panel, _ = load_panel(paths["panel_path"])
    windows = write_windows(panel, tmp_path / "windows.tsv", window_mb=1, overlap_mb=0.4)
    assert len(windows) > 3
    for k in range(1, len(windows) + 1):
        impute_window(*paths.values(), tmp_path / "windows.tsv", k, tmp_path / f"w{k}", Beagle())
    imputed = [tmp_path / f"w{k}.npy" for k in range(1, len(windows) + 1)]
    out = tmp_path / "out"
    encode_cohort(*paths.values(), out, impute="beagle", cohort="c", imputed=imputed)
    planes, about = load_planes(out)
    bits = np.unpackbits(
        np.ascontiguousarray(planes.words).view(np.uint8), axis=2, bitorder="little"
    )[:, :, : len(sites)].transpose(1, 2, 0)
    filled = np.concatenate([unpack_bed(np.load(path), shown.shape[1]) for path in imputed])
    np.testing.assert_array_equal(bits[0] + bits[1], filled)
    np.testing.assert_array_equal(bits[2], shown != MISSING)
    assert ((bits[0] + bits[1]) == truth)[shown == MISSING].mean() > 0.7
    assert about["counts"]["missing_genotypes"] == (shown == MISSING).sum()
    with pytest.raises(UserError, match="another panel"):
        encode_cohort(*paths.values(), out, impute="beagle", cohort="c", imputed=imputed[:-1])


# --- accuracy -------------------------------------------------------------------------------


def test_the_hidden_genotypes_do_not_depend_on_the_windows():
    whole = hidden(0.3, 5, "c", "1", 0, 100, 7)
    assert 0.2 < whole.mean() < 0.4
    for first, last in ((0, 1), (13, 77), (99, 100)):
        part = hidden(0.3, 5, "c", "1", first, last - first, 7)
        np.testing.assert_array_equal(part, whole[first:last])
    assert (hidden(0.3, 6, "c", "1", 0, 100, 7) != whole).any()
    assert (hidden(0.3, 5, "c", "2", 0, 100, 7) != whole).any()


def test_accuracy_of_the_mode_equals_counting_by_hand(tmp_path):
    _, shown, sites = make_target(n_sites=90, n=15, seed=8)
    sites.loc[60:, "chrom"] = "2"
    paths = prepare(tmp_path, shown, sites)
    panel, _ = load_panel(paths["panel_path"])
    arguments = {"cohort": "c", "share": 0.2, "seed": 3}
    arguments["imputers"] = {"mode": by_mode}
    counts = evaluate_window(*paths.values(), None, None, tmp_path / "all.npz", **arguments)
    samples = {"c": paths["qc_samples"]}
    table = summarize_evaluation(
        {"c": [tmp_path / "all.npz"]}, samples, ["mode"], tmp_path / "t.tsv"
    )
    mask = np.concatenate([hidden(0.2, 3, "c", c, 0, n, 15) for c, n in (("1", 60), ("2", 30))]) & (
        shown != MISSING
    )
    truth, guess = shown[mask], np.broadcast_to(panel["mode"].to_numpy()[:, None], mask.shape)[mask]
    either = (truth > 0) | (guess > 0)
    row = table[table.by == "all"].iloc[0]
    assert (row.hidden, counts["hidden"]) == (mask.sum(), mask.sum())
    assert row.concordance == pytest.approx((truth == guess).mean())
    assert row.nonref_concordance == pytest.approx((truth == guess)[either].mean())
    assert row.dosage_r2 == pytest.approx(np.corrcoef(truth, guess)[0, 1] ** 2)
    for by in ("maf", "sample"):
        assert table[table.by == by].hidden.sum() == mask.sum()
    # Windows with flanks give the same sums, wherever they are cut.
    windows = write_windows(panel, tmp_path / "windows.tsv", window_mb=0.5, overlap_mb=0.2)
    parts = []
    for k in range(1, len(windows) + 1):
        parts.append(tmp_path / f"{k}.npz")
        evaluate_window(*paths.values(), tmp_path / "windows.tsv", k, parts[-1], **arguments)
    again = summarize_evaluation({"c": parts}, samples, ["mode"], tmp_path / "t2.tsv")
    pd.testing.assert_frame_equal(again, table)


def test_accuracy_without_hidden_genotypes_is_nan():
    n, *others = measures(np.zeros(9))
    assert n == 0 and np.isnan(others).all()


def test_a_sample_without_calls_on_the_panel_is_left_out_before_beagle_runs(tmp_path, monkeypatch):
    cohort = make_cohorts((6,), n_sites=60, missing=0)[0]
    cohort.genotypes[:30, 2] = MISSING  # called, but at no site of the panel
    raw = write_raw(tmp_path / "north" / "raw", cohort)
    summarize_cohort(raw, {}, tmp_path / "sites", tmp_path / "samples", min_sample_call_rate=0)
    sites = pd.DataFrame(cohort.sites[:30], columns=["chrom", "pos", "id", "ref", "alt"])
    table = sites.assign(af=0.5, mode=1, n_called=6).to_csv(sep="\t", index=False)
    (tmp_path / "panel.tsv").write_text(f"# panel abc, 30 sites\n{table}")
    write_windows(
        load_panel(tmp_path / "panel.tsv")[0], tmp_path / "windows", window_mb=0, overlap_mb=0
    )
    monkeypatch.setenv("PATH", "")  # no Beagle
    arguments = raw, tmp_path / "samples", tmp_path / "panel.tsv", tmp_path / "windows", 1
    counts = impute_window(*arguments, tmp_path / "out", Beagle())
    assert counts["missing"] == 0 and np.load(tmp_path / "out.npy").shape == (30, 2)
    encoded = encode_cohort(
        *arguments[:3], tmp_path, impute="beagle", cohort="c", imputed=[tmp_path / "out.npy"]
    )
    assert (encoded["samples"], encoded["samples_without_calls"]) == (5, 1)
    cohort.genotypes[0, 2] = 1
    write_raw(raw, cohort)
    cohort.genotypes[1, 3] = MISSING
    write_raw(raw, cohort)
    counts = impute_window(*arguments, tmp_path / "out", Beagle())
    assert counts["filled_by_beagle"] == 0 < counts["filled_with_mode"]
    assert "no command 'beagle'" in read_json(tmp_path / "out.json")["missing"]


def test_a_profile_that_gives_a_job_more_gives_java_more():
    assert [heap_mb(mb) for mb in (4300, 16_000)] == [4000, 12_000]
