"""A sample that leaves a study leaves its results as if its cohort's file had never had it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.running import contents, finished, planned, snakemake
from support.study import FAST, Cohort, make_cohorts, write_study

from popdesic.core.errors import UserError
from popdesic.study.audit import damaged_files
from popdesic.study.forget import files_with, forget_sample

CONFIG = FAST | {
    "compare": {"analyses": ["kinship", "identity"]},
    "communities": {"methods": ["tree"]},
    "panel": {"ld_prune": ["20 sites", 5, 0.9]},
}
#: Results that may differ: they count or hold what a cohort's file had.
OF_FILES = (
    *("raw.bed", "raw.fam", "raw.json", "qc/summary.tsv"),
    *("report/report.html", "report/summary.json", "work.tsv"),
)


def people() -> list[Cohort]:
    return make_cohorts((9, 8, 7), n_sites=240)


def without(cohort: Cohort, names: Iterable[str]) -> Cohort:
    """The cohort as a file that never had these samples."""
    stays = np.flatnonzero([name not in names for name in cohort.samples])
    return replace(
        cohort,
        samples=[cohort.samples[k] for k in stays],
        populations=[cohort.populations[k] for k in stays],
        genotypes=cohort.genotypes[:, stays],
    )


def exclude(folder: Path, *names: str) -> None:
    """Set the column `exclude` of the sheet."""
    sheet = folder / "config/samples.tsv"
    header, *lines = [line.split("\t") for line in sheet.read_text().splitlines()]
    if header[-1] != "exclude":
        header, lines = [*header, "exclude"], [[*line, "no"] for line in lines]
    lines = [[*line[:-1], "yes" if line[0] in names else "no"] for line in lines]
    sheet.write_text("".join("\t".join(line) + "\n" for line in [header, *lines]))


def phenotypes_as_in(folder: Path, other: Path) -> None:
    """Give the rows of a sheet the values that another sheet has, in its own columns."""
    lines = (other / "config/samples.tsv").read_text().splitlines()
    rows = {line.split("\t")[0]: line for line in lines}
    sheet = folder / "config/samples.tsv"
    names = [line.split("\t")[0] for line in sheet.read_text().splitlines()]
    sheet.write_text("".join(f"{rows[name]}\n" for name in names))


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory) -> Path:
    """A study of two founders and a newcomer, run to the report."""
    folder = write_study(tmp_path_factory.mktemp("study"), people(), CONFIG)
    snakemake(folder)
    return folder


def fresh(folder: Path, like: Path, *names: str) -> dict[str, str]:
    """Results of a study whose files never had these samples."""
    write_study(folder, [without(cohort, names) for cohort in people()], CONFIG)
    phenotypes_as_in(folder, like)
    snakemake(folder)
    return contents(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cohort"), [("W03", "west"), pytest.param("N02", "north", marks=pytest.mark.slow)]
)
def test_results_are_those_of_files_without_the_sample(finished_study, tmp_path, name, cohort):
    study = tmp_path / "study"
    shutil.copytree(finished_study, study, symlinks=True)
    decoded = (study / f"results/cohorts/{cohort}/raw.bed").stat().st_mtime_ns
    expected = fresh(tmp_path / "fresh", finished_study, name)
    exclude(study, name)
    output = snakemake(study)
    ran = finished(output)
    assert ran["ingest_cohort"] == 1
    assert (study / f"results/cohorts/{cohort}/raw.bed").stat().st_mtime_ns == decoded
    assert ran["encode_cohort"] == (1 if cohort == "west" else 3)
    assert ("build_panel" in ran) == (cohort == "north")
    assert f"excludes 1 sample (1 of {cohort})" in output
    assert ("is a founder, so the panel" in output) == (cohort == "north")
    found = contents(study)
    assert set(found) == set(expected)
    different = [path for path in found if found[path] != expected[path]]
    assert [p for p in different if not any(part in p for part in OF_FILES)] == []
    raw = {f"results/cohorts/{cohort}/raw.fam"}
    held = {str(path.relative_to(study)) for path in files_with(study, name)}
    assert {path for path in held if path.startswith("results/")} == raw
    pages = [f / "results/report/report.html" for f in (study, tmp_path / "fresh")]
    later, first = (" ".join(page.read_text("utf-8").split()) for page in pages)
    assert "23 samples are in both reports and 1 is no longer there." in later
    assert '<th scope="row">Samples</th><td class="n">24</td><td class="n">23</td>' in later
    assert "last report" not in first
    assert planned(snakemake(study, "--dry-run")) == {}
    forget_and_check(study, name, cohort)


def forget_and_check(study: Path, name: str, cohort: str) -> None:
    """`popdesic forget` takes the name out of the last files; nothing reruns."""
    raw = study / f"results/cohorts/{cohort}/raw.fam"
    before = contents(study)
    with pytest.raises(UserError, match="add --yes"):
        forget_sample(study, name, yes=False)
    assert contents(study) == before
    told = forget_sample(study, name, yes=True)
    changed = {path for path, digest in contents(study).items() if digest != before[path]}
    assert changed == {f"cohorts/{cohort}/raw{end}" for end in (".bed", ".fam", ".json")}
    assert name not in raw.read_text()
    assert f"data/{cohort}.vcf still has the sample" in told
    left = [line.strip() for line in told.splitlines() if line.startswith("  ")]
    assert left == [str(path.relative_to(study)) for path in files_with(study, name)]
    assert not any(path.startswith("results/") for path in left)
    assert planned(snakemake(study, "--dry-run")) == {}
    assert damaged_files(study) == ([], len(before))
    exclude(study)  # the sample comes back: only its file has it
    snakemake(study, f"results/cohorts/{cohort}/raw.json")
    assert name in raw.read_text()
