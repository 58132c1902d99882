"""Names on maps: none is missing, none covers another, and they stay in the panel."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from popdesic.report.figures.labels import LEAST_NAMED, NAME_HEIGHT, name_groups, place_names
from popdesic.report.figures.maps import draw_components
from popdesic.report.figures.pca_pairs import draw_component_pairs
from popdesic.report.figures.style import Colouring, new_figure, styled


def overlap(a, b) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    return float(sides.prod()) if (sides > 0).all() else 0.0


def boxes_of(places, widths) -> list[np.ndarray]:
    halves = [np.array([width, NAME_HEIGHT]) / 2 for width in widths]
    return [np.r_[at - h, at + h] for (at, _), h in zip(places, halves, strict=True)]


@pytest.mark.parametrize("spread", [0.005, 0.05, 0.3])
def test_twelve_groups_in_one_place_all_get_a_name(spread, rng):
    owns = [np.clip(rng.normal(0.5, spread, (n, 2)), 0.02, 0.98) for n in rng.integers(3, 400, 12)]
    widths = rng.uniform(0.1, 0.25, 12).tolist()
    places = place_names(np.concatenate(owns), owns, widths)
    boxes = boxes_of(places, widths)
    for box in boxes:
        assert box.min() >= 0 and box.max() <= 1
    assert all(overlap(a, b) == 0 for a, b in combinations(boxes, 2))
    again = place_names(np.concatenate(owns), owns, widths)
    assert all((a == b).all() for (a, _), (b, _) in zip(places, again, strict=True))


def test_a_name_away_from_its_samples_has_a_line_to_one_of_them():
    rng = np.random.default_rng(3)
    owns = [rng.normal(0.5, 0.02, (50, 2)) for _ in range(8)]
    places = place_names(np.concatenate(owns), owns, [0.15] * 8)
    joined = [(to, own) for (_, to), own in zip(places, owns, strict=True) if to is not None]
    assert joined
    for to, own in joined:
        assert (own == to).all(axis=1).any()
    alone = place_names(owns[0], [owns[0]], [0.15])
    assert alone[0][1] is None


def test_groups_of_few_samples_are_left_to_the_legend():
    values = pd.Series(["A"] * 9 + ["B"] * 9 + ["few"] * (LEAST_NAMED - 1))
    x = np.r_[np.zeros(9), np.ones(9), np.full(LEAST_NAMED - 1, 0.5)]
    with styled():
        _, (axes,) = new_figure(1)
        axes.scatter(x, x)
        name_groups(axes, x, x, values, Colouring(values, ["c"], ["c"], "population"))
    assert [text.get_text() for text in axes.texts] == ["A", "B"]


def test_all_populations_of_hapmap3_are_named(shared_data):
    """JPT, LWK and TSI lie among others on the first two components."""
    folder = shared_data / "hapmap3_957"
    table = pd.read_csv(folder / "ref_SNPRelate_PCA_eigenvect.tsv.gz", sep="\t", index_col=0)
    sheet = pd.read_csv(folder / "samples.tsv", sep="\t", index_col=0).loc[table.index]
    values = sheet.population.reset_index(drop=True)
    table = table.reset_index(drop=True).assign(cohort="hapmap")
    with styled():
        colouring = Colouring(values, ["hapmap"], ["hapmap"], "population")
        figure = draw_components(table, "PC", [0.1] * 8, values, colouring)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    texts = figure.axes[0].texts
    assert {text.get_text() for text in texts} == set(values.unique())
    extents = [text.get_window_extent().extents for text in texts]
    assert all(overlap(a, b) == 0 for a, b in combinations(extents, 2))


@pytest.mark.parametrize(
    ("significant", "there", "shown"), [(0, 4, 2), (3, 4, 3), (9, 8, 6), (5, 1, 1)]
)
def test_the_grid_has_as_many_components_as_stand(significant, there, shown):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(40, there)), columns=[f"PC{k + 1}" for k in range(there)])
    table["cohort"] = "one"
    values = pd.Series(["A", "B"] * 20)
    with styled():
        colouring = Colouring(values, ["one"], ["one"], "population")
        figure = draw_component_pairs(table, [0.1] * there, significant, values, colouring)
        FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == shown**2
    assert len(figure.legends) == 1
    titles = [axes.get_title(loc="left") for axes in figure.axes[:: shown + 1]]
    assert titles[0].startswith("PC1 (10.0 %)")
    assert sum("no more than chance" in title for title in titles) == max(0, shown - significant)
