"""Some people discover, others confirm: halves, or founders and newcomers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.study import Cohort, make_sites, write_raw

from popdesic.core.errors import UserError
from popdesic.core.tables import read_table, write_table
from popdesic.epistasis.discovery import discovery_half, divide_people, families
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.options import check_epistasis
from popdesic.epistasis.replication import replicate_hits
from popdesic.epistasis.significance import hit_tables
from popdesic.io.bed import read_bim
from popdesic.study.configuration import fill_config


def sheet_of(n, **columns):
    return pd.DataFrame({"sample": [f"s{k}" for k in range(n)], "cohort": "one", **columns})


def test_families_are_joined_by_parents_and_by_absent_ones():
    father = ["NA", "NA", "s0", "lost", "lost", "", "s2"]
    sheet = sheet_of(7, father=father, mother=["NA", "NA", "s1", "NA", "NA", "NA", "NA"])
    family = families(sheet)
    assert [int((family == family[k]).sum()) for k in range(7)] == [4, 4, 4, 2, 2, 1, 4]
    assert len(set(families(sheet_of(4)))) == 4


def test_halves_are_balanced_within_strata_and_classes_and_keep_families():
    rng = np.random.default_rng(1)
    classes = rng.choice([-1, 0, 1], 600, p=[0.1, 0.6, 0.3])
    father = np.where(np.arange(600) % 6 == 5, [f"s{max(k - 1, 0)}" for k in range(600)], "NA")
    sheet = sheet_of(600, father=father, place=rng.choice(["x", "y"], 600, p=[0.8, 0.2]))
    half = discovery_half(sheet, classes, "place", 7)
    assert not half[classes < 0].any()
    for stratum in ("x", "y"):
        for value in (0, 1):
            inside = (sheet.place == stratum) & (classes == value)
            assert abs(2 * half[inside].sum() - inside.sum()) <= 6
    children = np.flatnonzero((father != "NA") & (classes >= 0))
    together = [k for k in children if classes[k - 1] >= 0]
    assert len(together) > 50 and all(half[k] == half[k - 1] for k in together)
    assert (half == discovery_half(sheet, classes, "place", 7)).all()
    assert (half != discovery_half(sheet, classes, "place", 8)).any()


def test_too_few_people_are_refused():
    with pytest.raises(UserError, match="which leaves 4 cases in one half, fewer than 10; set it"):
        discovery_half(sheet_of(60), np.arange(60) < 9, "none", 1)


def test_newcomers_outside_families_of_founders_confirm():
    classes = np.tile([0, 1, -1], 40)
    father = [
        "s0" if k == 60 else "s2" if k == 63 else "lost" if k in (1, 64) else "NA"
        for k in range(120)
    ]
    sheet = sheet_of(120, father=father).assign(cohort=np.repeat(["a", "b", "new"], [30, 30, 60]))
    how = {"founders": ["a", "b"], "strata": "cohort", "seed": 1}
    first, rest = divide_people(sheet, classes, "newcomers", **how)
    assert (first == ((classes >= 0) & (np.arange(120) < 60))).all()
    # s60 has a founder for a father, s64 a founder as a sibling; the father of s63 is not scanned
    assert set(np.flatnonzero((classes >= 0) & ~first & ~rest)) == {60, 64}
    assert not (first & rest).any() and not rest[classes < 0].any()
    one, other = divide_people(sheet, classes, "half", **how)
    assert (one == discovery_half(sheet, classes, "cohort", 1)).all()
    assert (one ^ other == (classes >= 0)).all()
    for founders, found in (
        ([], "0 controls among the founders"),
        (["a", "b", "new"], "0 controls among the newcomers who can confirm"),
    ):
        with pytest.raises(UserError, match=f"{found}, fewer than 10; set it to 'none' until"):
            divide_people(sheet, classes, "newcomers", **how | {"founders": founders})


def test_studies_that_cannot_be_halved_are_refused_before_any_job(tmp_path):
    block = fill_config({"epistasis": {"order": [2], "replication": "half", "strata": "none"}})
    numbers = sheet_of(60, phenotype=[f"{k / 7:.3f}" for k in range(60)])
    with pytest.raises(UserError, match="replication needs cases and controls, and the phenotype"):
        check_epistasis(block["epistasis"], numbers, "samples.tsv", tmp_path)
    few = sheet_of(60, phenotype=["1"] * 9 + ["0"] * 51)
    with pytest.raises(UserError, match="which leaves 4 cases in one half"):
        check_epistasis(block["epistasis"], few, "samples.tsv", tmp_path)
    check_epistasis(block["epistasis"] | {"replication": "none"}, few, "samples.tsv", tmp_path)
    (tmp_path / "genes.bed").write_text("1 0 9 A\n")
    alone = block["epistasis"] | {"order": [], "sets": "genes.bed"}
    with pytest.raises(UserError, match="order is empty, so that sets would lose half of the samp"):
        check_epistasis(alone, few, "samples.tsv", tmp_path)
    with pytest.raises(UserError, match="'newcomers', which keeps newcomers out of all scans, but"):
        check_epistasis(alone | {"replication": "newcomers"}, few, "samples.tsv", tmp_path)
    many = sheet_of(60, phenotype=["1", "0"] * 30).assign(cohort=["a", "a", "b", "b"] * 15)
    given = [block["epistasis"] | {"replication": "newcomers"}, many, "samples.tsv", tmp_path]
    check_epistasis(*given, founders=["a"])
    with pytest.raises(UserError, match="0 controls among the newcomers"):
        check_epistasis(*given, founders=["a", "b"])
    # Newcomers, who are not scanned, do not make founders comparable within a stratum.
    people = ["A"] * 30 + ["B"] * 30 + ["A", "B"] * 30
    parted = sheet_of(120, phenotype=["0"] * 30 + ["1"] * 60 + ["0"] * 30)
    parted = parted.assign(cohort=["a"] * 60 + ["b"] * 60, population=people)
    given[0] = given[0] | {"strata": "population"}
    with pytest.raises(UserError, match="all 30 samples of population 'A' with a phenotype are"):
        check_epistasis(given[0], parted, *given[2:], founders=["a"])


def test_leads_are_tested_in_the_other_half_alone(tmp_path):
    """A planted pair is confirmed, a chance one of the discovery half is not."""
    rng = np.random.default_rng(3)
    n = 1200
    genotypes = rng.binomial(2, 0.45, (6, n)).astype(np.int8)
    genotypes[0, :30] = -1
    logit = 1.6 * ((genotypes[0] == 1) ^ (genotypes[1] == 1)) - 0.8
    case = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    sheet = sheet_of(n, cohort=np.where(np.arange(n) % 3 == 0, "west", "east"))
    cohort = Cohort("one", sheet["sample"].tolist(), make_sites(6), genotypes)
    prefix = write_raw(tmp_path / "genotypes", cohort)
    half = discovery_half(sheet, case, "none", 5)
    sites = read_bim(prefix)
    rows = [(0, 1), (2, 3)]
    hits = pd.DataFrame(
        [
            {"rank": k + 1, "lr_p": 1e-9}
            | {f"{name}{s + 1}": sites[name][pair[s]] for s in (0, 1)
               for name in ("id", "chrom", "pos", "ref", "alt")}
            for k, pair in enumerate(rows)
        ]
    )  # fmt: skip
    write_table(tmp_path / "pairs.tsv", hits)
    write_table(tmp_path / "loci.tsv", pd.DataFrame({"locus": [1, 2], "rank": [1, 2]}))
    counts = replicate_hits(
        {2: (tmp_path / "pairs.tsv", tmp_path / "loci.tsv")}, [prefix], sheet, case,
        tmp_path / "replication.tsv", tmp_path / "by_cohort.tsv",
        divided=divide_people(sheet, case, "half", founders=(), strata="none", seed=5),
        strata="none", tests={2: 15},
    )  # fmt: skip
    assert counts == {"people": int((~half).sum()), "leads": 2, "confirmed": 1}
    table = read_table(tmp_path / "replication.tsv")
    others = np.flatnonzero(~half)
    others = others[np.argsort(case[others], kind="stable")]
    n_controls = int((case[others] == 0).sum())
    for k, pair in enumerate(rows):
        counted = hit_tables(genotypes[list(pair)][:, others], n_controls)
        assert table.controls[k] == ",".join(map(str, counted[0].ravel()))
        assert float(table.lr_p[k]) == pytest.approx(interaction_test(counted)[2], rel=1e-4)
        assert float(table.p_replication[k]) == pytest.approx(
            min(1, 2 * float(table.lr_p[k])), rel=1e-4
        )
    assert float(table.p_replication[0]) < 1e-4 and float(table.p_replication[1]) > 0.05
    # In the cohorts of the other half the planted effect is as large as in the first one.
    effects = read_table(tmp_path / "by_cohort.tsv")
    assert effects.cohort.tolist() == sorted(set(sheet.cohort[~half])) * 2
    assert float(table.p_effect[0]) < 1e-4 and float(table.p_effect[1]) > 0.01
    assert abs(float(table.effect[0]) - 1) < 3 * float(table.se[0])
    assert (effects.n_cases.astype(int).groupby(effects.locus).sum() == case[~half].sum()).all()
