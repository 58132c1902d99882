"""The panel: every filter, founders only, swapped founders, and errors where no site is left."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.study import make_cohorts, write_raw

from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.match import match_sites
from popdesic.cohort.panel import load_panel
from popdesic.cohort.panel_steps import steps_of
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.io.bed import read_bim
from popdesic.io.sites import contig_order, is_ambiguous

#: Filters that remove nothing.
OPEN = {"exclude_contigs": [], "min_call_rate": 0.0, "min_maf": 0.0, "min_hwe_p": 0.0}
#: chrom, pos, id, ref, alt, n_ref, n_het, n_alt, n_missing, hwe_p_min
SITES = [
    ("10", 100, "rs1", "A", "C", 5, 10, 5, 0, 1.0),
    ("2", 300, "rs2", "G", "A", 1, 2, 17, 0, 0.5),
    ("2", 200, "rs3", "T", "C", 12, 4, 0, 4, 1.0),
    ("X", 50, "rs4", "G", "T", 4, 8, 8, 0, 1.0),
    ("2", 400, "rs5", "A", "T", 10, 0, 10, 0, 1e-8),
    ("2", 500, "rs6", "C", "T", 20, 0, 0, 0, 1.0),
]
COLUMNS = ["chrom", "pos", "id", "ref", "alt", "n_ref", "n_het", "n_alt", "n_missing", "hwe_p_min"]


def write_sites(path: Path, sites: list[tuple]) -> Path:
    rows = [(*site, 1 - site[8] / sum(site[5:9])) for site in sites]
    lines = ["\t".join([*COLUMNS, "call_rate_bound"])]
    lines += ["\t".join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(tmp_path, founders: dict[str, list[tuple]], **filters):
    tables = {name: write_sites(tmp_path / f"{name}.tsv", rows) for name, rows in founders.items()}
    steps = build_panel(
        tables, tmp_path / "sites.tsv", tmp_path / "counts.json", PanelFilters(**(OPEN | filters))
    )
    panel, digest = load_panel(tmp_path / "sites.tsv")
    return panel, digest, steps


def swap(site: tuple) -> tuple:
    chrom, pos, name, ref, alt, n_ref, n_het, n_alt, n_missing, p = site
    return (chrom, pos, name, alt, ref, n_alt, n_het, n_ref, n_missing, p)


def test_columns_and_order(tmp_path):
    panel, digest, steps = run(tmp_path, {"a": SITES})
    assert list(panel.columns) == ["chrom", "pos", "id", "ref", "alt", "af", "mode", "n_called"]
    assert panel.id.tolist() == ["rs3", "rs2", "rs5", "rs6", "rs1", "rs4"]
    assert panel.pos.tolist() == [200, 300, 400, 500, 100, 50]
    by_id = panel.set_index("id")
    assert by_id.af["rs3"] == 4 / 32
    assert by_id.af["rs2"] == 36 / 40
    assert by_id["mode"].to_dict() == {"rs1": 1, "rs2": 2, "rs3": 0, "rs4": 1, "rs5": 0, "rs6": 0}
    assert by_id.n_called["rs3"] == 16
    counts = json.loads((tmp_path / "counts.json").read_text())
    listed = steps_of(counts)
    assert counts == {"digest": digest, "n_sites": 6, "steps": list(map(asdict, listed))}
    assert {step.text: step.sites for step in listed} == steps
    first = (tmp_path / "sites.tsv").read_text().split("\n")[0]
    assert first == f"# panel {digest}, 6 sites"


@pytest.mark.parametrize(
    ("filters", "gone"),
    [
        ({"exclude_contigs": ["X", "10"]}, {"rs1", "rs4"}),
        ({"min_call_rate": 0.81}, {"rs3"}),
        ({"min_call_rate": 0.8}, set()),
        ({"min_maf": 0.11}, {"rs2", "rs6"}),
        ({"min_maf": 0.1}, {"rs6"}),
        ({"min_hwe_p": 1e-6}, {"rs5"}),
        ({"min_hwe_p": 0.5}, {"rs5"}),
    ],
    ids=lambda value: str(value if isinstance(value, dict) else sorted(value)),
)
def test_each_filter(tmp_path, filters, gone):
    panel, _, steps = run(tmp_path, {"a": SITES}, **filters)
    assert set(panel.id) == {site[2] for site in SITES} - gone
    if gone:
        name = next(iter(filters))
        name = "contigs.exclude" if "contigs" in name else f"panel.{name}"
        step = next(step for step in steps if step.startswith(f"after {name}"))
        assert steps[step] == len(SITES) - len(gone)


def test_regions_of_bed_files(tmp_path):
    """Starts count from 0, ends are not included, `chr1` is `1`."""
    sites = [
        (chrom, pos, f"s{pos}", "A", "C", 5, 4, 3, 0, 0.5) for chrom in "12" for pos in (9, 10, 20)
    ]
    (tmp_path / "in.bed").write_text("#mask\nchr1\t9\t20\n2\t0\t10\n")
    (tmp_path / "out.bed").write_text("chr2\t8\t9\tgene\n")
    options = {"include": str(tmp_path / "in.bed"), "exclude": str(tmp_path / "out.bed")}
    panel, _, steps = run(tmp_path, {"a": sites}, **options)
    assert list(zip(panel.chrom, panel.pos, strict=True)) == [("1", 10), ("1", 20), ("2", 10)]
    assert [n for name, n in steps.items() if "clude = " in name] == [4, 3]
    (tmp_path / "in.bed").write_text("1\t9\t20\n1\t30\t20\n")
    with pytest.raises(UserError, match=r"in\.bed \(panel\.include\), row 2: '1 30 20' is not"):
        run(tmp_path, {"a": sites}, **options)


def test_a_site_without_calls_is_never_kept(tmp_path):
    empty = ("1", 1, "rs0", "A", "C", 0, 0, 0, 20, 1.0)
    panel, _, _ = run(tmp_path, {"a": [empty, *SITES]})
    assert "rs0" not in set(panel.id)


def test_two_founders_share_sites_and_add_counts(tmp_path):
    extra = ("5", 1, "own", "A", "C", 1, 1, 1, 0, 1.0)
    b = [(*site[:2], "other", *site[3:9], 0.25) for site in SITES[:4]]
    panel, _, steps = run(tmp_path, {"b": [extra, *b], "a": [*SITES]})
    assert panel.id.tolist() == ["rs3", "rs2", "rs1", "rs4"]
    assert panel.n_called.tolist() == [32, 40, 40, 40]
    assert panel.af.tolist() == [8 / 64, 72 / 80, 0.5, 48 / 80]
    assert steps["sites of founder a"] == 6
    assert steps["sites of founder b"] == 5
    assert steps["sites shared with founder b"] == 4


def test_the_smallest_p_over_founders_is_used(tmp_path):
    b = [(*site[:9], 1e-9 if site[2] == "rs1" else 1.0) for site in SITES]
    panel, _, _ = run(tmp_path, {"a": SITES, "b": b}, min_hwe_p=1e-6)
    assert set(panel.id) == {"rs2", "rs3", "rs4", "rs6"}


def test_a_cohort_may_not_miss_a_site_whole(tmp_path):
    """The call rate counts in every cohort: over all samples, 20 of 420 missing are few."""
    large = [(*site[:5], *(20 * n for n in site[5:9]), site[9]) for site in SITES[:2]]
    missed = (*SITES[0][:5], 0, 0, 0, 20, 1.0)
    panel, _, _ = run(tmp_path, {"a": large, "b": [missed, SITES[1]]}, min_call_rate=0.95)
    assert panel.id.tolist() == ["rs2"]


def test_swapped_alleles_of_a_founder_are_exchanged(tmp_path):
    plain, digest, _ = run(tmp_path, {"a": SITES, "b": SITES})
    b = [swap(site) for site in SITES]
    panel, other, steps = run(tmp_path, {"a": SITES, "b": b})
    assert steps["swapped REF/ALT turned in founder b"] == 5
    assert steps["swapped and strand-ambiguous (A/T, C/G) dropped, founder b"] == 1
    assert set(panel.id) == {site[2] for site in SITES} - {"rs5"}
    expected = plain[plain.id != "rs5"].reset_index(drop=True)
    assert panel.equals(expected)
    assert other != digest


def test_case_of_alleles_does_not_matter(tmp_path):
    b = [(*site[:3], site[3].lower(), site[4].lower(), *site[5:]) for site in SITES]
    _, digest, steps = run(tmp_path, {"a": SITES, "b": b})
    assert steps["swapped REF/ALT turned in founder b"] == 0
    assert digest == run(tmp_path, {"a": SITES, "b": SITES})[1]


def test_first_of_repeated_sites_counts(tmp_path):
    again = (*SITES[0][:5], 20, 0, 0, 0, 1.0)
    for founders in ({"a": [*SITES, again]}, {"a": [*SITES, swap(again)]}):
        panel, _, _ = run(tmp_path, founders)
        assert panel.set_index("id").af["rs1"] == 0.5
        assert len(panel) == 6


def test_digest_depends_on_content_alone(tmp_path):
    _, digest, _ = run(tmp_path, {"a": SITES, "b": SITES[:5]})
    assert digest == run(tmp_path, {"b": SITES[:5], "a": SITES})[1], "not the order of founders"
    assert digest == run(tmp_path, {"a": SITES, "b": SITES[:5]}, min_maf=0.01)[1]
    changed = [*SITES[:4], (*SITES[4][:5], 11, 0, 9, 0, 1e-8)]
    assert digest != run(tmp_path, {"a": SITES, "b": changed})[1]


def test_same_bytes_twice(tmp_path):
    contents = []
    for _ in range(2):
        run(tmp_path, {"a": SITES})
        contents.append([(tmp_path / f).read_bytes() for f in ("sites.tsv", "counts.json")])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("filters", "founders", "step", "before"),
    [
        ({"exclude_contigs": ["2", "X", "10"]}, {"a": SITES}, "contigs.exclude", 6),
        ({"min_call_rate": 1.0}, {"a": SITES[2:3]}, "panel.min_call_rate = 1.0", 1),
        ({"min_maf": 0.5}, {"a": SITES[1:3]}, "panel.min_maf = 0.5", 2),
        ({"min_hwe_p": 0.1}, {"a": SITES[4:5]}, "panel.min_hwe_p = 0.1", 1),
        ({}, {"a": SITES[:2], "b": SITES[2:]}, "sites shared with founder b", 2),
        (
            {},
            {"a": SITES[4:5], "b": [swap(SITES[4])]},
            "swapped and strand-ambiguous (A/T, C/G) dropped, founder b",
            1,
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_the_filter_that_removes_the_last_sites_is_named(tmp_path, filters, founders, step, before):
    with pytest.raises(UserError) as error:
        run(tmp_path, founders, **filters)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert f"({before} before the step '{step}', 0 after it)" in sentence
    assert not (tmp_path / "sites.tsv").exists()
    assert not (tmp_path / "counts.json").exists()


def test_all_filters_in_a_row(tmp_path):
    """Counts of the steps never rise, and each equals what its filter keeps."""
    _, _, steps = run(
        tmp_path,
        {"a": SITES},
        exclude_contigs=["X"],
        min_call_rate=0.9,
        min_maf=0.05,
        min_hwe_p=1e-6,
    )
    after = [n for step, n in steps.items() if step.startswith("after")]
    assert after == [5, 4, 3, 2]


def test_a_file_that_is_not_a_panel_is_refused(tmp_path):
    path = tmp_path / "sites.tsv"
    path.write_text("chrom\tpos\n")
    with pytest.raises(UserError, match=re.escape(f"{path}, row 1")):
        load_panel(path)


def test_genome_order():
    names = ["X", "chr10", "2", "chr2", "1", "22", "scaffold_1", "MT"]
    assert sorted(names, key=contig_order) == [
        "1", "2", "chr2", "chr10", "22", "MT", "X", "scaffold_1",
    ]  # fmt: skip


def test_ambiguous_pairs():
    pairs = [(x, y) for x in "ACGT" for y in "ACGT" if x != y]
    found = is_ambiguous(*zip(*pairs, strict=True))
    np.testing.assert_array_equal(found, [{x, y} in ({"A", "T"}, {"C", "G"}) for x, y in pairs])


@pytest.mark.parametrize("names", [("chr", ""), ("", "chr"), ("Chr", "chr")])
def test_chr1_and_1_are_one_contig(tmp_path, names):
    cohorts = make_cohorts((6, 7), n_sites=30, missing=0)
    tables = {}
    for prefix, cohort in zip(names, cohorts, strict=True):
        sites = [(f"{prefix}{s[0]}", *s[1:]) for s in cohort.sites]
        raw = write_raw(tmp_path / cohort.name, replace(cohort, sites=sites))
        tables[cohort.name] = tmp_path / f"{cohort.name}.tsv"
        out = tables[cohort.name], tmp_path / "samples"
        summarize_cohort(raw, {}, *out, min_sample_call_rate=0)
    build_panel(tables, tmp_path / "panel", tmp_path / "counts", PanelFilters(**OPEN))
    panel, _ = load_panel(tmp_path / "panel")
    assert set(panel.chrom) == {f"{names[0]}1", f"{names[0]}2"}  # as in the first founder
    assert len(panel) == 30
    assert (panel.n_called == 13).all()
    for cohort in cohorts:
        row, _, _ = match_sites(read_bim(tmp_path / cohort.name), panel)
        assert (np.sort(row) == np.arange(30)).all()


def test_a_cohort_with_the_sites_of_the_first_is_added_row_by_row_as_it_would_be_joined(rng):
    """Sites that come again swapped, palindromic ones, lower case, p values that are missing."""
    from popdesic.cohort.absent import COUNTS as NAMES
    from popdesic.cohort.merge_founders import Union

    n = 300
    alleles = np.array(list("ACGTacgt"), dtype=object)
    sites = pd.DataFrame(
        {
            "chrom": rng.choice(["1", "chr2", "10"], n),
            "pos": rng.integers(1, 60, n),
            "ref": rng.choice(alleles, n),
            "alt": rng.choice(alleles, n),
        }
    ).drop_duplicates(ignore_index=True)
    sites = sites[sites.ref.str.upper() != sites.alt.str.upper()].reset_index(drop=True)

    def table() -> pd.DataFrame:
        counts = {name: rng.integers(0, 50, len(sites)) for name in NAMES}
        p = np.where(rng.random(len(sites)) < 0.1, np.nan, rng.random(len(sites)))
        return sites.assign(**counts, hwe_p_min=p, call_rate_bound=rng.random(len(sites)))

    first, second, third = table(), table(), table()
    results = []
    for quick in (False, True):
        union = Union({}, {}, {})
        union.add("a", first.assign(id="x"))
        assert any(step.what == "repeated" for step in union.steps)
        if not quick:
            union._row = None  # as if other sites had been added
        union.add("b", second)
        union.add("c", third)
        results.append((union.finished([]), union.steps))
    pd.testing.assert_frame_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


def test_one_site_for_each_position(tmp_path):
    """The one of the highest minor allele frequency, whatever the order of files; others are
    further sites, at which both alleles were seen.
    """
    sites = [
        ("1", 100, ".", "A", "C", 15, 4, 1, 0, 1.0),  # 0.15
        ("1", 100, ".", "A", "G", 2, 4, 14, 0, 1.0),  # 0.2 of REF
        ("1", 100, ".", "A", "T", 20, 0, 0, 0, 1.0),
        ("1", 101, ".", "G", "A", 10, 8, 2, 0, 1.0),  # as common as the next
        ("1", 101, ".", "G", "GA", 10, 8, 2, 0, 1.0),
        ("2", 100, ".", "A", "C", 10, 9, 1, 0, 1.0),
    ]
    open_, _, _ = run(tmp_path, {"a": sites})
    assert len(open_) == len(sites)
    found = set()
    for order in (sites, sites[::-1]):
        panel, digest, steps = run(tmp_path, {"a": order}, one_per_position=True)
        found.add((digest, *zip(panel.chrom, panel.pos, panel.alt, strict=True)))
        assert steps["after keeping one site for each position"] == len(panel) == 3
    assert {one[1:] for one in found} == {(("1", 100, "G"), ("1", 101, "A"), ("2", 100, "C"))}
    assert len(found) == 1
    listed = write_sites(tmp_path / "a.tsv", sites)
    filters = PanelFilters(**OPEN | {"one_per_position": True})
    places = (tmp_path / "sites.tsv", tmp_path / "counts.json")
    build_panel({"a": listed}, *places, filters, further_out=tmp_path / "further.tsv")
    further, _ = load_panel(tmp_path / "further.tsv")
    assert set(zip(further.pos, further.alt, strict=True)) == {(100, "C"), (101, "GA")}
