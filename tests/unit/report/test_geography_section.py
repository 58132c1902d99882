"""The section on geography: only with coordinates, and saying no more than was measured."""

from __future__ import annotations

import numpy as np
import pytest
from support.outcomes import configuration, make_results
from support.readable import checked

from popdesic.geography.measure import measure_geography
from popdesic.report.figures import draw_figures
from popdesic.report.figures.geography import draw_geography
from popdesic.report.isolation import isolation_words
from popdesic.report.page import write_report
from popdesic.report.registry import geography_figures, study_figures
from popdesic.report.sections.geography import geography_section
from popdesic.study.configuration import fill_config

OPTIONS = {"color_by": "population", "min_sample_call_rate": 0.9, "min_maf": 0.01}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Thirty people of random genotypes from ten places, one of them unknown."""
    folder = tmp_path_factory.mktemp("page")
    places = np.repeat(np.arange(10), 3)
    columns = {
        "population": ["<b>", "P", "$x_1$"] * 10,
        "latitude": [str(40 + p % 4) for p in places],
        "longitude": ["NA" if p == 9 else str(-100 + p) for p in places],
    }
    columns["latitude"][-3:] = ["NA"] * 3
    cohorts = {"one": [f"a{k}" for k in range(20)], "new": [f"b{k}" for k in range(10)]}
    outcome, distances = make_results(folder, cohorts, ["one"], columns)
    results = outcome.folder
    measure_geography(
        results / "distance",
        folder / "samples.tsv",
        None,
        [],
        founders=["one"],
        n_sites=1,
        min_called=1,
        permutations=99,
        seed=1,
        out={
            "places": results / "geography/places.tsv",
            "edges": results / "geography/edges.tsv",
            "pairs": results / "geography/pairs.tsv",
            "summary": results / "geography/isolation.json",
        },
    )
    with checked():
        draw_geography(
            results / "geography",
            results / "distance/samples.tsv",
            folder / "samples.tsv",
            results / "figures",
            color_by="population",
        )
    draw_figures(outcome, distances, results / "figures", **OPTIONS)
    return outcome, distances


def test_page_has_the_section(study, tmp_path):
    outcome, distances = study
    page = tmp_path / "report.html"
    write_report(outcome, distances, outcome.folder / "figures", configuration(), page)
    text = page.read_text("utf-8")
    assert 'id="geography"' in text and "places are described, not tested" in text
    for figure in geography_figures(True):
        assert f'id="fig-{figure.name}"' in text
    assert "none is a barrier or a corridor (chance of any false one: 5 %)" in text
    assert "27 samples of 9 places." in text and "36 pairs of places." in text
    assert "geography/edges.tsv" in text


def test_section_says_what_limits_it(study):
    outcome, _ = study
    section = geography_section(outcome, outcome.folder / "figures")
    notes = " ".join(section["notes"])
    for words in ("3 samples have no coordinates", "Relatives were not sought", "have no founder"):
        assert words in notes
    assert [row["name"] for row in section["rows"]] == ["all pairs"]


def test_results_of_removed_coordinates_are_not_shown(study):
    outcome, _ = study
    bare = outcome.qc.drop(columns=["latitude", "longitude"])
    changed = type(outcome)(**(vars(outcome) | {"qc": bare}))
    assert geography_section(changed, outcome.folder / "figures") is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"p": 0.001, "correlation": 0.5, "exact": False, "permutations": 999}, "differ more"),
        ({"p": 0.04, "correlation": -0.1, "exact": False, "permutations": 999}, "no evidence"),
        ({"p": 0.2, "correlation": 0.1, "exact": False, "permutations": 999}, "no evidence"),
        ({"p": None, "correlation": 0.9, "exact": False, "permutations": 0}, "described, not"),
    ],
)
def test_words_follow_the_test(changes, words):
    about = {"places": 9, "all": changes, "within": {"p": 0.6}, "communities": 2}
    text = isolation_words(about)
    assert words in text
    assert ("within communities there is no evidence" in text) == (changes["p"] == 0.001)


@pytest.mark.parametrize(("communities", "called"), [(None, False), (1, True), (4, False)])
def test_isolation_by_distance_needs_the_test_within_communities(communities, called):
    """Mixtures that differ by place give the same correlation."""
    found = {"p": 0.005, "correlation": 0.85, "exact": False, "permutations": 999}
    about = {"places": 12, "all": found, "communities": communities}
    text = isolation_words(about)
    assert text.startswith(
        "Places that are farther apart differ more (rank correlation 0.85, p = 0.005)"
    )
    assert text.endswith(": isolation by distance.") == called
    assert ("no evidence of isolation by distance" in text) == (not called)
    assert ("no community has samples in three places" in text) == (communities == 4)
    within = about | {"communities": 4, "within": {"p": 0.01}}
    assert isolation_words(within).endswith("within communities too: isolation by distance.")


@pytest.mark.parametrize(
    ("structure", "called"),
    [
        ({"cline": None}, True),
        ({"cline": {"passed": True}}, True),
        ({"cline": {"passed": False}}, False),
    ],
)
def test_isolation_by_distance_without_a_gap_needs_the_test_for_a_cline(structure, called):
    """Families, and mixtures that differ by place, leave no gap either."""
    found = {"p": 0.005, "correlation": 0.85, "exact": False, "permutations": 999}
    text = isolation_words({"places": 7, "all": found, "communities": 1}, structure)
    assert text.endswith(": isolation by distance.") == called
    assert ("no evidence of isolation by distance: samples do not spread" in text) == (not called)


def test_figures_exist_only_with_places():
    config = fill_config({})
    placed, bare = (
        {f.name for f in study_figures(config, ["2"], placed)} for placed in (True, False)
    )
    assert placed - bare == {"geography_map", "isolation", "barriers"} and bare < placed
