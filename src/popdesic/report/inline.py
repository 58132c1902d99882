"""Figures embedded in the report's page, with their captions."""

from __future__ import annotations

import base64
import html
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..core.places import TEMPLATES
from .outcome import Outcome
from .registry import Figure
from .words import SPACES, describe_way, number, singular

#: Figures with a larger SVG are embedded as PNG.
MAX_INLINE_BYTES = 400_000
#: Larger SVGs are embedded as one image instead of thousands of elements: the page opens faster.
MAX_ELEMENT_BYTES = 60_000
#: Width of a figure on the page (rem) per inch on paper.
REM_PER_INCH = 8.3
#: The default namespace has no prefix, so that its elements are written as in HTML.
_NAMESPACES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}


@dataclass(frozen=True)
class FigureText:
    """A figure on the page.

    Attributes
    ----------
    name : str
        Stem of its files.
    part : str
        Section of the page.
    title : str
    shows, read, limits : str
        Paragraphs of the caption, plain text.
    sizes : str
        Numbers of samples and sites in it.
    body : str
        SVG or IMG element; empty if `same_as` is set.
    same_as : str
        Name of the identical figure that is shown in its place.
    family, tab : str
        Of a map of geodesics: its method, and what tells it from others of that method.
    """

    name: str
    part: str
    title: str
    shows: str
    read: str
    limits: str
    sizes: str
    body: str
    same_as: str = ""
    family: str = ""
    tab: str = ""


def describe_figures(outcome: Outcome, folder: Path, min_cm: float = 0) -> list[FigureText]:
    """Title, caption and picture of every figure of `registry.main_figures`, in that order.

    `min_cm`: `ibd.min_cm`, for maps of shared segments.
    """
    n = n_compared = len(outcome.samples)
    rows = next(iter(outcome.geodesics.values())).get("sampled_rows")
    if rows:  # no matrix of all pairs: these figures show landmarks
        n_compared = rows
    sizes = {
        "n_cohorts": len(outcome.cohorts),
        "n_read": number(len(outcome.qc)),
        "n": number(n),
        "n_compared": f"{number(rows)} founders" if rows else f"{number(n)} samples",
        "n_pairs": number(n_compared * (n_compared - 1) // 2),
        "n_sites": number(outcome.panel["n_sites"]),
        "n_on_axes": number(outcome.axes["axis_samples"]),
        "n_axis_sites": number(outcome.axes["sites"]["used"]),
        "min_cm": f"{min_cm:g}",
        "n_founders": number(int(outcome.samples.cohort.isin(outcome.founders).sum())),
    }
    texts = []
    for figure in outcome.figures():
        title, twin, family, tab = figure.title, "", "", ""
        if figure.space:
            way = describe_way(outcome.geodesics[figure.space, figure.alpha])
            if figure.alpha == "auto":
                way += " (chosen by auto)"
            family, tab = f"{title} of the geodesics", f"{SPACES[figure.space]}, {way}"
            title = f"{title} of geodesics: {tab}"
            if figure.space == "ibd":
                family, tab = figure.title, way
                title = f"{family} of at least {min_cm:g} cM: {way}"
            if listed := outcome.twin(figure.space, figure.alpha):
                twin = f"{figure.kind}.{figure.space}.alpha{listed}"
        text = describe_figure(figure, folder, sizes, title, twin)
        texts.append(replace(text, family=family, tab=tab))
    return texts


def describe_figure(
    figure: Figure, folder: Path, sizes: dict[str, Any], title: str = "", twin: str = ""
) -> FigureText:
    """One figure of the registry; `twin` names the identical figure shown in its place.

    Parameters
    ----------
    folder : Path
        Folder with the files of the figures.
    sizes : dict
        Values of the names in braces in `figure.sizes`.
    title : str
        Replaces `figure.title`.
    """
    title = title or figure.title
    shows, read, limits = read_caption(figure.caption)
    body = "" if twin else embed_figure(folder / figure.name, f"{title}. {shows}")
    filled = singular(figure.sizes.format(**sizes))
    return FigureText(figure.name, figure.part, title, shows, read, limits, filled, body, twin)


def describe_drawn(
    figures: Iterable[Figure], folder: Path, sizes: dict[str, Any]
) -> list[FigureText]:
    """The figures that were drawn: an analysis without results has none."""
    drawn = [figure for figure in figures if (folder / f"{figure.name}.svg").exists()]
    return [describe_figure(figure, folder, sizes) for figure in drawn]


def read_caption(name: str) -> tuple[str, str, str]:
    """The three paragraphs of `workflow/report/{name}.rst`: what it shows, how to read it, limits.

    Snakemake's own report uses the same files as captions, so they contain plain text only.
    """
    text = (TEMPLATES / f"{name}.rst").read_text("utf-8")
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(paragraphs) != 3:
        raise ValueError(f"{name}.rst: three paragraphs are expected, found {len(paragraphs)}")
    return paragraphs[0], paragraphs[1], paragraphs[2]


def embed_figure(stem: Path, alt: str) -> Markup:
    """The figure as a self-contained element: SVG, or PNG if the SVG is large."""
    size = Path(f"{stem}.svg").stat().st_size
    text = Path(f"{stem}.svg").read_text("utf-8")
    if size <= min(MAX_INLINE_BYTES, MAX_ELEMENT_BYTES):
        return Markup(inline_svg(text, stem.name, alt))
    if size <= MAX_INLINE_BYTES:
        # Browsers remove line breaks from URLs, and a number sign would end the URL.
        data = " ".join(text.split("\n")).replace("%", "%25").replace("#", "%23")
        source = f"data:image/svg+xml;charset=utf-8,{html.escape(data)}"
    else:
        data = base64.b64encode(Path(f"{stem}.png").read_bytes()).decode()
        source = f"data:image/png;base64,{data}"
    width, height = (ElementTree.fromstring(text).get(key) for key in ("width", "height"))
    shape = f"{_width(width)};aspect-ratio:{_points(width):g}/{_points(height):g}"
    return Markup(f'<img alt="{html.escape(alt)}" style="{shape}" decoding="async" src="{source}">')


def _width(points: str) -> str:
    """Style that gives all figures the same font size; `points` as in 518.4pt."""
    return f"max-width:{_points(points) / 72 * REM_PER_INCH:.1f}rem"


def _points(length: str) -> float:
    return float(length.removesuffix("pt"))


def inline_svg(text: str, name: str, alt: str) -> str:
    """An SVG file as an element of a page.

    Its identifiers get the figure's name as a prefix, because those of two figures would clash on
    one page. Metadata are removed, and so is the style sheet, which would apply to the whole page.
    """
    for prefix, space in _NAMESPACES.items():
        ElementTree.register_namespace(prefix, space)
    root = ElementTree.fromstring(text)
    own = re.sub(r"[^A-Za-z0-9]", "-", name) + "-"
    svg, link = (f"{{{space}}}" for space in _NAMESPACES.values())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{svg}metadata", f"{svg}style"):
                parent.remove(child)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, own + value)
            elif key in ("href", f"{link}href") and value.startswith("#"):
                element.set(key, f"#{own}{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{own}"))
        # Indentation between elements (not within text) only makes the page larger.
        if element.tail and not element.tail.strip():
            element.tail = "\n"
    root.set("style", _width(root.get("width")))
    for key in ("width", "height"):  # set by the page; viewBox keeps the proportions
        del root.attrib[key]
    root.set("role", "img")
    root.set("aria-label", alt)
    return ElementTree.tostring(root, encoding="unicode")
