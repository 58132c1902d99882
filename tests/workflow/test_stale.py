"""Replaced sources and copied results: no old result appears under a new label."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import contents, finished, planned, snakemake
from support.study import FAST, Cohort, make_cohorts, write_sheets, write_study

from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.tables import read_table
from popdesic.study.snakemake_internals import NAME_MAX, snakemake_path

DAY = 86_400 * 10**9
#: A table with labels of the sheet, which shows whose results these are.
TARGETS = ["distance", "results/embedding/coordinates/pca.tsv"]


def cohorts() -> list[Cohort]:
    return make_cohorts((8, 7), n_sites=220)


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """Two cohorts, run up to the distances and their PCA."""
    folder = write_study(tmp_path_factory.mktemp("done"), cohorts())
    snakemake(folder, *TARGETS)
    return folder


@pytest.fixture
def study(done, tmp_path) -> Path:
    """A copy of the study with all dates and Snakemake's records."""
    return Path(shutil.copytree(done, tmp_path / "study", copy_function=shutil.copy2))


def put(folder: Path, cohort: Cohort) -> None:
    """Replace a cohort's file by one with an older date, as `cp -p` and `rsync -t` do."""
    path = folder / cohort.path
    date = path.stat().st_mtime_ns - DAY
    write_study(folder / "new", [cohort])
    os.utime(folder / "new" / cohort.path, ns=(date, date))
    shutil.move(folder / "new" / cohort.path, path)
    shutil.rmtree(folder / "new")


def forget(folder: Path) -> None:
    shutil.rmtree(folder / ".snakemake")


def plan(folder: Path) -> dict[str, int]:
    return planned(snakemake(folder, "-n", *TARGETS))


def sheet_and_fam_agree(folder: Path) -> bool:
    sheet = read_table(folder / "config/samples.tsv")
    return all(
        {line.split()[1] for line in (folder / f"results/cohorts/{name}/raw.fam").open()}
        == set(rows["sample"])
        for name, rows in sheet.groupby("cohort")
    )


@pytest.mark.parametrize("forgotten", [False, True])
def test_nothing_changed(study, forgotten):
    if forgotten:
        forget(study)
    assert plan(study) == {}
    # Restoring the same file with its date changes nothing.
    path = study / "data/north.vcf"
    shutil.copy2(path, study / "copy.vcf")
    (study / "copy.vcf").rename(path)
    assert plan(study) == {}


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_source_replaced_by_an_older_file_is_decoded_again(study, tmp_path, forgotten):
    """Other genotypes of the same people, of the same size."""
    old = contents(study)
    north = cohorts()[0]
    north = replace(north, genotypes=north.genotypes[::-1].copy())
    put(study, north)
    if forgotten:
        forget(study)
    jobs = plan(study)
    assert (jobs["ingest_cohort"], jobs["join_rows"]) == (1, 1)
    if forgotten:
        return
    snakemake(study, *TARGETS)
    (tmp_path / "north.vcf").write_text(north.vcf())
    ingest_cohort(tmp_path / "north.vcf", tmp_path / "raw")
    raw = study / "results/cohorts/north/raw.bed"
    assert raw.read_bytes() == (tmp_path / "raw.bed").read_bytes()
    assert contents(study)["distance/squared.npy"] != old["distance/squared.npy"]
    assert plan(study) == {}


def test_other_samples_in_file_and_sheet_reach_the_results(study):
    north, south = cohorts()
    north = replace(north, samples=[f"K{k:02d}" for k in range(8)])
    put(study, north)
    write_sheets(study, [north, south])
    assert plan(study)["ingest_cohort"] == 1
    forget(study)
    assert not sheet_and_fam_agree(study)
    snakemake(study, *TARGETS)
    assert sheet_and_fam_agree(study)
    names = read_table(study / "results/distance/samples.tsv")["sample"].tolist()
    assert names == [*north.samples, *south.samples]
    assert read_table(study / "results/embedding/coordinates/pca.tsv")["sample"].tolist() == names


def relabel(folder: Path) -> None:
    sheet = folder / "config/samples.tsv"
    sheet.write_text(sheet.read_text().replace("\tP\t", "\tM\t"))


