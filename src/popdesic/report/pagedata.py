"""Data of the report's interactive maps: samples, their columns and coordinates, packed.

Coordinates are quantised to 65 535 steps over the range of their axis, far finer than a pixel. A
column is stored as its distinct values and one index per sample. Both are embedded as base64 of
little-endian integers: 30 000 samples take about 80 kB per axis, and the page unpacks only what it
shows. Larger studies are compressed (`packs`): a million samples take about 2.4 MB per axis.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from markupsafe import Markup

from ..cohort.samples import UNKNOWN
from ..core.tables import read_table
from ..ibd.verdict import UNRELATED
from .figures.style import MARKERS, MISSING_COLOUR, OTHER_COLOUR, Colouring
from .newcomers import sample_shifts
from .outcome import Outcome
from .packs import Inline, Packs, Store
from .words import COLUMNS, MAP_SPACES, METHODS, describe_way, percent

#: Steps of an axis; the next number marks samples that are not on the map.
STEPS, ABSENT = 65_534, 65_535
#: Most axes of a map on the page.
MAX_AXES = 4
#: The same in a compressed study, except for the principal components.
MAX_AXES_LARGE = 2
#: Distinct values above which a column of a compressed study keeps a text for each sample.
MANY_VALUES = 4096
#: Colours of the scale of such a column, and the index of samples without a value.
SCALE_STEPS = 128
#: Stands for all values that share a colour; a table's cell cannot contain a tab.
REST = "\t"
#: Colours of the scale of a numeric column; the page interpolates between them.
RAMP = 33
#: Maps whose axes have no unit; both axes are drawn to the same scale.
NO_UNIT = ("umap", "umap_refit", "densmap", "tsne")


def page_data(
    outcome: Outcome,
    maps: Sequence[Path],
    tables: Sequence[Path],
    *,
    color_by: str,
    first: Sequence[str],
    store: Store | None = None,
    population: Collection[str] = (),
    relatives: dict[str, str] | None = None,
    changed: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """All data of the page's scripts, ready for `to_json`.

    Parameters
    ----------
    maps : sequence of Path
        Tables with `sample`, then coordinates named X1, X2, … (any X). A map that repeats another
        one, because `auto` chose an alpha that is also listed, is omitted. Further columns that
        are not in the sample sheet become columns of the samples.
    tables : sequence of Path
        Tables with `sample` and further columns, which become columns of the samples. If the
        sheet has a column of the same name, the table's name is appended.
    color_by : str
        Column that colours the maps at first.
    first : sequence of str
        Stems of the two maps that are shown first.
    store : Inline or Packs, optional
        What holds the arrays. `Packs` has a budget: the maps shown first and the sheet's columns
        come before the other maps, and what does not fit is named in its `left_out`.
    population : collection of str
        `population.analyses` of this study. Files of others may be of a former run.
    relatives : dict of str, optional
        `closest_relatives`, if this study seeks relatives.
    changed : DataFrame, optional
        A further table with `sample`: what changed since the last report.
    """
    store = store or Inline()
    order = pd.Index(outcome.samples["sample"])
    samples = store.names(list(order))
    maps = [path for path in maps if not is_repeated(path.stem, outcome)]
    drawn: dict[str, dict[str, Any]] = {}
    further = []

    def draw(paths: Sequence[Path]) -> None:
        for path in paths:
            table = read_table(path).set_index("sample").reindex(order)
            if packed := pack_map(table, path.stem, outcome, store):
                drawn[path.stem] = packed
                own, suffix = packed.pop("columns"), f" ({packed['title']})"
                further.append(_further(table, suffix, outcome, store, skip=own))

    columns: list[dict[str, Any]] = []
    shifts = sample_shifts(outcome, color_by)
    if not store.packed:
        columns += _sample_columns(outcome, store, population, relatives, shifts)
        draw(maps)
    else:
        draw([path for path in maps if path.stem in first])
        columns += _sample_columns(outcome, store, population, relatives, shifts)
        draw([path for path in maps if path.stem not in first])
    columns += (column for found in further for column in found)
    for path in tables:
        table = read_table(path).set_index("sample").reindex(order)
        # A sheet may have its own column `community`: both are shown.
        named: dict[str, str] = {}
        for name in table:
            title = column_title(name, outcome)
            if name in outcome.samples:
                title = f"{name} ({path.stem})"
            elif title in outcome.samples or title in named.values():
                title = name  # as of an alpha that repeats another
            named[name] = title
        columns += _further(table.rename(columns=named), "", outcome, store)
    if changed is not None:
        columns += _further(changed.set_index("sample").reindex(order), "", outcome, store)
    names = [column["name"] for column in columns]
    return {
        "samples": samples,
        "n": len(order),
        "left_out": store.left_out if isinstance(store, Packs) else [],
        "columns": columns,
        "maps": [drawn[path.stem] for path in maps if path.stem in drawn],
        "first": list(first),
        "colour_by": color_by if color_by in names else "cohort",
        "shapes": _shapes(outcome),
        "missing": MISSING_COLOUR,
        "ramp": [mpl.colors.to_hex(c) for c in mpl.colormaps["viridis"](np.linspace(0, 1, RAMP))],
    }


def _sample_columns(
    outcome: Outcome,
    store: Store,
    population: Collection[str],
    relatives: dict[str, str] | None,
    shifts: dict[str, tuple[float, int]],
) -> list[dict[str, Any]]:
    """Columns of the sample sheet, and what was measured of each sample."""
    samples = outcome.samples
    measured = outcome.qc.set_index("sample").loc[samples["sample"]]
    packed = [
        *(
            pack_column(name, samples[name], outcome.qc.get(name, samples[name]), outcome, store)
            for name in samples.columns
            if name != "sample"
        ),
        *(
            _text_column(name.replace("_", " "), measured[name], outcome, store)
            for name in ("call_rate", "heterozygosity")
        ),
    ]
    if "runs" in population and (found := _column_of(outcome, "population/samples.tsv", "f_roh")):
        packed.append(_text_column("F_ROH", samples["sample"].map(found), outcome, store))
    largest = _largest_component(outcome) if "ancestry" in population else {}
    told = {
        "ancestry": largest,
        "closest relative": relatives,
        "newcomer shift": {name: f"{off:.1f}" for name, (off, _) in shifts.items()},
        "component of the shift": {name: f"PC{axis}" for name, (_, axis) in shifts.items()},
    }
    for title, known in told.items():
        if known:
            texts = samples["sample"].map(known).fillna(UNKNOWN[-1]).astype(object)
            packed.append(pack_column(title, texts, texts, outcome, store))
    return [column for column in packed if column]


def _column_of(outcome: Outcome, name: str, column: str) -> dict[str, float]:
    """Numbers by sample from a table below `results/`; none where the analysis did not run."""
    path = outcome.folder / name
    table = read_table(path) if path.exists() else pd.DataFrame(columns=["sample"])
    if column not in table:
        return {}
    return dict(zip(table["sample"], pd.to_numeric(table[column], "coerce"), strict=True))


def _largest_component(outcome: Outcome) -> dict[str, str]:
    """Of each sample with ancestry proportions: its largest component, and the proportion."""
    path = outcome.folder / "population/ancestry.tsv"
    table = read_table(path) if path.exists() else pd.DataFrame(columns=["sample"])
    shares = table.set_index("sample").filter(regex=r"^K\d+$")
    shares = shares.apply(pd.to_numeric, errors="coerce").dropna()
    if shares.empty:
        return {}
    return {
        str(sample): f"{name} {share:.3f}"
        for sample, name, share in zip(
            shares.index, shares.idxmax(axis=1), shares.max(axis=1), strict=True
        )
    }


def closest_relatives(outcome: Outcome) -> dict[str, str]:
    """Of each sample with a relative: the one with the highest kinship, and what they are."""
    path = outcome.folder / "compare/relatives.tsv"
    if not path.exists():
        return {}
    table = read_table(path)
    table = table[table["relation"] != UNRELATED]
    kinship = pd.to_numeric(table["kinship"], "coerce")
    table = table.iloc[np.argsort(-kinship.fillna(-1).to_numpy(), kind="stable")]
    found: dict[str, str] = {}
    for a, b, relation in zip(table["sample_a"], table["sample_b"], table["relation"], strict=True):
        found.setdefault(a, f"{b} ({relation})")
        found.setdefault(b, f"{a} ({relation})")
    return found


def to_json(data: dict[str, Any]) -> Markup:
    """JSON for a `script` element, escaped so that nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def is_repeated(stem: str, outcome: Outcome) -> bool:
    """Whether this is a map of geodesics that the study also has for a listed alpha."""
    match = re.match(r"\w+\.(.+?)\.alphaauto(\.|$)", stem)
    return match is not None and outcome.is_repeated(match[1], "auto")


