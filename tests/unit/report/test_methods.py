"""The methods text: it describes what ran, and cites all of it and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.outcomes import configuration, make_results
from support.verdicts import write_relatives

from popdesic.core.files import write_json
from popdesic.relatives.resolution import resolve
from popdesic.report.methods import REFERENCES, Methods, describe_methods
from popdesic.report.sections.relatives import relatives_findings

COHORTS = {"old": [f"o{i}" for i in range(20)], "new": ["n0", "n1"]}
MEASURED = {
    "populations": 3,
    "pairs": 3,
    "blocks": 31,
    "block": "2 Mb",
    "f2_sites": 40,
    "f3_tests": 3,
    "f4_tests": 0,
}
SECTIONS = ["communities", "comparisons", "ibd", "geography", "population", "epistasis"]


def methods(folder: Path, names: list[str] = SECTIONS, axes=None, **blocks) -> Methods:
    outcome, _ = make_results(folder, COHORTS, ["old"], matrices=False, axes=axes)
    write_json(outcome.folder / "population/summary.json", MEASURED)
    settings = configuration()
    for block, values in blocks.items():
        settings[block] = settings[block] | values
    return describe_methods(outcome, settings, names)


def cited(found: Methods) -> list[int]:
    numbers = re.findall(r"\[([\d, ]+)\]", " ".join(found.paragraphs))
    return [int(number) for group in numbers for number in group.split(",")]


def test_references_are_numbered_as_cited_and_each_is_listed_once(tmp_path):
    found = methods(tmp_path, epistasis={"order": [2, 3]})
    first_mentions = list(dict.fromkeys(cited(found)))
    assert first_mentions == list(range(1, len(found.references) + 1))
    assert len(set(found.references)) == len(found.references)
    text = found.text()
    assert text.startswith("# Methods\n\n") and text.endswith("\n")
    assert f"\n{len(found.references)}. {found.references[-1]}\n" in text


def test_counts_and_limits_are_those_of_the_study(tmp_path):
    text = methods(tmp_path).paragraphs[0]
    assert "2 cohorts were read (22 samples)" in text
    assert "A panel of 40 sites was defined by old" in text
    assert "The other cohorts were placed on this panel." in text
    limits = methods(tmp_path / "b", panel={"min_maf": 0.07, "min_call_rate": 0.8})
    assert (
        "call rate of at least 0.8, a minor allele frequency of at least 0.07"
        in (limits.paragraphs[0])
    )


def test_classes_of_sites_are_named(tmp_path):
    assert methods(tmp_path).paragraphs[0].startswith("Biallelic SNPs of ")
    found = methods(tmp_path, sites={"classes": ["multiallelic", "snp", "indel"]}).paragraphs[0]
    assert found.startswith("Biallelic SNPs, every ALT of multiallelic records (against all other")
    assert " and indels of " in found.split(".")[0]
    assert "Of several sites at one position, the most common one is on the panel." in found


def test_haploids_are_not_said_to_be_tested_for_heterozygotes(tmp_path):
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], matrices=False)
    settings = configuration()
    found = describe_methods(replace(outcome, haploid=["All are."]), settings, [])
    assert "Hardy-Weinberg" in describe_methods(outcome, settings, []).text()
    assert "Hardy-Weinberg" not in found.text() and "heterozyg" not in found.text()
    assert "and a minor allele frequency of at least" in found.paragraphs[0]
    assert found.paragraphs[0].count(" The other cohorts were placed on this panel.") == 1


def test_relatives_on_axes_are_counted(tmp_path):
    (tmp_path / "none").mkdir(), (tmp_path / "some").mkdir()
    assert "relatives among the founders of the axes" not in methods(tmp_path / "none").text()
    outcome, _ = make_results(tmp_path / "some", COHORTS, ["old"], matrices=False)
    outcome.axes["related"] = 3
    text = describe_methods(outcome, configuration(), SECTIONS).text()
    assert "Of these, 3 samples have relatives among the founders of the axes" in text


@pytest.mark.parametrize(
    ("key", "names", "blocks"),
    [
        ("beagle", SECTIONS, {"impute": {"method": "mode"}}),
        ("king", ["population"], {}),
        ("pc_relate", SECTIONS, {"compare": {"analyses": ["kinship"]}}),
        ("runs", SECTIONS, {"population": {"analyses": ["differentiation"]}}),
        ("ibis", ["population"], {}),
        ("degrees", ["population"], {}),
        ("mantel", ["population"], {}),
        ("weights", SECTIONS, {"epistasis": {"order": [2], "score": "k2"}}),
        ("boost", SECTIONS, {"epistasis": {"order": [2], "score": "k2"}}),
        ("blocks", SECTIONS, {"communities": {"methods": ["hdbscan"]}}),
        ("hdbscan", SECTIONS, {"communities": {"methods": ["blockmodel"]}}),
        ("dip", ["population"], {}),
    ],
)
def test_what_did_not_run_is_not_cited(tmp_path, key, names, blocks):
    everything = {
        "impute": {"method": "beagle"},
        "epistasis": {"order": [2]},
    }
    write_relatives(tmp_path / "all/results", sources=("segments",))
    assert REFERENCES[key] in methods(tmp_path / "all", **everything).references
    found = methods(tmp_path / "some", names, **blocks)
    assert REFERENCES[key] not in found.references


def test_copying_names_its_reference(tmp_path):
    about = {"reference": {"haplotypes": 5008}}
    write_json(tmp_path / "results/impute/old/copied.json", about)
    for reference, whose in (("r.vcf", "a phased reference"), ("", "the founders, which were")):
        found = methods(tmp_path, impute={"method": "copying", "reference": reference})
        assert f"by copying from the 5\u202f008 haplotypes of {whose}" in found.text()
    assert REFERENCES["copying"] in found.references
    assert REFERENCES["copying"] not in methods(tmp_path / "none").references


def test_painting_is_told_where_it_was_done(tmp_path):
    write_json(tmp_path / "results/painting/groups.json", {"donors": 1234})
    found = methods(tmp_path, communities={"methods": ["painting"]})
    assert "painted by those of 1\u202f234 founders" in found.text()
    assert REFERENCES["coancestry"] in found.references
    assert REFERENCES["coancestry"] not in methods(tmp_path).references


def test_sites_that_are_not_pruned_are_not_said_to_be(tmp_path):
    sites = {"panel": 40, "monomorphic": 0, "long_range_ld": 0, "ld_pruned": 0, "used": 40}
    text = methods(tmp_path, axes={"ld_r2": 0, "sites": sites}).paragraphs[2]
    assert "at 40 sites, and all other samples" in text
    assert (
        "LD pruned at r² = 0.2, without regions of long-range LD"
        in (methods(tmp_path / "b").paragraphs[2])
    )


def test_the_test_of_components_is_the_one_that_decided(tmp_path):
    noise = {"shift": 29.8, "spread": 2.3, "limit": 2.6}
    found = methods(tmp_path / "a", axes={"noise": noise})
    assert "signs flipped at random, in blocks of 10 Mb" in found.paragraphs[2]
    assert {REFERENCES["signs"], REFERENCES["oadp"]} <= set(found.references)
    bare = {"shift": 0.0, "spread": 1.0, "limit": 0.0}  # the law of Tracy and Widom as it is
    assert REFERENCES["signs"] not in methods(tmp_path / "b", axes={"noise": bare}).references


@pytest.mark.parametrize(
    ("variance", "words"),
    [
        (1e-5, "No two of these founders have a KING-robust kinship [5] of 0.0884 or more."),
        (6e-4, "(the limit of 0.0884 was raised to what the panel resolves)"),
        (0.02, "None of these founders is a duplicate of another."),
    ],
)
def test_founders_are_as_unrelated_as_the_panel_could_tell(tmp_path, variance, words):
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], matrices=False)
    limits = {"panel": "x", "sites": 20_000, "founders": 20, "max_mismatch": 0.02}
    found = resolve(variance, 0.3, 1e-6, **limits)
    write_json(outcome.folder / "compare/kinship.json", vars(found))
    text = describe_methods(outcome, configuration(), ["communities"]).paragraphs[2]
    assert words in text
    if "raised" in words:
        assert f"of {found.smallest_kinship:.3f} or more" in text


def test_the_scan_is_described_as_it_was_done(tmp_path):
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], matrices=False)
    settings = configuration()
    settings["epistasis"] = settings["epistasis"] | {"order": [2, 3]}
    write_json(outcome.folder / "epistasis/plan.json", {"sites": 17})
    text = describe_methods(outcome, settings, ["epistasis"]).text()
    assert (
        "All pairs and triples of 17 of the panel’s 40 sites were scanned for an interaction in "
        "the phenotype. Partners were at least 500\u202f000 bp apart on one chromosome and with an "
        "r² of at most 0.1." in text
    )
    settings["epistasis"] |= {"score": "k2", "min_distance_bp": 0, "max_r2": 1}
    write_json(outcome.folder / "epistasis/plan.json", {"sites": 40})
    text = describe_methods(outcome, settings, ["epistasis"]).text()
    assert "All pairs and triples of 40 sites were scanned for association with" in text
    assert REFERENCES["weights"] not in text


@pytest.mark.parametrize(("searched", "told"), [(60.0, False), (3400.0, True)])
def test_degrees_are_described_where_they_were_told(tmp_path, searched, told):
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], matrices=False)
    write_relatives(outcome.folder, searched=searched, sources=("segments", "king"))
    write_json(outcome.folder / "ibd/summary.json", {"searched_cm": searched})
    found = describe_methods(outcome, configuration(), ["ibd"])
    assert ("Degrees of relationship" in found.text()) == told
    assert (REFERENCES["degrees"] in found.references) == told


def test_mixture_components_are_described_where_some_were_fitted(tmp_path):
    assert REFERENCES["mixture"] not in methods(tmp_path / "none").references
    for k in (0, 3):
        outcome, _ = make_results(tmp_path / str(k), COHORTS, ["old"], matrices=False)
        write_json(outcome.folder / "population/ancestry.json", {"k": k})
        assert (
            REFERENCES["mixture"]
            not in describe_methods(outcome, configuration(), SECTIONS).references
        )  # of an earlier run
        asked = configuration()
        asked["population"]["analyses"].append("ancestry")
        found = describe_methods(outcome, asked, SECTIONS)
        assert (REFERENCES["mixture"] in found.references) == (k > 0)
    assert "Proportions of 3 mixture components" in found.text()


def test_scores_of_haplotypes_are_described_where_there_are_some(tmp_path):
    about = {"populations": {"P": 12, "Q": 10}, "compared": True}
    one = {"populations": {"P": 12}, "compared": False}
    asked = configuration()
    keys = ["ihs", "nsl", "garud"]
    for k, (found, cites) in enumerate(
        [
            (about, {*keys, "xp_ehh"}),
            (one, set(keys)),
            (one | {"reason": "sites are too few"}, set()),
        ]
    ):
        outcome, _ = make_results(tmp_path / str(k), COHORTS, ["old"], matrices=False)
        write_json(outcome.folder / "population/sweep_summary.json", found)
        asked["population"]["analyses"] = ["sweeps"]
        listed = describe_methods(outcome, asked, SECTIONS).references
        assert {key for key in (*keys, "xp_ehh") if REFERENCES[key] in listed} == cites
        asked["population"]["analyses"] = ["diversity"]  # of an earlier run
        listed = describe_methods(outcome, asked, SECTIONS).references
        assert REFERENCES["ihs"] not in listed


@pytest.mark.parametrize(
    ("about", "words", "absent"),
    [
        (MEASURED, "f2 and f3 were estimated as in", "f4"),
        (MEASURED | {"f3_tests": 0, "f4_tests": 2}, "f2 and f4 were estimated as in", "f3"),
        (MEASURED | {"f3_tests": 0, "f2_sites": 0}, "F_ST was estimated", "f2"),
        (MEASURED | {"populations": 0, "pairs": 0}, "Runs of homozygosity were found", "f2"),
        (MEASURED | {"blocks": 1}, "F_ST was estimated", "Standard errors"),
        ({"blocks": 31}, "Runs of homozygosity were found", "F_ST"),
        (
            {"blocks": 31, "block": "5 cM", "runs_too_sparse": True, "pairs": 1},
            "F_ST was est",
            "homozygosity",
        ),
    ],
)
def test_only_what_was_estimated_of_populations_is_described(tmp_path, about, words, absent):
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], matrices=False)
    write_json(outcome.folder / "population/summary.json", about)
    text = " ".join(describe_methods(outcome, configuration(), ["population"]).paragraphs[3:4])
    assert words in text and absent not in text


def test_a_map_that_was_not_drawn_is_not_described(tmp_path):
    assert "mapped by UMAP" in methods(tmp_path / "a").text()
    outcome, _ = make_results(tmp_path / "b", COHORTS, ["old"], matrices=False)
    for path in (outcome.folder / "embedding").rglob("umap.*.tsv"):
        path.unlink()
    text = describe_methods(outcome, configuration(), SECTIONS).text()
    assert "The geodesics were mapped by principal coordinates" in text


def test_kinship_whose_model_fails_is_not_said_to_have_found_relatives(tmp_path):
    outcome, _ = make_results(tmp_path, COHORTS, ["old"], matrices=False)
    about = {"panel": "x", "sites": 700, "founders": 20, "max_mismatch": 0.02}
    found = resolve(1e-4, 0.3, 1e-4, **about)
    for fault, said in ((None, True), ("Too few heterozygotes.", False)):
        write_json(outcome.folder / "compare/kinship.json", vars(found) | {"fault": fault})
        text = describe_methods(outcome, configuration(), ["comparisons"]).text()
        assert ("Relatives were found by KING-robust kinship" in text) == said
        assert ("was not used, because its model does not hold" in text) == (not said)
        findings = relatives_findings(outcome.folder)
        topics = [finding.topic for finding in findings if finding.level == "warning"]
        assert ("Kinship fails" in topics) == (not said)
