"""Sentences of the page beside what they claim, computed here."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from support.outcomes import make_results

import popdesic
from popdesic.core.places import GLOSSARY, SCHEMAS, TEMPLATES
from popdesic.core.tables import write_table
from popdesic.epistasis.priority import SHARE, correction_factors
from popdesic.report.advice import advice_on
from popdesic.report.figures import draw_figures
from popdesic.report.findings import find_problems
from popdesic.report.inline import describe_drawn, read_caption
from popdesic.report.outcome import closest_pairs
from popdesic.report.registry import comparison_figures, population_figures
from popdesic.report.sections.comparisons import comparison_section
from popdesic.report.words import singular

SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9pt' height='9pt'/>"
PAGE = " ".join((TEMPLATES / "report.html.j2").read_text("utf-8").split())


def plane(n: int, seed: int) -> np.ndarray:
    """Distances of n points in a plane, float64 (n, n)."""
    x = np.random.default_rng(seed).random((n, 2))
    return np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))


def shortest(steps: np.ndarray) -> np.ndarray:
    """Lengths of shortest paths by Floyd and Warshall; no step is infinite."""
    lengths = steps.copy()
    for k in range(len(steps)):
        lengths = np.minimum(lengths, lengths[:, k : k + 1] + lengths[k])
    return lengths


@pytest.mark.parametrize("alpha", [1, 2])
@pytest.mark.parametrize("graph", ["complete", "knn"])
def test_which_pairs_are_indirect(graph, alpha):
    distances, k = plane(40, 3), 4
    closure = popdesic.shortest_paths(distances, alpha, graph=graph, neighbors=k, device="cpu")
    direct = distances**alpha
    edge = np.ones((40, 40), bool)
    if graph == "knn":
        radius = np.sort(distances, axis=1)[:, k]
        tree = minimum_spanning_tree(distances).toarray() > 0
        edge = (distances <= np.maximum(radius[:, None], radius)) | tree | tree.T
    lengths = shortest(np.where(edge, direct, np.inf))
    upper = np.triu_indices(40, 1)
    shorter = (lengths < direct * (1 - 1e-6))[upper]
    indirect = shorter | ~edge[upper]
    assert closure.indirect_share == pytest.approx(indirect.mean())
    assert indirect.any() or (graph, alpha) == ("complete", 1)
    if graph == "complete":
        said = "On a complete graph a pair is indirect if a path through other samples is shorter"
        assert (indirect == shorter).all()
    else:
        said = "pairs that are not neighbours are indirect as well, and their path can be longer"
        assert (lengths > direct * (1 + 1e-6))[upper][~edge[upper]].any()
        assert not (lengths > direct * (1 + 1e-6))[upper][edge[upper]].any()
    assert said in PAGE


@pytest.mark.parametrize(("columns", "panels"), [(2, 1), (3, 1), (4, 2), (6, 2)])
def test_the_caption_of_the_pca_counts_its_panels(tmp_path, columns, panels):
    cohorts = {"one": [f"a{k}" for k in range(12)]}
    outcome, distances = make_results(tmp_path, cohorts, ["one"])
    path = outcome.folder / "embedding/coordinates/pca.tsv"
    table = outcome.embedding("pca")
    names = [name for name in table if not re.fullmatch(r"PC\d+", name)]
    rng = np.random.default_rng(1)
    axes = {
        f"PC{k}": rng.normal(size=len(table)).round(4).astype(str) for k in range(1, columns + 1)
    }
    write_table(path, table[names].assign(**axes))
    figures = outcome.folder / "figures"
    draw_figures(
        outcome, distances, figures, color_by="population", min_sample_call_rate=0.9, min_maf=0.01
    )
    drawn = (figures / "pca.svg").read_text("utf-8")
    assert ("PC1" in drawn and "PC2" in drawn) and ("PC3" in drawn) == (panels == 2)
    assert ("PC4" in drawn) == (columns >= 4)
    assert "1 against 2, and 3 against 4 if there are four" in read_caption("pca")[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 cohorts, 1 samples read.", "1 cohort, 1 sample read."),
        ("21 cohorts, 11 samples", "21 cohorts, 11 samples"),
        ("1 communities", "1 community"),
        (
            "2 populations, 1\u202f001 sites in 1 blocks.",
            "2 populations, 1\u202f001 sites in 1 block.",
        ),
        ("149 sites, 1 founder samples.", "149 sites, 1 founder sample."),
        ("0.1 samples", "0.1 samples"),
        ("1 pair with the whole interval", "1 pair with the whole interval"),
    ],
)
def test_one_is_singular(text, said):
    assert singular(text) == said


def test_no_caption_speaks_of_people():
    """Samples can be mice, dogs or plants. The page has captions, words and keys."""
    keys = SCHEMAS / "config.schema.yaml"
    for path in [*TEMPLATES.glob("*.rst"), *TEMPLATES.glob("*.j2"), GLOSSARY, keys]:
        text = re.sub(r"\{[{%].*?[%}]\}", "", path.read_text("utf-8"))
        text = re.sub(r"(?m)^\| (sample|people) .* individuals? \|$", "", text)  # words to avoid
        assert not re.search(r"\b(people|persons?|individuals?)\b", text), path.name


def problems(outcome, distances) -> dict:
    close = closest_pairs(distances, list(outcome.samples["sample"]), 10)
    limits = {"min_sample_call_rate": 0.9, "min_call_rate": 0.95, "min_called": 1}
    found = find_problems(outcome, close, color_by="population", **limits)
    return {finding.topic: finding for finding in found}


THREE = {"one": [f"a{k}" for k in range(25)], "two": [f"c{k}" for k in range(25)], "new": ["b0"]}


@pytest.mark.parametrize(
    ("founders", "labels", "off", "words"),
    [
        (["one"], ["P"] * 25 + ["Q"] * 26, 0.2, "All founders have the label P."),
        (["one"], ["NA"] * 51, 0.2, "All founders are of cohort one."),
        (["one", "two"], ["P"] * 51, 0.2, "All founders have the label P."),
        (["one", "two"], ["P"] * 25 + ["Q"] * 26, 0.2, ""),
        (["one", "two"], ["NA"] * 51, 0.2, ""),
        (["one"], ["P"] * 51, 0.0, ""),
    ],
)
def test_founders_of_one_population_are_told_where_newcomers_differ(
    tmp_path, founders, labels, off, words
):
    drift = {"new": {"mean_af_difference": off}} if off else {}
    columns = {"population": labels}
    outcome, distances = make_results(tmp_path, THREE, founders, columns, drift=drift)
    found = problems(outcome, distances).get("One founder population")
    assert (found is not None) == bool(words)
    if words:
        assert found.level == "warning" and found.text.startswith(words)
        assert "founders look more diverse, and the order can be reversed" in found.text


def test_sites_that_vary_in_one_population_make_it_look_more_diverse():
    """The sentence above: the order of two populations, over all sites and over the panel's."""
    rng = np.random.default_rng(4)
    ancestral = rng.beta(0.3, 0.9, 20_000)

    def drifted(f: float, n: int) -> np.ndarray:
        a, b = ancestral * (1 - f) / f, (1 - ancestral) * (1 - f) / f
        return rng.binomial(2, rng.beta(a, b)[:, None], (20_000, n))

    founders, newcomers = drifted(0.2, 60), drifted(0.1, 60)
    both = [(genotypes == 1).mean() for genotypes in (founders, newcomers)]
    af = founders.mean(axis=1) / 2
    panel = np.minimum(af, 1 - af) >= 0.01
    shown = [(genotypes[panel] == 1).mean() for genotypes in (founders, newcomers)]
    assert both[0] < both[1] and shown[0] > shown[1]


