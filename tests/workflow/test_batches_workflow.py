"""Many small cohorts: few jobs, the results of one merged cohort, and batches that stay."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.running import contents, finished, planned, snakemake
from support.study import FAST, Cohort, make_cohorts, write_sheets, write_study

from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.core.files import read_json
from popdesic.study.forget import forget_cohort, forget_sample

CONFIG = FAST | {"compare": {"analyses": ["kinship", "identity"]}}
#: Stages that the studies here are run to.
TARGETS = ("distance", "compare", "qc")
N_COHORTS = 20


def people(n_cohorts: int = N_COHORTS) -> list[Cohort]:
    """Founders of two samples each, and a larger newcomer."""
    whole, newcomer = make_cohorts((2 * n_cohorts, 12), n_sites=200)
    names = [f"S{k:03d}" for k in range(2 * n_cohorts)]
    small = [
        replace(
            whole,
            name=f"c{k:03d}",
            samples=names[2 * k : 2 * k + 2],
            populations=whole.populations[2 * k : 2 * k + 2],
            genotypes=whole.genotypes[:, 2 * k : 2 * k + 2],
            compressed=k % 2 == 1,
        )
        for k in range(n_cohorts)
    ]
    return [*small, replace(newcomer, founder=False)]


def merged(cohorts: list[Cohort], name: str) -> Cohort:
    """Cohorts as one file."""
    return replace(
        cohorts[0],
        name=name,
        samples=[sample for cohort in cohorts for sample in cohort.samples],
        populations=[label for cohort in cohorts for label in cohort.populations],
        genotypes=np.concatenate([cohort.genotypes for cohort in cohorts], axis=1),
    )


def comparable(folder: Path) -> dict[str, str]:
    """Digests of results that say nothing of files and cohorts."""
    return {
        name: digest
        for name, digest in contents(folder).items()
        if name.endswith((".npy", ".bed", ".bim", ".fam", ".samples.tsv", ".sites.tsv"))
        or name in ("panel/sites.tsv", "compare/kinship.tsv")
    }


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A study of many small cohorts, whose sheet lists them in any order."""
    cohorts = people()
    order = np.random.default_rng(4).permutation(len(cohorts))
    folder = write_study(tmp_path_factory.mktemp("many"), [cohorts[k] for k in order], CONFIG)
    said = snakemake(folder, *TARGETS)
    assert "20 small cohorts with 40 samples are read as 1 batch (batch001)" in said
    assert finished(said)["ingest_cohort"] == 2
    return folder


@pytest.fixture
def copied(study, tmp_path) -> Path:
    return Path(shutil.copytree(study, tmp_path / "study", symlinks=True))


def test_a_batch_has_the_results_of_one_merged_cohort(study, tmp_path):
    *small, newcomer = people()
    one = write_study(tmp_path, [merged(small, "batch001"), newcomer], CONFIG)
    snakemake(one, *TARGETS)
    found, expected = comparable(study), comparable(one)
    assert len(found) > 20
    assert found == expected
    summary = pd.read_csv(study / "results/qc/summary.tsv", sep="\t")
    by_member = summary[(summary.stage == "ingest") & (summary.step == "samples")]
    counts = dict(zip(by_member.cohort, by_member["count"], strict=True))
    assert counts == {"batch001": 40, "south": 12, **{cohort.name: 2 for cohort in small}}


def test_a_run_that_has_all_does_nothing(study):
    assert not finished(snakemake(study, *TARGETS))


def test_who_arrives_later_changes_no_old_file(copied):
    old = contents(copied)
    own = {name: d for name, d in old.items() if name.startswith(("cohorts/", "panel/"))}
    cohorts = people()
    late = replace(cohorts[0], name="a_late", samples=["L1", "L2"], founder=False)
    (copied / late.path).write_text(late.vcf())
    write_sheets(copied, [late, *cohorts], CONFIG)
    said = snakemake(copied, *TARGETS)
    assert finished(said)["ingest_cohort"] == finished(said)["encode_cohort"] == 1
    new = contents(copied)
    assert {name: new.get(name) for name in own} == own
    rows = {name: d for name, d in old.items() if "/tiles/" in name}
    assert {name: new.get(name) for name in rows} == rows
    assert read_json(copied / "results/cohorts/.batches.json")["a_late"] == ["a_late"]


