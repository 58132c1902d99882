"""Captions agree with the colours of their figures."""

from __future__ import annotations

import re

import matplotlib as mpl
import pytest

import popdesic.report.figures as figures
from popdesic.io.places import HOME, TEMPLATES
from popdesic.report.inline import read_caption
from popdesic.report.registry import main_figures

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


def test_maps_of_segments_have_captions_of_their_own():
    """What is near there is not genetic distance; both kinds of map are on one page."""
    further = ["densmap", "tsne"]
    found = main_figures(["pcs", "ibd"], ["1", "auto"], further, ensemble=False)
    maps = [figure for figure in found if figure.space]
    assert {figure.kind for figure in maps} == {"umap", "pcoa", *further}
    for figure in maps:
        shared = figure.space == "ibd"
        assert figure.caption == (f"{figure.kind}_ibd" if shared else figure.kind)
        assert ("{min_cm} cM" in figure.sizes) == ("shared segments" in figure.title) == shared
        shows, read, limits = read_caption(figure.caption)
        assert ("shared segments" in shows) == ("ibd.min_cm" in read) == shared
        assert not shared or ("Near samples" in read and "apart at random" in limits)


@pytest.mark.parametrize("name", sorted({p.stem for p in TEMPLATES.glob("*.rst")} - {"workflow"}))
def test_sentences_of_captions_are_short(name):
    text = " ".join(read_caption(name))
    for sentence in re.split(r"(?<=[.!?;])\s+", text):
        assert len(sentence.split()) <= 30, sentence
