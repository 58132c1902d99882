"""Captions agree with the colours of their figures."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import pytest

import popdesic.report.figures as figures
from popdesic.core.places import HOME, TEMPLATES
from popdesic.report.figures.epistasis_zoom import SHADES
from popdesic.report.inline import read_caption
from popdesic.report.registry import main_figures

#: What a caption says of its colours: words in it, place on the colour map from 0 to 1, colour.
NEAR_FAR = (("Yellow is near", 0.0, "yellow"), ("dark blue is far", 1.0, "dark blue"))
LOW_HIGH = (("Dark points (near 0)", 0.0, "dark blue"), ("Bright points (near 1)", 1.0, "yellow"))
#: Every colour map in the source of a figure: file and function; caption and what it says.
CLAIMS = {
    ("structure.py", "draw_distances"): ("distances", NEAR_FAR),
    ("communities.py", "draw_heatmap"): ("communities_heatmap", NEAR_FAR),
    ("communities.py", "draw_painting"): (
        "painting",
        (
            ("Yellow is a short length", 0.0, "yellow"),
            ("dark blue a long one", 1.0, "dark blue"),
        ),
    ),
    ("communities.py", "draw_confusion"): ("communities", (("The darker a cell", 1.0, "black"),)),
    ("style.py", "colour_map"): ("instability", LOW_HIGH),
    ("population.py", "draw_differentiation"): (
        "population_fst",
        (("Yellow is an F_ST near 0", 0.0, "yellow"), ("dark blue the largest", 1.0, "dark blue")),
    ),
    ("compare.py", "draw_region"): (
        "ld_region",
        (("Yellow is an r² of 1", 1.0, "yellow"), ("dark blue of 0", 0.0, "dark blue")),
    ),
    ("epistasis.py", "draw_penetrance"): (
        "penetrance",
        (
            ("White is the share", 0.5, "white"),
            ("red a larger share", 0.95, "red"),
            ("blue a smaller one", 0.05, "blue"),
        ),
    ),
    ("epistasis.py", "_draw_means"): ("penetrance", (("white is 0", 0.5, "white"),)),
    ("population.py", "draw_diversity"): ("population_diversity", ()),  # a legend names its classes
}


def looks_like(colour: str, rgb: tuple[float, ...]) -> bool:
    red, green, blue = rgb[:3]
    return {
        "yellow": red > 0.8 and green > 0.8 and blue < 0.3,
        "dark blue": blue > red and sum(rgb[:3]) < 1,
        "black": sum(rgb[:3]) < 0.3,
        "white": min(rgb[:3]) > 0.9,
        "red": red > 2 * green and red > 2 * blue,
        "blue": blue > 2 * red,
    }[colour]


def colour_maps() -> dict[tuple[str, str], str]:
    """Names of the colour maps in the sources of figures, by file and function."""
    folder = HOME / "src/popdesic/report/figures"
    folder = folder if folder.is_dir() else Path(figures.__path__[0])
    found = {}
    for path in sorted(folder.glob("*.py")):
        for part in re.split(r"^(?: {4})?def ", path.read_text("utf-8"), flags=re.M):
            for name in re.findall(r'(?:cmap=|colormaps\[)"(\w+)"', part):
                found[path.name, part.split("(")[0]] = name
    return found


def test_every_colour_map_is_explained():
    assert set(colour_maps()) == set(CLAIMS)


@pytest.mark.parametrize("place", CLAIMS, ids="-".join)
def test_a_caption_agrees_with_its_colour_map(place):
    caption, claims = CLAIMS[place]
    shades, words = mpl.colormaps[colour_maps()[place]], " ".join(read_caption(caption))
    for text, share, colour in claims:
        assert text in words
        assert looks_like(colour, shades(share)), (text, shades(share))


def test_the_close_up_is_dark_where_ld_is_high():
    assert "dark is high" in " ".join(read_caption("zoom"))
    brightness = [sum(mpl.colors.to_rgb(shade)) for shade in SHADES]
    assert brightness == sorted(brightness, reverse=True)


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
