"""Real trios and sexes: Mendelian errors and the sex check equal PLINK 1.9."""

from __future__ import annotations

import subprocess

import pandas as pd
import pytest

from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.par import pseudoautosomal
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.sample_checks import Checks
from popdesic.core.tables import read_table
from popdesic.io.bed import read_fam, write_fam


def run(folder, populations: dict[str, str], checks: Checks) -> pd.DataFrame:
    tables = folder / "sites.qc", folder / "samples.qc"
    summarize_cohort(folder / "raw", populations, *tables, min_sample_call_rate=0, checks=checks)
    return read_table(tables[1]).set_index("sample")


@pytest.mark.shared
@pytest.mark.peer
def test_real_trios_and_sexes_equal_plink(shared_data, tmp_path, require_command):
    require_command("plink1.9")
    ingest_cohort(shared_data / "hapmap279/hapmap279.vcf.gz", tmp_path / "raw", threads=2)
    sheet = pd.read_csv(shared_data / "hapmap279/samples.tsv", sep="\t", dtype=str)
    sheet = sheet.fillna("NA").set_index("sample_id")
    fam = read_fam(tmp_path / "raw")
    names = set(fam["sample"])
    rows = sheet.loc[fam["sample"]]
    parents = {
        name: (father, mother)
        for name, father, mother in zip(rows.index, rows.father_id, rows.mother_id, strict=True)
        if father in names and mother in names
    }
    sexes = {name: sex for name, sex in rows.sex.items() if sex in ("M", "F")}
    par = tuple(pseudoautosomal("hg18"))
    checks = Checks(sexes=sexes, parents=parents, x_contigs=("X",), par=par)
    table = run(tmp_path, rows.population.to_dict(), checks)
    for name, (father, mother) in parents.items():
        fam.loc[fam["sample"] == name, ["father", "mother"]] = father, mother
    fam["sex"] = [{"M": "1", "F": "2"}.get(sexes.get(name), "0") for name in fam["sample"]]
    fam["family"] = "1"
    write_fam(tmp_path / "raw", fam)
    plink = ["plink1.9", "--bfile", tmp_path / "raw", "--out", tmp_path / "p"]
    subprocess.run([*plink, "--mendel", "--chr", "1-22"], check=True, capture_output=True)
    theirs = pd.read_csv(tmp_path / "p.lmendel", sep=r"\s+")
    ours = table.mendel_errors.replace("NA", "0").astype(int)
    assert len(parents) >= 50
    assert ours.sum() == theirs.N.sum() > 0
    subprocess.run([*plink, "--check-sex"], check=True, capture_output=True)
    theirs = pd.read_csv(tmp_path / "p.sexcheck", sep=r"\s+").set_index("IID").SNPSEX
    found = table.sex_from_x.loc[theirs.index].map({"M": 1, "F": 2, "NA": 0})
    both = (found > 0) & (theirs > 0)
    stated = rows.sex.map({"M": 1, "F": 2, "NA": 0}).loc[theirs.index]
    print(
        f"\nMendelian errors {ours.sum()}, as PLINK counts; sex from X: {(found > 0).sum()} of "
        f"{len(found)} clear here, {(theirs > 0).sum()} in PLINK, which takes no populations"
    )
    assert (found == theirs)[both].all()
    assert (found == stated)[(found > 0) & (stated > 0)].all()
    assert (found > 0).mean() > 0.95