@pytest.fixture(scope="module")
def relabelled(done, tmp_path_factory) -> tuple[Path, dict[str, int]]:
    """A study with another sheet into which only `results` was copied, and the jobs that ran."""
    folder = write_study(tmp_path_factory.mktemp("relabelled"), cohorts())
    for name in ("data", "results"):
        shutil.copytree(done / name, folder / name, copy_function=shutil.copy2, dirs_exist_ok=True)
    relabel(folder)
    return folder, finished(snakemake(folder, *TARGETS))


def test_a_changed_sheet_changes_copied_results(done, relabelled):
    folder, ran = relabelled
    assert ran["ingest_cohort"] == 2
    for raw in done.glob("results/cohorts/*/raw.bed"):  # not decoded again
        assert (folder / raw.relative_to(done)).stat().st_mtime_ns == raw.stat().st_mtime_ns
    tables = [read_table(path) for path in sorted(folder.glob("results/qc/*.samples.tsv"))]
    assert {name for table in tables for name in table.population} == {"M", "Q"}
    assert plan(folder) == {}


def test_results_copied_over_others_are_recomputed(done, relabelled, tmp_path):
    """Snakemake's folder exists, but describes the results that were here before."""
    folder = Path(shutil.copytree(relabelled[0], tmp_path / "x", copy_function=shutil.copy2))
    shutil.rmtree(folder / "results")
    shutil.copytree(done / "results", folder / "results", copy_function=shutil.copy2)
    assert plan(folder)["ingest_cohort"] == 2


def test_a_changed_configuration_changes_copied_results(study):
    write_sheets(study, cohorts(), FAST | {"distance": {"metric": "manhattan"}})
    forget(study)
    jobs = plan(study)
    assert jobs["measure_row"] == 2
    assert "ingest_cohort" not in jobs


def test_results_without_records_are_recomputed(study):
    """Also if their record is damaged; files that no rule makes are left alone."""
    forget(study)
    (study / "results/qc/.north.sites.tsv.record").unlink()
    damaged = study / "results/embedding/coordinates/.pca.tsv.record"
    damaged.write_text(damaged.read_text().replace("compute_pca", "compute_pcb"))
    (study / "results/notes.txt").write_text("mine")
    output = snakemake(study, *TARGETS)
    assert "2 results (the first is results/" in output
    assert "have no record of their inputs" in output
    ran = finished(output)
    assert (ran["ingest_cohort"], ran["compute_pca"]) == (1, 1)
    assert plan(study) == {}
    assert (study / "results/notes.txt").read_text() == "mine"


def test_records_are_restored_unchanged(study):
    kept = {p.name: p.read_text() for p in (study / ".snakemake/metadata").iterdir()}
    shutil.rmtree(study / ".snakemake/metadata")
    snakemake(study, "-n")
    assert {p.name: p.read_text() for p in (study / ".snakemake/metadata").iterdir()} == kept
    assert json.loads(next(iter(kept.values())))["params"]


def test_long_names_of_records_equal_those_of_snakemake(tmp_path):
    result = "results/" + "n" * 240 + "/x.tsv"
    path = snakemake_path(tmp_path, "metadata", result)
    assert max(len(part) for part in path.parts) <= NAME_MAX
    assert len(path.relative_to(tmp_path / ".snakemake/metadata").parts) == 2


def test_one_file_per_chromosome_gives_the_results_of_one_file(done, tmp_path):
    """Byte for byte; only the names and sizes of the sources differ."""
    folder = write_study(tmp_path / "study", cohorts())
    north = cohorts()[0]
    for contig in ("1", "2"):
        rows = [k for k, site in enumerate(north.sites) if site[0] == contig]
        part = replace(north, sites=[north.sites[k] for k in rows], genotypes=north.genotypes[rows])
        (folder / f"data/chr{contig}.vcf").write_text(part.vcf())
    (folder / "data/north.vcf").unlink()
    sheet = folder / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("data/north.vcf", "data/chr{contig}.vcf"))
    output = snakemake(folder, *TARGETS)
    assert "input: data/chr1.vcf, data/chr2.vcf" in output or "from data/chr{contig}" in output
    found, expected = contents(folder), contents(done)
    about = "cohorts/north/raw.json"
    assert {n for n in expected if found[n] != expected[n]} == {about}
    assert json.loads((folder / "results" / about).read_text())["source"] == "chr1.vcf, chr2.vcf"
    # A chromosome added later is decoded with the others.
    (folder / "data/chr3.vcf").write_text((folder / "data/chr2.vcf").read_text())
    assert plan(folder)["ingest_cohort"] == 1
