"""The comparisons run by Snakemake: queries, mixtures, a pruned panel, and their plans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.running import finished, planned, snakemake, snapshot
from support.study import FAST, Cohort, make_cohorts, write_sheets, write_study

from popdesic.cohort.panel import load_panel
from popdesic.core.tables import read_table
from popdesic.study.snakemake_internals import planned_jobs


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """Two founders; N04 is typed again as a query and mixed with S03."""
    north, south, _ = make_cohorts((16, 14, 5), n_sites=400)
    folder = tmp_path_factory.mktemp("compare")
    one, two = north.genotypes[:, 4], south.genotypes[:, 3]
    mixed = np.where((one < 0) | (two < 0), -1, np.where(one == two, one, 1))
    profiles = Cohort("profiles", ["again", "mixed"], north.sites, np.stack([one, mixed], axis=1))
    config = FAST | {
        "panel": {"ld_prune": ["20 sites", 1, 0.3]},
        "compare": {"query": "data/profiles.vcf"},
    }
    write_study(folder, [north, south], config)
    (folder / "data/profiles.vcf").write_text(profiles.vcf())
    ran = finished(snakemake(folder, "compare"))
    assert ran["measure_row"] == 2
    assert ran["measure_ld"] == ran["join_comparisons"] == 1
    assert ran["search_profiles"] == 2
    return folder


def test_queries_and_mixtures_are_answered(study):
    found = read_table(study / "results/compare/identity.query.tsv")
    best = found[(found["query"] == "again") & (found["rank"] == "1")].iloc[0]
    assert (best["match"], best["mismatches"], best["verdict"]) == ("N04", "0", "same")
    found = read_table(study / "results/compare/mixture.query.tsv")
    mixed = found[(found.mixture == "mixed") & found["rank"].isin(["1", "2"])]
    assert set(mixed.reference) == {"N04", "S03"}
    assert set(mixed.absent) == {"0"}


def test_pruned_panel_has_fewer_sites_and_says_so(study):
    sites, _ = load_panel(study / "results/panel/sites.tsv")
    kept = (study / "results/compare/prune.in").read_text().split()
    removed = (study / "results/compare/prune.out").read_text().split()
    assert len(kept) + len(removed) == len(sites) < 400


def test_a_newcomer_changes_no_table_of_founders(study):
    before = snapshot(study)
    north, south, west = make_cohorts((16, 14, 5), n_sites=400)
    (study / west.path).write_text(west.vcf())
    config = (study / "config/config.yaml").read_text()
    write_sheets(study, [north, south, west])
    (study / "config/config.yaml").write_text(config)
    plan = planned(snakemake(study, "compare", "-n"))
    assert plan["measure_row"] == 1
    assert "choose_unrelated" not in plan
    assert "measure_ld" not in plan
    assert "build_panel" not in plan
    assert snapshot(study) == before


def test_no_comparison_is_planned_unless_asked_for(tmp_path):
    config = FAST | {"compare": {"analyses": []}, "close_kinship": 0}
    write_study(tmp_path, make_cohorts((6, 6)), config)
    plan = planned(snakemake(tmp_path, "-n"))
    assert not {"measure_ld", "choose_unrelated", "join_comparisons"} & set(plan)
    row = planned_jobs(tmp_path, ["results/distance/tiles/north/row.json"])[-1]
    assert row.outputs == ("results/distance/tiles/north/row.json",)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"compare": {"ld": {"window": "5 miles"}}}, "'5 miles' is not a window"),
        ({"compare": {"ld": {"window": "1 cM"}}}, "names no genetic map"),
        ({"panel": {"ld_prune": ["50 kb", 5, 0.2]}}, "exactly 1 if the window is in bp, kb or Mb"),
        ({"compare": {"query": "none.vcf"}}, "compare.query is 'none.vcf'"),
        ({"compare": {"ld": {"region": "1-5"}}}, "write chrom:from-to"),
    ],
)
def test_bad_options_stop_before_any_job(tmp_path, config, words):
    write_study(tmp_path, make_cohorts((6, 6)), FAST | config)
    output = snakemake(tmp_path, "-n", fails=True)
    assert words in " ".join(output.split())


def test_pc_relate_is_left_out_of_too_large_studies(tmp_path):
    """Its cost grows with the square of the samples; the plan says that it is left out."""
    limit = {"distance": {"dense_limit": 29}}
    write_study(tmp_path, make_cohorts((16, 14)), FAST | limit)
    output = snakemake(tmp_path, "-n", "compare")
    assert "PC-Relate is left out: 30 samples are more than" in output
    assert planned(output)["relate_samples"] == 1  # the verdicts of the other analyses
    verdict = ["results/compare/relatives.tsv"]
    assert "results/compare/pc_relate.tsv" not in planned_jobs(tmp_path, verdict)[-1].outputs
    write_study(tmp_path, make_cohorts((16, 13)), FAST | limit)
    output = snakemake(tmp_path, "-n", "compare")
    assert "PC-Relate is left out" not in output
    assert "results/compare/pc_relate.tsv" in planned_jobs(tmp_path, verdict)[-1].outputs
