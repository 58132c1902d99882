"""The stage run by Snakemake: its files, a new cohort, a new label, and none of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.running import finished, planned, snakemake
from support.study import FAST, make_cohorts, write_sheets, write_study

from popdesic.core.files import read_json
from popdesic.core.tables import read_table

RULES = {
    "measure_population",
    *("measure_local_structure", "fit_ancestry", "project_ancestry"),
}
CONFIG = {
    **FAST,
    "panel": {"min_maf": 0.2},
    "population": {
        "analyses": ["diversity", "differentiation", "f_statistics", "runs", "local", "ancestry"],
        "block": "5 kb",
        "roh": {"min_sites": 20, "min_kb": 1},
        "ancestry": {"components": [1, 2]},
    },
    "export": {"formats": ["auspice"]},
}
FILES = {
    *("summary.json", "samples.tsv", "populations.tsv", "spectrum.tsv", "pairs.tsv", "blocks.tsv"),
    *("tree.nwk", "f3.tsv", "f4.tsv", "f2_blocks.rds", "runs.tsv", "consensus.tsv"),
    *("local_pca.tsv", "local_pca.json"),
    *("ancestry.tsv", "ancestry_validation.tsv", "ancestry_over_k.tsv", "ancestry.json"),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    return write_study(tmp_path_factory.mktemp("populations"), make_cohorts((16, 14)), CONFIG)


def test_tables_and_figures(study):
    ran = finished(snakemake(study, "population"))
    assert set(ran) >= RULES
    folder = study / "results/population"
    assert {
        path.name for path in folder.iterdir() if path.is_file() and path.name[0] != "."
    } == FILES
    about = read_json(folder / "summary.json")
    assert (about["populations"], about["people"]) == (2, 30) and about["blocks"] > 5
    # Diversity rests on the sites beside the panel too.
    beside = len((study / "results/panel/further.tsv").read_text().splitlines()) - 2
    assert beside > 20 and about["diversity_sites"] == about["sites"] + beside
    assert set(read_table(folder / "populations.tsv").sites) == {str(about["diversity_sites"])}
    assert set(read_table(folder / "pairs.tsv").sites) == {str(about["sites"])}
    assert read_table(folder / "populations.tsv").people.tolist() == ["15", "15"]
    assert float(read_table(folder / "pairs.tsv").fst[0]) > 0.02
    for name in ("diversity", "spectrum", "fst", "tracks", "f", "local", "ancestry"):
        assert (study / f"results/figures/population_{name}.svg").stat().st_size > 700
    # The page waits for them.
    assert "write_report" in planned(snakemake(study, "-n"))
    assert not RULES & set(planned(snakemake(study, "-n")))


def test_trees_for_auspice(study):
    snakemake(study, "export")
    folder = study / "results/export/auspice"
    samples, populations = (read_json(folder / f"{n}.json") for n in ("samples", "populations"))
    assert str(samples).count("'sample': {'value'") == 30
    assert "warning" in populations["meta"], "two populations have no tree"
    assert {"P", "Q"} == {node["name"] for node in populations["tree"]["children"]}


def test_a_new_cohort_counts_itself_alone(study):
    counts = study / "results/population/cohorts"
    kept = [(counts / f"{name}.npz").stat().st_mtime_ns for name in ("north", "south")]
    beside = (study / "results/panel/further.tsv").read_bytes()
    cohorts = make_cohorts((16, 14, 12))
    (study / cohorts[2].path).write_text(cohorts[2].vcf())
    write_sheets(study, cohorts, CONFIG)
    ran = finished(snakemake(study, "population"))
    assert ran["measure_population"] == 1
    assert beside == (study / "results/panel/further.tsv").read_bytes()
    # Windows and components are of the founders alone.
    assert not {"measure_local_structure", "fit_ancestry"} & set(ran)
    assert ran["project_ancestry"] == 1
    assert kept == [(counts / f"{name}.npz").stat().st_mtime_ns for name in ("north", "south")]
    assert read_table(study / "results/population/populations.tsv").people.tolist() == ["21", "21"]
    # A label of one cohort counts that cohort again, and no other.
    cohorts[2].populations[0] = "R"
    write_sheets(study, cohorts, CONFIG)
    third = (counts / f"{cohorts[2].name}.npz").stat().st_mtime_ns
    ran = finished(snakemake(study, "population"))
    assert ran["measure_population"] == 1
    assert kept == [(counts / f"{name}.npz").stat().st_mtime_ns for name in ("north", "south")]
    assert third < (counts / f"{cohorts[2].name}.npz").stat().st_mtime_ns
    # A cohort that leaves takes its counts along.
    write_sheets(study, cohorts[:2], CONFIG)
    snakemake(study, "population")
    assert sorted(path.name for path in counts.glob("*.npz")) == ["north.npz", "south.npz"]


def test_without_analyses_there_is_no_job(tmp_path):
    folder = write_study(tmp_path, make_cohorts((6, 6)), FAST)
    text = snakemake(folder, "-n")
    assert not RULES & set(planned(text)) and "further.tsv" not in text
    # Nor is a site counted beside a panel of all frequencies.
    write_sheets(folder, make_cohorts((6, 6)), CONFIG | {"panel": {"min_maf": 0}})
    text = snakemake(folder, "-n")
    assert RULES & set(planned(text)) and "further.tsv" not in text


def test_a_mistake_stops_the_run_before_any_job(tmp_path):
    config = {**FAST, "population": {"f4": [["P", "Q", "R", "S"]]}}
    folder = write_study(tmp_path, make_cohorts((6, 6)), config)
    assert "'R', which is not a population" in snakemake(folder, "-n", fails=True)
