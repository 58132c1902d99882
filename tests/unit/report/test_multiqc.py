"""MultiQC's custom content: what it says, hostile names, and MultiQC itself where it is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from support.outcomes import make_results

from popdesic.core.places import HOME
from popdesic.report import multiqc
from popdesic.report.multiqc import FILES, write_multiqc

COHORTS = {"old": [f"o{i}" for i in range(20)], "new": ["n0", "<b>n1</b>", 'n"2', "n3"]}


@pytest.fixture
def written(tmp_path) -> list[dict]:
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], left_out=("o3",), matrices=False)
    write_multiqc(outcome, tmp_path / "multiqc")
    return [json.loads((tmp_path / "multiqc" / name).read_text()) for name in FILES]


def test_samples_cohorts_and_components(written):
    samples, cohorts, components = written
    assert len(samples["data"]) == 24
    assert samples["data"]["o3"]["left_out"] == "qc.min_sample_call_rate"
    assert set(samples["data"]["o4"]) == {"call_rate", "heterozygosity"}
    assert cohorts["data"]["old"]["kept"] == 19 and cohorts["data"]["old"]["read"] == 20
    assert cohorts["data"]["new"]["role"] == "newcomer"
    assert len(components["data"]) == 23 and "o3" not in components["data"]
    assert components["pconfig"]["xlab"].startswith("PC1 (40")
    columns = {name for column in samples["pconfig"] for name in column}
    assert {key for row in samples["data"].values() for key in row} == columns
    assert len({content["id"] for content in written}) == 3


def test_names_stay_text(written):
    for content in written[::2]:
        assert "&lt;b&gt;n1&lt;/b&gt;" in content["data"]
        assert not re.search("[<>\"']", "".join(content["data"]))


def test_many_samples_are_shown_by_cohort(tmp_path, monkeypatch):
    monkeypatch.setattr(multiqc, "MOST_SAMPLES", 23)
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], matrices=False)
    write_multiqc(outcome, tmp_path)
    for name in FILES:
        assert set(json.loads((tmp_path / name).read_text())["data"]) == set(COHORTS)


def test_rule_lists_the_files():
    text = (HOME / "workflow/rules/report.smk").read_text()
    pattern, words = re.search(r"multiqc/(popdesic_\{w\}_mqc\.json)\", w=\[(.*)\]", text).groups()
    assert [pattern.replace("{w}", w) for w in re.findall(r'"(\w+)"', words)] == list(FILES)


@pytest.mark.skipif(not shutil.which("multiqc"), reason="MultiQC is not installed")
def test_multiqc_shows_them(tmp_path):
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], left_out=("o3",), matrices=False)
    write_multiqc(outcome, tmp_path / "multiqc")
    subprocess.run(
        ["multiqc", "--no-version-check", "-o", "out", "multiqc"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    data = tmp_path / "out/multiqc_data"
    table = pd.read_csv(data / "multiqc_general_stats.txt", sep="\t")
    assert len(table) == 24 and any("call_rate" in column for column in table)
    page = Path(tmp_path / "out/multiqc_report.html").read_text()
    assert "Popdesic: cohorts" in page and "Popdesic: PCA" in page and "<b>n1</b>" not in page
