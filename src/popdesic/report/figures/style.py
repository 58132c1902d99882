"""One style for all figures: colours and markers given to labels once, the same bytes every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from scipy.ndimage import gaussian_filter

from ...cohort.samples import UNKNOWN
from ...io.files import atomic_path
from ..words import number

#: Six colours of Okabe and Ito (2008), then six that lie farthest from all before them (CIELAB)
#: in normal and in simulated protan, deutan and tritan vision (matrices of Machado et al. 2009).
PALETTE = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"),
    *("#8b00ff", "#5d2e00", "#462e5d", "#a2d174", "#2e2ea2", "#e80046"),
)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
#: Shapes go round with this step: colours of one shape then differ by 20 in lightness or more.
SHIFT = 2
OTHER_COLOUR = "#7f7f7f"
MISSING_COLOUR = "#c8c8c8"
ACCENT = PALETTE[0]
ALARM = PALETTE[3]
#: Labels with a colour of their own; of more, the rarest share one.
MAX_LABELS = len(PALETTE)
#: A numeric column with more values than this is a scale, not a set of labels.
MAX_VALUES = 12
#: Inches of a whole-width figure, of one row of its legend, and dots an inch of the PNG.
WIDTH, HEIGHT, LEGEND_ROW, DPI = 7.2, 3.1, 0.155, 200
#: More points than this go into the SVG as one picture instead of one mark each.
RASTER_POINTS = 5_000
#: More points than this are drawn by how crowded their place is; cells a side that tell it.
CROWD, CELLS = 20_000, 120
#: Opacity that the points of one place add up to, and the least of one of them.
CROWD_COVER, LEAST_OPACITY = 1.5, 0.06
#: Shares of the samples that lines enclose.
ENCLOSED = (0.9, 0.5)
INK = "#202020"

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "figure.dpi": DPI,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.h_pad": 0.06,
    # Labels come from sheets: a dollar sign there is no formula.
    "text.parse_math": False,
    # Text stays text, so that figures can be searched and edited.
    "svg.fonttype": "none",
    "svg.hashsalt": "popdesic",
}


@contextmanager
def styled() -> Iterator[None]:
    """The common style, whatever a user's own matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def save_figure(figure: Figure, stem: Path) -> None:
    """Write {stem}.svg and {stem}.png without dates or versions: equal figures, equal bytes."""
    with atomic_path(Path(f"{stem}.svg")) as temporary:
        figure.savefig(
            temporary,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    figure.set_layout_engine("none")  # the layout stands: no need to find it again
    with atomic_path(Path(f"{stem}.png")) as temporary:
        figure.savefig(temporary, format="png", dpi=DPI, metadata={"Software": None})


def shorten(text: str, longest: int = 22) -> str:
    """`text`, its middle left out where it is longer than `longest`."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def is_scale(values: pd.Series) -> bool:
    """Whether a sheet's column is a number with more than MAX_VALUES values."""
    known = values[~values.isin(UNKNOWN)]
    if known.nunique() <= MAX_VALUES:
        return False
    return bool(np.isfinite(pd.to_numeric(known, errors="coerce")).all())


@dataclass(frozen=True)
class Entry:
    """One row of a legend, or its heading (no colour); a patch of colour without a marker."""

    text: str
    colour: str | None = None
    marker: str = ""


class Colouring:
    """Colours by one column of the sample sheet and markers by cohort, the same in all figures.

    A study of one cohort has shapes to spare: there they repeat what the colours say, so that
    figures can be read in grey.

    Parameters
    ----------
    values : Series of str
        The column for all samples of the study: what decides which label has which colour.
    cohorts : list of str
        All cohorts in sample order.
    founders : list of str
    title : str
        Name of the column.
    """

    def __init__(
        self, values: pd.Series, cohorts: Sequence[str], founders: Sequence[str], title: str
    ) -> None:
        known = values[~values.isin(UNKNOWN)]
        self.title = title
        self.scale = is_scale(values)
        self.cohorts = list(cohorts)
        self.founders = set(founders)
        self.labels: list[str] = []
        self.folded: list[str] = []
        if self.scale:
            numbers = pd.to_numeric(known)
            self.limits = (float(numbers.min()), float(numbers.max()))
        else:
            counts = known.value_counts()
            order = sorted(counts.index, key=lambda label: (-counts[label], label))
            room = len(order) if len(order) <= MAX_LABELS else MAX_LABELS - 1
            self.labels, self.folded = sorted(order[:room]), sorted(order[room:])
        self._colour = dict(zip(self.labels, PALETTE, strict=False))
        self._colour |= dict.fromkeys(self.folded, OTHER_COLOUR)
        # With more cohorts than shapes, the shape says founder or newcomer.
        self.by_role = len(self.cohorts) > len(MARKERS)

    @property
    def colour_map(self) -> mpl.colors.Colormap:
        return mpl.colormaps["viridis"]

    def colours(self, values: pd.Series) -> np.ndarray:
        """RGBA of each value, float64 (n, 4)."""
        if self.scale:
            numbers = pd.to_numeric(values.where(~values.isin(UNKNOWN)), errors="coerce")
            low, high = self.limits
            share = ((numbers - low) / ((high - low) or 1.0)).to_numpy(np.float64)
            rgba = self.colour_map(np.nan_to_num(share))
            rgba[np.isnan(share)] = mpl.colors.to_rgba(MISSING_COLOUR)
            return rgba
        names = [self._colour.get(value, MISSING_COLOUR) for value in values]
        return mpl.colors.to_rgba_array(names) if names else np.empty((0, 4))

    def marker(self, cohort: str) -> str:
        """Shape of a cohort's points."""
        if self.by_role:
            return MARKERS[0] if cohort in self.founders else MARKERS[1]
        return MARKERS[self.cohorts.index(cohort)]

    def label_marker(self, label: str) -> str:
        """Shape of a label's points in a study of one cohort."""
        if label not in self.labels:
            return MARKERS[0]
        turn, place = divmod(self.labels.index(label), len(MARKERS))
        # Of two labels of one shape, one is light and the other dark.
        return MARKERS[(place + SHIFT * turn) % len(MARKERS)]

    def markers(self, values: pd.Series, cohorts: pd.Series) -> np.ndarray:
        """Shape of each sample, (n,)."""
        if len(self.cohorts) == 1:
            return np.array([self.label_marker(value) for value in values], object)
        return np.array([self.marker(cohort) for cohort in cohorts], object)

    def entries(self, values: pd.Series, cohorts: pd.Series) -> list[Entry]:
        """Rows of the legend for these samples, with how many of them each stands for."""
        rows: list[Entry] = []
        if not self.scale:
            rows.append(Entry(self.title))
            one = len(self.cohorts) == 1
            for label in self.labels:
                count = int((values == label).sum())
                shape = self.label_marker(label) if one else ""
                rows.append(Entry(f"{shorten(label)} ({count})", self._colour[label], shape))
            if self.folded:
                count = int(values.isin(self.folded).sum())
                text = f"other: {len(self.folded)} labels ({count})"
                rows.append(Entry(text, OTHER_COLOUR, MARKERS[0] if one else ""))
        missing = int(values.isin(UNKNOWN).sum())
        if missing:
            rows.append(Entry(f"not known ({missing})", MISSING_COLOUR))
        if self.by_role:
            founder = cohorts.isin(self.founders)
            rows.append(Entry("cohorts"))
            rows.append(Entry(f"founders ({int(founder.sum())})", "#404040", MARKERS[0]))
            rows.append(Entry(f"newcomers ({int((~founder).sum())})", "#404040", MARKERS[1]))
        elif len(self.cohorts) > 1:
            rows.append(Entry("cohort"))
            for cohort in self.cohorts:
                text = f"{shorten(cohort)} ({int((cohorts == cohort).sum())})"
                rows.append(Entry(text, "#404040", self.marker(cohort)))
        if len(values) > CROWD:
            rows.append(Entry("density"))
            rows.append(Entry("densest 50 % and 90 %", INK, "_"))
        return rows


def draw_points(
    axes: mpl.axes.Axes,
    x: np.ndarray,
    y: np.ndarray,
    values: pd.Series,
    cohorts: pd.Series,
    colouring: Colouring,
) -> list[PathCollection]:
    """One point a sample, see `draw_marks`."""
    return draw_marks(axes, x, y, colouring.colours(values), colouring.markers(values, cohorts))


def draw_marks(
    axes: mpl.axes.Axes, x: np.ndarray, y: np.ndarray, colours: np.ndarray, markers: np.ndarray
) -> list[PathCollection]:
    """Points of given colours, RGBA (n, 4), and shapes, (n,).

    Shapes of many come first, so that they do not hide those of few. Of more than CROWD samples
    those in crowded places are small and let others shine through, so that a crowd shows the
    mixture of its colours and not whoever was drawn last, and lines enclose the densest places.
    """
    size = float(np.clip(6_000 / max(len(x), 1), 1.5, 18))
    crowded = len(x) > CROWD
    colours = colours.copy()
    colours[:, 3] *= 0.85
    sizes = np.full(len(x), size)
    if crowded:
        there = count_around(x, y)
        colours[:, 3] *= np.clip(CROWD_COVER / there, LEAST_OPACITY, 1.0)
        sizes[there < CROWD_COVER] *= 2
    drawn = []
    for marker in sorted(set(markers), key=lambda shape: (-(markers == shape).sum(), shape)):
        rows = np.flatnonzero(markers == marker)
        # Labels come in runs in a sheet: a fixed shuffle keeps the last one from covering all.
        rows = np.random.default_rng(0).permutation(rows)
        drawn.append(
            axes.scatter(
                x[rows],
                y[rows],
                s=sizes[rows],
                c=colours[rows],
                marker=marker,
                linewidths=0 if crowded else 0.2,
                edgecolors="none" if crowded else (1, 1, 1, 0.85),
                rasterized=len(x) > RASTER_POINTS,
            )
        )
    if crowded:
        _enclose_crowds(axes, x, y)
    return drawn


def count_around(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How many points are about where each one is: at least 1, in cells of about a point's size."""
    counts, edges_x, edges_y = np.histogram2d(x, y, CELLS)
    smooth = gaussian_filter(counts, 0.7)
    column = np.clip(np.searchsorted(edges_x, x, "right") - 1, 0, CELLS - 1)
    row = np.clip(np.searchsorted(edges_y, y, "right") - 1, 0, CELLS - 1)
    return np.maximum(smooth[column, row], 1.0)


def _enclose_crowds(axes: mpl.axes.Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Lines around the densest places with ENCLOSED of the points."""
    width = max(np.ptp(x), np.ptp(y)) * 0.05 or 1.0
    extent = [(v.min() - width, v.max() + width) for v in (x, y)]
    counts, edges_x, edges_y = np.histogram2d(x, y, CELLS, range=extent)
    smooth = gaussian_filter(counts, 1.5)
    falling = np.sort(smooth.ravel())[::-1]
    share = np.cumsum(falling) / falling.sum()
    levels = [float(falling[np.searchsorted(share, part)]) for part in ENCLOSED]
    middle = [(edges[1:] + edges[:-1]) / 2 for edges in (edges_x, edges_y)]
    # two levels that agree, as of very few distinct places, would be an error
    axes.contour(*middle, smooth.T, levels=sorted(set(levels)), colors=INK, linewidths=0.4)


def new_figure(
    n_columns: int,
    entries: Sequence[Entry] = (),
    *,
    n_rows: int = 1,
    width: float = WIDTH,
    height: float = HEIGHT,
) -> tuple[Figure, list[mpl.axes.Axes]]:
    """A figure of panels, row by row, with its legend to the right of them."""
    figure = Figure(figsize=(width, max(height, LEGEND_ROW * (len(entries) + 2))))
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    if entries:
        # A leading underscore would hide the row, which a sheet's label must not.
        texts = [e.text if not e.text.startswith("_") else f"\u200b{e.text}" for e in entries]
        legend = figure.legend(
            [_handle(entry) for entry in entries],
            texts,
            loc="outside right upper",
            handlelength=1.2,
            handleheight=0.9,
            handletextpad=0.4,
            labelspacing=0.3,
            borderaxespad=0.2,
        )
        for entry, text in zip(entries, legend.get_texts(), strict=True):
            if entry.colour is None:
                text.set_fontweight("bold")
    return figure, panels


def _handle(entry: Entry) -> mpl.artist.Artist:
    if entry.colour and not entry.marker:
        return Patch(facecolor=entry.colour, linewidth=0)
    return Line2D(
        [],
        [],
        linestyle="",
        marker=entry.marker,
        color=entry.colour or "none",
        markersize=5,
        markeredgewidth={"x": 1.5, "_": 0.8}.get(entry.marker, 0),
    )


def count_axis(axis: mpl.axis.Axis) -> None:
    """Few whole numbers, thousands set apart as in the page's tables."""
    axis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axis.set_major_formatter(lambda value, _: number(round(value)))


def add_scale(
    figure: Figure, panels: Sequence[mpl.axes.Axes], colouring: Colouring, label: str = ""
) -> None:
    """The colour bar of a numeric column, whose name is the label unless there is another."""
    if not colouring.scale:
        return
    norm = mpl.colors.Normalize(*colouring.limits)
    mappable = mpl.cm.ScalarMappable(norm, colouring.colour_map)
    bar = figure.colorbar(mappable, ax=list(panels), fraction=0.04, pad=0.02, aspect=30)
    bar.set_label(label or shorten(colouring.title, 40))
    bar.outline.set_linewidth(0.4)