@pytest.mark.slow
def test_who_leaves_leaves_no_trace(copied, tmp_path):
    cohorts = people()
    gone = cohorts.pop(3)
    write_sheets(copied, cohorts, CONFIG)
    with pytest.raises(UserError, match="'c004' is part of the study"):
        forget_cohort(copied, "c004", yes=True)
    with pytest.raises(UserError, match="because they may hold cohort 'c003'"):
        forget_cohort(copied, gone.name, yes=False)
    told = forget_cohort(copied, gone.name, yes=True)
    assert not (copied / "results/cohorts/batch001/raw.bed").exists()
    assert not [line for line in told.splitlines() if line.startswith("  results/")]
    said = snakemake(copied, *TARGETS)
    assert finished(said)["ingest_cohort"] == 1
    fresh = write_study(tmp_path / "fresh", cohorts, CONFIG)
    snakemake(fresh, *TARGETS)
    assert comparable(copied) == comparable(fresh)
    assert gone.name not in (copied / "results/cohorts/.batches.json").read_text()


def test_an_excluded_sample_decodes_nothing(copied):
    sheet = copied / "config/samples.tsv"
    header, *rows = sheet.read_text().splitlines()
    rows = [f"{row}\t{'yes' if row.startswith('S004') else 'no'}" for row in rows]
    sheet.write_text("\n".join([f"{header}\texclude", *rows]) + "\n")
    raw = copied / "results/cohorts/batch001/raw.bed"
    decoded = raw.stat().st_mtime_ns
    snakemake(copied, *TARGETS)
    assert raw.stat().st_mtime_ns == decoded
    planes = read_json(copied / "results/cohorts/batch001/planes.json")
    assert "S004" not in planes["samples"] and len(planes["samples"]) == 39
    told = forget_sample(copied, "S004", yes=True)
    assert "results/cohorts/batch001/raw.bed and .fam" in told
    assert "data/c002.vcf still has the sample" in told
    assert "ingest_cohort" not in finished(snakemake(copied, *TARGETS))


def test_a_bad_file_is_named(tmp_path):
    cohorts = people()
    folder = write_study(tmp_path, cohorts, CONFIG)
    path = folder / cohorts[4].path
    text = path.read_text()
    path.write_text(text[: text.rindex("\t") - 3] + "x\t0/0\n")
    said = snakemake(folder, "ingest", fails=True)
    assert f"{cohorts[4].path}, line 202" in said


def test_commands_speak_of_the_cohorts_of_the_sheet(study, capsys):
    main(["check", str(study)])
    said = capsys.readouterr()
    assert "batch001\tfounder\t40 samples\t20 cohorts" in said.out
    assert "52 samples in 21 cohorts: no problem found." in said.out
    main(["plan", str(study)])
    assert "52 samples in 21 cohorts, " in capsys.readouterr().out
    main(["audit", str(study), "--remove-stale"])
    assert "deleted" not in capsys.readouterr().out


def test_two_hundred_cohorts_of_five_take_few_jobs(tmp_path):
    (whole,) = make_cohorts((1000,), n_sites=20)
    cohorts = [
        replace(
            whole,
            name=f"c{k:03d}",
            samples=[f"S{5 * k + i:04d}" for i in range(5)],
            populations=[],
            genotypes=whole.genotypes[:, 5 * k : 5 * k + 5],
        )
        for k in range(200)
    ]
    write_study(tmp_path, cohorts, {"device": "cpu"})
    jobs = planned(snakemake(tmp_path, "-n"))
    assert jobs["ingest_cohort"] == 2
    assert 20 < sum(jobs.values()) < 60
