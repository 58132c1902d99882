"""Common style of all figures: fixed colours and markers, identical bytes in every run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogFormatter, MaxNLocator
from PIL import Image

from ...cohort.samples import UNKNOWN
from ...core.files import atomic_path
from ..words import number

#: Six colours of Okabe and Ito (2008), then six chosen one by one to be farthest (in CIELAB) from
#: all previous ones in normal and simulated protan, deutan and tritan vision (Machado et al. 2009).
PALETTE = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"),
    *("#8b00ff", "#5d2e00", "#462e5d", "#a2d174", "#2e2ea2", "#e80046"),
)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
#: Shift of the cycle of shapes: colours with the same shape differ by at least 20 in lightness.
SHIFT = 2
OTHER_COLOUR = "#7f7f7f"
MISSING_COLOUR = "#c8c8c8"
ACCENT = PALETTE[0]
ALARM = PALETTE[3]
#: Most labels with a colour of their own; if there are more, the rarest share one colour.
MAX_LABELS = len(PALETTE)
#: A numeric column with more distinct values is drawn as a scale, not as labels.
MAX_VALUES = 12
#: Width and height of a full-width figure and height of a legend row (inches); dpi of the PNG.
WIDTH, HEIGHT, LEGEND_ROW, DPI = 7.2, 3.1, 0.155, 200
#: Level of a PNG's compression: 6, the usual one, takes 1.4 times as long for 6 % fewer bytes.
COMPRESS = 3
#: With more points, the SVG contains them as one image instead of one element each.
RASTER_POINTS = 1_000
#: With more points, opacity follows local density, counted in CELLS x CELLS cells.
CROWD, CELLS = 20_000, 120
#: Total opacity of the points in one place, and smallest opacity of a point.
CROWD_COVER, LEAST_OPACITY = 1.5, 0.06
#: Shares of the samples enclosed by the contour lines.
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
    # Labels come from sheets: a dollar sign does not start a formula.
    "text.parse_math": False,
    # Keep text as text, so that figures can be searched and edited.
    "svg.fonttype": "none",
    "svg.hashsalt": "popdesic",
}


@contextmanager
def styled() -> Iterator[None]:
    """The common style, independent of the user's matplotlibrc."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def save_figure(figure: Figure, stem: Path) -> None:
    """Write {stem}.svg and {stem}.png without dates or versions: equal figures give equal bytes."""
    canvas = FigureCanvasAgg(figure)  # measures texts once for the layout and the PNG
    if layout := figure.get_layout_engine():
        layout.execute(figure)  # once for both files
    with mpl.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        canvas.draw()
        opaque = np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[:, :, :3])
        with atomic_path(Path(f"{stem}.png")) as temporary:
            about = {"dpi": (DPI, DPI), "compress_level": COMPRESS}
            Image.fromarray(opaque).save(temporary, format="png", **about)
        with atomic_path(Path(f"{stem}.svg")) as temporary:
            figure.savefig(
                temporary,
                format="svg",
                metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
            )


def luminance(rgb: Sequence[float]) -> float:
    """Relative luminance of a colour, 0 to 1 (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink_on(rgb: Sequence[float]) -> str:
    """White or INK, whichever has more contrast on this colour."""
    dark = luminance(mpl.colors.to_rgb(INK)) + 0.05
    return INK if (luminance(rgb) + 0.05) ** 2 > 1.05 * dark else "white"


class PlainLog(LogFormatter):
    """Ticks of a logarithmic axis as plain text: formulas are not set (`text.parse_math`)."""

    def __init__(self, text: Callable[[float], str]) -> None:
        super().__init__(labelOnlyBase=False)
        self.text = text

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self.text(x) if super().__call__(x, pos) else ""


def plain_number(value: float) -> str:
    return number(round(value)) if value >= 1 else f"{value:g}"


def plain_ticks(axis: Axis, text: Callable[[float], str] = plain_number) -> None:
    """Label a logarithmic axis by `text`, between powers of ten only where there is room."""
    axis.set_major_formatter(PlainLog(text))
    axis.set_minor_formatter(PlainLog(text))


def shorten_label(text: str, longest: int = 22) -> str:
    """`text`, with its middle omitted if it is longer than `longest`."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def is_scale(values: pd.Series) -> bool:
    """Whether a column of the sheet is numeric with more than MAX_VALUES distinct values."""
    known = values[~values.isin(UNKNOWN)]
    if known.nunique() <= MAX_VALUES:
        return False
    return bool(np.isfinite(pd.to_numeric(known, errors="coerce")).all())


@dataclass(frozen=True)
class Entry:
    """Row of a legend: a heading (no colour), a patch (no marker) or a marker."""

    text: str
    colour: str | None = None
    marker: str = ""


