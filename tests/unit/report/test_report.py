"""The report: well-formed, self-contained, escaped, and saying what a reader must know."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree.ElementTree import canonicalize

import numpy as np
import pandas as pd
import pytest
from support.outcomes import ALPHAS, EMPTY, SPACES, configuration, make_results
from support.sentences import MOST_WORDS, of_report

from popdesic.cohort.drift import expected_difference, measure_drift
from popdesic.cohort.hwe_groups import FEW, MANY, UNLABELLED
from popdesic.cohort.panel_steps import PanelStep
from popdesic.core.places import TEMPLATES
from popdesic.core.tables import write_table
from popdesic.report import inline
from popdesic.report.figures import draw_figures
from popdesic.report.findings import find_problems, hardy_weinberg
from popdesic.report.inline import inline_svg, read_caption
from popdesic.report.outcome import closest_pairs
from popdesic.report.page import write_report
from popdesic.report.sections.comparisons import comparison_section, same_people
from popdesic.report.sections.geodesics import geodesic_findings, map_findings
from popdesic.report.tables import filter_rows, parameter_rows
from popdesic.report.words import describe_filter, join, number, percent, plural

VOID = {"meta", "img", "br", "hr", "link", "input"}
HOSTILE = "<script>alert('&')</script>\"Ωé"
CAPTIONS = ["filters", "samples", "sites", "distances", "alpha", "pca", "pca_pairs", "scree"]
CAPTIONS += ["loadings", "pcoa", "umap"]


class Page(HTMLParser):
    """Checks nesting, and gathers identifiers, links, resources and visible text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.resources: list[str] = []
        self.headers_without_scope = 0
        self.pictures: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self._element(tag, dict(attributes))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        self._element(tag, dict(attributes))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.words.append(data)

    def _element(self, tag: str, attributes: dict) -> None:
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        elif tag in ("iframe", "object", "embed"):
            self.resources.append(tag)
        for key in ("src", "srcset", "href", "xlink:href", "data", "poster"):
            if key in attributes and tag != "a":
                self.resources.append(attributes[key])
        if tag == "th" and "scope" not in attributes:
            self.headers_without_scope += 1
        if tag == "img":
            self.pictures.append(attributes["alt"])
        if tag == "svg":
            assert attributes["role"] == "img"
            self.pictures.append(attributes["aria-label"])

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def build(folder: Path, cohorts, founders, columns=None, title="A study", drawn=False, **further):
    outcome, distances = make_results(folder, cohorts, founders, columns, **further)
    figures = folder / "results/figures"
    if drawn:
        limits = {"min_sample_call_rate": 0.9, "min_maf": 0.01}
        draw_figures(outcome, distances, figures, color_by="population", **limits)
    else:  # drawing takes seconds, and most tests do not look at the figures
        figures.mkdir()
        methods = [*CAPTIONS[-2:], *outcome.further]
        for name in [
            *CAPTIONS[:-2],
            "instability",
            *(f"{m}.{s}.alpha{a}" for m in methods for s in SPACES for a in ALPHAS),
        ]:
            (figures / f"{name}.svg").write_text(EMPTY)
    out = folder / "results/report/report.html"
    write_report(outcome, distances, figures, configuration(title=title), out)
    return outcome, distances, out


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two founders and a newcomer, every name of which needs escaping somewhere."""
    cohorts = {
        "one": [f"{HOSTILE}{i}" for i in range(5)],
        "two": [f"t{i}" for i in range(4)],
        "ne<w>": [f"n{i}" for i in range(3)],
    }
    columns = {"population": [HOSTILE, "B", "NA", "http://example.org/x"] * 3}
    return build(
        tmp_path_factory.mktemp("study"),
        cohorts,
        ["one", "two"],
        columns,
        title=HOSTILE,
        drawn=True,
        left_out=(f"{HOSTILE}4",),
    )


@pytest.fixture(scope="module")
def page(study) -> Page:
    return Page(study[2].read_text("utf-8"))


# --- the page ---------------------------------------------------------------------------------


def test_page_is_well_formed_and_accessible(study, page):
    text = study[2].read_text("utf-8")
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert page.headers_without_scope == 0
    assert len(page.ids) == len(set(page.ids))
    assert all(alt.strip() for alt in page.pictures)


def test_sentences_of_the_page_are_short(study):
    found = of_report(study[2])
    assert len(found) > 400
    assert [f.text for f in found if f.words > MOST_WORDS] == []


def test_page_shows_every_figure(study, page):
    outcome = study[0]
    stems = {path.stem for path in (outcome.folder / "figures").glob("*.svg")}
    assert len(stems) == 17
    assert {f"fig-{stem}" for stem in stems} <= set(page.ids)
    assert len(page.pictures) == len(stems)


def test_page_fetches_nothing(study, page):
    assert all(r.startswith(("#", "data:")) for r in page.resources)
    text = study[2].read_text("utf-8")
    assert "@import" not in text
    assert not re.search(r"url\((?!#|%23)", text)


def test_links_lead_to_files_or_to_the_page_itself(study, page):
    folder = study[2].parent
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert (folder / link).is_file(), link


def test_names_are_escaped_and_come_out_as_they_are(study, page):
    text = study[2].read_text("utf-8")
    assert "<script>alert" not in text
    assert "<w>" not in text
    assert f"{HOSTILE}4 (one, 50.0 %)" in page.text
    assert HOSTILE in page.text
    assert "ne<w>" in page.text


def test_page_is_the_same_bytes_twice(study):
    outcome, distances, out = study
    again = out.with_name("again.html")
    write_report(
        outcome, distances, outcome.folder / "figures", configuration(title=HOSTILE), again
    )
    assert again.read_bytes() == out.read_bytes()


def test_page_tells_counts_digest_parameters_and_versions(page):
    for words in (
        "12 read, 11 analysed, 1 left out",
        "0123456789ab",
        "2 founders, 1 newcomer",
        "genome build hg38",
        "The genome is hg38: qc.build says so.",
        "repeat with popdesic run STUDY",
        "Where the samples of each newcomer lie",
        "popdesic 0.",
        "numpy ",
        "scikit-learn ",
        "seed 1",
        "geodesic.alpha",
        "Lowest minor allele frequency over all founder samples.",
        "minor allele frequency at least 0.01",
        "dropped: insertion or deletion",
        "None in any cohort: spanning deletion (*).",
    ):
        assert words in page.text, words


def test_large_figures_enter_as_png(study, monkeypatch):
    outcome, distances, out = study
    monkeypatch.setattr(inline, "MAX_INLINE_BYTES", 0)
    large = out.with_name("large.html")
    write_report(outcome, distances, outcome.folder / "figures", configuration(), large)
    found = Page(large.read_text("utf-8"))
    assert sum(r.startswith("data:image/png;base64,") for r in found.resources) == 17
    assert len(found.pictures) == 17


def test_middling_figures_enter_as_one_svg_image_each(study, monkeypatch):
    outcome, distances, out = study
    monkeypatch.setattr(inline, "MAX_ELEMENT_BYTES", 0)
    page = out.with_name("images.html")
    write_report(outcome, distances, outcome.folder / "figures", configuration(), page)
    head = "data:image/svg+xml;charset=utf-8,"
    found = Page(page.read_text("utf-8"))
    texts = [unquote(r.removeprefix(head)) for r in found.resources if r.startswith(head)]
    files = [path.read_text("utf-8") for path in (outcome.folder / "figures").glob("*.svg")]

    def content(svg: str) -> str:
        return canonicalize(" ".join(svg.split("\n")), strip_text=True)

    assert sorted(map(content, texts)) == sorted(map(content, files))


@pytest.mark.parametrize(
    "columns", [None, {"population": ["NA"]}], ids=["no population", "all unknown"]
)
def test_one_sample_gives_a_page(tmp_path, columns):
    _, _, out = build(tmp_path, {"only": ["s"]}, ["only"], columns)
    text = Page(out.read_text("utf-8")).text
    assert "1 read, 1 analysed, 0 left out" in text
    assert "Only 1 sample defines the panel" in text


def test_geodesics_that_auto_repeats_are_shown_once(tmp_path):
    _, _, out = build(
        tmp_path, {"only": [f"s{i}" for i in range(6)]}, ["only"], geodesic={"value": 2.0}
    )
    found = Page(out.read_text("utf-8"))
    assert found.text.count("is the same map as one above") == 4
    assert len(found.pictures) == 13


def test_geodesics_fold_where_plain_distances_serve(tmp_path):
    """To one line each, with all that is open otherwise."""
    cohorts = {"only": [f"s{i}" for i in range(6)]}
    pages = {}
    for reason in ("lead", "same order"):
        _, _, out = build(tmp_path / reason, cohorts, ["only"], choice={"reason": reason})
        pages[reason] = out.read_text("utf-8")
    lines = (
        "<summary>Geodesics: in this study, plain distances order pairs as well</summary>",
        "<summary>Maps of geodesics where plain distances order pairs as well</summary>",
    )
    assert not any(line in pages["lead"] for line in lines)
    folded = pages["same order"]
    opened = [folded.index(line) for line in lines]
    closed = [folded.rindex("</details>", at, folded.index("</section>", at)) for at in opened]
    for part, (start, end) in zip(
        ("fig-alpha", "fig-pcoa.pcs.alpha2"), zip(opened, closed, strict=True), strict=True
    ):
        assert start < folded.index(f'id="{part}"') < end
    assert folded.index('id="fig-pcoa.pcs.alphaauto"') < opened[1]
    assert len(Page(folded).pictures) == len(Page(pages["lead"]).pictures)


@pytest.mark.parametrize(
    ("value", "density", "kept", "corrected"),
    [(2.0, "keep", 1, 0), (2.0, "correct", 0, 1), (1.0, "keep", 0, 0), (1.0, "correct", 0, 0)],
)
def test_what_uneven_sampling_does_to_lengths_is_said(tmp_path, value, density, kept, corrected):
    graph = {"kind": "complete", "neighbors": 15, "density": density}
    geodesic = {"value": value, "graph": graph}
    _, _, out = build(tmp_path, {"only": list("abcdef")}, ["only"], geodesic=geodesic)
    text = Page(out.read_text("utf-8")).text
    assert text.count("In simulations, equal true distances were 1.5 times as long") == kept
    assert text.count("lengths depend less on the sampling density") == corrected


def test_findings_of_all_parts_are_on_the_page(tmp_path):
    cohorts = {"one": [f"a{i}" for i in range(6)]}
    _, _, out = build(
        tmp_path, cohorts, ["one"], geodesic={"unreachable_pairs": 3}, instability=0.9
    )
    text = Page(out.read_text("utf-8")).text
    for topic in ("Few founders", "Labels", "Unreachable pairs", "Unstable maps"):
        assert f"{topic}. " in text, topic


def test_inline_svg_has_identifiers_of_its_own():
    text = (
        '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "x" "y.dtd">'
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'width="72pt" height="36pt" viewBox="0 0 72 36"><metadata>date</metadata>'
        '<defs><style type="text/css">*{}</style><path id="m"/></defs>'
        '<use xlink:href="#m" clip-path="url(#c)"/><text>id="m" &lt;b&gt;</text></svg>'
    )
    found = inline_svg(text, "pcoa.pcs.alpha2", 'a "b"')
    assert 'id="pcoa-pcs-alpha2-m"' in found
    assert 'xlink:href="#pcoa-pcs-alpha2-m"' in found
    assert "url(#pcoa-pcs-alpha2-c)" in found
    assert '>id="m" &lt;b&gt;</text>' in found
    assert "metadata" not in found
    assert "style type" not in found
    assert 'aria-label="a &quot;b&quot;"' in found
    assert found.startswith("<svg ")


@pytest.mark.parametrize(
    "name", sorted({path.stem for path in TEMPLATES.glob("*.rst")} - {"workflow"})
)
def test_captions_say_what_how_and_what_not(name):
    shows, read, limits = read_caption(name)
    assert min(map(len, (shows, read, limits))) > 60
    assert " not " in limits
    # The page prints them as they are, Snakemake as reStructuredText: only plain text is both.
    assert not re.search(r"[*`|<>{}]|::", shows + read + limits)


# --- findings ---------------------------------------------------------------------------------


def findings(tmp_path, cohorts=None, founders=None, columns=None, **further):
    cohorts = cohorts or {"one": [f"a{i}" for i in range(25)], "new": [f"b{i}" for i in range(3)]}
    outcome, distances = make_results(tmp_path, cohorts, founders or ["one"], columns, **further)
    close = closest_pairs(distances, list(outcome.samples["sample"]), 10)
    found = [
        *find_problems(
            outcome,
            close,
            color_by="population",
            min_sample_call_rate=0.9,
            min_call_rate=0.95,
            min_called=1,
        ),
        *geodesic_findings(outcome),
        *map_findings(outcome),
    ]
    return {finding.topic: finding for finding in found}


#: Notes of every run in which something is `auto`.
CHOICES = {f"Choice of geodesics ({space})" for space in SPACES}


def test_a_clean_run_has_no_warning(tmp_path):
    columns = {"population": ["P"] * 28}
    assert set(findings(tmp_path, columns=columns)) == CHOICES


def test_what_hardy_weinberg_was_tested_for_is_told():
    """Deficits count within labels alone, and where samples mate at random."""
    rows = [
        ("P", "30", "both", ""),
        ("NA", "5", "excess", UNLABELLED),
        ("NA", "1", "excess", UNLABELLED),
        ("lines", "40", "excess", FEW),
        ("clones", "300", "none", MANY),
    ]
    table = pd.DataFrame(rows, columns=["population", "samples", "tested", "reason"])
    texts = [one.text for one in hardy_weinberg(table)]
    alone = "Only an excess of heterozygotes counts against a site there (panel.min_hwe_p)."
    none = "No site was removed by panel.min_hwe_p because of these samples."
    assert texts == [
        f"6 founder samples have {UNLABELLED}. {alone}",
        f"40 founder samples of lines have {FEW}. {alone}",
        f"300 founder samples of clones have {MANY}. {none}",
    ]
    assert not hardy_weinberg(table[:1])


AXIS_WARNINGS = {
    "No structure": (
        {"significant": 0},
        "No principal component is larger than expected by chance in one population (Tracy-Widom "
        "test at 1 %).",
    ),
    "An axis of one region": (
        {
            "regions": [
                {
                    "axis": 2,
                    "chrom": "8",
                    "start": 8_120_000,
                    "end": 11_930_000,
                    "sites": 40,
                    "share": 0.913,
                    "expected": 0.005,
                }
            ]
        },
        "PC2 reflects one region, 8:8.1-11.9 Mb: 91.3 % of its squared loadings are there and "
        "0.5 % of the sites.",
    ),
    "Cohorts apart": (
        {
            "shifts": [
                {"axis": 3, "share": 0.62, "cohorts": ["one", "two"], "labels": ["FIN", "TSI"]}
            ]
        },
        "On PC3 founder cohorts one and two lie apart within the same populations (FIN and TSI): "
        "cohort explains 62.0 % of the variance there.",
    ),
}


@pytest.mark.parametrize("topic", AXIS_WARNINGS)
def test_axes_that_are_not_ancestry_are_reported(tmp_path, topic):
    axes, words = AXIS_WARNINGS[topic]
    found = findings(tmp_path, columns={"population": ["P"] * 28}, axes=axes)
    assert set(found) == {topic} | CHOICES and found[topic].level == "warning"
    assert found[topic].text.startswith(words)


def test_unstable_maps_are_named_and_stable_ones_are_not(tmp_path):
    columns = {"population": ["P"] * 28}
    assert set(findings(tmp_path / "a", columns=columns, instability=0.5)) == CHOICES
    found = findings(tmp_path / "b", columns=columns, instability=0.6)["Unstable maps"]
    assert found.level == "warning"
    assert "genotype distances, α = 2 (75 %)" in found.text
    assert "principal-component distances, α = 4 (75 %)" in found.text


def test_maps_on_request_are_on_the_page(tmp_path):
    cohorts = {"one": [f"a{i}" for i in range(30)]}
    further = {"further": ("densmap", "tsne"), "instability": 0.9}
    _, _, out = build(tmp_path, cohorts, ["one"], {"population": ["P", "Q"] * 15}, **further)
    text = Page(out.read_text("utf-8")).text
    assert "densMAP of geodesics: genotype distances, α = 2" in text
    assert "t-SNE of geodesics: principal-component distances, α = 4 (chosen by auto)" in text
    assert "Instability of the UMAPs" in text
    assert "Unstable maps." in text


def test_samples_left_out_are_named(tmp_path):
    found = findings(tmp_path, left_out=("a3", "b1"))["Samples left out"]
    assert found.level == "warning"
    assert "2 samples with a call rate below 90.0 % were left out of all analyses" in found.text
    assert "a3 (one, 50.0 %) and b1 (new, 50.0 %)" in found.text


@pytest.mark.parametrize(
    ("topic", "values", "words"),
    [
        ("Sites absent", {"share_present": 0.9}, "only 90.0 % of the panel's sites"),
        ("Call rate", {"call_rate": 0.8}, "call rate of 80.0 %"),
        ("Allele frequencies", {"mean_af_difference": 0.2}, "by 0.200 on average"),
    ],
)
def test_a_newcomer_that_differs_is_reported_and_a_founder_is_not(tmp_path, topic, values, words):
    found = findings(tmp_path / "new", drift={"new": values})
    assert found[topic].level == "warning"
    assert words in found[topic].text
    assert topic not in findings(tmp_path / "founder", drift={"one": values})


@pytest.mark.parametrize("usual", [0.0, 0.02])
def test_a_drift_is_compared_with_that_of_several_founders(tmp_path, usual):
    """One founder cohort defines the panel's frequencies: it differs by nothing."""
    drift = {"one": {"mean_af_difference": usual}, "new": {"mean_af_difference": 0.2}}
    text = findings(tmp_path, drift=drift)["Allele frequencies"].text
    assert ("and the founders differ by at most 0.020" in text) == (usual > 0)
    assert "the founders differ by at most 0.000" not in text


