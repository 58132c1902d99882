"""Families of close relatives: who is in one, and where people are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.relatives.kinship import SAME
from popdesic.report.figures.families import (
    MOST_FAMILIES,
    MOST_PEOPLE,
    draw_families,
    families_of,
    layout,
    people_of,
)
from popdesic.report.figures.style import styled


def pairs_of(rows: list[tuple[str, str, str, str]]) -> pd.DataFrame:
    """Two samples, relation, and the low end of the interval of kinship."""
    return pd.DataFrame(rows, columns=["sample_a", "sample_b", "relation", "low"])


CHAIN = [(f"c{k}", f"c{k + 1}", "parent and child", "0.24") for k in range(4)]


def test_families_are_connected_by_surely_close_pairs():
    rows = [("x", "y", SAME, "0.5"), *CHAIN]
    rows += [("c2", "x", "third degree", "0.03"), ("n", "m", "distant", "0.05")]
    for order in (rows, rows[::-1], [rows[k] for k in (3, 0, 5, 1, 6, 4, 2)]):
        assert [people_of(own) for own in families_of(pairs_of(order))] == [
            ["c0", "c1", "c2", "c3", "c4"],
            ["x", "y"],
        ]
    assert families_of(pairs_of([])) == []


def test_a_line_of_relatives_is_drawn_as_a_line():
    edges = np.array([[0, 3], [3, 1], [1, 4], [4, 2]])  # not the order of names
    points = layout(5, edges, np.array([1.0, 1.0, 2.0, 1.0]))
    there = np.linalg.norm(points[:, None] - points, axis=2)
    along = np.cumsum([0, 1, 1, 2, 1])
    order = [0, 3, 1, 4, 2]
    wanted = np.abs(np.subtract.outer(along, along))
    assert np.allclose(there[np.ix_(order, order)], wanted, atol=0.05)
    assert np.array_equal(points, layout(5, edges, np.array([1.0, 1.0, 2.0, 1.0])))


def text_of(figure) -> list[str]:
    return [panel.get_title(loc="left") or panel.get_title() for panel in figure.axes] + [
        text.get_text() for panel in figure.axes for text in panel.texts
    ]


@pytest.mark.parametrize("families", [0, 1, MOST_FAMILIES, MOST_FAMILIES + 2])
def test_the_figure_says_what_it_leaves_out(families):
    rows = [(f"{k:02}a", f"{k:02}b", "second degree", "0.09") for k in range(families)]
    rows += [(f"z{k:03}", f"z{k + 1:03}", "full siblings", "0.2") for k in range(MOST_PEOPLE)] * (
        families > 1
    )
    with styled():
        figure = draw_families(pairs_of(rows))
    words, below = text_of(figure), figure._supxlabel
    assert words.count("2 samples") == min(families, MOST_FAMILIES)
    assert ("no relatives within the third degree" in words) == (families == 0)
    if families <= 1:
        assert below is None
        return
    left_out = families + 1 - MOST_FAMILIES
    noun = "family" if left_out == 1 else "families"
    assert below.get_text() == (
        f"{left_out} further {noun} not drawn; the largest has {MOST_PEOPLE + 1} samples"
    )


def test_the_legend_has_the_relations_that_are_drawn():
    rows = [("a", "b", SAME, "0.5"), *CHAIN]
    with styled():
        figure = draw_families(pairs_of(rows))
    words = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert words == ["relation", "duplicate or twin", "first degree"]
