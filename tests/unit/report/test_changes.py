"""What changed since the last report: what is kept, what is said of which change, and silence."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from support.outcomes import EMPTY, FIGURES, configuration, make_results
from support.verdicts import write_relatives

from popdesic.core.files import write_json
from popdesic.core.tables import write_table
from popdesic.report import changes
from popdesic.report.changes import LAST, changes_section, marked_samples, recall
from popdesic.report.outcome import Outcome
from popdesic.report.page import write_report
from popdesic.report.pagedata import closest_relatives

OLD = [f"o{i}" for i in range(12)]
NEW = [f"n{i}" for i in range(4)]


def report(folder: Path, cohorts: dict[str, list[str]], groups: dict[str, str]) -> tuple[str, dict]:
    """Write the results of a study, and its page in the place of an earlier one."""
    outcome, distances = make_results(folder, cohorts, ["old"])
    write_groups(outcome, groups)
    figures = outcome.folder / "figures"
    figures.mkdir(exist_ok=True)
    for name in FIGURES:
        (figures / f"{name}.svg").write_text(EMPTY)
    out = outcome.folder / "report/report.html"
    config = configuration()
    config["communities"]["methods"] = ["tree"]
    write_report(outcome, distances, figures, config, out)
    return out.read_text("utf-8"), json.loads((out.parent / LAST).read_text("utf-8"))


def write_groups(outcome: Outcome, groups: dict[str, str]) -> None:
    """Communities by sample; those that are not named are in the first."""
    names = outcome.samples["sample"]
    table = pd.DataFrame({"sample": names, "community": names.map(groups).fillna("1")})
    table = table.assign(stability="1", f_st="0.1", between="NA", fine=table.community)
    count = int(table.community.nunique())
    about = {"structure": "discrete", "communities": count, "fine": count, "between": []}
    split = {"samples": 12, "halves": [6, 6], "f_st": 0.1, "dip": 0.1, "p": 0.0, "valley": 0.1}
    about |= {"samples": len(table), "splits": [split], "within": [], "cline": None}
    about |= {"significant": 2, "components": 2, "coarse_f_st": 0.01}
    write_json(outcome.folder / "communities/communities.json", about)
    write_table(outcome.folder / "communities/partition.tsv", table)
    columns = ["label", "partition", "labels", "groups", "ari", "ami"]
    write_table(outcome.folder / "communities/agreement.tsv", pd.DataFrame(columns=columns))


def known(names: list[str], community: list[str | None], **further) -> dict:
    """Facts of a report."""
    about = {"samples": len(names), "panel": "x", "cohorts": ["old"], "communities": 2}
    about |= {"close_pairs": None}
    if "relatives" in further:
        about |= {"close_pairs": {}}
    facts = {"about": about, "findings": {"Samples": len(names)}, "samples": names}
    return facts | {"community": community, "relatives": {}} | further


def compare(tmp_path: Path, before: dict, now: dict) -> dict:
    cohorts = {"old": now["samples"]}
    outcome, _ = make_results(tmp_path / "study", cohorts, ["old"], matrices=False)
    return changes_section(before, now, outcome)


def test_a_cohort_arrives(tmp_path):
    """The first report is silent; the second lists counts and samples, and again when rewritten."""
    split = dict.fromkeys(OLD[6:], "2")
    first, _ = report(tmp_path, {"old": OLD}, split)
    assert 'id="changes"' not in first and "last report" not in first
    joined = {"old": OLD, "new": NEW}
    second, kept = report(tmp_path, joined, {**split, OLD[0]: "3", **dict.fromkeys(NEW, "3")})
    said = " ".join(second.split())
    for row in (
        '<th scope="row">Samples</th><td class="n">12</td><td class="n">16</td>',
        '<th scope="row">Cohorts</th><td class="n">1</td><td class="n">2</td>',
        '<th scope="row">Communities</th><td class="n">2</td><td class="n">3</td>',
    ):
        assert row in said
    assert "12 samples are in both reports and 4 are new. 1 sample has left its community." in said
    assert '<th scope="row">o0</th><td>old</td><td>community</td> <td>1</td><td>3</td>' in said
    assert "Since the last report: Cohort new arrived" in said
    assert 'href="#changes" aria-label="More on Since the last report"' in said
    assert '"changed since the last report"' in second
    again, same = report(tmp_path, joined, {**split, OLD[0]: "3", **dict.fromkeys(NEW, "3")})
    assert same == kept and again == second


def test_a_sample_that_left_leaves_no_name(tmp_path):
    """Neither the page nor the file has it, nor does it stand as a relative."""
    facts = known(["a", "gone", "c"], ["1", "1", "2"], relatives={"a": "gone (sibling)"})
    recall(tmp_path, facts)
    now = known(["a", "c"], ["1", "2"], relatives={})
    before, remark = recall(tmp_path, now)
    assert not remark and before["samples"] == ["a", "c"]
    assert "gone" not in (tmp_path / LAST).read_text()
    found = compare(tmp_path, before, now)
    (row,) = found["shown"]
    assert [row[k] for k in ("sample", "what", "before", "now")] == [
        *("a", "closest relative", "a sample that left", "none"),
    ]
    assert found["words"][0] == "2 samples are in both reports and 1 is no longer there."


def test_numbers_of_communities_may_change_and_communities_may_merge(tmp_path):
    names = [f"s{k}" for k in range(9)]
    before = known(names, list("111222333"))
    now = known(names, list("222211111"))
    found = compare(tmp_path, before, now)
    assert found["words"][0] == (
        "Most samples of the former communities 2 and 3 are now in community 1."
    )
    assert [(r["sample"], r["before"], r["now"]) for r in found["shown"]] == [
        ("s3", "2, most of which is now 1", "2")
    ]
    assert marked_samples(found).to_dict("records") == [{"sample": "s3", changes.MARK: "community"}]
    same = compare(tmp_path, before, known(names, list("333111222")))
    assert same["shown"] == [] and marked_samples(same) is None
    assert same["words"][-1].startswith("None of those in both")


def test_relatives_that_a_cohort_brings(tmp_path):
    """From the results: the closest relative of each sample by its kinship."""
    cohorts = {"old": OLD, "new": NEW}
    outcome, _ = make_results(tmp_path, cohorts, ["old"], matrices=False)
    write_relatives(outcome.folder, [("o1", "n1", "full siblings"), ("o2", "o3", "parent-child")])
    found = closest_relatives(outcome)
    before = known(OLD, [None] * 12, relatives={"o2": found["o2"], "o3": found["o3"]})
    now = known([*OLD, *NEW], [None] * 16, relatives=found)
    section = changes_section(before, now, outcome)
    assert [(r["sample"], r["before"], r["now"]) for r in section["shown"]] == [
        ("o1", "none", "n1 (full siblings)")
    ]
    assert section["words"][-1] == "1 sample has another closest relative."


def test_relatives_that_one_report_did_not_seek_are_no_change(tmp_path):
    """`compare.analyses` had no kinship then, or has none now."""
    sought = known(["a", "b"], ["1", "1"], relatives={"a": "b (siblings)", "b": "a (siblings)"})
    other = known(["a", "b"], ["1", "1"])
    for before, now in ((sought, other), (other, sought)):
        assert compare(tmp_path, before, now)["shown"] == []
    assert len(compare(tmp_path, sought | {"relatives": {}}, sought)["shown"]) == 2


def test_kinds_of_pairs_that_were_sought_and_not_found_count_0(tmp_path):
    before, now = known(["a"], ["1"]), known(["a"], ["1"])
    now["findings"]["Pairs: parent-child"] = 2
    assert compare(tmp_path, before, now)["counts"][-1] == ("Pairs: parent-child", "–", "2")
    before["about"]["close_pairs"] = {}
    assert compare(tmp_path, before, now)["counts"][-1] == ("Pairs: parent-child", "0", "2")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not JSON",
        "{}",
        "[]",
        '{"form": 1}',
        '{"samples": 3, "panel": "x", "cohorts": []}',
        '{"form": 2, "now": null, "before": null}',
        '{"form": 2, "now": {"about": 3}, "before": null}',
    ],
)
def test_a_damaged_or_older_file_gives_one_sentence(tmp_path, content):
    (tmp_path / LAST).write_text(content)
    facts = known(["a"], ["1"])
    assert recall(tmp_path, facts) == (None, changes.STALE)
    assert recall(tmp_path, facts) == (None, "")


@pytest.mark.parametrize(
    "part, value",
    [
        ("samples", [["a"]]),
        ("community", [1]),
        ("community", []),
        ("relatives", ["b (siblings)"]),
        ("relatives", {"a": None}),
        ("findings", {"Samples": [1]}),
        ("about", {"samples": "1"}),
        ("about", {"cohorts": 3}),
    ],
)
@pytest.mark.parametrize("when", ["now", "before"])
def test_a_part_of_another_kind_gives_one_sentence(tmp_path, part, value, when):
    """The file was edited by hand, or a disk lost a piece of it."""
    facts = known(["a"], ["1"])
    wrong = facts | {part: {**facts[part], **value} if part == "about" else value}
    kept = {"form": changes.FORM, "now": facts, "before": facts} | {when: wrong}
    (tmp_path / LAST).write_text(json.dumps(kept))
    assert recall(tmp_path, facts) == (None, changes.STALE)


def test_a_file_of_another_study_gives_one_sentence(tmp_path):
    recall(tmp_path, known(["a", "b"], ["1", "1"]))
    assert recall(tmp_path, known(["c"], ["1"])) == (None, changes.FOREIGN)
    assert recall(tmp_path, known(["c"], ["1"])) == (None, "")


def test_only_the_first_rows_are_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "MOST_ROWS", 2)
    names = [f"s{k}" for k in range(9)]
    found = compare(tmp_path, known(names, list("1" * 9)), known(names, list("111112222")))
    assert len(found["rows"]) == 4 and len(found["shown"]) == 2