def test_a_drift_that_founders_have_too_is_none(tmp_path):
    drift = {"one": {"mean_af_difference": 0.3}, "new": {"mean_af_difference": 0.2}}
    assert "Allele frequencies" not in findings(tmp_path, drift=drift)


def test_swapped_and_ambiguous_sites_are_counted(tmp_path):
    encode = {"new": {"swapped_turned": 24, "swapped_ambiguous_dropped": 6}}
    text = findings(tmp_path, encode=encode)["Swapped alleles"].text
    assert "swapped at 30 panel sites: 24 corrected, 6 set to missing" in text


@pytest.mark.parametrize(
    ("topic", "geodesic"),
    [
        ("Unreachable pairs", {"unreachable_pairs": 3}),
        (
            "Unconnected samples",
            {
                "unreachable_pairs": 3,
                "graph": {"kind": "shared", "neighbors": 0, "density": "keep"},
                "apart": 40.0,
                "alone": 1,
            },
        ),
        ("Few bridges", {"indirect_pairs": 26, "indirect_share": 0.03}),
        ("Plain distances", {"indirect_pairs": 0, "indirect_share": 0.0}),
        (
            "Approximate geodesics",
            {
                "approximate": {
                    "neighbors": 50,
                    "checked_rows": 16,
                    "median_excess": 0.001,
                    "largest_excess": 0.02,
                }
            },
        ),
        (
            "Shorter paths through newcomers",
            {
                "record": {
                    "continued": "alpha2.0123456789ab.npy",
                    "closed_before": 20,
                    "inserted": 4,
                    "old_pairs": 190,
                    "old_pairs_shortened": 7,
                    "median_shortening": 0.01,
                    "largest_shortening": 0.1,
                }
            },
        ),
        (
            "Number type",
            {"number": {"dtype": "float64", "scale": 1.0, "error_bound": 1e-15, "rescaled": False}},
        ),
    ],
)
def test_geodesics_are_explained(tmp_path, topic, geodesic):
    assert topic in findings(tmp_path, geodesic=geodesic)