def map_title(stem: str, outcome: Outcome) -> str:
    """Title of a map by the stem of its file: method, space and alpha, or the parts of the stem."""
    match = re.fullmatch(r"([^.]+)\.([^.]+)\.alpha(auto|[\d.]*\d)(?:\.(.+))?", stem)
    if match:
        method, space, alpha, rest = match.groups()
        about = outcome.geodesics.get((space, alpha))
        named = MAP_SPACES.get(space, space)
        words = [named, describe_way(about) if about else f"α = {alpha}"]
    else:
        method, _, rest = stem.partition(".")
        kind, _, space = rest.partition(".")
        words = [MAP_SPACES.get(space, space)] if kind == "distance" and space else []
        rest = kind if words else rest
    rest = {"distance": "plain distances"}.get(rest, (rest or "").replace(".", ", "))
    return ", ".join([METHODS.get(method, method), *words, *([rest] if rest else [])])


def column_title(name: str, outcome: Outcome) -> str:
    """Title of a column of results; its name, where the page has no other words for it."""
    if name.startswith("instability."):
        return f"instability, {map_title(name.removeprefix('instability.'), outcome)}"
    if match := re.fullmatch(r"level(\d+)", name):
        return f"block model, level {match[1]}"
    return COLUMNS.get(name, name)


