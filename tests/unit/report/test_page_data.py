"""What the page is made of: packed maps, the choice of the first one, checks of the samples."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from support.outcomes import make_results
from support.verdicts import write_relatives

from popdesic.core.files import write_json
from popdesic.core.tables import read_table, write_table
from popdesic.relatives.kinship import SAME
from popdesic.relatives.resolution import resolve
from popdesic.report.findings import find_problems
from popdesic.report.firstmap import choose_map, unstable_share
from popdesic.report.outcome import closest_pairs, load_outcome
from popdesic.report.pagedata import (
    ABSENT,
    STEPS,
    closest_relatives,
    is_repeated,
    map_axes,
    map_title,
    page_data,
    quantise,
    to_json,
)
from popdesic.report.sections.checks import check_section
from popdesic.report.sections.comparisons import comparison_section
from popdesic.report.sections.relatives import relatives_findings
from popdesic.report.tables import not_run
from popdesic.study.configuration import fill_config
from popdesic.study.ploidy import for_ploidy


def unpack(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


@pytest.fixture
def outcome(tmp_path):
    cohorts = {"one": [f"a{i}" for i in range(20)], "new": [f"b{i}" for i in range(10)]}
    columns = {"population": ["P", "Q", "NA"] * 10, "sex": ["M", "2", "0"] * 10}
    return make_results(tmp_path, cohorts, ["one"], columns)[0]


# --- packing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300, 1.7e308])
def test_coordinates_come_back_to_half_a_step(scale):
    values = np.random.default_rng(5).uniform(-1, 1, 500) * scale
    packed = quantise(values)
    steps = unpack(packed["steps"], "<u2").astype(np.float64)
    back = packed["low"] * (1 - steps / STEPS) + packed["high"] * (steps / STEPS)
    width = packed["high"] / STEPS - packed["low"] / STEPS
    assert np.abs(back / width - values / width).max() <= 0.5001


def test_missing_and_equal_coordinates():
    packed = quantise(np.array([2.0, np.nan, 2.0, np.inf]))
    assert list(unpack(packed["steps"], "<u2")) == [0, ABSENT, 0, ABSENT]
    assert packed["low"] == packed["high"] == 2.0
    assert list(unpack(quantise(np.array([np.nan]))["steps"], "<u2")) == [ABSENT]


@pytest.mark.parametrize(
    ("columns", "axes"),
    [
        (["PC1", "PC2", "PC3", "cohort"], ["PC1", "PC2", "PC3"]),
        (["UMAP1", "UMAP2", "rs1", "rs2"], ["UMAP1", "UMAP2"]),
        (["t-SNE1", "t-SNE2", "t-SNE4"], ["t-SNE1", "t-SNE2"]),
        (["x", "cohort"], []),
        (["PC11", "X1"], ["X1"]),
    ],
)
def test_axes_of_a_table(columns, axes):
    assert map_axes(columns) == axes


def test_json_cannot_end_its_element():
    hostile = {"</script>": ["<!--", "&amp;", "\u2028", "é", '"']}
    text = str(to_json(hostile))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == hostile


def test_columns_keep_values_and_colours(outcome):
    data = page_data(outcome, [], [], color_by="no such column", first=["pca", "pca"])
    assert data["colour_by"] == "cohort"
    columns = {column["name"]: column for column in data["columns"]}
    population = columns["population"]
    codes = unpack(population["codes"], "<u1")
    assert [population["values"][code] for code in codes] == ["P", "Q", "NA"] * 10
    assert len(set(population["colours"])) == 3
    assert population["colours"][population["values"].index("NA")] == data["missing"]
    assert set(columns) == {"cohort", "population", "sex", "call rate", "heterozygosity"}
    assert "scale" in columns["heterozygosity"]


def test_files_of_a_former_run_give_no_columns(outcome):
    """Runs and relatives, if this study seeks them; unrelated samples are no relatives."""
    found = pd.DataFrame({"sample": ["a0", "b1"], "f_roh": [0.125, "NA"]})
    write_table(outcome.folder / "population/samples.tsv", found)
    write_relatives(outcome.folder, [("a0", "a1", "unrelated"), ("b1", "a2", SAME)])
    shown = {"color_by": "cohort", "first": ["pca", "pca"]}
    columns = {column["name"] for column in page_data(outcome, [], [], **shown)["columns"]}
    assert columns.isdisjoint({"F_ROH", "closest relative"})
    known = closest_relatives(outcome)
    data = page_data(outcome, [], [], **shown, population=["runs"], relatives=known)
    values = {column["name"]: column["values"] for column in data["columns"]}
    assert values["F_ROH"] == ["0.125", "NA"]
    assert values["closest relative"] == ["NA", f"a2 ({SAME})", f"b1 ({SAME})"]


def test_the_largest_component_of_each_sample_is_a_column(outcome):
    names = outcome.samples["sample"].tolist()
    table = pd.DataFrame({"sample": names, "K1": 0.25, "K2": 0.75}).astype({"K1": object})
    table.loc[0, ["K1", "K2"]] = [0.9, 0.1]
    table.loc[1, ["K1", "K2"]] = np.nan
    write_table(outcome.folder / "population/ancestry.tsv", table)
    shown = {"color_by": "cohort", "first": ["pca", "pca"]}
    columns = {column["name"] for column in page_data(outcome, [], [], **shown)["columns"]}
    assert "ancestry" not in columns  # the file may be of a former run
    data = page_data(outcome, [], [], **shown, population=["ancestry"])
    column = next(column for column in data["columns"] if column["name"] == "ancestry")
    codes = unpack(column["codes"], "<u1")
    found = [column["values"][code] for code in codes]
    assert found == ["K1 0.900", "NA", *["K2 0.750"] * 28]


def test_what_the_configuration_leaves_out():
    config = fill_config({})
    off = ["identity by descent", "ancestry proportions", "scans for interactions"]
    assert not_run(config) == off
    config["compare"]["analyses"] = ["pc_relate"]
    assert not_run(config)[:2] == ["identity by descent", "search for contamination"]
    haploid, _ = for_ploidy(fill_config({"impute": {"method": "mode"}}), 1)
    assert {"kinship", "runs of homozygosity"} <= set(not_run(haploid))


def test_columns_of_many_values_take_wider_codes(tmp_path):
    names = [f"s{i}" for i in range(300)]
    outcome, _ = make_results(tmp_path, {"only": names}, ["only"], {"plate": names})
    data = page_data(outcome, [], [], color_by="plate", first=["pca", "pca"])
    plate = next(column for column in data["columns"] if column["name"] == "plate")
    assert plate["bytes"] == 2
    assert [plate["values"][k] for k in unpack(plate["codes"], "<u2")] == names
    # Of 300 labels eleven have a colour of their own, and the page says so.
    assert len(plate["folded"]) == 289


def test_samples_missing_from_a_map_are_absent(outcome):
    path = outcome.folder / "embedding/coordinates/frame.tsv"
    write_table(path, pd.DataFrame({"sample": ["a3", "b1"], "F1": [1.0, 2.0], "F2": [3.0, 3.0]}))
    data = page_data(outcome, [path], [], color_by="cohort", first=["pca", "pca"])
    steps = unpack(data["maps"][0]["axes"][0]["steps"], "<u2")
    assert (steps != ABSENT).nonzero()[0].tolist() == [3, 21]


def test_maps_are_named_and_not_repeated(tmp_path):
    outcome, _ = make_results(tmp_path, {"one": ["a", "b"]}, ["one"], geodesic={"value": 2.0})
    assert is_repeated("umap.pcs.alphaauto", outcome)
    assert not is_repeated("umap.pcs.alpha2", outcome)
    assert map_title("umap.pcs.alpha2", outcome) == "UMAP, principal components, α = 2"
    nearest, _ = make_results(
        tmp_path / "knn",
        *({"one": ["a", "b"]}, ["one"]),
        geodesic={"value": 2.0, "graph": {"kind": "knn", "neighbors": 9}},
        listed={"graph": {"kind": "complete", "neighbors": 0}},
    )
    assert not is_repeated("umap.pcs.alphaauto", nearest)
    assert (
        map_title("umap.pcs.alphaauto", nearest)
        == "UMAP, principal components, 9 nearest neighbours, α = 2"
    )
    plain, _ = make_results(
        tmp_path / "plain", {"one": ["a", "b"]}, ["one"], geodesic={"value": 1.0}
    )
    assert (
        map_title("umap.pcs.alphaauto", plain)
        == "UMAP, principal components, α = 1 (plain distances)"
    )
    assert map_title("umap.pcs.alpha2.refit", outcome) == "UMAP, principal components, α = 2, refit"
    assert map_title("umap.distance", outcome) == "UMAP, plain distances"
    assert map_title("pca", outcome) == "PCA"
    assert map_title("mine", outcome) == "mine"
    assert map_title("umap.distance.pcs", outcome) == "UMAP, principal components, plain distances"


def test_columns_of_results_have_titles(tmp_path):
    outcome, _ = make_results(tmp_path, {"one": ["a", "b"]}, ["one"], geodesic={"value": 2.0})
    found = outcome.samples[["sample"]].assign(community="1", fine="2", level3="4", mine="5")
    found["instability.umap.pcs.alpha2"] = "0.5"
    found["instability.umap.pcs.alphaauto"] = "0.5"  # chosen as listed: the title is taken
    path = tmp_path / "partition.tsv"
    write_table(path, found)
    data = page_data(outcome, [], [path], color_by="cohort", first=["pca", "pca"])
    assert [column["name"] for column in data["columns"]][-6:] == [
        "community",
        "finer community",
        "block model, level 3",
        "mine",
        "instability, UMAP, principal components, α = 2",
        "instability.umap.pcs.alphaauto",
    ]


# --- the first map ------------------------------------------------------------------------------


def quality(outcome, **scores: float) -> None:
    """A table of quality in which trustworthiness and continuity are both the score."""
    table = []
    for name, score in scores.items():
        method, *place = name.split("_")
        space, alpha = place if place else ("-", "-")
        table.append((method.replace("PLAIN", "umap.distance"), space, alpha, "distance", score))
        if place:  # its own geodesics do not decide
            table.append((method, space, alpha, "geodesic", 1.0))
    frame = pd.DataFrame(table, columns=["map", "space", "alpha", "against", "trustworthiness"])
    frame["continuity"], frame["samples"] = frame.trustworthiness, 30
    write_table(outcome.folder / "embedding/quality.tsv", frame)


STEMS = ["pca", "umap.genotypes.alpha2", "umap.pcs.alpha2", "pcoa.genotypes.alpha2"]


@pytest.mark.parametrize(
    ("scores", "chosen", "words"),
    [
        ({"pca": 0.8, "umap_genotypes_2": 0.9, "umap_pcs_2": 0.95}, STEMS[2], "0.950"),
        # A tie goes to the simpler one, which stands first.
        ({"pca": 0.8, "umap_genotypes_2": 0.948, "umap_pcs_2": 0.95}, STEMS[1], "0.948"),
        ({"pca": 0.95, "umap_genotypes_2": 0.9, "umap_pcs_2": 0.92}, STEMS[2], "No other map"),
        ({"pca": 0.8, "umap_genotypes_2": 0.9, "PLAIN": 0.8}, STEMS[1], "geodesics improve"),
        ({"pca": 0.8, "umap_genotypes_2": 0.9, "PLAIN": 0.97}, STEMS[1], "do not improve"),
        ({"pca": 0.8, "umap_genotypes_2": 0.9, "PLAIN": 0.901}, STEMS[1], "no difference"),
        ({"pca": float("nan"), "umap_genotypes_2": float("nan")}, STEMS[1], "too few samples"),
    ],
)
def test_the_first_map_is_the_best_by_the_table(outcome, scores, chosen, words):
    quality(outcome, **scores)
    choice = choose_map(outcome, STEMS)
    assert choice.name == chosen
    assert words in choice.why
    assert len(choice.rows) == len(read_table(outcome.folder / "embedding/quality.tsv"))


def test_standard_errors_stand_behind_their_values(outcome):
    quality(outcome, pca=0.8, umap_genotypes_2=0.9)
    assert not choose_map(outcome, STEMS).sampled
    path = outcome.folder / "embedding/quality.tsv"
    table = read_table(path)
    table["trustworthiness_se"], table["continuity_se"] = ["0.0021", "0", "NA"], "0.00004"
    write_table(path, table)
    choice = choose_map(outcome, STEMS)
    assert choice.sampled and not any(heading.endswith("se") for heading in choice.headings)
    place = choice.headings.index("Trustworthiness")
    assert [row[place] for row in choice.rows] == ["0.800 ± 0.003", "0.900", "1"]
    assert choice.rows[0][place + 1] == "0.800 ± 0.001"


@pytest.fixture
def unstable(tmp_path):
    """UMAPs of genotypes on which three quarters of the samples are unstable, and stable ones."""
    names = [f"a{k}" for k in range(24)]
    outcome, _ = make_results(tmp_path, {"one": names}, ["one"], instability=0.2)
    for alpha in outcome.alphas:
        outcome.instability[f"umap.genotypes.alpha{alpha}"] *= 4
    return outcome


@pytest.mark.parametrize(
    ("scores", "chosen", "words"),
    [
        (
            {"pca": 0.8, "umap_genotypes_2": 0.95, "umap_pcs_2": 0.9},
            STEMS[2],
            "“UMAP, genotypes, α = 2” (0.950) is not shown first: on maps of its kind 75 % of the",
        ),
        (
            {"pca": 0.8, "PLAIN_genotypes_-": 0.96, "umap_genotypes_2": 0.95, "umap_pcs_2": 0.9},
            STEMS[2],
            "“UMAP, genotypes, plain distances” (0.960) is not shown first",
        ),
        ({"pca": 0.8, "umap_genotypes_2": 0.85, "umap_pcs_2": 0.9}, STEMS[2], "0.900"),
        ({"pca": 0.8, "umap_genotypes_2": 0.95, "pcoa_genotypes_2": 0.9}, STEMS[3], "PCoA"),
        ({"pca": 0.8, "umap_genotypes_2": 0.95}, STEMS[2], "No other stable map"),
    ],
)
def test_an_unstable_map_is_not_shown_first(unstable, scores, chosen, words):
    quality(unstable, **scores)
    choice = choose_map(unstable, [*STEMS, "umap.distance.genotypes"])
    assert choice.name == chosen and words in choice.why
    better = scores.get("umap_genotypes_2", 0) > max(scores.get("umap_pcs_2", 0), 0.9) - 1e-9
    assert ("not shown first" in choice.why) == better


def test_stable_maps_have_no_instability(unstable):
    found = {
        stem: unstable_share(stem, unstable)
        for stem in (*STEMS, "umap.distance.genotypes", "tsne.genotypes.alpha2")
    }
    assert list(found.values()) == [0, 0.75, 0, 0, 0.75, 0.75]
    assert unstable_share("umap.distance.pcs", unstable) == 0
    assert unstable_share("umap_refit.genotypes.alpha2", unstable) == 0.75
    assert unstable_share("pcoa_refit.genotypes.alpha2", unstable) == 0


def test_without_a_table_a_stable_map_is_taken(unstable):
    (unstable.folder / "embedding/quality.tsv").unlink(missing_ok=True)
    assert choose_map(unstable, STEMS).name == STEMS[2]


def test_without_a_table_the_first_in_order_is_taken(outcome):
    assert choose_map(outcome, STEMS).name == STEMS[1]
    assert choose_map(outcome, ["pca"]).name == "pca"


# --- checks of the samples ----------------------------------------------------------------------


def rewrite(outcome, cohort: str, **columns) -> None:
    path = outcome.folder / "qc" / f"{cohort}.samples.tsv"
    write_table(path, read_table(path).assign(**columns))


def test_sex_mendel_and_heterozygosity_stand_out(outcome):
    # The sheet has M, F and unknown in turn, some of them coded as 1, 2 and 0.
    from_x = ["M", "M", "M"] + ["NA"] * 17
    rewrite(
        outcome,
        "one",
        sex_from_x=from_x,
        x_sites=["50"] * 3 + ["0"] * 10 + ["NA"] * 7,
        x_f=["0.9"] * 3 + ["0.5"] + ["NA"] * 16,
        het_sd=[-5.0, 4.1, 0.0] + [0.5] * 17,
        mendel_sites=["NA", "1000", "1000"] + ["NA"] * 17,
        mendel_errors=["NA", "30", "2"] + ["NA"] * 17,
    )
    checks = check_section(outcome)
    assert [row["sample"] for row in checks["sex"]["rows"]] == ["a1"]
    assert checks["sex"]["checked"] == 2
    assert (checks["sex"]["unclear"], checks["sex"]["few"]) == (10, 9)
    assert [row["sample"] for row in checks["mendel"]["rows"]] == ["a1", "a2"]
    assert checks["mendel"]["n"] == 1
    assert [row["sample"] for row in checks["heterozygosity"]["rows"]] == ["a0", "a1"]
    texts = {finding.topic: finding.text for finding in checks["findings"]}
    assert "1 sample: a1 (sheet F, X M)" in texts["Sex"]
    assert "a1 (3.0 %)" in texts["Pedigree"]
    assert "a2" not in texts["Pedigree"]


def test_a_sample_without_calls_is_no_outlier_of_heterozygosity(outcome):
    rewrite(outcome, "one", het_sd=[-13.9, -13.9] + [0.5] * 18, call_rate=[0.0] + [0.99] * 19)
    rows = check_section(outcome)["heterozygosity"]["rows"]
    assert [row["sample"] for row in rows] == ["a1"]


def test_nothing_to_check_says_nothing(outcome):
    checks = check_section(outcome)
    assert checks["findings"] == []
    assert checks["sex"]["checked"] == checks["mendel"]["checked"] == 0


@pytest.mark.parametrize(
    ("sites", "sex", "words"),
    [
        ("NA", "M", "no sites on X were read"),
        ("9", "M", "sex cannot be inferred from the sites on X"),
        ("NA", "NA", "no sites on X were read and the sheet has no sex"),
    ],
)
def test_why_sex_was_not_checked(outcome, sites, sex, words):
    rewrite(outcome, "one", x_sites=[sites] * 20, sex_from_x=["NA"] * 20)
    sheet = outcome.qc.assign(sex=sex)
    changed = type(outcome)(**(vars(outcome) | {"qc": sheet}))
    assert check_section(changed)["sex"]["missing"] == words


def test_samples_are_left_out_for_a_reason(tmp_path):
    cohorts = {"one": [f"a{i}" for i in range(30)]}
    outcome, distances = make_results(tmp_path, cohorts, ["one"], left_out=("a1", "a2"))
    reasons = read_table(outcome.folder / "qc/one.samples.tsv").left_out
    reasons[2] = "qc.sex_mismatch"
    rewrite(outcome, "one", left_out=reasons)
    again = load_outcome(
        outcome.folder,
        tmp_path / "samples.tsv",
        cohorts=["one"],
        founders=["one"],
        spaces=outcome.spaces,
        alphas=outcome.alphas,
    )
    found = find_problems(
        again,
        closest_pairs(distances, list(again.samples["sample"]), 3),
        color_by="cohort",
        min_sample_call_rate=0.9,
        min_call_rate=0.95,
        min_called=1,
    )
    texts = [finding.text for finding in found if finding.topic == "Samples left out"]
    assert len(texts) == 2
    assert "1 sample with a call rate below 90.0 % was left out" in texts[0]
    assert "a1 (one" in texts[0]
    assert "1 sample with an X-inferred sex that disagrees with the sheet was left out" in texts[1]
    assert "a2 (one" in texts[1]


@pytest.mark.parametrize("indels", [0, 400])
@pytest.mark.parametrize(("failed", "warned"), [(500, True), (101, True), (100, False), (0, False)])
def test_many_failed_filters_are_a_warning(tmp_path, failed, warned, indels):
    """From the share on from which `popdesic check` warns of the first records."""
    names = [f"a{i}" for i in range(30)]
    outcome, distances = make_results(tmp_path, {"one": names, "two": ["b"]}, ["one"])
    counts = {"snps": 1_000 - failed - indels, "filtered": failed, "filter q10": failed}
    counts |= {"filter s": 1} | ({"indels_read": indels} if indels else {})
    rows = [("ingest", "one", step, number) for step, number in counts.items()]
    more = pd.DataFrame(rows, columns=outcome.summary.columns)
    changed = type(outcome)(**(vars(outcome) | {"summary": pd.concat([outcome.summary, more])}))
    found = find_problems(
        changed,
        closest_pairs(distances, list(outcome.samples["sample"]), 3),
        color_by="cohort",
        min_sample_call_rate=0.9,
        min_call_rate=0.95,
        min_called=1,
    )
    texts = [one.text for one in found if one.topic == "Failed filters"]
    said = (
        f"{failed} of 1\u202f000 {'records' if indels else 'SNPs'} "
        f"({failed / 10:.1f} %) of cohort one were not read, because "
        f"their FILTER is not PASS: q10 {failed} and s 1."
    )
    assert texts == [said] * warned


def test_relatives_are_counted(outcome):
    assert relatives_findings(outcome.folder) == []
    relations = ["full siblings"] * 2 + ["second degree", "unrelated", SAME]
    write_relatives(outcome.folder, list(zip("abcde", "vwxyz", relations, strict=True)))
    (finding,) = relatives_findings(outcome.folder)
    assert "3 close pairs: 2 full-sibling and 1 second-degree" in finding.text
    write_relatives(outcome.folder, [("a", "v", "sharing only")], searched=60.0)
    listed, finding = relatives_findings(outcome.folder)
    assert listed.text.startswith("1 close pair: 1 without a degree.")
    assert finding.text.startswith(
        "Degrees are not named: they need 1\u202f000 cM. In the 60 cM searched"
    )
    part = comparison_section(outcome.folder, outcome.folder / "figures", ["kinship"])
    assert part["no_degrees"] == finding.text
    assert [part["kinship"]["rows"][0][name] for name in ("relation", "low", "king")] == [
        *("sharing only", "0.050", "0.200")
    ]


def test_relatives_among_the_founders_of_the_axes_are_said(outcome):
    about = {"related_fitted": 3, "median_kinship": {"one": 0.001, "two": 0.04}}
    write_json(outcome.folder / "compare/pc_relate.json", about)
    finding, warning = relatives_findings(outcome.folder)
    assert "3 pairs of the founders that define the axes of the PCA are relatives" in finding.text
    assert warning.level == "warning"
    assert "Most samples of two look related" in warning.text


def resolved(folder, variance: float, mismatch_variance: float, **further) -> None:
    about = {"panel": "x", "sites": 2457, "founders": 2504, "max_mismatch": 0.02} | further
    found = resolve(variance, 0.3, mismatch_variance, **about)
    write_json(folder / "compare/kinship.json", asdict(found))


def test_what_kinship_cannot_tell_is_said(tmp_path):
    resolved(tmp_path, 1e-5, 1e-5, sites=100_000)
    assert relatives_findings(tmp_path, 0.0884) == []
    resolved(tmp_path, 4e-4, 1e-4)  # 1 875 sites: first degree alone
    (finding,) = relatives_findings(tmp_path, 0.0884)
    assert finding.level == "note"
    assert "2\u202f457 sites, many of them in LD, amount to 1\u202f875 independent" in finding.text
    assert "Pairs with a kinship of at least 0.120 count as relatives" in finding.text
    assert "Not fully resolved: second degree and third degree." in finding.text
    assert "close_kinship = 0.0884 was raised to 0.120" in finding.text
    assert "raised" not in relatives_findings(tmp_path, 0.0)[0].text
    assert "raised" not in relatives_findings(tmp_path, 0.2)[0].text
    resolved(tmp_path, 0.009, 1e-3, siblings=0.002)
    kinship, identity = relatives_findings(tmp_path, 0.0884)
    assert (kinship.level, identity.level) == ("warning", "note")
    assert "so relatives cannot be identified" in kinship.text
    assert "close_kinship = 0.0884 cannot be applied" in kinship.text
    assert "about 0.2 % of full siblings" in identity.text
    resolved(tmp_path, 0.02, 0.02)
    assert "too few sites to tell a duplicate from another sample" in (
        relatives_findings(tmp_path)[1].text
    )
    about = {"panel": "x", "sites": 9, "founders": 1, "max_mismatch": 0.02}
    write_json(tmp_path / "compare/kinship.json", asdict(resolve(None, None, None, **about)))
    assert "The founders are too few" in relatives_findings(tmp_path, 0.0884)[0].text


def test_a_column_of_the_sheet_hides_none_that_was_found(tmp_path):
    """A sheet may have a column `community`: the page shows both."""
    cohorts = {"one": [f"a{i}" for i in range(20)]}
    columns = {"community": ["village", "town"] * 10, "population": ["P", "Q"] * 10}
    outcome, _ = make_results(tmp_path, cohorts, ["one"], columns)
    path = tmp_path / "results/communities/partition.tsv"
    found = outcome.samples[["sample"]].assign(community=[1, 2, 3, 4] * 5, level0=1)
    write_table(path, found)
    data = page_data(outcome, [], [path], color_by="population", first=["pca", "pca"])
    by_name = {column["name"]: column["values"] for column in data["columns"]}
    assert len(by_name) == len(data["columns"])
    assert by_name["community"] == ["town", "village"]
    assert by_name["community (partition)"] == ["1", "2", "3", "4"]
    assert by_name["block model, level 0"] == ["1"]
