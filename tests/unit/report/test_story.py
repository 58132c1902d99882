"""Sentences at the top of the report: what each says of which results, and when it is silent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from outcomes import configuration, make_results

from popdesic.io.files import write_json
from popdesic.io.places import SCHEMAS
from popdesic.io.tables import write_table
from popdesic.report.outcome import Outcome
from popdesic.report.page import story_rows
from popdesic.report.sections.newcomers import newcomer_findings
from popdesic.report.story import Sentence, facts, last_facts, tell

COHORTS = {"old": [f"o{i}" for i in range(30)], "new": [f"n{i}" for i in range(6)]}
SCAN = {
    "name": "pairs",
    "tests": 1000,
    "significant": 0,
    "significant_loci": 0,
    "rows": [{"sites": [("rs1", "2:10"), ("rs2", "4:99")], "p": "1e-06"}],
}


def study(folder: Path, **changes) -> Outcome:
    columns = {"population": ["P"] * 15 + ["Q"] * 15 + ["NA"] * 6}
    return make_results(folder, COHORTS, ["old"], columns, matrices=False, **changes)[0]


def told(outcome: Outcome, sections: dict | None = None, before: dict | None = None) -> dict:
    """Texts by topic; those of one topic joined."""
    found: dict[str, str] = {}
    for sentence in tell(outcome, configuration(), sections or {}, before):
        found[sentence.topic] = f"{found.get(sentence.topic, '')} {sentence.text}".strip()
    return found


def write_communities(outcome: Outcome, structure: str, ari: float = 0.9, labels: int = 2) -> None:
    splits = [{"f_st": 0.1}, {"f_st": 0.02}] if structure == "discrete" else []
    about = {"structure": structure, "communities": 3, "fine": 4, "splits": splits}
    write_json(outcome.folder / "communities/communities.json", about)
    rows = [("population", "community", labels, ari), ("age", "community", 30, 1.0)]
    table = pd.DataFrame(rows, columns=["label", "partition", "labels", "ari"])
    write_table(outcome.folder / "communities/agreement.tsv", table)


def test_samples_and_sites(tmp_path):
    text = told(study(tmp_path, left_out=("o3", "o4")))["Data"]
    expected = "34 samples of 2 cohorts were compared at 40 sites. 2 samples did not pass"
    assert text.startswith(expected)


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "No principal component exceeds"), (1, "1 principal component exceeds chance"),
     (3, "3 principal components exceed chance")],
)  # fmt: skip
def test_axes(tmp_path, count, words):
    assert words in told(study(tmp_path, axes={"significant": count}))["Structure"]


@pytest.mark.parametrize(
    ("structure", "ari", "words"),
    [
        ("discrete", 0.9, "Gaps separate 3 communities; the deepest split has an F_ST of 0.100."),
        ("discrete", 0.9, "They follow column “population” (ARI 0.90)"),
        ("discrete", 0.5, "They partly follow"),
        ("discrete", 0.1, "They do not follow"),
        ("continuous", 0.0, "a gradient: no gap"),
    ],
)
def test_groups_or_a_gradient(tmp_path, structure, ari, words):
    outcome = study(tmp_path)
    write_communities(outcome, structure, ari)
    assert words in told(outcome)["Groups"]


def test_labels_of_almost_every_sample_are_no_groups(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "discrete", labels=30)
    assert "column" not in told(outcome)["Groups"]


def test_one_community_is_said_by_the_axes_alone(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "one")
    assert "Groups" not in told(outcome)


def test_relatives(tmp_path):
    outcome = study(tmp_path)
    assert "Relatives" not in told(outcome)  # kinship was not computed
    path = outcome.folder / "compare/kinship.tsv"
    columns = ["sample_a", "sample_b", "relation"]
    write_table(path, pd.DataFrame([], columns=columns))
    assert told(outcome)["Relatives"] == "No relatives and no duplicates were found."
    rows = [("o1", "o2", "duplicate or identical twin"), ("o1", "o3", "parent and child")]
    write_table(path, pd.DataFrame(rows, columns=columns))
    assert told(outcome)["Relatives"] == (
        "1 pair of duplicates or identical twins and 1 pair of relatives (1 parent–child)."
    )


def test_segments_by_descent(tmp_path):
    outcome = study(tmp_path)
    assert "Descent" not in told(outcome)
    about = {
        "limits": {"min_cm": 7},
        "pairs_with_segments": 9,
        "pairs_by_degree": {"0": 1, "3": 6, "distant": 2},
        "pairs_by_farthest_degree": {"0": 1, "3": 2, "distant": 6},
    }
    write_json(outcome.folder / "ibd/summary.json", about)
    assert told(outcome)["Descent"] == (
        "9 pairs of samples share an IBD segment of at least 7 cM; 3 are related to the "
        "third degree or closer (95 % interval)."
    )


def test_newcomers_lie_among_founders(tmp_path):
    outcome = study(tmp_path)
    table = outcome.embedding("pca")
    axes = [column for column in table if column.startswith("PC")]
    place = np.r_[np.zeros(15), np.ones(15), np.full(4, 1.0), np.zeros(2)]
    jitter = np.random.default_rng(1).normal(0, 0.01, (36, len(axes)))
    table[axes] = place[:, None] + jitter
    write_table(outcome.folder / "embedding/pca.tsv", table)
    text = told(outcome)["Newcomers"]
    assert "Cohort new (6 samples) lies nearest to founders of Q (4) and P (2)" in text
    assert "differ by 0.010 (sampling alone: 0.010)" in text


def test_newcomers_without_structure_or_labels(tmp_path):
    text = told(study(tmp_path, axes={"significant": 0}))["Newcomers"]
    assert "was placed on the founders’ axes" in text
    cohorts = {"old": COHORTS["old"], **{f"new{k}": [f"n{k}"] for k in range(4)}}
    outcome, _ = make_results(tmp_path / "many", cohorts, ["old"], matrices=False)
    assert told(outcome)["Newcomers"] == (
        "4 cohorts with 4 samples were placed on the founders’ axes."
    )


def test_interactions(tmp_path):
    outcome = study(tmp_path)
    part = {"heading": "Epistasis", "scans": [SCAN]}
    text = told(outcome, {"epistasis": part})["Epistasis"]
    assert text == "No interaction of sites is significant (1\u202f000 pairs tested)."
    part["scans"] = [SCAN | {"significant": 3, "significant_loci": 2}]
    assert told(outcome, {"epistasis": part})["Epistasis"] == (
        "The sites rs1 (2:10) and rs2 (4:99) interact (p = 1e-06, corrected for 1\u202f000 pairs "
        "tested). 1 other locus is significant."
    )


def test_populations_and_places(tmp_path):
    outcome = study(tmp_path)
    write_json(outcome.folder / "population/summary.json", {"pairs": 2, "admixed": ["M"]})
    rows = [("P", "Q", "0.1234", "0.01"), ("P", "M", "0.01", "0.001")]
    table = pd.DataFrame(rows, columns=["population1", "population2", "fst", "error"])
    write_table(outcome.folder / "population/pairs.tsv", table)
    found = {"all": {"p": 0.5, "correlation": 0.1}}
    write_json(outcome.folder / "geography/isolation.json", found)
    texts = told(outcome)
    assert texts["Populations"] == (
        "P and Q differ most (F_ST 0.123 ± 0.010), P and M least (0.010). f3 indicates admixture "
        "in M."
    )
    assert "does not grow" in texts["Geography"]


def test_what_changed_since_the_last_report(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "discrete")
    now = facts(outcome, tell(outcome, configuration(), {}), 2)
    assert "Since the last report" not in told(outcome, before=now)
    before = now | {"cohorts": ["old", "gone"], "panel": "x", "communities": 2}
    assert told(outcome, before=before)["Since the last report"] == (
        "Cohort new arrived, cohort gone left, the panel of sites changed, so all results "
        "were computed anew and there are 3 communities in place of 2."
    )
    fewer = told(outcome, before=now | {"samples": 40})
    assert fewer["Since the last report"] == "There are 4 samples fewer."


def test_the_first_screen_has_a_row_for_each_of_seven_topics():
    topics = ["Data", "Since the last report", "Structure", "Groups", "Populations", "Relatives"]
    topics += ["Descent", "Newcomers", "Newcomers", "Geography", "Epistasis", "Epistasis"]
    rows = story_rows([Sentence(topic, f"{k}.", "data") for k, topic in enumerate(topics)])
    assert len(rows) == 7
    assert [s.text for s in rows["Structure"]] == ["2.", "3."]
    assert sum(map(len, rows.values())) == len(topics)


def test_facts_hold_to_their_schema_and_are_read_again(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    outcome = study(tmp_path)
    schema = yaml.safe_load((SCHEMAS / "summary.schema.yaml").read_text("utf-8"))
    story = tell(outcome, configuration(), {})
    now = facts(outcome, story, 2)
    jsonschema.validate(json.loads(json.dumps(now)), schema)
    path = tmp_path / "last.json"
    assert last_facts(path) is None
    path.write_text("{}")
    assert last_facts(path) is None
    path.write_text("not JSON")
    assert last_facts(path) is None
    write_json(path, now)
    assert last_facts(path) == json.loads(json.dumps(now))


def test_every_sentence_is_short_and_leads_to_a_section(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "discrete")
    part = {"heading": "Epistasis", "scans": [SCAN]}
    for sentence in tell(outcome, configuration(), {"epistasis": part, "communities": {}}):
        assert sentence.link in {"data", "maps", "communities", "epistasis"}
        for text in sentence.text.split(". "):
            assert len(text.split()) <= 30, text


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_a_newcomer_shifted_within_its_labels_is_told_and_warned_of(tmp_path, shift):
    """PC2 of the newcomer's samples is moved; labels and the other components stay."""
    cohorts = {"old": [f"o{i}" for i in range(60)], "new": [f"n{i}" for i in range(20)]}
    columns = {"population": ["P", "Q"] * 40}
    outcome, _ = make_results(tmp_path, cohorts, ["old"], columns, axes={"significant": 2})
    table = outcome.embedding("pca")
    rng = np.random.default_rng(5)
    table["PC1"] = np.tile([0.0, 10.0], 40) + rng.normal(0, 1, 80)
    table["PC2"] = rng.normal(0, 1, 80)
    table.loc[60:, "PC2"] += shift
    write_table(outcome.folder / "embedding/pca.tsv", table)
    text = told(outcome)["Newcomers"]
    apart = [finding.text for finding in newcomer_findings(outcome, "population")]
    if shift:
        assert text.endswith(
            "On PC2 it is shifted from founders of the same label, as by a batch effect."
        )
        assert apart[0].startswith(
            "On PC2 cohort new lies apart from founders of the same labels (P and Q): cohort "
        )
    else:
        assert text.endswith("On no component is it shifted from founders of the same label.")
        assert not apart


def test_stability_of_communities(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "discrete")
    assert "subsamples" not in told(outcome)["Groups"]
    table = pd.DataFrame({"sample": list("abcd"), "stability": ["1.0", "0.95", "0.9", "0.5"]})
    write_table(outcome.folder / "communities/partition.tsv", table)
    assert told(outcome)["Groups"].endswith(
        "75 % of the samples keep their community in at least 90 % of the subsamples."
    )
