"""Trees with metadata as Auspice JSON, version 2: Nextstrain's viewer shows and colours them.

The format is that of the public schema ``https://nextstrain.org/schemas/dataset/v2``. Its required
date of an update is written as unknown (``XXXX-XX-XX``), so that the same inputs give the same
bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.samples import describe_samples
from ..core.files import atomic_path
from ..core.tables import read_table
from ..core.version import __version__
from ..distance.neighbor_joining import neighbor_joining, read_newick
from ..geography.coordinates import SPHERE, coordinate_columns, read_coordinates
from .matrices import known_distances

#: The schema's way to write an unknown date.
NO_DATE = "XXXX-XX-XX"
#: Names that mean something else in a node of this format.
RESERVED = {
    *("div", "num_date", "vaccine", "hidden", "url", "author", "accession"),
    *("none", "gt", "name"),
}
#: What is shown of a population, and how it is called there.
POPULATION_COLUMNS = {
    "people": "people",
    "observed": "observed heterozygosity",
    "expected": "expected heterozygosity",
    "f": "F",
    "mean_f_roh": "mean F_ROH",
}
#: Values for unknown in a sheet.
UNKNOWN = ("", "NA")


def write_auspice(
    out: Path,
    newick: str,
    table: pd.DataFrame,
    *,
    title: str,
    about: str,
    color_by: str,
    place_by: str = "",
) -> int:
    """Write one tree with metadata.

    Parameters
    ----------
    out : Path
    newick : str
        Labels of inner branches are support in percent. An empty text gives a tree without lengths,
        and a warning.
    table : DataFrame of str
        Metadata of the leaves; the first column has their names. Columns with numbers alone become
        a continuous colour scale, others categories. ``latitude`` and ``longitude`` place the
        leaves on a map.
    title, about : str
        Shown above and below the tree; `about` may be Markdown.
    color_by : str
        Column that colours the leaves at first, if it is there.
    place_by : str
        Column whose values are the places of the map; by default the first column.

    Returns
    -------
    int
        Number of leaves.
    """
    names = list(table.iloc[:, 0])
    children, lengths, label = read_newick(newick) if newick else _star(names)
    place_by = place_by if place_by in table else table.columns[0]
    attributes, kinds = _attributes(table)
    places = _places(table, place_by)
    keys = {column: _key(column) for column in kinds}
    meta: dict[str, Any] = {
        "title": title,
        "updated": NO_DATE,
        "panels": ["tree", "map"] if places else ["tree"],
        "description": about,
        "data_provenance": [{"name": f"Popdesic {__version__}"}],
        "colorings": [
            {"key": keys[column], "title": column, "type": kind} for column, kind in kinds.items()
        ],
        "filters": [keys[column] for column, kind in kinds.items() if kind == "categorical"],
        "display_defaults": {
            "layout": "unrooted",
            "distance_measure": "div",
            **({"color_by": keys[color_by]} if color_by in keys else {}),
            **({"geo_resolution": keys[place_by]} if places else {}),
        },
    }
    if places:
        meta["geo_resolutions"] = [{"key": keys[place_by], "title": place_by, "demes": places}]
    if not newick:
        meta["warning"] = "Fewer than three groups can be compared, so branches have no lengths."
    with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(f'{{"version":"v2","meta":{_text(meta)},"tree":')
        file.writelines(_nodes(children, lengths, label, dict(zip(names, attributes, strict=True))))
        file.write("}\n")
    return len(names)


def export_trees(
    distances: Path,
    populations: list[Path],
    sheet: Path,
    out: Path,
    *,
    column: str,
    color_by: str,
    panel: str,
    metric: str,
    n_sites: int,
    min_called: int,
) -> None:
    """Write ``samples.json``, and ``populations.json`` where there is a tree of populations.

    Parameters
    ----------
    distances : Path
        `results/distance`.
    populations : list of Path
        `population/tree.nwk` and `population/populations.tsv`, or nothing.
    sheet : Path
        The sample sheet.
    out : Path
        Folder.
    column : str
        The sheet's column of populations.
    color_by : str
        Column that colours the samples at first.
    panel : str
        Digest of the panel.

    Raises
    ------
    UserError
        A distance is unknown.
    """
    table = describe_samples(distances / "samples.tsv", sheet)
    names = list(table["sample"])
    matrix = known_distances(distances, names, "'auspice'", metric, n_sites, min_called)
    shown = {"panel": panel, "color_by": color_by, "place_by": column}
    write_sample_tree(out / "samples.json", matrix, table, **shown)
    if populations:
        tree, described = populations
        newick = tree.read_text("utf-8").strip()
        rows = population_rows(read_table(described), table, column)
        shown |= {"color_by": "population", "place_by": "population"}
        write_population_tree(out / "populations.json", newick, rows, **shown)


def write_sample_tree(
    out: Path, distances: np.ndarray, table: pd.DataFrame, *, panel: str, **shown: str
) -> int:
    """The neighbour-joining tree of all samples; `table` has one row each, in their order."""
    names = list(table.iloc[:, 0])
    about = (
        f"Neighbour-joining tree of {len(names)} samples from pairwise genetic distances (panel "
        f"{panel}). The tree has no root. Branches of negative length are drawn with length 0."
    )
    tree = neighbor_joining(distances, names)
    return write_auspice(out, tree, table, title="Samples", about=about, **shown)


def population_rows(populations: pd.DataFrame, samples: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row for each population: its numbers, and the mean place of its samples.

    Parameters
    ----------
    populations : DataFrame of str
        `population/populations.tsv`.
    samples : DataFrame of str
        The sample sheet.
    column : str
        The sheet's column of populations.
    """
    kept = [name for name in POPULATION_COLUMNS if name in populations]
    table = populations[["population", *kept]].rename(columns=POPULATION_COLUMNS)
    if column in samples and coordinate_columns(samples) == SPHERE:
        points = pd.DataFrame(read_coordinates(samples, SPHERE), columns=list(SPHERE))
        mean = points.groupby(samples[column].to_numpy()).mean()
        for axis in SPHERE:
            found = table.population.map(mean[axis])
            table[axis] = ["NA" if pd.isna(v) else f"{v:.4f}" for v in found]
    return table


