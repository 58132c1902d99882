"""The section on imputation: which genotypes results rest on, and measured accuracy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.outcomes import configuration, make_results

from popdesic.core.files import write_json
from popdesic.core.tables import write_table
from popdesic.report.figures import draw_figures
from popdesic.report.figures.imputation import draw_accuracy
from popdesic.report.figures.style import styled
from popdesic.report.page import write_report
from popdesic.report.sections.imputation import genotype_findings, imputation_section
from popdesic.report.words import number
from popdesic.study.configuration import fill_config


@pytest.fixture
def outcome(tmp_path):
    cohorts = {"one": [f"a{i}" for i in range(6)], "new": [f"b{i}" for i in range(4)]}
    return make_results(tmp_path, cohorts, ["one"], {"population": ["P", "Q"] * 5})[0]


def test_the_page_has_the_section(tmp_path):
    cohorts = {"one": [f"a{i}" for i in range(6)], "new": [f"b{i}" for i in range(4)]}
    outcome, distances = make_results(tmp_path, cohorts, ["one"], {"population": ["P", "Q"] * 5})
    config = configuration()
    config["impute"] |= {"stages": ["pca"], "method": "copying"}
    copied = {"samples": 7777, "haplotypes": 15554}, {"sites": 4321, "in_reference": 3210}
    about = dict(zip(("reference", "counts"), copied, strict=True))
    write_json(outcome.folder / "impute/one/copied.json", about)
    counts = dict.fromkeys(("missing", "filled", "left_missing", "sites_with_missing"), 1234)
    counts |= {"sites_below_min_r2": 9, "sites_haploid": 1}
    for cohort in cohorts:
        about = {"cohort": cohort, "min_r2": 0.8, "counts": counts}
        write_json(outcome.folder / "cohorts" / cohort / "imputed.json", about)
    figures = outcome.folder / "figures"
    options = {"color_by": "population", "min_sample_call_rate": 0.9, "min_maf": 0.01}
    draw_figures(outcome, distances, figures, **options)
    page = tmp_path / "report.html"
    write_report(outcome, distances, figures, config, page)
    text = page.read_text("utf-8")
    assert 'id="imputation"' in text and "Genotypes masked" not in text
    assert "missing calls are imputed for pca, where r² is at least 0.8." in text.lower()
    assert f"{number(2468)} of {number(2468)} missing genotypes were filled" in text
    assert text.count(f'<td class="n">{number(1234)}</td>') >= 8
    assert f"copying from {number(15554)} haplotypes" in text and number(3210) in text


def test_imputation_is_told_by_cohort_and_frequency(outcome):
    config = fill_config({})
    assert imputation_section(outcome, outcome.folder / "figures", config) is None
    rows = [
        ("one", "mode", "all", "all", 100, 0.9, 0.8, 0.7),
        ("one", "mode", "maf", "0-0.01", 0, np.nan, np.nan, np.nan),
        ("one", "mode", "maf", "0.1-0.2", 100, 0.9, 0.8, 0.7),
        ("one", "mode", "sample", "a1", 10, 0.9, 0.8, 0.7),
    ]
    names = ["cohort", "method", "by", "value", "hidden", "concordance", "nonref_concordance"]
    table = pd.DataFrame(rows, columns=[*names, "dosage_r2"])
    write_table(outcome.folder / "impute/evaluation.tsv", table)
    section = imputation_section(outcome, outcome.folder / "figures", config)
    accuracy = section["accuracy"]
    assert [row["which"] for row in accuracy["rows"]] == ["all sites", "MAF 0.1-0.2"]
    assert accuracy["figures"] == [] and section["genotypes"] is None
    with styled():
        panels = draw_accuracy(outcome.folder / "impute/evaluation.tsv").axes[:2]
    drawn = [panel.lines[0].get_ydata().tolist() for panel in panels]
    assert np.allclose(drawn, [[np.nan, 20.0], [np.nan, 0.7]], equal_nan=True)


def test_the_page_says_which_genotypes_results_rest_on(outcome):
    asked = {"impute": {"method": "beagle", "stages": ["ld"]}}
    counts = {"missing": 100, "filled": 60, "left_missing": 40, "sites_with_missing": 30}
    counts |= {"sites_below_min_r2": 9, "sites_haploid": 1}
    for cohort in outcome.founders:
        about = {"cohort": cohort, "min_r2": 0.8, "counts": counts}
        write_json(outcome.folder / "cohorts" / cohort / "imputed.json", about)
    assert genotype_findings(outcome, fill_config({})) == []
    (finding,) = genotype_findings(outcome, fill_config(asked))
    assert finding.level == "note"
    assert "Missing calls are imputed for LD, where r² is at least 0.8." in finding.text
    assert "60 of 100 missing genotypes were filled." in finding.text
    section = imputation_section(outcome, outcome.folder / "figures", fill_config(asked))
    assert section["accuracy"] is None and section["copied"] is None
    assert [row["cohort"] for row in section["filled"]] == outcome.founders
    nothing = {"cohort": "one", "min_r2": 0.8, "counts": counts | {"filled": 0}}
    write_json(outcome.folder / "cohorts/one/imputed.json", nothing)
    assert genotype_findings(outcome, fill_config(asked))[0].level == "warning"
