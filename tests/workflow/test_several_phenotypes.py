"""Several phenotypes in one study: each scan has the bytes of a study of that phenotype alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.running import contents, finished, planned, snakemake
from support.study import FAST, make_cohorts, write_sheets, write_study

N = 60
COHORTS = make_cohorts((35, 25), n_sites=150)
SCANS = {"order": [2], "min_distance_bp": 0, "max_r2": 1, "top": 20}
TABLES = ("pairs.tsv", "loci.tsv", "sites.tsv", "structure.tsv", "null_model.npz", "plan.json")


def phenotypes() -> pd.DataFrame:
    """Two diseases with shared controls, as PLINK codes them, and a third with people unknown."""
    rng = np.random.default_rng(5)
    kind = rng.choice(["control", "gout", "asthma"], N, p=[0.5, 0.25, 0.25])
    coded = {
        name: np.where(kind == name, "1", np.where(kind == "control", "0", "NA"))
        for name in ("gout", "asthma")
    }
    return pd.DataFrame(coded)


def write(folder: Path, phenotype: pd.Series | None = None, **epistasis) -> None:
    """Sheets with the columns of `phenotypes`, and perhaps `phenotype`."""
    write_sheets(folder, COHORTS, FAST | {"epistasis": SCANS | epistasis})
    path = folder / "config/samples.tsv"
    sheet = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    sheet = pd.concat([sheet.drop(columns="phenotype", errors="ignore"), phenotypes()], axis=1)
    if phenotype is not None:
        sheet["phenotype"] = phenotype
    sheet.to_csv(path, sep="\t", index=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> tuple[Path, str]:
    folder = write_study(tmp_path_factory.mktemp("phenotypes"), COHORTS)
    write(folder, phenotypes=["gout", "asthma"])
    return folder, snakemake(folder, "epistasis", seconds=1800)


def test_what_phenotypes_share_is_computed_once(study):
    ran = finished(study[1])
    assert ran["scan_epistasis"] == ran["plan_epistasis"] == ran["rank_epistasis"] == 2
    assert ran["ingest_cohort"] == 2
    for rule in ("build_panel", "define_axes", "join_comparisons"):
        assert ran[rule] == 1, rule


def test_each_phenotype_has_the_bytes_of_a_study_of_its_own(study, tmp_path):
    several = contents(study[0])
    for trait in ("gout", "asthma"):
        folder = tmp_path / trait
        shutil.copytree(study[0], folder, symlinks=True)
        for kind in ("epistasis", "reorder"):
            shutil.rmtree(folder / "results" / kind)
        write(folder, phenotypes()[trait])
        ran = finished(snakemake(folder, "epistasis"))
        assert ran["scan_epistasis"] == 1 and not ran["ingest_cohort"] and not ran["build_panel"]
        alone = contents(folder)
        for name in TABLES:
            assert several[f"epistasis/{trait}/{name}"] == alone[f"epistasis/{name}"], name
        assert several[f"reorder/{trait}/onehot.npy"] == alone["reorder/onehot.npy"]
        people = pd.read_csv(folder / "results/reorder/samples.tsv", sep="\t")
        assert len(people) == (phenotypes()[trait] != "NA").sum()


def test_a_new_phenotype_reruns_no_scan(study, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(study[0], folder, symlinks=True)
    write(folder, phenotypes=["asthma"])
    assert not planned(snakemake(folder, "epistasis", "-n"))


def test_the_report_has_a_section_for_each(study):
    assert not finished(snakemake(study[0], seconds=1800))["scan_epistasis"]
    page = (study[0] / "results/report/report.html").read_text()
    for trait in ("gout", "asthma"):
        assert f'<h2 id="epistasis-{trait}-heading">Epistasis: {trait}</h2>' in page
        assert f'<a href="#epistasis-{trait}"' in page
        assert page.count(f'id="fig-{trait}.hits.pairs"') == 1
        assert f"results/epistasis/{trait}" in page
        assert (study[0] / f"results/figures/{trait}.manhattan.png").exists()
    assert '<section id="epistasis"' not in page
