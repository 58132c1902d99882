"""A study imputed by Beagle in windows: windows, masks, accuracy, errors before any job."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.running import finished, path_without, planned, snakemake
from support.study import CALLS, COLUMNS, FAST, make_cohorts, write_sheets, write_study

from popdesic.cohort.beagle import Beagle, impute_window
from popdesic.cohort.impute import read_windows
from popdesic.cohort.planes import load_planes
from popdesic.io.bed import open_bed, read_bim, read_fam
from popdesic.io.genotypes import unpack_bed
from popdesic.report.sections.imputation import beagle_findings

SETTINGS = {
    "method": "beagle",
    "evaluate": ["mode", "beagle"],
    "window_mb": 0.03,
}


def beagle_by_hand(prefix: Path, contigs: list[str], folder: Path) -> np.ndarray:
    """Genotypes int8 that the command `beagle` gives for these contigs of a cohort in one run."""
    bim, names = read_bim(prefix), read_fam(prefix)["sample"].tolist()
    genotypes = unpack_bed(np.array(open_bed(prefix)), len(names))
    lines = ["##fileformat=VCFv4.2", "\t".join([COLUMNS, *names])]
    for site, row in zip(bim.itertuples(), genotypes, strict=True):
        if site.chrom in contigs:
            fixed = [site.chrom, str(site.pos), site.id, site.ref, site.alt, ".", "PASS", ".", "GT"]
            lines.append("\t".join([*fixed, *(CALLS[g] for g in row)]))
    (folder / "hand.vcf").write_text("\n".join(lines) + "\n")
    command = ["beagle", "gt=hand.vcf", "out=hand", "seed=1", "nthreads=4"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with gzip.open(folder / "hand.vcf.gz", "rt") as file:
        rows = [line.split("\t")[9:] for line in file if not line.startswith("#")]
    return np.array([[int(g[0]) + int(g[2]) for g in row] for row in rows], np.int8)


@pytest.mark.skipif(shutil.which("beagle") is None, reason="beagle is not installed")
def test_windows_equal_one_run_and_the_called_mask_is_kept(tmp_path):
    cohorts = make_cohorts((16,), n_sites=240, missing=0.05)
    folder = write_study(
        tmp_path / "study", cohorts, FAST | {"impute": SETTINGS, "panel": {"min_call_rate": 0.5}}
    )
    ran = finished(snakemake(folder, "impute", "encode"))
    results = folder / "results"
    windows = read_windows(results / "impute/windows.tsv")
    assert len(windows) == 2  # one per contig: positions end at 25 kb
    assert ran["impute_window"] == ran["evaluate_imputation"] == len(windows)
    for cohort in cohorts:
        own = results / "cohorts" / cohort.name
        arguments = own / "raw", results / f"qc/{cohort.name}.samples.tsv"
        arguments += results / "panel/sites.tsv", results / "impute/windows.tsv"
        for k in range(1, len(windows) + 1):  # one run over all, with more threads
            impute_window(*arguments, k, tmp_path / "again", Beagle(threads=2, memory_mb=300))
            scattered = (results / "impute" / cohort.name / f"{k}.npy").read_bytes()
            assert (tmp_path / "again.npy").read_bytes() == scattered
        by_hand = {}
        for k, window in enumerate(windows, 1):
            filled = unpack_bed(np.load(results / f"impute/{cohort.name}/{k}.npy"), 16)
            expected = beagle_by_hand(own / "genotypes", [window.contig], tmp_path)
            np.testing.assert_array_equal(filled, expected)
            by_hand[window.contig] = expected
        # A run over all chromosomes continues the random numbers of the previous chromosome.
        both = beagle_by_hand(own / "genotypes", list(by_hand), tmp_path)
        first = next(iter(by_hand.values()))
        np.testing.assert_array_equal(both[: len(first)], first)
        planes, about = load_planes(own)
        assert about["impute"] == "beagle"
        called = np.bitwise_count(planes.words[:, 2]).sum()
        total = about["n_sites"] * len(about["samples"])
        assert total - called == about["counts"]["missing_genotypes"] > 0
    table = pd.read_csv(results / "impute/evaluation.tsv", sep="\t")
    assert set(table.method) == {"mode", "beagle"}
    hidden = table.hidden[table.by == "all"].tolist()
    assert hidden[0] == hidden[1] > 50


def test_without_beagle_the_run_goes_on(tmp_path, monkeypatch):
    """Its cohorts take the mode, accuracy is not measured, and the report says both."""
    monkeypatch.setenv("PATH", path_without(tmp_path / "commands", "beagle"))
    settings = SETTINGS | {"window_mb": 0}
    cohorts = make_cohorts((16, 14), n_sites=240, missing=0.05)
    config = FAST | {"impute": settings, "panel": {"min_call_rate": 0.5}}
    folder = write_study(tmp_path, cohorts, config)
    snakemake(folder, "encode", "impute")
    said = [finding.text for finding in beagle_findings(folder / "results", settings)]
    for text, words in zip(
        said, ("Missing genotypes were filled", "was not measured"), strict=True
    ):
        assert words in text and "apt-get install beagle" in text
    table = pd.read_csv(folder / "results/impute/evaluation.tsv", sep="\t")
    hidden = table[table.by == "all"].groupby("method").hidden.sum()
    assert hidden["mode"] > 50 and hidden["beagle"] == 0
    log = (folder / "logs/impute_window/north.1.log").read_text()
    assert "apt-get install beagle" in log
    plan = planned(snakemake(folder, "encode", "impute", "-n"))
    assert not plan, "a study is finished without Beagle"
    (tmp_path / "commands/beagle").symlink_to("/bin/true")
    plan = planned(snakemake(folder, "encode", "impute", "-n"))
    assert plan["impute_window"] == 4 and plan["evaluate_imputation"] == 4, "once it is installed"


def test_an_empty_configuration_is_all_defaults(tmp_path):
    folder = write_study(tmp_path, make_cohorts((16, 14)))
    for text in ("", "# nothing is changed\n\n", None):
        if text is None:
            (folder / "config/config.yaml").unlink()
        else:
            (folder / "config/config.yaml").write_text(text)
        plan = planned(snakemake(folder, "-n"))
        assert plan["ingest_cohort"] == 2 and plan["compute_maps"] == 1
    (folder / "config/cohorts.tsv").unlink()
    assert "config/cohorts.tsv does not exist" in snakemake(folder, "-n", fails=True)


def test_a_missing_reference_is_found_before_any_job(tmp_path):
    settings = {"method": "beagle", "reference": "panel/{contig}.vcf.gz"}
    folder = write_study(tmp_path, make_cohorts((16, 14)), FAST | {"impute": settings})
    output = snakemake(folder, "-n", fails=True)
    assert "impute.reference is 'panel/{contig}.vcf.gz'" in output
    write_sheets(folder, make_cohorts((16, 14)), FAST | {"impute": {"method": "mode"}})
    assert "imput" not in snakemake(folder, "-n")  # no job is planned without imputation