@pytest.mark.parametrize(("listed", "times"), [(2.0, 1), (3.0, 2)])
def test_a_closure_of_two_alphas_is_told_once(tmp_path, listed, times):
    """`auto` chose 2: the listed 2 has the same closure, a listed 3 has its own."""
    record = {"continued": "x.npy", "closed_before": 20, "inserted": 4, "old_pairs": 190}
    record |= {"old_pairs_shortened": 7, "median_shortening": 0.01, "largest_shortening": 0.1}
    ways = {"geodesic": {"value": 2.0, "record": record}, "listed": {"value": listed}}
    outcome, _ = make_results(tmp_path, {"one": list("abcd")}, ["one"], **ways)
    found = [finding.topic for finding in geodesic_findings(outcome)]
    assert found.count("Shorter paths through newcomers") == times * len(SPACES)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (
            {"graph": "knn", "neighbors": 15, "alpha": 1.0, "reason": "nearest"},
            "These geodesics order pairs differently: their rank correlation with plain distances "
            "is 0.900.",
        ),
        (
            {"alpha": 1.0, "reason": "same order", "best": 0.4504},
            "Geodesics are neither better nor worse here: plain distances are shown.",
        ),
        (
            {"alpha": 1.0, "reason": "plain", "best": 0.722, "plain": 0.785},
            "Geodesics are worse by 0.063 here: plain distances are shown.",
        ),
        (
            {"alpha": 1.0, "reason": "same order", "best": 0.46},
            "Geodesics are better by 0.010 here: plain distances are shown.",
        ),
        ({"alpha": 1.0, "reason": "no evidence"}, "(0.500, plain 0.450)."),
        ({"alpha": 1.0, "reason": "too few"}, "(0.500, plain 0.450)."),
    ],
)
def test_the_choice_of_geodesics_is_explained(tmp_path, choice, words):
    found = findings(tmp_path, choice=choice)
    text = found["Choice of geodesics (genotypes)"].text
    assert text == f"Genotype distances: Geodesics with α = 4 order pairs best {words}".replace(
        "best These", "best (0.500, plain 0.450). These"
    ).replace("best Geodesics", "best (0.500, plain 0.450). Geodesics")
    text = found["Choice of geodesics (pcs)"].text
    assert text.endswith(f"{words} Distances are of 8 components.")