def map_axes(columns: Sequence[str]) -> list[str]:
    """Names X1, X2, … of a map's coordinates; the first name that ends in 1 defines X."""
    stem = next((name[:-1] for name in columns if re.fullmatch(r"\D*[^\d]1", name)), None)
    if stem is None:
        return []
    axes = []
    while f"{stem}{len(axes) + 1}" in columns:
        axes.append(f"{stem}{len(axes) + 1}")
    return axes


def pack_map(
    table: pd.DataFrame, stem: str, outcome: Outcome, store: Store
) -> dict[str, Any] | None:
    """Quantised axes of one map, and `columns`: names of the coordinates in its table.

    None if the map does not fit the budget.

    Parameters
    ----------
    table : DataFrame of str
        One row per sample in the page's order, NaN for samples that are not on the map.
    """
    axes = map_axes(list(table.columns))
    variance = outcome.variance.get(stem, [])
    packed = []
    title = map_title(stem, outcome)
    most = MAX_AXES if stem == "pca" or not store.packed else MAX_AXES_LARGE
    if isinstance(store, Packs) and not store.fits(2 * len(table) * min(most, len(axes))):
        store.left_out.append(f"the map “{title}”")
        return None
    for index, axis in enumerate(axes[:most]):
        values = pd.to_numeric(table[axis], errors="coerce").to_numpy(np.float64)
        share = f" ({percent(variance[index])})" if index < len(variance) else ""
        packed.append({"name": f"{axis}{share}"} | quantise(values, store))
    return {
        "name": stem,
        "title": title,
        "equal": stem.split(".")[0] in NO_UNIT,
        "axes": packed,
        "columns": axes,
    }


def quantise(values: np.ndarray, store: Store | None = None) -> dict[str, Any]:
    """Smallest and largest finite value, and all values as steps between them."""
    store = store or Inline()
    known = np.isfinite(values)
    low, high = (values[known].min(), values[known].max()) if known.any() else (0.0, 0.0)
    # Halving prevents overflow of the width of the range.
    width = high / 2 - low / 2
    steps = np.full(len(values), ABSENT, "<u2")
    share = (values[known] / 2 - low / 2) / (width or 1.0)
    steps[known] = np.rint(share * STEPS).astype("<u2")
    return {"low": float(low), "high": float(high), "steps": store.array(steps)}


def pack_column(
    name: str, values: pd.Series, everyone: pd.Series, outcome: Outcome, store: Store
) -> dict[str, Any] | None:
    """Distinct values of a column, their colours, and the index of each sample's value.

    None if the column does not fit the budget.

    Parameters
    ----------
    everyone : Series of str
        The column for all samples read: it determines the colours, as in the figures.
    """
    colouring = Colouring(everyone, outcome.cohorts, outcome.founders, name)
    codes, known = pd.factorize(values, sort=True)
    if isinstance(store, Packs):
        mark = store.mark()
        if len(known) > MANY_VALUES:
            packed = _pack_texts(name, values, colouring, store)
        else:
            packed = _pack_values(name, codes, known, colouring, store)
        if store.left < 0:
            store.go_back(mark, f"the column “{name}”")
            return None
        return packed
    return _pack_values(name, codes, known, colouring, store)


