"""Sentences at the top of the report: what each says of which results, and when it is silent."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scenes.artefacts import draw_cohorts, plant
from sklearn.metrics import adjusted_rand_score
from support.outcomes import configuration, make_results
from support.verdicts import write_relatives

from popdesic.cohort.artefacts import LEVEL, find_study_artefacts
from popdesic.communities.agreement import agreement
from popdesic.core.files import write_json
from popdesic.core.places import SCHEMAS
from popdesic.core.tables import read_table, write_table
from popdesic.relatives.resolution import load_resolution, resolve
from popdesic.report.findings import artefacts
from popdesic.report.outcome import Outcome
from popdesic.report.page import story_rows
from popdesic.report.sections.epistasis import epistasis_findings, epistasis_section
from popdesic.report.sections.newcomers import newcomer_findings
from popdesic.report.sections.relatives import relatives_findings
from popdesic.report.story import Sentence, facts, tell
from popdesic.report.tables import file_rows
from popdesic.report.words import join, percent

COHORTS = {"old": [f"o{i}" for i in range(30)], "new": [f"n{i}" for i in range(6)]}
SCAN = {
    "hits": 5,
    "name": "pairs",
    "tests": 1000,
    "significant": 0,
    "significant_loci": 0,
    "lead": None,
}


def study(folder: Path, **changes) -> Outcome:
    columns = {"population": ["P"] * 15 + ["Q"] * 15 + ["NA"] * 6}
    return make_results(folder, COHORTS, ["old"], columns, matrices=False, **changes)[0]


def compared(*analyses: str, **blocks) -> dict:
    """The default configuration with these analyses of pairs, and other blocks."""
    usual = configuration()
    return usual | {"compare": usual["compare"] | {"analyses": [*analyses]}} | blocks


def told(
    outcome: Outcome,
    sections: dict | None = None,
    before: dict | None = None,
    asked: dict | None = None,
) -> dict:
    """Texts by topic; those of one topic joined."""
    found: dict[str, str] = {}
    for sentence in tell(outcome, asked or configuration(), sections or {}, before):
        found[sentence.topic] = f"{found.get(sentence.topic, '')} {sentence.text}".strip()
    return found


def test_artefacts_are_counted_as_in_their_table(tmp_path):
    """What the page says of a cohort that was genotyped otherwise, recomputed from the table."""
    planted = plant(draw_cohorts("one", 391, 3_000, [60, 50, 40]), "strand", 0.05, 5, newcomer=True)

    def reader(names):
        columns = np.concatenate([np.arange(*planted.columns(n).indices(10**9)) for n in names])
        return lambda first, last: planted.genotypes[first:last][:, columns]

    outcome = study(tmp_path)
    assert "Artefacts" not in told(outcome)
    table, found = find_study_artefacts(reader, planted.sites, planted.sizes, planted.founders)
    write_table(outcome.folder / "qc/artefacts.tsv", table)
    about = {"level": LEVEL, "sites": len(planted.sites), "cohorts": list(map(asdict, found))}
    write_json(outcome.folder / "qc/artefacts.json", about)
    rows = read_table(outcome.folder / "qc/artefacts.tsv")
    rows = rows[rows.cohort == planted.cohort]
    several = len(rows[["chrom", "pos", "ref", "alt"]].drop_duplicates())
    kinds = join([f"{what} ({n})" for what, n in rows.looks_like.value_counts().items()])
    share = percent(several / len(planted.sites))
    assert told(outcome)["Artefacts"] == (
        f"Cohort {planted.cohort} has {several} sites ({share} of those tested) that look like "
        f"artefacts of genotyping beside the founders: {kinds}."
    )
    warned = [one for one in artefacts(outcome.folder) if one.level == "warning"]
    assert [one.topic for one in warned] == ["Artefacts"] and f"{several} sites" in warned[0].text
    for one in about["cohorts"]:
        one |= {"sites": 0, "named": {}, "departs": False, "own_population": True}
    write_json(outcome.folder / "qc/artefacts.json", about)
    assert "Artefacts" not in told(outcome)
    nothing, alone = artefacts(outcome.folder)
    assert {nothing.level, alone.level} == {"note"} and "at most 1 % of studies" in nothing.text
    assert "c00, c01 and c02" in alone.text and "drift" in alone.text


def write_communities(outcome: Outcome, structure: str, wrong: int = 1, **about) -> pd.DataFrame:
    """A partition beside labels P and Q of which so many samples are in the other's community.

    HDBSCAN's clusters are the labels themselves. The agreement is that of the stage.
    """
    labels = outcome.samples.population.to_numpy()
    community = np.where(labels == "Q", 2, 1)
    community[: 2 * wrong] = np.arange(2 * wrong) % 2 + 1
    fine = np.where(np.arange(len(labels)) == 7, 3, community)
    partition = pd.DataFrame({"sample": outcome.samples["sample"], "community": community})
    partition = partition.assign(fine=fine, hdbscan=np.where(labels == "Q", 2, 1))
    partition["stability"], partition["f_st"] = about.pop("stability", 1.0), 0.1
    partition["between"] = "NA"
    facts = {"structure": structure, "communities": 2, "fine": 3, "splits": [], "cline": None}
    facts["between"] = []
    write_json(outcome.folder / "communities/communities.json", facts | about)
    write_table(outcome.folder / "communities/partition.tsv", partition)
    table = agreement(partition, outcome.samples.drop(columns="cohort"))
    write_table(outcome.folder / "communities/agreement.tsv", table)
    return partition


def test_samples_and_sites(tmp_path):
    text = told(study(tmp_path, left_out=("o3", "o4")))["Data"]
    expected = "34 samples of 2 cohorts were compared at 40 sites. 2 samples did not pass"
    assert text.startswith(f"{expected} quality control: o3 and o4 (call rate).")
    many = told(study(tmp_path / "many", left_out=("o3", "o4", "o5", "o6")))["Data"]
    assert many.endswith("4 samples did not pass quality control.")


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "No principal component exceeds"), (1, "1 principal component exceeds chance"),
     (3, "3 principal components exceed chance")],
)  # fmt: skip
def test_axes(tmp_path, count, words):
    assert words in told(study(tmp_path, axes={"significant": count}))["Structure"]


@pytest.mark.parametrize(
    ("wrong", "words"), [(1, " follow the"), (4, " partly follow the"), (15, " do not follow the")]
)
def test_the_agreement_is_that_of_the_communities_that_are_shown(tmp_path, wrong, words):
    """Not that of HDBSCAN or of another partition that agrees better."""
    outcome = study(tmp_path)
    partition = write_communities(outcome, "discrete", wrong)
    known = outcome.samples.population != "NA"
    ari = {
        name: adjusted_rand_score(outcome.samples.population[known], partition[name][known])
        for name in ("community", "fine", "hdbscan")
    }
    assert ari["hdbscan"] == 1
    text = told(outcome)["Groups"]
    assert text.startswith(
        "Gaps separate 2 communities. Components of each community alone divide these into 3."
    )
    assert f"The communities{words} 2 values of column “population” " in text
    assert f"(ARI {ari['community']:.2f}; the 3 finer ones {ari['fine']:.2f})." in text


def test_a_gradient_is_said_only_where_its_test_was_passed(tmp_path):
    outcome = study(tmp_path)
    for cline in ({"spread": 0.8, "passed": True}, {"spread": 0.2, "passed": False}, None):
        write_communities(outcome, "continuous", cline=cline)
        text = told(outcome)["Groups"]
        assert ("is a gradient" in text) == bool(cline and cline["passed"])
        assert "o gap separates groups" in text


def test_labels_of_almost_every_sample_are_no_groups(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "discrete")
    table = read_table(outcome.folder / "communities/agreement.tsv")
    write_table(outcome.folder / "communities/agreement.tsv", table.assign(labels=30))
    assert "column" not in told(outcome)["Groups"]


def test_one_community_is_said_by_the_axes_alone(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "one")
    assert "Groups" not in told(outcome)


def write_kinship(folder: Path, variance: float, rows=(), identity=(), **about) -> None:
    """Verdicts and identity on a panel that resolves what its variance of kinship allows."""
    found = resolve(variance, 0.3, 1e-6, panel="x", sites=20_000, founders=100, max_mismatch=0.02)
    write_json(folder / "compare/kinship.json", vars(found))
    write_relatives(folder, rows, **about)
    columns = ["query", "match", "verdict"]
    write_table(folder / "compare/identity.tsv", pd.DataFrame(list(identity), columns=columns))


def test_relatives_and_duplicates(tmp_path):
    outcome = study(tmp_path)
    assert "Relatives" not in told(outcome)  # kinship was not computed
    rows = [("o1", "o2", "duplicate or identical twin"), ("o1", "o3", "parent and child")]
    same = [("o1", "o2", "same"), ("o2", "o1", "same"), ("o4", "o5", "different")]
    write_kinship(outcome.folder, 1e-4, rows, same)
    assert told(outcome)["Relatives"] == (
        "1 pair of duplicates or identical twins (o1 and o2) and 1 pair of relatives (1 "
        "parent–child). "
        "Relatives of the third degree and beyond cannot all be found on this panel."
    )


@pytest.mark.parametrize(
    ("variance", "words"),
    [
        (1e-5, "No duplicates and no relatives of the first or second degree were found."),
        (
            1e-4,
            "No duplicates and no relatives of the first or second degree were found. Relatives of "
            "the third degree and beyond cannot all be found on this panel.",
        ),
        (
            5e-4,
            "No duplicates and no relatives of the first degree were found. Relatives of the "
            "second degree and beyond cannot all be found on this panel.",
        ),
        (0.02, "No duplicates were found. Relatives cannot be identified on this panel."),
    ],
)
def test_nobody_is_called_absent_whom_the_panel_cannot_show(tmp_path, variance, words):
    """The default lists pairs down to the second degree."""
    outcome = study(tmp_path)
    write_kinship(outcome.folder, variance)
    assert told(outcome)["Relatives"] == words
    found = load_resolution(outcome.folder / "compare/kinship.json")
    for degree in ("first", "second"):
        assert (degree in words.split("were found")[0]) == (degree in found.degrees)


def test_segments_find_relatives_of_every_degree(tmp_path):
    outcome = study(tmp_path)
    write_kinship(outcome.folder, 0.02, sources=("segments", "king"))
    assert told(outcome)["Relatives"] == (
        "No duplicates and no relatives of the first, second or third degree were found."
    )
    rows = [("o1", "o2", "third degree"), ("o2", "o3", "third degree"), ("o1", "o3", "unrelated")]
    write_kinship(outcome.folder, 0.02, rows, sources=("segments", "king"), differ=1)
    assert told(outcome)["Relatives"] == (
        "2 pairs of relatives (2 third-degree). For 1 listed pair, the analyses differ "
        "(compare/relatives.tsv)."
    )


def test_no_degree_is_told_of_a_short_genome_or_a_wide_interval(tmp_path):
    outcome = study(tmp_path)
    rows = [("o1", "o2", "duplicate or identical twin"), ("o1", "o3", "sharing only")]
    write_kinship(outcome.folder, 1e-5, rows, searched=53.0, differ=1)
    assert told(outcome)["Relatives"] == (
        "1 pair of duplicates or identical twins (o1 and o2) and 1 pair that share more than "
        "unrelated samples do. Degrees are not named: they need 1\u202f000 cM. In the 53 cM "
        "searched, chance decides how much relatives share."
    )
    write_kinship(outcome.folder, 1e-5, [*rows, ("o2", "o4", "full siblings")])
    assert told(outcome)["Relatives"] == (
        "1 pair of duplicates or identical twins (o1 and o2), 1 pair of relatives (1 "
        "full-sibling) and 1 pair of relatives whose degree is uncertain (their intervals span "
        "more than two degrees)."
    )


def test_cohorts_that_an_analysis_leaves_out_are_named(tmp_path):
    outcome = study(tmp_path)
    write_kinship(outcome.folder, 1e-5, [("o1", "o2", "full siblings")])
    about = {"median_kinship": {"old": 0.001, "new": 0.2, "far": 0.3}}
    write_json(outcome.folder / "compare/pc_relate.json", about)
    asked = compared("kinship", "pc_relate")
    assert "PC-Relate" not in told(outcome, asked=asked)["Relatives"]  # of an earlier run
    sources = {"sources": ("king", "pc_relate")}
    write_relatives(outcome.folder, [("o1", "o2", "full siblings")], **sources)
    assert "PC-Relate" not in told(outcome, asked=compared("kinship"))["Relatives"]
    assert told(outcome, asked=asked)["Relatives"] == (
        "1 pair of relatives (1 full-sibling). In cohorts new and far most samples look related "
        "by PC-Relate, so it is not used there."
    )


def test_segments_by_descent(tmp_path):
    outcome = study(tmp_path)
    asked = compared("ibd")
    assert "Descent" not in told(outcome, asked=asked)
    about = {"limits": {"min_cm": 7}, "pairs_with_segments": 9, "searched_cm": 3400.0}
    write_json(outcome.folder / "ibd/summary.json", about)
    said = told(outcome, asked=asked)["Descent"]
    assert said == "9 pairs of samples share an IBD segment of at least 7 cM."


def test_results_of_an_earlier_run_are_not_told(tmp_path):
    """Files of what the configuration no longer asks for."""
    outcome = study(tmp_path)
    write_kinship(outcome.folder, 1e-5, [("o1", "o2", "full siblings")])
    write_communities(outcome, "discrete")
    about = {"limits": {"min_cm": 7}, "pairs_with_segments": 9, "searched_cm": 3400.0}
    write_json(outcome.folder / "ibd/summary.json", about)
    write_table(outcome.folder / "ibd/pairs.tsv", pd.DataFrame({"sample_a": ["o1"]}))
    write_json(outcome.folder / "population/summary.json", {"pairs": 1})
    write_table(
        outcome.folder / "population/pairs.tsv",
        pd.DataFrame([("P", "Q", "0.1", "0.01")], columns=FST),
    )
    usual = configuration()
    asked = compared("ibd", "kinship", population={"analyses": ["differentiation"]})
    off = compared(
        population=usual["population"] | {"analyses": []},
        communities=usual["communities"] | {"methods": []},
        close_kinship=0,
    )
    topics = {"Relatives", "Groups", "Descent", "Populations"}
    assert topics <= set(told(outcome, asked=asked))
    assert topics.isdisjoint(told(outcome, asked=off))
    for configured, some in ((asked, True), (off, False)):
        found = facts(outcome, configured, 0)
        assert (found["close_pairs"] is not None) == (found["structure"] is not None) == some
        analyses = configured["compare"]["analyses"]
        assert bool(relatives_findings(outcome.folder, 0.0, analyses)) == some
        listed = {path for path, _ in file_rows(outcome, configured)}
        assert (
            {"compare/relatives.tsv", "ibd/pairs.tsv", "population/pairs.tsv"} <= listed
        ) == some
        assert "qc/summary.tsv" in listed


def test_newcomers_lie_among_founders(tmp_path):
    outcome = study(tmp_path)
    table = outcome.embedding("pca")
    axes = [column for column in table if column.startswith("PC")]
    place = np.r_[np.zeros(15), np.ones(15), np.full(4, 1.0), np.zeros(2)]
    jitter = np.random.default_rng(1).normal(0, 0.01, (36, len(axes)))
    table[axes] = place[:, None] + jitter
    write_table(outcome.folder / "embedding/coordinates/pca.tsv", table)
    text = told(outcome)["Newcomers"]
    assert "Cohort new (6 samples) lies nearest to founders of Q (4) and P (2)" in text
    assert "differ by 0.010 (sampling alone: 0.010)" in text
    outcome.drift.loc["new", "mean_af_difference"] = 0.121
    text = told(outcome)["Newcomers"]
    assert "nearest to founders" not in text
    assert "differ by 0.121 (sampling alone: 0.010). The axes may not describe it" in text


@pytest.mark.parametrize(("count", "words"), [(1, "component;"), (2, "2 components;")])
def test_the_components_of_the_nearest_founders_are_counted(tmp_path, count, words):
    text = told(study(tmp_path, axes={"significant": count}))["Newcomers"]
    assert f"on the first {words}" in text


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
    assert text == "No interaction of sites is significant (1\u202f000 pairs scanned)."
    part["scans"] = [SCAN | {"hits": 0}]
    assert told(outcome, {"epistasis": part})["Epistasis"] == (
        "No pairs of sites were eligible for a test."
    )
    lead = {"sites": [("rs1", "2:10"), ("rs2", "4:99")], "p": "1e-06", "tests": "240"}
    part["scans"] = [SCAN | {"significant": 3, "significant_loci": 2, "lead": lead}]
    assert told(outcome, {"epistasis": part})["Epistasis"] == (
        "The sites rs1 (2:10) and rs2 (4:99) interact (p = 1e-06 after multiplication by 240 "
        "tests; 1\u202f000 pairs scanned). 1 other locus is significant."
    )


def test_the_interaction_that_is_named_is_significant(tmp_path):
    """The best by rank is a phantom in cis; the p of the next is a product with its own tests."""
    outcome = study(tmp_path)
    folder = outcome.folder / "epistasis"
    sites = {f"{name}{k}": "1" for k in (1, 2) for name in ("chrom", "pos", "ref", "alt")}
    hits = pd.DataFrame(
        {
            "rank": [1, 2, 3],
            "score": [-50.0, -40.0, -3.0],
            "tests": [2000.0, 2418.2, 2500.0],
            "lr_p": [1e-20, 3e-9, 0.5],
            "id1": ["phantom", "lead", "third"],
            "id2": ["x", "y", "z"],
            "cis": ["yes", "no", "no"],
            "p_conditional": [1.0, np.nan, np.nan],
        }
    ).assign(**sites, main1=0.0, main2=0.0, interaction_gain=1.0)
    hits["p_interaction"] = np.minimum(hits.lr_p * hits.tests, 1.0)
    write_table(folder / "pairs.tsv", hits.astype(object).fillna("NA"))
    write_json(folder / "plan.json", {"sites": 2457, "pairs": {"tests": 3_017_196, "scans": 1}})
    people = outcome.samples[["sample"]].assign(**{"class": "control", "stratum": "all"})
    write_table(outcome.folder / "reorder/samples.tsv", people)
    section = epistasis_section(outcome.folder, tmp_path, [2])
    (finding,) = [f for f in epistasis_findings(section) if f.topic.endswith("single sites")]
    explained = ((hits.p_interaction <= 0.05) & (hits.p_conditional > 0.05)).sum()
    assert finding.text.startswith(f"{explained} of the {len(hits)} listed pairs are significant")
    text = told(outcome, {"epistasis": section})["Epistasis"]
    product = hits.lr_p[1] * hits.tests[1]
    assert text.startswith(
        f"The sites lead (1:1) and y (1:1) interact (p = {product:.2g} after multiplication by "
        "2\u202f418 tests; 3\u202f017\u202f196 pairs scanned)."
    )
    write_table(folder / "pairs.tsv", hits.iloc[[0, 2]].astype(object).fillna("NA"))
    of_before = pd.DataFrame({"scan": ["pairs"], "id1": ["lead"], "id2": ["y"]})  # another version
    write_table(folder / "replication.tsv", of_before)
    section = epistasis_section(outcome.folder, tmp_path, [2])
    assert not section["replicated"] and section["replication"] == []
    assert told(outcome, {"epistasis": section})["Epistasis"].startswith("No interaction of sites")


FST = ["population1", "population2", "fst", "error"]


def test_populations_and_places(tmp_path):
    outcome = study(tmp_path)
    write_json(outcome.folder / "population/summary.json", {"pairs": 2, "admixed": ["M"]})
    rows = [("P", "Q", "0.1234", "0.01"), ("P", "M", "0.01", "0.0002")]
    table = pd.DataFrame(rows, columns=FST)
    write_table(outcome.folder / "population/pairs.tsv", table)
    found = {"places": 9, "communities": 1}
    found["all"] = {"p": 0.5, "correlation": 0.1, "exact": False, "permutations": 999}
    write_json(outcome.folder / "geography/isolation.json", found)
    assert "Geography" not in told(outcome)  # the sheet has no places any more
    places = {"latitude": "1", "longitude": [str(k % 5) for k in range(len(outcome.qc))]}
    texts = told(replace(outcome, qc=outcome.qc.assign(**places)))
    assert texts["Populations"] == (
        "P and Q differ most (F_ST 0.123 ± 0.010), P and M least (0.0100 ± 0.0002). f3 indicates "
        "admixture in M."
    )
    assert "no evidence of isolation by distance" in texts["Geography"]


def test_an_error_that_cannot_be_estimated(tmp_path):
    """All sites in one block."""
    outcome = study(tmp_path)
    write_json(outcome.folder / "population/summary.json", {"pairs": 1})
    table = pd.DataFrame([("P", "Q", "0.1234", "NA")], columns=FST)
    write_table(outcome.folder / "population/pairs.tsv", table)
    expected = "F_ST between P and Q is 0.123, error not estimable."
    assert told(outcome)["Populations"] == expected


def test_what_changed_since_the_last_report(tmp_path):
    outcome = study(tmp_path)
    write_communities(outcome, "discrete")
    now = facts(outcome, configuration(), 2)
    assert "Since the last report" not in told(outcome, before=now)
    before = now | {"cohorts": ["old", "gone"], "panel": "x", "communities": 3}
    assert told(outcome, before=before)["Since the last report"] == (
        "Cohort new arrived, cohort gone left, the panel of sites changed, so all results "
        "were computed anew and there are 2 communities instead of 3."
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


def test_facts_hold_to_their_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    outcome = study(tmp_path)
    schema = yaml.safe_load((SCHEMAS / "summary.schema.yaml").read_text("utf-8"))
    found = {"findings": [asdict(sentence) for sentence in tell(outcome, configuration(), {})]}
    now = facts(outcome, configuration(), 2) | found
    jsonschema.validate(json.loads(json.dumps(now)), schema)


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
    write_table(outcome.folder / "embedding/coordinates/pca.tsv", table)
    text = told(outcome)["Newcomers"]
    apart = [finding.text for finding in newcomer_findings(outcome, "population")]
    if shift:
        assert text.endswith(
            "On PC2 it is shifted from founders with the same label, as by a batch effect."
        )
        assert apart[0].startswith(
            "On PC2 cohort new lies apart from founders of the same labels (P and Q): cohort "
        )
    else:
        assert text.endswith(
            "Its samples are not shifted from founders with the same label on any component."
        )
        assert not apart


def test_a_newcomer_of_which_few_have_founders_of_their_label(tmp_path):
    cohorts = {"old": [f"o{i}" for i in range(60)], "new": [f"n{i}" for i in range(20)]}
    labels = ["P", "Q"] * 30 + ["P"] * 6 + ["R"] * 10 + ["Q"] * 4
    outcome, _ = make_results(
        tmp_path, cohorts, ["old"], {"population": labels}, axes={"significant": 2}
    )
    table = outcome.embedding("pca")
    table[["PC1", "PC2"]] = np.random.default_rng(6).normal(0, 1, (80, 2))
    write_table(outcome.folder / "embedding/coordinates/pca.tsv", table)
    new, old = labels[60:], labels[:60]
    compared = sum(min(old.count(name), new.count(name)) >= 5 for name in new)
    assert compared == 6
    assert told(outcome)["Newcomers"].endswith(
        f" {compared} of its samples have founders with the same label to compare with, and are "
        f"not shifted from these on any component; the other {20 - compared} could not be compared."
    )
    sheet = outcome.samples.assign(population=["P"] * 60 + ["R"] * 20)
    alone = type(outcome)(**(vars(outcome) | {"samples": sheet}))
    assert told(alone)["Newcomers"].endswith(
        "Whether it is shifted from founders with the same label could not be tested: no label has "
        "5 samples of both."
    )


def test_stability_of_communities(tmp_path):
    outcome = study(tmp_path)
    values = np.where(np.arange(36) % 4, 0.95, 0.5)
    partition = write_communities(outcome, "discrete", stability=values)
    share = (partition.stability >= 0.9).mean()
    assert told(outcome)["Groups"].endswith(
        f" {100 * share:.0f} % of the samples keep their community in at least 90 % of the "
        "subsamples."
    )
    write_communities(outcome, "discrete", stability=np.where(values > 0.9, 0.5, 0.95))
    assert told(outcome)["Groups"].endswith(
        f" {100 * (1 - share):.0f} % of the samples keep their community in at least 90 % of the "
        "subsamples: the number of communities depends on who was sampled, so do not rely on it."
    )
