"""First records of variant files that differ stop a study before any job."""

import numpy as np
import pytest
from support.study import Cohort, read_config, write_study

from popdesic.cohort.first_records import first_records
from popdesic.core.errors import UserError
from popdesic.study.sheets import said_of_absent
from popdesic.study.validation import validate_study


def cohorts(shared: bool) -> list[Cohort]:
    """Two cohorts of 8: the variant sites of each, or the common sites, which vary in both."""
    rng = np.random.default_rng(1)
    sites = [("1", 10 + 3 * k, f"s{k}", "A", "C") for k in range(6_000)]
    frequency = rng.beta(0.3, 1.2, 6_000)
    whole = rng.binomial(2, frequency[:, None], (6_000, 16)).astype(np.int8)
    found = []
    for k, name in enumerate(("north", "south")):
        genotypes = whole[:, 8 * k : 8 * k + 8]
        rows = np.flatnonzero(whole.mean(axis=1) > 0.6 if shared else (genotypes > 0).any(axis=1))
        names = [f"{name[0]}{j}" for j in range(8)]
        found.append(Cohort(name, names, [sites[r] for r in rows], genotypes[rows], k == 0))
    return found


def say(folder, words: str) -> None:
    sheet = folder / "config/cohorts.tsv"
    lines = sheet.read_text().splitlines()
    sheet.write_text("\n".join([lines[0] + "\tabsent", *(f"{one}\t{words}" for one in lines[1:])]))


def test_variant_files_that_differ_stop_before_any_job(tmp_path, monkeypatch):
    folder = write_study(tmp_path, cohorts(shared=False))
    monkeypatch.chdir(folder)
    with pytest.raises(UserError, match="cohort 'south' lists variant sites only") as caught:
        validate_study(read_config(folder))
    assert "founder north among the first records" in str(caught.value)
    say(folder, "reference")
    _, study, _ = validate_study(read_config(folder))
    assert said_of_absent(study, "south") == "absent sites: homozygous reference"


def test_shared_sites_do_not_stop(tmp_path, monkeypatch):
    folder = write_study(tmp_path, cohorts(shared=True))
    monkeypatch.chdir(folder)
    assert first_records(folder / "data/south.vcf").variants_only
    _, study, _ = validate_study(read_config(folder))
    assert said_of_absent(study, "south") == ""


@pytest.mark.parametrize("share", [1.0, 0.99, 0.5])
def test_first_records_outside_a_mask_are_said(tmp_path, monkeypatch, share):
    folder = write_study(tmp_path, cohorts(shared=False))
    monkeypatch.chdir(folder)
    sites = [one.sites for one in cohorts(shared=False)]
    last = sites[1][int(share * len(sites[1])) - 1][1]
    (folder / "south.bed").write_text(f"chr1\t0\t{last}\n")
    sheet = folder / "config/cohorts.tsv"
    lines = sheet.read_text().splitlines()
    said = ["\tabsent\tcallable", "\treference\t", "\tauto\tsouth.bed"]
    sheet.write_text("\n".join(a + b for a, b in zip(lines, said, strict=True)))
    _, _, remarks = validate_study(read_config(folder))
    text = [one for one in remarks if "south.bed" in one]
    if share > 0.98:
        assert text == []
        return
    number = sum(site[1] > last for site in sites[1])
    assert f"{number} of the first {len(sites[1])} lie outside the cohort's mask" in text[0]