def _pack_values(
    name: str, codes: np.ndarray, known: pd.Index, colouring: Colouring, store: Store
) -> dict[str, Any]:
    """A column as distinct values and codes."""
    width = "<u1" if len(known) < 2**8 else "<u2" if len(known) < 2**16 else "<u4"
    packed: dict[str, Any] = {
        "name": name,
        "values": list(known),
        "codes": store.array(codes.astype(width)),
        "bytes": int(width[-1]),
    }
    if colouring.scale:
        return packed | {"scale": list(colouring.limits)}
    return packed | _label_colours(known, colouring)


def _label_colours(known: Sequence[str], colouring: Colouring) -> dict[str, Any]:
    """Colours and shapes of labels, and which of them share a colour because they are rare."""
    colours = colouring.colours(pd.Series(known, dtype=object))
    packed: dict[str, Any] = {"colours": [mpl.colors.to_hex(colour) for colour in colours]}
    rare = set(colouring.folded)
    folded = [value for value in known if value in rare]
    if folded:
        packed |= {"folded": folded, "folded_colour": OTHER_COLOUR}
    return packed | {"markers": [colouring.label_marker(value) for value in known]}


def _pack_texts(name: str, values: pd.Series, colouring: Colouring, store: Packs) -> dict[str, Any]:
    """A column of very many values: the text of each sample, and the code of its colour."""
    packed = {"name": name, "text": store.names(values.tolist()), "bytes": 1}
    if colouring.scale:
        low, high = colouring.limits
        numbers = pd.to_numeric(values.where(~values.isin(UNKNOWN)), errors="coerce")
        share = ((numbers - low) / ((high - low) or 1.0)).to_numpy(np.float64)
        missing = np.isnan(share)
        codes = np.rint(np.where(missing, 0, share.clip(0, 1)) * (SCALE_STEPS - 1))
        codes[missing] = SCALE_STEPS
        steps = [*map(repr, np.linspace(low, high, SCALE_STEPS).tolist()), UNKNOWN[-1]]
        coded = store.array(codes.astype("<u1"))
        return packed | {"values": steps, "codes": coded, "scale": [low, high]}
    named = [*colouring.labels, UNKNOWN[-1], REST]
    place = {label: code for code, label in enumerate(named)} | dict.fromkeys(
        UNKNOWN, len(named) - 2
    )
    codes = values.map(place).fillna(len(named) - 1).to_numpy("<u1")
    about = _label_colours(named[:-1], colouring)
    about["colours"].append(OTHER_COLOUR)
    about["markers"].append(MARKERS[0])
    others = int(values[codes == len(named) - 1].nunique())
    about |= {"folded": [REST], "folded_colour": OTHER_COLOUR, "others": others}
    return packed | {"values": named, "codes": store.array(codes)} | about


def _text_column(
    name: str, values: pd.Series, outcome: Outcome, store: Store
) -> dict[str, Any] | None:
    """A column of numbers with four significant digits."""
    text = values.map(lambda value: "NA" if pd.isna(value) else f"{value:.4g}").astype(object)
    return pack_column(name, text, text, outcome, store)


def _further(
    table: pd.DataFrame, suffix: str, outcome: Outcome, store: Store, skip: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Columns of a table that are not in the sample sheet."""
    found = []
    for name in table.columns:
        if name not in outcome.samples and name not in skip:
            values = table[name].fillna(UNKNOWN[-1]).astype(object)
            found.append(pack_column(f"{name}{suffix}", values, values, outcome, store))
    return [column for column in found if column]


def _shapes(outcome: Outcome) -> dict[str, Any]:
    """Shape of each cohort's points, as in the figures; none if shapes repeat the colours."""
    colouring = Colouring(pd.Series([], dtype=object), outcome.cohorts, outcome.founders, "cohort")
    if len(outcome.cohorts) == 1:
        return {"of": {}, "legend": [], "first": MARKERS[0]}
    of = {cohort: colouring.marker(cohort) for cohort in outcome.cohorts}
    if colouring.by_role:
        legend = [["founders", MARKERS[0]], ["newcomers", MARKERS[1]]]
    else:
        legend = [[cohort, marker] for cohort, marker in of.items()]
    return {"of": of, "legend": legend, "first": MARKERS[0]}
