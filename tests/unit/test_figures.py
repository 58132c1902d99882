"""Figures: colours given once, nothing cut or overlapping, the same bytes every time."""

from __future__ import annotations

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from outcomes import ALPHAS, N_SITES, SPACES, make_results
from popdesic.distance import Distances
from popdesic.figures import draw_figures, iterate_figures
from popdesic.figures.style import (
    MISSING_COLOUR,
    OTHER_COLOUR,
    PALETTE,
    Colouring,
    is_scale,
    save_figure,
    shorten,
    styled,
)
from popdesic.outcome import closest_pairs

LIMITS = {"min_sample_call_rate": 0.9, "min_maf": 0.01}
NAMES = ["filters", "samples", "sites", "distances", "alpha", "pca", "scree"] + [
    f"{method}.{space}.alpha{alpha}"
    for method in ("pcoa", "umap")
    for space in SPACES
    for alpha in ALPHAS
]
HOSTILE = "<b>&\"'$x^2$_ Ωé"


def texts_drawn(
    figure: Figure, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[str, mpl.transforms.Bbox]]:
    """Every text that reaches the page, with its box in pixels."""
    drawn: list[Text] = []
    draw = Text.draw
    canvas = FigureCanvasAgg(figure)
    with monkeypatch.context() as patch:
        patch.setattr(
            Text, "draw", lambda self, r, *a, **k: (drawn.append(self), draw(self, r, *a, **k))
        )
        canvas.draw()
    renderer = canvas.get_renderer()
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for text in dict.fromkeys(drawn)
        if text.get_text() and text.get_visible()
    ]


