"""A study whose decoded files are lists of carriers has the results of one that keeps rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support.running import contents, finished, snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.core.files import has_lists
from popdesic.io import listed_rows
from popdesic.io.bed import open_bed, read_fam

CONFIG = FAST | {
    "panel": {"min_maf": 0.05},
    "population": {"column": "population", "analyses": ["diversity", "differentiation"]},
    "compare": {"analyses": ["kinship"]},
}
TARGETS = ("qc", "distance", "embedding", "compare", "population")


def list_carriers(raw: Path) -> float:
    """Write a cohort's decoded genotypes again as lists; the share of sites that have one."""
    n_samples, rows = len(read_fam(raw)), np.array(open_bed(raw))
    listed_rows.write_again(raw.with_suffix(".bed"), rows, np.arange(len(rows)), n_samples)
    listed = open_bed(raw)
    np.testing.assert_array_equal(listed[:], rows)
    nobody, unused = np.full(n_samples, -1, np.int64), np.zeros((n_samples, 4), np.int64)
    return 1 - len(listed.count(0, len(rows), nobody, 0, unused)[1]) / len(rows)


def test_results_are_those_of_rows(tmp_path, monkeypatch):
    """Everything but the decoded files is made again from lists; no result has another byte."""
    cohorts = make_cohorts((40, 36, 33), n_sites=200)
    rng = np.random.default_rng(3)
    for cohort in cohorts:  # four sites of five are rare, some of these on the panel
        n_samples = len(cohort.samples)
        share = np.repeat(rng.choice([0.005, 0.02, 0.06], 160)[:, None], n_samples, axis=1)
        cohort.genotypes[np.arange(200) % 5 > 0] = rng.binomial(2, share)
    study = write_study(tmp_path, cohorts, CONFIG)
    snakemake(study, *TARGETS)
    expected = contents(study)
    assert len(expected) > 40 and any(name.startswith("population/") for name in expected)
    results = study / "results"
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", 1)
    monkeypatch.setattr(listed_rows, "LEAST_GAIN", 0)
    for cohort in cohorts:
        raw = results / "cohorts" / cohort.name / "raw"
        assert not has_lists(raw.with_suffix(".bed"))
        assert list_carriers(raw) > 0.3 and has_lists(raw.with_suffix(".bed"))
    for path in sorted(results.rglob("*"), reverse=True):
        if path.is_file() and not path.name.lstrip(".").startswith("raw."):
            path.unlink()
    done = finished(snakemake(study, *TARGETS))
    assert done["encode_cohort"] == 3 and not done["ingest_cohort"]
    found = contents(study)
    changed = {name for name in found if found[name] != expected.get(name)}
    assert found.keys() == expected.keys()
    assert changed == {f"cohorts/{cohort.name}/raw.bed" for cohort in cohorts}