def write_population_tree(
    out: Path, newick: str, table: pd.DataFrame, *, panel: str, **shown: str
) -> int:
    """The tree of populations; `table` is that of `population_rows`, without those not in it."""
    _, _, label = read_newick(newick) if newick else _star(list(table.population))
    table = table[table.population.isin(set(label.values()))].reset_index(drop=True)
    about = (
        f"Neighbour-joining tree of f2 between {len(table)} populations (panel {panel}). Labels of "
        "branches are bootstrap support in percent. The tree has no root. Branches of negative "
        "length are drawn with length 0."
    )
    return write_auspice(out, newick, table, title="Populations", about=about, **shown)


def _star(names: list[str]) -> tuple[list[list[int]], list[float], dict[int, str]]:
    """Leaves below a root, without lengths, as `read_newick` returns a tree."""
    n = len(names)
    return [list(range(1, n + 1)), *([] for _ in names)], [0.0] * (n + 1), dict(enumerate(names, 1))


def _key(column: str) -> str:
    return f"sheet_{column}" if column in RESERVED else column


def _attributes(table: pd.DataFrame) -> tuple[list[dict[str, dict]], dict[str, str]]:
    """Known values of every row by key, and the kind of every column that has any."""
    rows: list[dict[str, dict]] = [{} for _ in range(len(table))]
    kinds = {}
    for column in table.columns:
        words = table[column].astype(str)
        known = ~words.isin(UNKNOWN)
        if not known.any():
            continue
        numbers = pd.to_numeric(words.where(known), errors="coerce")
        numeric = bool(np.isfinite(numbers[known]).all()) and column != table.columns[0]
        kinds[column] = "continuous" if numeric else "categorical"
        key = _key(column)
        for k in np.flatnonzero(known):
            rows[k][key] = {"value": float(numbers.iloc[k]) if numeric else words.iloc[k]}
    return rows, kinds


def _places(table: pd.DataFrame, place_by: str) -> dict[str, dict[str, float]]:
    """Mean coordinates of the places of a map; none unless the table has degrees."""
    if coordinate_columns(table) != SPHERE:
        return {}
    points = pd.DataFrame(read_coordinates(table, SPHERE), columns=list(SPHERE))
    named = ~table[place_by].isin(UNKNOWN).to_numpy() & points.notna().all(axis=1).to_numpy()
    mean = points[named].groupby(table[place_by].to_numpy()[named]).mean()
    return {name: {axis: round(row[axis], 4) for axis in SPHERE} for name, row in mean.iterrows()}


def _nodes(
    children: list[list[int]],
    lengths: list[float],
    label: dict[int, str],
    attributes: dict[str, dict],
) -> Iterator[str]:
    """The tree as JSON, piece by piece: a tree may be deeper than the stack."""
    names = _unique_names(children, label)
    depth = np.zeros(len(children))
    for node, below in enumerate(children):  # children come after their parents
        for child in below:
            depth[child] = depth[node] + max(lengths[child], 0.0)
    waiting: list[int | str] = [0]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
            continue
        about: dict[str, Any] = {"name": names[node]}
        leaf = not children[node]
        own = attributes.get(label.get(node, ""), {}) if leaf else {}
        about["node_attrs"] = {"div": float(f"{depth[node]:.9g}"), **own}
        if not leaf and node in label:
            about["branch_attrs"] = {"labels": {"support": label[node]}}
        if leaf:
            yield _text(about)
            continue
        yield f'{_text(about)[:-1]},"children":['
        waiting.append("]}")
        for k, child in enumerate(reversed(children[node])):
            waiting += [",", child] if k else [child]


def _unique_names(children: list[list[int]], label: dict[int, str]) -> list[str]:
    """A name without spaces for each node, as the format asks for; no two are equal.

    A tree without leaves has a root without a label.
    """
    names, taken = [], set()
    for node, below in enumerate(children):
        leaf = not below and node in label
        name = re.sub(r"\s", "_", label[node]) if leaf else f"NODE_{node:07d}"
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names


def _text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