def assert_readable(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> None:
    page = figure.bbox
    boxes = texts_drawn(figure, monkeypatch)
    for text, box in boxes:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1
        assert inside, f"{text!r} is cut: {box} of {page}"
    for (a, box_a), (b, box_b) in combinations(boxes, 2):
        width = min(box_a.x1, box_b.x1) - max(box_a.x0, box_b.x0)
        height = min(box_a.y1, box_b.y1) - max(box_a.y0, box_b.y0)
        # Boxes hold the space for accents and descenders, so neighbours may touch.
        assert min(width, height) <= 3, f"{a!r} and {b!r} overlap by {width:.0f} x {height:.0f}"


def all_figures(tmp_path, cohorts, founders, columns=None, color_by="population", **further):
    outcome, distances = make_results(tmp_path, cohorts, founders, columns, **further)
    with styled():
        return dict(iterate_figures(outcome, distances, color_by=color_by, **LIMITS))


def names(prefix: str, n: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(n)]


# --- colours ----------------------------------------------------------------------------------


def test_palette_has_twelve_colours_apart_from_grey():
    assert len(set(PALETTE)) == 12
    assert not {OTHER_COLOUR, MISSING_COLOUR} & set(PALETTE)


def test_colours_follow_sorted_labels_and_not_the_order_of_samples():
    values = pd.Series(["b", "a", "c", "a"])
    first = Colouring(values, ["x"], ["x"], "population")
    second = Colouring(values[::-1], ["x"], ["x"], "population")
    assert first.labels == second.labels == ["a", "b", "c"]
    np.testing.assert_array_equal(first.colours(values), second.colours(values))
    assert mpl.colors.to_hex(first.colours(pd.Series(["a"]))[0]) == PALETTE[0]


def test_more_than_twelve_labels_fold_the_rarest_into_other():
    values = pd.Series([f"L{i:02}" for i in range(30) for _ in range(40 - i)])
    colouring = Colouring(values, ["x"], ["x"], "population")
    assert len(colouring.labels) == 11
    assert colouring.labels[-1] == "L10"
    other = colouring.colours(pd.Series(["L29"]))[0]
    assert mpl.colors.to_hex(other) == OTHER_COLOUR
    texts = [entry.text for entry in colouring.entries(values, pd.Series(["x"] * len(values)))]
    folded = sum(40 - i for i in range(11, 30))
    assert f"other: 19 labels ({folded})" in texts


def test_unknown_values_are_grey_and_counted():
    values = pd.Series(["a", "NA", "", "a"])
    colouring = Colouring(values, ["x"], ["x"], "population")
    assert colouring.labels == ["a"]
    assert mpl.colors.to_hex(colouring.colours(values)[1]) == MISSING_COLOUR
    texts = [entry.text for entry in colouring.entries(values, pd.Series(["x"] * 4))]
    assert "not known (2)" in texts


def test_a_number_is_a_scale_only_with_many_values():
    assert is_scale(pd.Series([str(i) for i in range(13)] + ["NA"]))
    assert not is_scale(pd.Series(["0", "1", "NA"]))
    assert not is_scale(pd.Series([str(i) for i in range(13)] + ["x"]))
    assert not is_scale(pd.Series(["NA", "NA"]))
    colouring = Colouring(pd.Series([str(i) for i in range(14)]), ["x"], ["x"], "age")
    assert colouring.limits == (0.0, 13.0)
    assert mpl.colors.to_hex(colouring.colours(pd.Series(["NA"]))[0]) == MISSING_COLOUR


def test_markers_tell_cohorts_or_with_many_cohorts_the_role():
    few = Colouring(pd.Series(["a"]), ["x", "y"], ["x"], "population")
    assert few.marker("x") != few.marker("y")
    many = Colouring(pd.Series(["a"]), names("c", 9), ["c0", "c1"], "population")
    assert many.marker("c0") == many.marker("c1") != many.marker("c2") == many.marker("c8")


def test_long_labels_keep_both_ends():
    assert shorten("short") == "short"
    cut = shorten("a very long label of a population, part 7", 20)
    assert len(cut) == 20
    assert cut.startswith("a very long")
    assert cut.endswith("part 7")


# --- figures ----------------------------------------------------------------------------------


CASES = {
    "usual": (
        {"one": names("a", 9), "two": names("b", 7), "new": names("c", 4)},
        ["one", "two"],
        {"population": ["P", "Q"] * 10},
    ),
    "one cohort, no population": ({"only": names("s", 8)}, ["only"], None),
    "one sample": ({"only": ["s"]}, ["only"], {"population": ["P"]}),
    "all unknown": ({"only": names("s", 6)}, ["only"], {"population": ["NA"] * 6}),
    "thirty long labels": (
        {"first cohort of a very long name": names("s", 40), "second": names("t", 20)},
        ["first cohort of a very long name"],
        {"population": [f"a population with a long name {i % 30}" for i in range(60)]},
    ),
    "hostile names": (
        {"co<h>ort": [f"{HOSTILE}{i}" for i in range(5)], "_b": [f"_{i}" for i in range(5)]},
        ["co<h>ort"],
        {"population": [HOSTILE, "_hidden"] * 5},
    ),
    "many cohorts": (
        {f"cohort{i:02}": names(f"c{i}_", 2) for i in range(20)},
        ["cohort00", "cohort01"],
        {"population": ["P", "Q"] * 20},
    ),
    "numbers": (
        {"one": names("a", 20), "two": names("b", 10)},
        ["one"],
        {"population": [str(20 + i) for i in range(29)] + ["NA"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_cut_and_nothing_overlaps(case, tmp_path, monkeypatch):
    cohorts, founders, columns = CASES[case]
    first = next(iter(cohorts.values()))
    out = tuple(first[-2:]) if len(first) > 4 else ()
    figures = all_figures(tmp_path, cohorts, founders, columns, left_out=out)
    assert list(figures) == NAMES
    chosen = NAMES if case == "usual" else ["filters", "samples", "distances", "pca"]
    with styled():
        for name in chosen:
            figures[name].set_dpi(100)
            assert_readable(figures[name], monkeypatch)


def test_filters_begin_with_the_records_of_the_founders_files(tmp_path):
    figures = all_figures(tmp_path, {"one": names("a", 4), "two": names("b", 3)}, ["one"], None)
    axes = figures["filters"].axes[0]
    first = [text.get_text() for text in axes.get_yticklabels()][:2]
    assert first == ["records of founder one", "sites of founder one"]
    shown = axes.patches[0].get_width(), axes.patches[1].get_width()
    assert shown == (N_SITES + 2, 50)  # what the summary and the panel of make_results say


def test_figures_are_the_same_bytes_twice(tmp_path):
    cohorts = {"one": names("a", 6), "two": names("b", 5)}
    outcome, distances = make_results(
        tmp_path, cohorts, ["one"], {"population": ["P", "Q", "NA"] * 3 + ["P", "Q"]}
    )
    for folder in ("first", "second"):
        drawn = draw_figures(outcome, distances, tmp_path / folder, color_by="population", **LIMITS)
    assert drawn == NAMES
    for name in NAMES:
        for end in ("svg", "png"):
            first = (tmp_path / "first" / f"{name}.{end}").read_bytes()
            assert first == (tmp_path / "second" / f"{name}.{end}").read_bytes(), name
    svg = (tmp_path / "first/pca.svg").read_text("utf-8")
    assert "dc:date" not in svg
    assert "population" in svg  # text stays text


def test_a_user_s_own_style_changes_nothing(tmp_path):
    def draw(stem):
        with styled():
            figure = Figure()
            figure.subplots().plot([1, 2], label="x")
            save_figure(figure, stem)
        return stem.with_suffix(".svg").read_bytes()

    plain = draw(tmp_path / "a")
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "red"}):
        assert draw(tmp_path / "b") == plain


# --- distances --------------------------------------------------------------------------------


def test_closest_pairs_are_those_of_the_whole_matrix(tmp_path, monkeypatch):
    outcome, distances = make_results(tmp_path, {"one": names("s", 12)}, ["one"])
    monkeypatch.setattr("popdesic.distance.DISTANCE_BLOCK", 30)  # two rows at a time
    whole = distances.rows(np.arange(12))
    upper = np.triu_indices(12, 1)
    found = closest_pairs(distances, list(outcome.samples["sample"]), 5)
    np.testing.assert_array_equal(found.distance, np.sort(whole[upper])[:5])
    for row in found.itertuples():
        i, j = int(row.sample_a[1:]), int(row.sample_b[1:])
        assert i < j
        assert whole[i, j] == row.distance
        assert row.of_median == pytest.approx(row.distance / np.median(whole[upper]))


def test_closest_pairs_of_one_sample_are_none(tmp_path):
    outcome, distances = make_results(tmp_path, {"one": ["s"]}, ["one"])
    assert closest_pairs(distances, list(outcome.samples["sample"]), 5).empty


def test_distances_of_the_other_metrics_use_ibs0(tmp_path):
    make_results(tmp_path, {"one": ["a", "b", "c"]}, ["one"])
    folder = tmp_path / "results/distance"
    squared = np.load(folder / "squared.npy")
    np.save(folder / "ibs0.npy", squared // 8)
    n_sites = 40
    alleles = (squared - 2 * (squared // 8)).astype(float)
    manhattan = Distances(folder, "manhattan", n_sites, 1).rows(np.arange(3))
    np.testing.assert_allclose(manhattan, alleles)
    ibs = Distances(folder, "ibs", n_sites, 1).rows(np.array([2]))
    np.testing.assert_allclose(ibs, alleles[[2]] / (2 * n_sites))
    far = Distances(folder, "euclidean", n_sites, n_sites + 1)
    assert np.isinf(far.rows(np.array([0]))[0, 1:]).all()
    assert far.probe().size == 0
    assert closest_pairs(far, ["a", "b", "c"], 2).empty
