"""Whether the texts of a figure can be read: none is cut, and none covers another."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from popdesic.report import figures
from popdesic.report.figures.style import save_figure


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
        assert "$\\math" not in text, f"{text!r} is the source of a formula"
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1
        assert inside, f"{text!r} is cut: {box} of {page}"
    for (a, box_a), (b, box_b) in combinations(boxes, 2):
        width = min(box_a.x1, box_b.x1) - max(box_a.x0, box_b.x0)
        height = min(box_a.y1, box_b.y1) - max(box_a.y0, box_b.y0)
        # Boxes hold the space for accents and descenders, so neighbours may touch.
        assert min(width, height) <= 3, f"{a!r} and {b!r} overlap by {width:.0f} x {height:.0f}"


@contextmanager
def checked() -> Iterator[None]:
    """Every figure that is saved meanwhile has texts that can be read."""
    with pytest.MonkeyPatch.context() as patch:

        def save(figure: Figure, stem: Path) -> None:
            save_figure(figure, stem)
            figure.set_dpi(100)
            try:
                assert_readable(figure, patch)
            except AssertionError as found:
                raise AssertionError(f"{stem.name}: {found}") from None

        for module in pkgutil.iter_modules(figures.__path__):
            path = f"{figures.__name__}.{module.name}"
            if module.name != "style" and hasattr(import_module(path), "save_figure"):
                patch.setattr(f"{path}.save_figure", save)
        yield
