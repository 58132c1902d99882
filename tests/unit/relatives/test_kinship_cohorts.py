"""Whether kinship holds in each cohort: calls missing by genotype, and clones among newcomers."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scenes.missing import (
    judge_strangers,
    missing_by_genotype,
    missing_up_to_a_limit,
    siblings,
)
from support.operands import planes_of
from support.study import encode_cohorts, make_cohorts
from support.verdicts import write_relatives

from popdesic.cohort.panel import load_panel
from popdesic.core.files import write_json
from popdesic.core.tables import read_table, write_table
from popdesic.engine.select import cpu_backend
from popdesic.relatives.cohorts import TABLES, Limits, compare_cohorts
from popdesic.relatives.independence import judge_cohort, measure_resolution
from popdesic.relatives.kinship import (
    COLUMNS,
    RELATED,
    SAME,
    UNTOLD,
    choose_unrelated,
    join_pairs,
    related_newcomers,
    untold_pairs,
    without_faults,
)
from popdesic.relatives.missing_calls import largest_shift
from popdesic.relatives.resolution import resolve
from popdesic.report.kin_verdict import kin_verdict
from popdesic.report.sections.relatives import relatives_findings

BACKEND = cpu_backend(1)


@pytest.mark.parametrize("rates", [(m, 0, m) for m in (0.02, 0.05, 0.1, 0.3, 0.6)])
def test_missing_homozygotes_give_no_false_relatives(rates):
    told = [judge_strangers(missing_by_genotype(40, 3_000, rates, s), BACKEND) for s in range(3)]
    assert not any(one.third + one.second + one.first for one in told)
    if rates[0] >= 0.1:
        assert {one.fault for one in told} == {"missing"}
    if rates[0] == 0.6:  # they would be
        assert all(one.unjudged > 0.8 * one.pairs for one in told)


@pytest.mark.parametrize("rates", [(0, 0, 0), (0.05,) * 3, (0.4,) * 3])
def test_other_missing_calls_change_nothing(rates):
    for seed in range(5):
        told = judge_strangers(missing_by_genotype(40, 3_000, rates, seed), BACKEND)
        assert (told.fault, told.shift, told.first + told.second) == (None, 0.0, 0)


def frequencies(genotypes: np.ndarray) -> np.ndarray:
    called = genotypes >= 0
    return np.where(called, genotypes, 0).sum(axis=0) / np.maximum(2 * called.sum(axis=0), 1)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("families", [1, 2, 3])
def test_families_with_missing_calls_are_no_missing_homozygotes(families, rate):
    """Nearly all are siblings: kinship alone would say the same of missing homozygotes."""
    for seed in range(3):
        genotypes = siblings(30, 3_000, families, (rate,) * 3, seed)
        told = judge_strangers(genotypes, BACKEND)
        assert told.fault is None
        assert -0.01 < told.shift < 0.015
        assert told.first > 0.9 * families * (30 // families) * (30 // families - 1) / 2


def test_missing_homozygotes_are_found_in_families_too():
    for rates in ((0.15, 0, 0.15), (0.25, 0.02, 0.02)):
        told = judge_strangers(siblings(30, 3_000, 2, rates, 1), BACKEND)
        assert told.fault == "missing"


@pytest.mark.parametrize(("worst", "limit"), [(1, 0.1), (0.5, 0.2)])
def test_missing_homozygotes_are_found_where_a_limit_chose_the_sites(worst, limit):
    for seed in range(3):
        told = judge_strangers(missing_up_to_a_limit(60, 3_000, worst, limit, seed), BACKEND)
        assert told.fault == "missing" and told.median > 0.025


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_missing_heterozygotes_lower_kinship_by_what_is_told(rate):
    about = {"panel": "x", "sites": 30_000, "founders": 40, "max_mismatch": 0.02}
    for seed in range(3):
        told = judge_strangers(missing_by_genotype(40, 3_000, (0, rate, 0), seed), BACKEND)
        assert told.fault is None and told.first + told.second + told.third == 0
        assert told.shift == pytest.approx(told.median, abs=0.02)
        found = resolve(1e-5, 0.5, 1e-4, shifts=[told.shift], **about)
        assert found.lowered == pytest.approx(-told.shift, abs=1e-6)
        assert found.smallest_kinship == resolve(1e-5, 0.5, 1e-4, **about).smallest_kinship
        assert ("third" not in found.degrees and "first" in found.degrees) or rate == 0.3


def test_small_cohorts_are_judged_by_their_missing_calls():
    for seed in range(5):
        for rate in (0.0, 0.05, 0.2):
            genotypes = missing_by_genotype(40, 5_000, (rate,) * 3, seed)[:4]
            assert judge_cohort(planes_of(genotypes), np.full(5_000, 0.5), BACKEND) == (None, 0.0)
        genotypes = missing_by_genotype(40, 5_000, (0.4, 0, 0.4), seed)[:4]
        assert judge_cohort(planes_of(genotypes), np.full(5_000, 0.5), BACKEND)[0] == "missing"


def test_the_page_says_that_heterozygotes_are_missing_and_cohorts_small(tmp_path):
    about = {"panel": "x", "sites": 30_000, "founders": 40, "max_mismatch": 0.02}
    (tmp_path / "compare").mkdir()
    for lowered, level in ((0.0, None), (0.012, "note"), (0.05, "warning")):
        write_json(
            tmp_path / "compare/kinship.json",
            asdict(resolve(1e-5, 0.5, 1e-4, shifts=[-lowered], **about)),
        )
        said = [one for one in relatives_findings(tmp_path) if "Heterozygotes are" in one.text]
        assert [one.level for one in said] == ([level] if level else [])
        assert all(f"{lowered:.3f}" in one.text for one in said)
        write_table(tmp_path / "compare/kinship.tsv", pd.DataFrame(columns=COLUMNS))
        write_relatives(tmp_path)
        assert ("second" in kin_verdict(tmp_path, 0.05).split(" were found")[0]) == (lowered < 0.03)
    rows = [pair("c1", "f1", ("few", "many"), 0.26, "full siblings")]
    write_table(tmp_path / "compare/kinship.tsv", pd.DataFrame(rows, columns=COLUMNS))
    for cohort, size in (("few", 7), ("many", 8)):
        (tmp_path / f"cohorts/{cohort}").mkdir(parents=True)
        write_json(tmp_path / f"cohorts/{cohort}/planes.json", {"samples": ["s"] * size})
    texts = [one.text for one in relatives_findings(tmp_path)]
    assert [text for text in texts if text.startswith("Cohort few has close pairs")]
    assert not any("many" in text for text in texts if "inbred" in text)


def test_the_largest_shift_is_that_of_missing_homozygotes():
    af = np.full(4_000, 0.3)
    rng = np.random.default_rng(1)
    genotypes = sum((rng.random((60, 4_000)) < 0.3).astype(np.int8) for _ in range(2))
    genotypes[(genotypes != 1) & (rng.random(genotypes.shape) < 0.2)] = -1
    told = judge_strangers(genotypes, BACKEND)
    assert largest_shift(told.missing, af) == pytest.approx(told.median, abs=0.01)
    assert largest_shift(0.0, af) == largest_shift(0.5, np.zeros(3)) == 0


def clones_of(genotype: np.ndarray, n: int, lost: float, rng) -> np.ndarray:
    """Clones of one sample that lost the ALT allele at a share of its heterozygous sites."""
    rows = np.repeat(genotype[None], n, axis=0)
    rows[(rows == 1) & (rng.random(rows.shape) < lost)] = 0
    return rows


def test_clones_of_a_newcomer_cohort_are_found():
    rng = np.random.default_rng(5)
    af = rng.uniform(0.1, 0.9, 3_000)
    founders = sum((rng.random((40, 3_000)) < af).astype(np.int8) for _ in range(2))
    clones = clones_of(founders[0], 12, 0.4, rng)
    assert judge_cohort(planes_of(founders), af, BACKEND) == (None, 0.0)
    assert judge_cohort(planes_of(clones), af, BACKEND)[0] == "triangles"


def test_a_newcomer_of_clones_is_not_told_and_founders_are(tmp_path):
    """Through the tables of a pair of cohorts, as in a study."""
    founders, clones = make_cohorts((30, 12), n_sites=3_000, missing=0.0, seed=2)
    rng = np.random.default_rng(3)
    gametes = [rng.random(3_000) < founders.genotypes[:, k] / 2 for k in (0, 1)]
    founders.genotypes[:, 2] = sum(one.astype(np.int8) for one in gametes)  # a child
    clones.genotypes = clones_of(founders.genotypes[:, 5], 12, 0.4, rng).T
    folders = encode_cohorts(tmp_path, [founders, clones])
    panel = tmp_path / "panel.tsv"
    found = measure_resolution(folders[:1], panel, tmp_path / "k.json", BACKEND, max_mismatch=0.02)
    limits = Limits(0.0884, 0.005, 1, found, top=1)
    af, tables = load_panel(panel)[0].af.to_numpy(), []
    for k, (a, b) in enumerate(((0, 0), (0, 1), (1, 1))):
        out = {table: tmp_path / f"{k}.{table}.tsv" for table in TABLES}
        compare_cohorts(folders[a], folders[b], af, out, BACKEND, limits)
        tables.append(out["kinship"])
    raw = [set(read_table(path).relation) for path in tables]
    assert raw == [{RELATED}, *[{f"{UNTOLD}triangles of south"}] * 2]
    told = join_pairs(tables, tmp_path / "kinship.tsv")
    assert {frozenset(p) for p in zip(told.sample_a, told.sample_b, strict=True)} == {
        frozenset(("N00", "N02")),
        frozenset(("N01", "N02")),
    }
    untold = untold_pairs(tables, tmp_path / "untold.tsv")
    assert untold.to_numpy().tolist() == [["south", "triangles", 66 + 12]]


def pair(a: str, b: str, cohorts: tuple[str, str], kinship: float, relation: str) -> list:
    return [a, b, *cohorts, 900, 0, 300, 300, 200, kinship, relation]


@pytest.fixture
def tiles(tmp_path):
    rows = [
        pair("c1", "c2", ("clones", "clones"), 0.3, "parent and child"),
        pair("c1", "c3", ("clones", "clones"), 0.45, SAME),
        pair("f1", "c1", ("old of all", "clones"), 0.2, "full siblings"),
        pair("f1", "f2", ("old of all", "old of all"), 0.25, "parent and child"),
    ]
    table = without_faults(
        pd.DataFrame(rows, columns=COLUMNS), {"clones": "triangles", "old of all": None}
    )
    assert table.relation.str.startswith(UNTOLD).tolist() == [True, False, True, False]
    write_table(tmp_path / "tile.tsv", table)
    return [tmp_path / "tile.tsv"]


def test_pairs_of_a_failing_cohort_are_not_told(tiles, tmp_path):
    told = join_pairs(tiles, tmp_path / "kinship.tsv")
    assert list(zip(told.sample_a, told.sample_b, strict=True)) == [("c1", "c3"), ("f1", "f2")]
    unrelated = pd.DataFrame({"sample": ["f1", "f2"], "unrelated": ["yes", "no"]})
    assert related_newcomers(tiles, ["c1", "c2", "c3"], unrelated, 0.1) == {"c3"}
    untold = untold_pairs(tiles, tmp_path / "untold.tsv")
    assert untold.to_numpy().tolist() == [["clones", "triangles", 2]]


def test_a_cohort_name_may_hold_the_word_between(tmp_path):
    rows = [pair("a", "b", ("old of all", "old of all"), 0.3, "full siblings")]
    table = without_faults(pd.DataFrame(rows, columns=COLUMNS), {"old of all": "missing"})
    write_table(tmp_path / "tile.tsv", table)
    untold = untold_pairs([tmp_path / "tile.tsv"], tmp_path / "untold.tsv")
    assert untold.to_numpy().tolist() == [["old of all", "missing", 1]]


def test_the_page_says_in_which_cohort_kinship_fails(tiles, tmp_path):
    results = tmp_path / "results/compare"
    results.mkdir(parents=True)
    join_pairs(tiles, results / "kinship.tsv")
    untold_pairs(tiles, results / "kinship_untold.tsv")
    warnings = [one for one in relatives_findings(tmp_path / "results") if one.level == "warning"]
    (text,) = [one.text for one in warnings]
    assert "fails in cohort clones" in text
    assert "2 close pairs" in text
    write_relatives(tmp_path / "results")
    said = kin_verdict(tmp_path / "results", 0.0884)
    assert "In cohort clones KING-robust kinship fails" in said
    write_table(results / "kinship_untold.tsv", untold_pairs([], results / "kinship_untold.tsv"))
    assert "does not hold" not in kin_verdict(tmp_path / "results", 0.0884)


def test_large_groups_of_siblings_may_be_clones(tmp_path):
    (tmp_path / "compare").mkdir()
    names = [f"s{k}" for k in range(8)]
    rows = [
        pair(a, b, ("x", "x"), 0.26, RELATED) for k, a in enumerate(names) for b in names[k + 1 :]
    ]
    path = tmp_path / "compare/kinship.tsv"
    for kept, said in ((rows, True), (rows[:14], False)):
        write_table(path, pd.DataFrame(kept, columns=COLUMNS))
        texts = [one.text for one in relatives_findings(tmp_path)]
        assert any("8 samples look like full siblings" in text for text in texts) == said


def test_a_founder_cohort_that_fails_keeps_its_samples_as_founders_of_the_axes(tiles, tmp_path):
    """Only duplicates count among its samples."""
    about = {"panel": "x", "sites": 900, "founders": 5, "max_mismatch": 0.02}
    fams = {}
    for cohort, names in (("clones", ["c1", "c2", "c3"]), ("old of all", ["f1", "f2"])):
        fams[cohort] = tmp_path / cohort
        fams[cohort].with_suffix(".fam").write_text(
            "".join(f"0 {name} 0 0 0 -9\n" for name in names)
        )
    found = choose_unrelated(
        tiles,
        fams,
        tmp_path / "unrelated.tsv",
        max_kinship=0.0884,
        resolution=resolve(1e-4, 0.4, 1e-4, **about),
    )
    assert found["unrelated"] == 3
    table = read_table(tmp_path / "unrelated.tsv").set_index("sample")
    assert table.unrelated[["c2", "f1"]].tolist() == ["yes", "yes"]