@pytest.mark.parametrize(
    ("apart", "topic"), [(2, "Map dominated by outliers"), (20, "Map of one split")]
)
def test_a_map_of_one_coordinate_shows_outliers_or_a_split(tmp_path, apart, topic):
    outcome, _ = make_results(tmp_path, {"one": [f"a{k}" for k in range(60)]}, ["one"])
    name = f"pcoa.{SPACES[0]}.alpha{outcome.alphas[0]}"
    table = outcome.embedding(name)
    table["PCo1"] = np.where(np.arange(60) < apart, 9.0, np.linspace(0, 1, 60))
    write_table(outcome.folder / f"embedding/coordinates/{name}.tsv", table)
    assert not {"Map dominated by outliers", "Map of one split"} & {
        finding.topic for finding in map_findings(outcome)
    }
    outcome.variance[name] = [0.95, 0.01]
    (found,) = [f for f in map_findings(outcome) if f.topic.startswith("Map ")]
    assert found.topic == topic
    assert (f"{apart} distant samples" in found.text) == (apart == 2)
    assert ("20 samples lie apart from the other 40" in found.text) == (apart == 20)


def test_a_umap_of_few_components_is_left_out_with_a_reason(tmp_path):
    """Read from the tables: all coordinates of the space of components are missing."""
    outcome, _ = make_results(tmp_path, {"one": [f"a{k}" for k in range(60)]}, ["one"])
    topics = {finding.topic for finding in map_findings(outcome)}
    assert not {"UMAP of few components", "Too few samples"} & topics
    for space, alpha in outcome.maps():
        name = f"umap.{space}.alpha{alpha}"
        if space == "pcs":
            table = outcome.embedding(name).assign(UMAP1="NA", UMAP2="NA")
            write_table(outcome.folder / f"embedding/coordinates/{name}.tsv", table)
    found = {finding.topic: finding for finding in map_findings(outcome)}
    assert "Too few samples" not in found
    assert found["UMAP of few components"].level == "note"
    assert "fewer than 5 components" in found["UMAP of few components"].text