def test_sites_oriented_by_frequency_are_counted(tmp_path):
    encode = {"new": {"strand_turned": 24, "strand_by_frequency": 5}}
    cohorts = {"one": THREE["one"], "new": ["b0"]}
    outcome, distances = make_results(tmp_path, cohorts, ["one"], encode=encode)
    text = problems(outcome, distances)["Strand"].text
    assert "were flipped; 5 A/T or C/G sites oriented by allele frequency." in text


@pytest.mark.parametrize(("absent", "doubtful"), [(2, 6), (6, 2)])
def test_advice_on_missing_sites_fits_the_cause(tmp_path, absent, doubtful):
    """A mask or imputation helps where a file lacks sites, not where their strand is unknown."""
    encode = {"new": {"panel_sites_absent": absent, "strand_ambiguous_dropped": doubtful}}
    cohorts = {"one": THREE["one"], "new": ["b0"]}
    drift = {"new": {"share_present": 0.8}}
    outcome, distances = make_results(tmp_path, cohorts, ["one"], encode=encode, drift=drift)
    found = problems(outcome, distances)
    topic, other = ("Strand unknown", "Sites absent")[:: 1 if doubtful > absent else -1]
    assert topic in found and other not in found
    assert ("mask" in advice_on(found[topic])) == (topic == "Sites absent")
    if topic == "Strand unknown":
        assert "only 80.0 % of the panel's sites: 6 A/T or C/G sites were" in found[topic].text


