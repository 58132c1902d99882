"""User errors in a run of Snakemake: exit code, one sentence, no partial file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import finished, snakemake
from support.study import FAST, make_cohorts, write_sheets, write_study

from popdesic.core.files import read_json


@pytest.fixture
def cohorts():
    return make_cohorts((6, 5), n_sites=60)


@pytest.fixture
def study(tmp_path, cohorts) -> Path:
    return write_study(tmp_path, cohorts)


def replaced(path: Path, old: str, new: str) -> None:
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


#: name: (the user's mistake, the whole sentence)
BEFORE_ANY_JOB: dict[str, tuple[Callable, str]] = {
    "missing file": (
        lambda study: (study / "data/north.vcf").unlink(),
        "config/cohorts.tsv, row 2: data/north.vcf does not exist; did you mean 'data/south",
    ),
    "misspelt key": (
        lambda study: replaced(study / "config/config.yaml", "geodesic:", "geodesics:"),
        "config/config.yaml: 'geodesics' is not a configuration key; did you mean 'geodesic'?",
    ),
    "alpha below 1": (
        lambda study: replaced(study / "config/config.yaml", "- 2", "- 0.5"),
        "config/config.yaml: geodesic.alpha[0] is 0.5, but must be a number of at least 1",
    ),
    "sample not in the VCF": (
        lambda study: replaced(study / "config/samples.tsv", "N03\t", "N33\t"),
        "config/samples.tsv, row 5: sample 'N33' is not in data/north.vcf; did you mean 'N03'?",
    ),
    "no VCF": (
        lambda study: (study / "data/north.vcf").write_text("sample\tgenotype\n"),
        "config/cohorts.tsv, row 2: data/north.vcf is not a VCF or BCF file",
    ),
    "wrong column": (
        lambda study: replaced(study / "config/cohorts.tsv", "founder", "Founders"),
        "config/cohorts.tsv, row 1: column 'founder' is missing (did you mean 'Founders'?)",
    ),
}


@pytest.mark.parametrize("case", BEFORE_ANY_JOB)
def test_error_before_any_job(study, case):
    spoil, sentence = BEFORE_ANY_JOB[case]
    spoil(study)
    output = snakemake(study, fails=True)
    lines = [line for line in output.splitlines() if sentence in line]
    assert len(lines) == 1, "the sentence stands once"
    assert "Traceback" not in output
    assert not finished(output)
    assert not any((study / name).exists() for name in ("results", "logs", "benchmarks"))


def test_error_inside_a_job(study, cohorts):
    """A haploid call is found while decoding: the log has the sentence, no file is left."""
    text = re.sub(r"\t[01.]/[01.]\n", "\t1\n", cohorts[0].vcf(), count=1)
    (study / "data/north.vcf").write_text(text)
    output = snakemake(study, "ingest", fails=True)  # the first records are read before any job
    assert "data/north.vcf, line 3: genotype '1' of sample 'N05' is haploid" in output
    assert not (study / "logs/ingest_cohort").exists()
    (study / "data/north.vcf").write_text(cohorts[0].vcf())
    rows = cohorts[0].vcf().splitlines(keepends=True)
    rows[3] = rows[3].replace("\tPASS\t.", f"\tPASS\tX={'x' * 5_000_000}")
    rows[4] = re.sub(r"\t[^\t]*\n", "\t1\n", rows[4])  # further than the first records
    (study / "data/northern.vcf").write_text("".join(rows))
    sheet = study / "config/cohorts.tsv"
    files = sheet.read_text().replace("data/north.vcf", "data/north.vcf,data/northern.vcf")
    sheet.write_text(files)
    output = snakemake(study, "ingest", fails=True)
    sentence = (
        "data/northern.vcf, line 5: genotype '1' of sample 'N05' is haploid; set contigs.haploid"
    )
    assert f"Error: {sentence}" in output
    assert "Traceback" not in output
    *_, reason, rest = output.rstrip().splitlines()
    assert reason.startswith(f"Error: {sentence}")
    assert rest.startswith("The log is logs/ingest_cohort/north.log. Finished results are kept; go")
    assert " ingest" in rest.partition("go on with: snakemake ")[2]
    assert sentence in (study / "logs/ingest_cohort/north.log").read_text()
    folder = study / "results/cohorts/north"
    assert not folder.exists() or not list(folder.iterdir())
    write_sheets(study, cohorts, FAST | {"contigs": {"haploid": "missing"}})
    sheet.write_text(files)
    ran = finished(snakemake(study, "ingest"))
    assert ran["ingest_cohort"] >= 1, "the way out that the sentence names works"
    assert (folder / "raw.bed").exists()


def test_error_after_the_first_outputs_of_a_job(tmp_path, cohorts):
    """The error is found after the .bed is written: all outputs of the job are removed."""
    founder, cohort = cohorts[:2]
    sites = [("X", *site[1:]) if k % 2 else site for k, site in enumerate(cohort.sites)]
    founder, cohort = (
        replace(founder, sites=sites, founder=True),
        replace(cohort, sites=sites, founder=False),
    )
    founder.genotypes[::2, 2] = -1  # N02 is called only on X, which is not part of the panel
    cohort.genotypes[::2] = -1
    config = FAST | {"qc": {"min_sample_call_rate": 0.1}, "panel": {"min_call_rate": 0.5}}
    study = write_study(tmp_path, [founder, cohort], config)
    output = snakemake(study, "encode", fails=True)
    name = cohort.samples[0]
    assert f"sample '{name}' of cohort '{cohort.name}' has no called genotype at any of" in output
    assert "Traceback" not in output
    snakemake(study, "results/cohorts/north/planes.json")
    about = read_json(study / "results/cohorts/north/planes.json")
    assert about["counts"]["samples_without_calls"] == 1 and "N02" not in about["samples"]
    written = {path.name for path in (study / f"results/cohorts/{cohort.name}").glob("[!.]*")}
    assert written == {"raw.bed", "raw.bim", "raw.fam", "raw.json"}