@pytest.mark.parametrize("structure", ["continuous", "one", "discrete"])
def test_half_of_a_gradient_is_no_split(tmp_path, structure):
    outcome, _ = make_results(tmp_path, {"one": [f"a{k}" for k in range(60)]}, ["one"])
    name = f"pcoa.{SPACES[0]}.alpha{outcome.alphas[0]}"
    table = outcome.embedding(name).assign(PCo1=np.linspace(0, 1, 60))
    write_table(outcome.folder / f"embedding/coordinates/{name}.tsv", table)
    outcome.variance[name] = [1.0, 0.0]
    findings = map_findings(outcome, {"structure": structure})
    (found,) = [f for f in findings if f.topic.startswith("Map ")]
    if structure == "discrete":
        assert (found.level, found.topic) == ("warning", "Map of one split")
    else:
        assert (found.level, found.topic) == ("note", "Map of one coordinate")
        assert found.text.endswith("no gap separates groups: read positions along it alone.")


def test_plain_distances_are_no_fallback(tmp_path):
    """Nothing was closed, so neither number type nor bridges are worth a note."""
    number = {"dtype": "float64", "scale": 1.0, "error_bound": 0.0, "rescaled": False}
    plain = {"number": number, "plain": True, "value": 1.0, "indirect_pairs": 0}
    found = findings(tmp_path, geodesic=plain, columns={"population": ["P"] * 28})
    assert set(found) == CHOICES


