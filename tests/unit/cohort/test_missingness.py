"""Missing calls that are more common in one group: drawn with and without a difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.plink_files import write_plink
from support.sentences import MOST_WORDS, Found, split
from support.study import NO_FILTERS, make_cohorts, write_raw

from popdesic.cohort.absent import Absent
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.missingness import (
    MAX_P,
    MOST_LISTED,
    Comparison,
    compare_missing,
    fisher_p,
    judge,
)
from popdesic.cohort.phenotype import case_control
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.report.findings import missing_calls
from popdesic.report.words import number


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 7), (30, 30), (120, 45), (900, 100)])
def test_p_is_that_of_fisher(n, m):
    from scipy.stats import fisher_exact

    rng = np.random.default_rng(n)
    a = np.concatenate([[0, n, 0, n], rng.integers(0, n + 1, 60)])
    b = np.concatenate([[0, m, m, 0], rng.integers(0, m + 1, 60)])
    found = fisher_p(a, b, n, m)
    asked = [fisher_exact([[x, n - x], [y, m - y]])[1] for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(found, asked, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(fisher_p(b, a, m, n), found, rtol=1e-9)


def test_p_of_nothing_and_of_the_impossible():
    empty = np.empty(0, np.int64)
    assert len(fisher_p(empty, empty, 5, 5)) == 0
    (p,) = fisher_p(np.array([40_000]), np.array([0]), 40_000, 40_000)
    assert 0 < p < 1e-300


def places(n: int) -> pd.DataFrame:
    return pd.DataFrame({"chrom": "1", "pos": np.arange(1, n + 1), "id": "."})


def drawn(rng, sizes: list[int], n_sites: int) -> list[Comparison]:
    """Groups that miss calls alike, at rates that differ by site; each with all others."""
    rate = rng.beta(0.5, 12.0, n_sites)
    missing = [rng.binomial(n, rate) for n in sizes]
    total, whole = np.sum(missing, axis=0), sum(sizes)
    return [
        Comparison("cohort", f"cohort {k}", "the other founders", n, whole - n, own, total - own)
        for k, (n, own) in enumerate(zip(sizes, missing, strict=True))
    ]


@pytest.mark.parametrize(
    "sizes", [[20, 20], [40, 200], [100, 100, 100], [5, 60, 400], [150, 90, 30, 12]], ids=str
)
def test_equal_groups_are_not_listed(sizes):
    """Of 200 studies no more than MAX_P list any site."""
    listed = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, *sizes])
        about, table = judge(drawn(rng, sizes, 500), places(500))
        listed += len(table) > 0
        assert sum(one["different"] for one in about["comparisons"]) == len(table)
    assert listed <= 200 * MAX_P


def test_what_is_not_corrected_would_be_listed():
    """The sites of these studies reach p below MAX_P: only the correction keeps them out."""
    one = drawn(np.random.default_rng(1), [100, 100], 2_000)[0]
    p = fisher_p(one.missing, one.missing_other, 100, 100)
    assert (p < MAX_P).sum() > 2


@pytest.mark.parametrize(("sizes", "share"), [([40, 40], 0.7), ([30, 300], 0.4), ([500, 500], 0.1)])
def test_planted_differences_are_found(sizes, share):
    """In all of 20 draws, at 9 of 10 of the planted sites or more, and at no other."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        one = drawn(rng, sizes, 500)[0]
        one = replace(one, missing=one.missing.copy())
        planted = np.arange(0, 100, 10)
        one.missing[planted] = rng.binomial(one.samples, share, len(planted))
        one.missing_other[planted] = rng.binomial(one.samples_other, 0.005, len(planted))
        about, table = judge([one], places(500))
        assert set(table.pos - 1) <= set(planted.tolist())
        assert about["comparisons"][0]["different"] == len(table) >= 9


def test_the_table_is_bounded_and_has_the_smallest_p():
    n = MOST_LISTED + 50
    strong = np.full(n, 30)
    strong[:50] = 25
    one = Comparison("cohort", "cohort a", "cohort b", 100, 100, strong, np.zeros(n, np.int64))
    about, table = judge([one], places(n))
    (counts,) = about["comparisons"]
    assert (counts["different"], counts["listed"], len(table)) == (n, MOST_LISTED, MOST_LISTED)
    assert table.pos.min() == 51
    assert (table.p.diff().dropna() >= 0).all()


# --- from files -------------------------------------------------------------------------------

SIZES = {"a": 60, "b": 50, "c": 40, "new": 30}