def test_missing_heterozygotes_hide_relatives():
    """The note on kinship: a parent and its child leave the first degree."""
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.9, 4000)
    transmitted = rng.binomial(1, p)
    parent = transmitted + rng.binomial(1, p)
    child = transmitted + rng.binomial(1, p)
    others = rng.binomial(2, p, (30, 4000))
    genotypes = np.vstack([parent, child, others]).astype(np.int8)
    whole = popdesic.kinship(genotypes, device="cpu")[0, 1]
    missing = genotypes.copy()
    missing[(genotypes == 1) & (rng.random(genotypes.shape) < 0.6)] = -1
    hidden = popdesic.kinship(missing, device="cpu")[0, 1]
    assert whole > 0.2 and hidden < 0.177
    for name in ("kinship.rst", "comparisons.html.j2"):
        text = " ".join((TEMPLATES / name).read_text("utf-8").split()).lower()
        assert "heterozygous calls" in text and "hide" in text.replace("hidden", "hide")


def test_combinations_without_main_effects_are_corrected_by_up_to_a_ninth_more():
    for sites, order in ((170, 2), (170, 3), (5000, 2)):
        whole = len(range(sites)) * (sites - 1) / 2
        whole = whole if order == 2 else whole * (sites - 2) / 3
        last = np.arange(order, sites + 1)
        factors = correction_factors(last, sites, order) / whole
        in_cis = correction_factors(last, sites, order, np.zeros(len(last), bool)) / whole
        assert factors.max() <= 10 / 9 + 1e-12 and in_cis == pytest.approx(10 / 9)
        assert factors[0] < 1 < factors[-1]
    assert SHARE == 0.1
    text = " ".join((TEMPLATES / "epistasis.html.j2").read_text("utf-8").split())
    assert "up to a ninth more if they have none" in text


def test_figures_of_ld_say_whom_they_are_of(tmp_path):
    outcome, _ = make_results(tmp_path, {"one": THREE["one"]}, ["one"])
    figures = outcome.folder / "figures"
    figures.mkdir(exist_ok=True)
    (figures / "ld_decay.svg").write_text(SVG)
    names = pd.DataFrame({"sample": THREE["one"], "unrelated": ["yes"] * 21 + ["no"] * 4})
    write_table(outcome.folder / "panel/unrelated.tsv", names)
    (figure,) = comparison_section(outcome.folder, figures, ["ld"])["figures"]
    assert figure.sizes == "21 founder samples without known relatives."
    (outcome.folder / "panel/unrelated.tsv").unlink()
    (figure,) = comparison_section(outcome.folder, figures, ["ld"])["figures"]
    assert figure.sizes == "All founder samples."
    assert len(comparison_figures(["ld"])) == 2


def test_counts_below_figures_are_singular_where_there_is_one(tmp_path):
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "population_fst.svg").write_text(SVG)
    sizes = {"n_populations": "2", "n_population_sites": "149", "n_blocks": "1", "n_f3": "0"}
    shown = describe_drawn(population_figures(["differentiation"]), figures, sizes)
    assert [figure.sizes for figure in shown] == ["2 populations, 149 sites in 1 block."]