def duplicates(tmp_path, same: pd.DataFrame | None) -> list:
    outcome, _ = make_results(tmp_path, {"one": ["a", "b", "c"]}, ["one"])
    close = pd.DataFrame(
        [("a", "b", 0.1, 0.01), ("a", "c", 9.0, 0.9)],
        columns=["sample_a", "sample_b", "distance", "of_median"],
    )
    found = find_problems(
        outcome,
        close,
        same=same,
        color_by="cohort",
        min_sample_call_rate=0.9,
        min_call_rate=0.95,
        min_called=1,
    )
    return [f for f in found if f.topic in ("Duplicates", "Very similar samples")]


def test_duplicates_are_those_of_identity(tmp_path):
    """A small distance alone names nobody: on few sites strangers are as close."""
    columns = ["sample_a", "sample_b"]
    assert duplicates(tmp_path, pd.DataFrame([], columns=columns)) == []
    (found,) = duplicates(tmp_path, pd.DataFrame([("b", "c"), ("c", "a")], columns=columns))
    assert found.topic == "Duplicates"
    assert "3 samples are genotypically identical to another" in found.text
    assert "b and c; c and a." in found.text


def test_without_identity_close_pairs_are_no_duplicates(tmp_path):
    (found,) = duplicates(tmp_path, None)
    assert found.topic == "Very similar samples"
    assert (
        "below 30 % of the median distance: a and b. They were not tested for identity"
        in found.text
    )