@pytest.fixture
def study(tmp_path):
    """Cohorts at 300 sites; b lacks calls at sites 3 and 77, cases do at 150."""
    rng = np.random.default_rng(5)
    n = sum(SIZES.values())
    genotypes = rng.integers(0, 3, (300, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    cohort = np.repeat(list(SIZES), list(SIZES.values()))
    case = rng.integers(0, 2, n)
    genotypes[np.ix_([3, 77], cohort == "b")] = np.where(rng.random((2, 50)) < 0.7, -1, 1)
    genotypes[150, (case == 1) & (rng.random(n) < 0.6)] = -1
    genotypes[200] = -1
    stems = {}
    for name in SIZES:
        stems[name] = tmp_path / name
        names = [f"{name}{k}" for k in range(SIZES[name])]
        write_plink(tmp_path / name, genotypes[:, cohort == name], names)
    table = pd.DataFrame({"chrom": "1", "pos": 100_000 * np.arange(1, 301)})
    table = table.assign(id=[f"site{i}" for i in range(300)], ref="G", alt="A", af=0.5, mode=1)
    text = table.assign(n_called=n).to_csv(sep="\t", index=False)
    (tmp_path / "panel.tsv").write_text(f"# panel 0123456789ab, 300 sites\n{text}")
    names = [f"{name}{k}" for name, size in SIZES.items() for k in range(size)]
    sheet = pd.DataFrame({"sample": names, "phenotype": case.astype(str)})
    sheet.loc[[1, 70], "phenotype"] = "NA"
    return stems, sheet, genotypes, cohort, tmp_path


def compared(study, founders=("a", "b", "c"), cohorts=SIZES, traits=True):
    stems, sheet, _, _, folder = study
    out = folder / "out.tsv", folder / "out.json"
    classes = {"phenotype": case_control(sheet, "sheet")} if traits else {}
    compare_missing({c: stems[c] for c in cohorts}, founders, classes, folder / "panel.tsv", *out)
    return read_table(out[0]), read_json(out[1])


def test_cohorts_and_classes_are_compared(study):
    _, sheet, genotypes, cohort, _ = study
    table, about = compared(study)
    found = {group: set(rows.id) for group, rows in table.groupby("group")}
    assert found["cohort b"] == {"site3", "site77"}
    assert found["cases of phenotype"] == {"site150"}
    assert "site200" not in set(table.id)  # missing in all
    for row in table.itertuples():
        site = genotypes[int(row.id.removeprefix("site"))] < 0
        if row.group.startswith("cohort"):
            own = cohort == row.group.removeprefix("cohort ")
            rest = ~own & (cohort != "new")
        else:
            own, rest = ((sheet.phenotype == value).to_numpy() for value in ("1", "0"))
        shares = [f"{site[which].mean():.6g}" for which in (own, rest)]
        assert [row.missing, row.missing_other] == shares
        assert float(row.p_corrected) == pytest.approx(float(row.p) * about["tests"], rel=1e-5)
        assert float(row.p_corrected) < MAX_P
    some = [
        ((share := (genotypes[:, which] < 0).mean(axis=1)) > 0) & (share < 1)
        for which in (cohort != "new", (sheet.phenotype != "NA").to_numpy())
    ]
    assert about["tests"] == 3 * some[0].sum() + some[1].sum() < 4 * 299
    sizes = [(one["samples"], one["samples_other"]) for one in about["comparisons"]]
    known = [int((sheet.phenotype == value).sum()) for value in ("1", "0")]
    assert sizes == [(60, 90), (50, 100), (40, 110), tuple(known)]


def test_two_cohorts_are_compared_once_and_one_not_at_all(study):
    _, about = compared(study, founders=("a", "b"), traits=False)
    (one,) = about["comparisons"]
    assert (one["group"], one["other"]) == ("cohort a", "cohort b")
    table, about = compared(study, founders=("a",), traits=False)
    assert about["comparisons"] == [] and about["tests"] == 0
    assert len(table) == 0 and list(table)[:5] == ["chrom", "pos", "id", "group", "other"]


def test_a_newcomer_changes_nothing_between_founders(study):
    folder = study[-1]
    compared(study, cohorts=("a", "b", "c"), traits=False)
    before = [(folder / name).read_bytes() for name in ("out.tsv", "out.json")]
    compared(study, traits=False)
    assert [(folder / name).read_bytes() for name in ("out.tsv", "out.json")] == before


@pytest.mark.parametrize(("rule", "differ"), [("reference", 0), ("missing", 12)])
def test_absent_sites_that_are_reference_are_called(tmp_path, rule, differ):
    """South lacks 12 sites in its file."""
    north, south = make_cohorts((30, 30), missing=0.01)
    rest = [k for k in range(len(south.sites)) if not 100 <= k < 112]
    south = replace(south, sites=[south.sites[k] for k in rest], genotypes=south.genotypes[rest])
    stems = {}
    for cohort in (north, south):
        stems[cohort.name] = folder = tmp_path / cohort.name
        raw, tables = write_raw(folder / "raw", cohort), (folder / "sites.tsv", folder / "s.tsv")
        summarize_cohort(raw, {}, *tables, min_sample_call_rate=0.0)
        if cohort is north:
            panel = tmp_path / "panel.tsv"
            build_panel(
                {"north": tables[0]}, panel, tmp_path / "counts.json", PanelFilters(**NO_FILTERS)
            )
        way = {"impute": "none", "cohort": cohort.name, "absent": Absent(rule)}
        encode_cohort(raw, tables[1], panel, folder, **way)
        stems[cohort.name] = folder / "genotypes"
    out = tmp_path / "out.tsv", tmp_path / "out.json"
    (found,) = compare_missing(stems, ["north", "south"], {}, panel, *out)
    assert found["different"] == differ


def test_the_page_says_what_the_table_holds(study):
    table, about = compared(study)
    cohorts, classes = missing_calls(about)
    assert [cohorts.level, classes.level] == ["note", "warning"]  # fewer than 1 % of the sites
    for finding, group in ((cohorts, "cohort b"), (classes, "cases of phenotype")):
        rows = table[table.group == group].astype({"missing": float, "missing_other": float})
        worst = rows.loc[(rows.missing - rows.missing_other).abs().idxmax()]
        assert (
            f"At {len(rows)} of 300 panel sites the share of missing calls differs between {group} "
            f"and {worst.other}, most at {worst.chrom}:{worst.pos} ({100 * worst.missing:.1f} % "
            f"missing against {100 * worst.missing_other:.1f} %)." in finding.text
        )
        assert f"p < 0.01 by Fisher's exact test, corrected for {number(about['tests'])} tests" in (
            finding.text
        )
        assert max(Found("", sentence).words for sentence in split(finding.text)) <= MOST_WORDS
    assert "like structure between the cohorts" in cohorts.text
    assert "like association in a scan" in classes.text


def test_the_page_warns_of_cohorts_by_the_share_of_sites(study):
    _, about = compared(study)
    few = [one | {"different": min(one["different"], 2)} for one in about["comparisons"]]
    for sites, levels in ((300, ["note", "warning"]), (150, ["warning", "warning"])):
        found = missing_calls(about | {"comparisons": few, "sites": sites})
        assert [one.level for one in found] == levels
        assert ("fewer than 1 % of the sites" in found[0].text) == (levels[0] == "note")


def test_the_page_says_that_nothing_differs(study):
    stems, _, _, _, _ = study
    rng = np.random.default_rng(2)
    for name, size in SIZES.items():
        genotypes = np.where(rng.random((300, size)) < 0.02, -1, 1).astype(np.int8)
        write_plink(stems[name], genotypes, [f"{name}{k}" for k in range(size)])
    table, about = compared(study)
    assert len(table) == 0
    cohorts, classes = missing_calls(about)
    assert {cohorts.level, classes.level} == {"note"}
    sentences = [*split(cohorts.text), *split(classes.text)]
    assert max(Found("", sentence).words for sentence in sentences) <= MOST_WORDS
    n = about["comparisons"][0]["compared"]
    assert cohorts.text.startswith(
        "At none of 300 panel sites does the share of missing calls differ between one of 3 "
        "founder cohorts and the others"
    )
    assert cohorts.text.endswith(f"corrected for {number(about['tests'])} tests.")
    assert f"Calls are missing at {n} of them." in cohorts.text
    assert "between cases of phenotype and controls of phenotype" in classes.text


@pytest.mark.parametrize("values", [["1", "1"], ["0.5", "1"], ["0", "1", "2.5"], ["NA", "NA"]])
def test_other_phenotypes_have_no_classes(values):
    samples = pd.DataFrame({"sample": list("abc")[: len(values)], "phenotype": values})
    assert case_control(samples, "sheet") is None
    assert case_control(samples[["sample"]], "sheet") is None


def test_codes_of_plink_are_classes():
    samples = pd.DataFrame({"sample": list("abc"), "phenotype": ["2", "NA", "1"]})
    assert case_control(samples, "sheet").to_dict() == {"a": 1, "c": 0}
