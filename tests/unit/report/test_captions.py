"""Captions agree with the colours of their figures."""

from __future__ import annotations

import re

import matplotlib as mpl
import pytest

import popdesic.report.figures as figures
from popdesic.io.places import HOME, TEMPLATES
from popdesic.report.inline import read_caption

#: Heatmaps of distances: file and function that draw each, and its caption.
HEATMAPS = {
    "distances": ("structure.py", "draw_distances"),
    "communities_heatmap": ("communities.py", "draw_heatmap"),
}


def colour_map(name: str, function: str) -> str:
    """The colour map in the source of a function."""
    folder = HOME / "src/popdesic/report/figures"
    source = (folder if folder.is_dir() else figures.__path__[0]) / name
    body = source.read_text("utf-8").split(f"def {function}(")[1].split("\ndef ")[0]
    return re.search(r'cmap="(\w+)"', body)[1]


@pytest.mark.parametrize("caption", HEATMAPS)
def test_a_caption_names_the_colours_of_near_and_far(caption):
    ends = mpl.colormaps[colour_map(*HEATMAPS[caption])]
    near, far = ends(0.0), ends(1.0)
    _, read, _ = read_caption(caption)
    words = re.search(r"(\w+) is near, dark (\w+) is far", read)
    assert words, "the caption says which colour is near"
    light = {"Yellow": near[0] > 0.8 and near[1] > 0.8 and near[2] < 0.3}
    dark = {"blue": far[2] > far[0] and sum(far[:3]) < 1}
    assert light[words[1]]
    assert dark[words[2]]


@pytest.mark.parametrize("name", sorted({p.stem for p in TEMPLATES.glob("*.rst")} - {"workflow"}))
def test_sentences_of_captions_are_short(name):
    text = " ".join(read_caption(name))
    for sentence in re.split(r"(?<=[.!?;])\s+", text):
        assert len(sentence.split()) <= 30, sentence