def test_the_same_people_are_each_named_once(tmp_path):
    assert same_people(tmp_path, ["identity"]) is None
    columns = ["query", "match", "verdict"]
    rows = [("b", "a", "same"), ("a", "b", "same"), ("c", "a", "different"), ("d", "a", "same")]
    write_table(tmp_path / "compare/identity.tsv", pd.DataFrame(rows, columns=columns))
    assert same_people(tmp_path, ["identity"]).to_numpy().tolist() == [["a", "b"], ["a", "d"]]
    listed = comparison_section(tmp_path, tmp_path, ["identity"])["identity"]
    assert [(row["query"], row["match"]) for row in listed["rows"]] == [("b", "a"), ("d", "a")]
    assert listed["n"] == listed["shown"] == 2
    assert same_people(tmp_path, ["kinship"]) is None  # left by an earlier run


# --- words and rows ---------------------------------------------------------------------------


def test_numbers_and_shares_in_words():
    assert number(1234567) == "1\u202f234\u202f567"
    assert percent(0.0) == "0.0 %"
    assert percent(1.0) == "100.0 %"
    assert percent(0.0003) == "< 0.1 %"
    assert percent(0.9999) == "> 99.9 %"
    assert percent(float("nan")) == "NA"
    assert plural(1, "sample") == "1 sample"
    assert plural(2, "sample") == "2 samples"
    assert join([]) == ""
    assert join(["a"]) == "a"
    assert join(["a", "b", "c"]) == "a, b and c"
    assert join(list("abcde"), 2) == "a, b and 3 more"


def test_filters_in_words():
    step = PanelStep("filter", "panel.min_maf", 5, "0.01")
    assert describe_filter(step) == "minor allele frequency at least 0.01"
    assert describe_filter(PanelStep("filter", "panel.something", 5, "3")) == "panel.something 3"
    turned = PanelStep("turned", "x", 1)
    assert describe_filter(turned) == "REF and ALT swapped in founder x (corrected)"
    assert not turned.leaves


