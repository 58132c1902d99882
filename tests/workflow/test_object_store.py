"""A cohort in an object store: Snakemake sees no file, but a digest of what is in the store."""

from __future__ import annotations

import importlib.util

import pytest
from support.object_server import N_SAMPLES, serving, write_store
from support.running import planned, snakemake
from support.study import make_cohorts, write_study

from popdesic.cohort.ingest import ingest_cohort

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("obstore", "localbucket")),
    reason="pip install obstore localbucket",
)
RAW = "results/cohorts/south/raw"


def test_a_cohort_in_a_store_is_decoded_and_a_change_of_it_is_noticed(tmp_path, monkeypatch):
    study = write_study(tmp_path / "study", make_cohorts((9,), n_sites=60))
    with serving(tmp_path / "served") as door:
        for name, value in door.variables.items():
            monkeypatch.setenv(name, value)
        store = write_store(door.root / "people/south.vcz")
        with open(study / "config/cohorts.tsv", "a") as sheet:
            sheet.write("south\ts3://people/south.vcz\tno\n")
        samples = study / "config/samples.tsv"
        more = "\tNA" * (samples.read_text().partition("\n")[0].count("\t") - 1)
        with open(samples, "a") as sheet:
            sheet.writelines(f"p{k}\tsouth{more}\n" for k in range(N_SAMPLES))
        snakemake(study, f"{RAW}.json")
        ingest_cohort(store, tmp_path / "raw")
        for end in (".bed", ".bim", ".fam"):
            assert (study / f"{RAW}{end}").read_bytes() == (tmp_path / f"raw{end}").read_bytes()
        assert not planned(snakemake(study, "--dry-run", f"{RAW}.json"))
        write_store(store, seed=3)
        assert planned(snakemake(study, "--dry-run", f"{RAW}.json"))["ingest_cohort"] == 1
