"""Stages that read genotypes imputed by Beagle: scans, LD, PCA and exports of a whole run."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.mosaics import make_haplotypes, make_sites
from support.running import finished, planned, snakemake, snapshot
from support.study import FAST, Cohort, write_sheets, write_study

from popdesic.__main__ import main
from popdesic.core.files import read_json
from popdesic.epistasis.reorder import genotypes_of_planes, read_reordered
from popdesic.io.bed import open_bed, read_fam
from popdesic.io.genotypes import MISSING, unpack_bed

N_SITES, SIZES = 120, {"north": 40, "south": 36, "west": 20}
CONFIG = FAST | {
    "distance": {"min_called": 10},
    "impute": {
        "method": "beagle",
        "min_r2": 0.7,
        "stages": ["pca", "ld", "export", "epistasis"],
    },
    "close_kinship": 0,
    "qc": {"min_sample_call_rate": 0.5},
    "panel": {"min_call_rate": 0.5, "min_maf": 0.02},
    "embedding": FAST["embedding"] | {"ld_prune": []},
    "compare": {"analyses": ["ld"], "ld": {"window": "2000 kb"}},
    "export": {"formats": ["vcf", "plink", "zarr"]},
    "epistasis": {"order": [2], "permutations": 0, "min_distance_bp": 0, "max_r2": 1},
}
TARGETS = [
    "results/epistasis/sites.tsv",
    "results/embedding/coordinates/pca.tsv",
    "results/compare/ld.tsv.gz",
    "export",
]


def make_cohorts() -> tuple[list[Cohort], dict[str, np.ndarray]]:
    """Cohorts with missing genotypes, and the truth of each by name: int8 (n_sites, n_samples)."""
    sites = make_sites(N_SITES)
    sites.loc[N_SITES // 2 :, "chrom"] = "2"
    rows = [(r.chrom, int(r.pos), f"s{k}", r.ref, r.alt) for k, r in enumerate(sites.itertuples())]
    cohorts, truths = [], {}
    for seed, (name, size) in enumerate(SIZES.items()):
        haplotypes = make_haplotypes(N_SITES, 2 * size, seed)
        truth = (haplotypes[:, ::2] + haplotypes[:, 1::2]).astype(np.int8)
        noise = np.random.default_rng(seed)
        truth[5::10] = noise.binomial(2, 0.4, truth[5::10].shape)  # nothing predicts these sites
        shown = truth.copy()
        shown[noise.random(truth.shape) < 0.08] = MISSING
        names = [f"{name[0].upper()}{k:02d}" for k in range(size)]
        cohorts.append(Cohort(name, names, rows, shown, founder=name != "west"))
        truths[name] = truth
    return cohorts, truths


def genotypes(folder: Path, cohort: str, stem: str) -> np.ndarray:
    prefix = folder / "results/cohorts" / cohort / stem
    return unpack_bed(np.array(open_bed(prefix)), len(read_fam(prefix)))


def samples_of(folder: Path, cohort: str) -> list[str]:
    return read_fam(folder / "results/cohorts" / cohort / "genotypes")["sample"].tolist()


def panel_rows(folder: Path) -> np.ndarray:
    """Rows of the panel's sites among all."""
    table = pd.read_csv(folder / "results/panel/sites.tsv", sep="\t", comment="#")
    return table.id.str[1:].astype(int).to_numpy()


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> dict:
    if shutil.which("beagle") is None:
        pytest.skip("beagle is not installed; apt-get install beagle")
    cohorts, truths = make_cohorts()
    folder = write_study(tmp_path_factory.mktemp("imputed"), cohorts, CONFIG)
    write_sheets(folder, cohorts[:2], CONFIG)
    ran = finished(snakemake(folder, *TARGETS))
    return {"folder": folder, "cohorts": cohorts, "truths": truths, "ran": ran}


def test_called_genotypes_stay_and_good_sites_are_filled(study):
    folder = study["folder"]
    assert study["ran"]["fill_calls"] == 2 and study["ran"]["rate_imputation"] == 4
    rows = panel_rows(folder)
    for name in ("north", "south"):
        called, imputed = (genotypes(folder, name, stem) for stem in ("genotypes", "imputed"))
        parts = [folder / f"results/impute/{{}}{name}/{k}.npy" for k in (1, 2)]
        by_beagle = np.concatenate([np.load(str(p).format("")) for p in parts])
        r2 = np.concatenate([np.load(str(p).format("quality/")) for p in parts])
        good = np.nan_to_num(r2)[:, None] >= 0.7
        missing = called == MISSING
        every = unpack_bed(by_beagle, called.shape[1])
        np.testing.assert_array_equal(imputed, np.where(missing & good, every, called))
        filled = missing & good
        assert filled.sum() > 100
        right = imputed == study["truths"][name][rows]
        assert right[filled].mean() > 0.9, "the truth at genotypes that were missing"
        noise = rows % 10 == 5
        assert not filled[noise].any(), "what nothing predicts stays missing"
        counts = read_json(folder / f"results/cohorts/{name}/imputed.json")["counts"]
        assert counts["filled"] == filled.sum() and counts["missing"] == missing.sum()