class Colouring:
    """Colours by one column of the sample sheet and markers by cohort, the same in all figures.

    In a study of one cohort, markers repeat the colours, so that figures can be read in greyscale.

    Parameters
    ----------
    values : Series of str
        The column for all samples of the study; it determines the colour of each label.
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
        # With more cohorts than shapes, the shape distinguishes founders and newcomers.
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
        # Of two labels with the same shape, one is light and the other dark.
        return MARKERS[(place + SHIFT * turn) % len(MARKERS)]

    def markers(self, values: pd.Series, cohorts: pd.Series) -> np.ndarray:
        """Shape of each sample, (n,)."""
        if len(self.cohorts) == 1:
            return np.array([self.label_marker(value) for value in values], object)
        return np.array([self.marker(cohort) for cohort in cohorts], object)

    def entries(self, values: pd.Series, cohorts: pd.Series) -> list[Entry]:
        """Rows of the legend for these samples, with the number of samples of each."""
        rows: list[Entry] = []
        if not self.scale:
            rows.append(Entry(self.title))
            one = len(self.cohorts) == 1
            for label in self.labels:
                count = int((values == label).sum())
                shape = self.label_marker(label) if one else ""
                rows.append(Entry(f"{shorten_label(label)} ({count})", self._colour[label], shape))
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
                text = f"{shorten_label(cohort)} ({int((cohorts == cohort).sum())})"
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
    """Draw one point per sample, see `draw_marks`."""
    return draw_marks(axes, x, y, colouring.colours(values), colouring.markers(values, cohorts))


def draw_marks(
    axes: mpl.axes.Axes, x: np.ndarray, y: np.ndarray, colours: np.ndarray, markers: np.ndarray
) -> list[PathCollection]:
    """Draw points with given colours, RGBA (n, 4), and shapes, (n,).

    Frequent shapes are drawn first, so that they do not hide rare ones. With more than CROWD
    samples, points in dense regions are small and translucent, so that these regions show the
    mixture of colours and not the points drawn last, and contour lines enclose the densest regions.
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
        # Sheets are often sorted by label: a fixed shuffle prevents the last one from covering all.
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
    """Number of points around each point, at least 1, in cells of about the size of a point."""
    from scipy.ndimage import gaussian_filter

    counts, edges_x, edges_y = np.histogram2d(x, y, CELLS)
    smooth = gaussian_filter(counts, 0.7)
    column = np.clip(np.searchsorted(edges_x, x, "right") - 1, 0, CELLS - 1)
    row = np.clip(np.searchsorted(edges_y, y, "right") - 1, 0, CELLS - 1)
    return np.maximum(smooth[column, row], 1.0)


def _enclose_crowds(axes: mpl.axes.Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Draw contour lines around the densest regions with the shares ENCLOSED of the points."""
    from scipy.ndimage import gaussian_filter

    width = max(np.ptp(x), np.ptp(y)) * 0.05 or 1.0
    extent = [(v.min() - width, v.max() + width) for v in (x, y)]
    counts, edges_x, edges_y = np.histogram2d(x, y, CELLS, range=extent)
    smooth = gaussian_filter(counts, 1.5)
    falling = np.sort(smooth.ravel())[::-1]
    share = np.cumsum(falling) / falling.sum()
    levels = [float(falling[np.searchsorted(share, part)]) for part in ENCLOSED]
    middle = [(edges[1:] + edges[:-1]) / 2 for edges in (edges_x, edges_y)]
    # contour needs distinct levels; with very few distinct positions they can coincide
    axes.contour(*middle, smooth.T, levels=sorted(set(levels)), colors=INK, linewidths=0.4)


def new_figure(
    n_columns: int,
    entries: Sequence[Entry] = (),
    *,
    n_rows: int = 1,
    width: float = WIDTH,
    height: float = HEIGHT,
) -> tuple[Figure, list[mpl.axes.Axes]]:
    """A figure with panels, row by row, and a legend to the right of them."""
    figure = Figure(figsize=(width, max(height, LEGEND_ROW * (len(entries) + 2))))
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    if entries:
        add_legend(figure, entries)
    return figure, panels


def add_legend(figure: Figure, entries: Sequence[Entry], loc: str = "outside right upper") -> None:
    """The legend of all panels; headings are bold."""
    # matplotlib hides labels with a leading underscore, which the sheet's labels may have.
    texts = [e.text if not e.text.startswith("_") else f"\u200b{e.text}" for e in entries]
    legend = figure.legend(
        [_handle(entry) for entry in entries],
        texts,
        loc=loc,
        handlelength=1.2,
        handleheight=0.9,
        handletextpad=0.4,
        labelspacing=0.3,
        borderaxespad=0.2,
    )
    for entry, text in zip(entries, legend.get_texts(), strict=True):
        if entry.colour is None:
            text.set_fontweight("bold")


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
    """Use a few integer ticks, with thousands separated as in the tables of the page."""
    axis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axis.set_major_formatter(lambda value, _: number(round(value)))


def add_scale(
    figure: Figure, panels: Sequence[mpl.axes.Axes], colouring: Colouring, label: str = ""
) -> None:
    """Add the colour bar of a numeric column, labelled with its name unless `label` is given."""
    if not colouring.scale:
        return
    norm = mpl.colors.Normalize(*colouring.limits)
    mappable = mpl.cm.ScalarMappable(norm, colouring.colour_map)
    bar = figure.colorbar(mappable, ax=list(panels), fraction=0.04, pad=0.02, aspect=30)
    bar.set_label(label or shorten_label(colouring.title, 40))
    bar.outline.set_linewidth(0.4)