def test_filter_rows_count_what_each_step_took(tmp_path):
    outcome, _ = make_results(tmp_path, {"one": ["a", "b"]}, ["one"])
    assert [row["taken"] for row in filter_rows(outcome)] == [None, 10]


def test_parameters_mark_what_was_changed():
    rows = {row["key"]: row for row in parameter_rows(configuration(title="Mine"))}
    assert rows["report.title"]["changed"]
    assert rows["report.title"]["value"] == "Mine"
    assert not rows["panel.min_maf"]["changed"]
    assert rows["geodesic.alpha"]["value"] == "[2, auto]"
    assert all(row["description"] for row in rows.values())


# --- drift ------------------------------------------------------------------------------------


def write_sites(path: Path, rows: list[tuple]) -> Path:
    columns = ["chrom", "pos", "id", "ref", "alt", "n_ref", "n_het", "n_alt", "n_missing"]
    pd.DataFrame([(c, p, ".", *rest) for c, p, *rest in rows], columns=columns).to_csv(
        path, sep="\t", index=False
    )
    return path


@pytest.fixture
def panel(tmp_path) -> Path:
    rows = [("1", p, ".", "A", "G", af, 0, 50) for p, af in ((1, 0.5), (2, 0.2), (3, 0.1))]
    columns = ["chrom", "pos", "id", "ref", "alt", "af", "mode", "n_called"]
    table = pd.DataFrame(rows, columns=columns).to_csv(sep="\t", index=False)
    path = tmp_path / "panel.tsv"
    path.write_text(f"# panel 0123456789ab, 3 sites\n{table}")
    return path


def test_drift_counts_sites_calls_and_frequencies(tmp_path, panel):
    same = write_sites(
        tmp_path / "same.tsv", [("1", 1, "A", "G", 2, 6, 2, 0), ("1", 2, "A", "G", 6, 4, 0, 10)]
    )
    turned = write_sites(tmp_path / "turned.tsv", [("1", 2, "G", "A", 0, 4, 6, 0)])
    drift = measure_drift(
        {"same": same, "turned": turned}, panel, {"same"}, tmp_path / "drift.tsv"
    ).set_index("cohort")
    assert drift.founder.to_dict() == {"same": "yes", "turned": "no"}
    assert drift.panel_sites_present.to_dict() == {"same": 2, "turned": 1}
    assert drift.share_present["same"] == pytest.approx(2 / 3)
    assert drift.call_rate["same"] == pytest.approx(20 / 30)
    assert drift.mean_af_difference["same"] == pytest.approx(0.0)
    assert drift.mean_af_difference["turned"] == pytest.approx(0.0)
    assert drift.af_correlation["same"] == pytest.approx(1.0)
    assert (tmp_path / "drift.tsv").read_text().splitlines()[0].startswith("cohort\tfounder\t")


def test_drift_of_a_cohort_without_calls_is_not_known(tmp_path, panel):
    empty = write_sites(tmp_path / "empty.tsv", [("1", 1, "A", "G", 0, 0, 0, 5)])
    drift = measure_drift({"empty": empty}, panel, set(), tmp_path / "drift.tsv").iloc[0]
    assert drift.call_rate == 0
    assert pd.isna(drift.mean_af_difference)
    assert "\tNA" in (tmp_path / "drift.tsv").read_text()


def test_expected_difference_is_that_of_a_simulation():
    rng = np.random.default_rng(3)
    p, cohort, others = 0.3, 40, 160
    drawn = rng.binomial(2, p, (20_000, cohort + others))
    own = drawn[:, :cohort].mean(axis=1) / 2
    whole = drawn.mean(axis=1) / 2
    rest = drawn[:, cohort:].mean(axis=1) / 2
    af, ones = np.array([p]), np.ones(1)
    founder = expected_difference(af, cohort * ones, (cohort + others) * ones, founder=True)
    newcomer = expected_difference(af, cohort * ones, others * ones, founder=False)
    one = expected_difference(af, 2 * cohort * ones, 2 * others * ones, founder=False, ploidy=1)
    assert one == pytest.approx(newcomer)  # as many alleles
    # The mean of 20 000 absolute values has a standard error of about 0.5 %.
    assert np.abs(own - whole).mean() == pytest.approx(founder[0], rel=0.02)
    assert np.abs(own - rest).mean() == pytest.approx(newcomer[0], rel=0.02)