def test_every_stage_reads_them(study):
    folder = study["folder"]
    whole = np.concatenate([genotypes(folder, n, "imputed") for n in ("north", "south")], axis=1)
    names = [name for n in ("north", "south") for name in samples_of(folder, n)]
    words, sites, samples = read_reordered(folder / "results/reorder")
    n_cases = int((samples["class"] == "case").sum())
    scanned = genotypes_of_planes(words, sites, len(samples) - n_cases, n_cases)
    place = pd.read_csv(folder / "results/panel/sites.tsv", sep="\t", comment="#").id.tolist()
    order = [place.index(name) for name in sites.id], [names.index(s) for s in samples["sample"]]
    np.testing.assert_array_equal(scanned, whole[np.ix_(*order)])
    with gzip.open(folder / "results/compare/ld.tsv.gz", "rt") as file:
        assert "founders; missing calls imputed" in file.readline()
        pairs = pd.read_csv(file, sep="\t")
    for row in pairs.head(40).itertuples():
        both = (whole[[place.index(row.id_a), place.index(row.id_b)]] >= 0).all(axis=0)
        assert row.called == both.sum()
    with gzip.open(folder / "results/export/panel.vcf.gz", "rt") as file:
        lines = file.read().splitlines()
    assert "##popdesic_genotypes=missing calls imputed where r2 is at least 0.7" in lines
    text = [line.split("\t")[9:] for line in lines if not line.startswith("#")]
    values = {"0/0": 0, "0/1": 1, "1/1": 2, "./.": MISSING}
    np.testing.assert_array_equal([[values[g] for g in row] for row in text], whole)
    exported = unpack_bed(np.array(open_bed(folder / "results/export/panel")), whole.shape[1])
    np.testing.assert_array_equal(exported, whole)
    attributes = read_json(folder / "results/export/panel.vcz/.zattrs")
    assert attributes["popdesic_genotypes"].endswith("at least 0.7")
    axes = np.load(folder / "results/embedding/axes.npz")
    known = np.ma.masked_less(whole[axes["sites"]], 0)
    np.testing.assert_allclose(known.mean(axis=1) / 2, axes["af"], rtol=1e-12)


def test_check_and_plan_say_which_genotypes_results_rest_on(study, capsys, monkeypatch):
    said = "Missing calls are imputed for epistasis scans, LD, PCA and exports of the panel, "
    said += "where r² is at least 0.7"
    for command in ("check", "plan"):
        main([command, str(study["folder"])])
        assert said in capsys.readouterr().out, command


def test_the_key_and_the_limit_rerun_what_they_change_and_nothing_else(study):
    folder, cohorts = study["folder"], study["cohorts"][:2]
    assert not planned(snakemake(folder, *TARGETS, "-n"))
    others = {"stages": ["pca", "ld", "export"]}
    write_sheets(folder, cohorts, CONFIG | {"impute": CONFIG["impute"] | others})
    plan = planned(snakemake(folder, *TARGETS, "-n"))
    assert plan["plan_epistasis"] == 1 and plan["scan_sites"] == 1
    assert not plan.keys() & {"measure_ld", "define_axes", "fill_calls", "export_panel"}
    write_sheets(folder, cohorts, CONFIG | {"impute": CONFIG["impute"] | {"min_r2": 0.9}})
    plan = planned(snakemake(folder, *TARGETS, "-n"))
    assert plan["fill_calls"] == 2 and plan["measure_ld"] == plan["export_panel"] == 1
    assert not plan.keys() & {"rate_imputation", "impute_window", "encode_cohort"}
    write_sheets(folder, cohorts, CONFIG)


def test_a_newcomer_changes_no_value_of_a_founder(study):
    folder, before = study["folder"], snapshot(study["folder"])
    write_sheets(folder, study["cohorts"], CONFIG)
    ran = finished(snakemake(folder, "export", "results/embedding/coordinates/pca.tsv"))
    assert ran["fill_calls"] == 1 and ran["rate_imputation"] == 2, "the newcomer's own"
    after = snapshot(folder)
    kept = [
        name
        for name in before
        if name.startswith(("cohorts/north/", "cohorts/south/", "impute/", "embedding/axes"))
    ]
    assert len(kept) > 20
    assert {name: before[name] for name in kept} == {name: after[name] for name in kept}
    called, imputed = (genotypes(folder, "west", stem) for stem in ("genotypes", "imputed"))
    np.testing.assert_array_equal(imputed[called >= 0], called[called >= 0])
    assert (imputed == MISSING).sum() < (called == MISSING).sum()


def test_a_study_without_imputation_is_refused_before_any_job(tmp_path):
    folder = write_study(tmp_path, make_cohorts()[0], FAST | {"impute": {"stages": ["epistasis"]}})
    output = snakemake(folder, "-n", fails=True)
    assert "impute.stages has 'epistasis', but impute.method is 'mode'" in output
    assert "Job stats" not in output
