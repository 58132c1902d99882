"""The place of one person on a study's axes and maps, as a newcomer's.

Scores on the principal components, and places on maps that are defined by the founders
(`embedding.stable`), are those that the person would have as a cohort of the study. Other maps are
fitted to everyone and have no place for anybody else: there, it is the mean place of the nearest
people, weighted as UMAP weighs neighbours (`frame.place_among`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.sheet_text import COORDINATE
from ..cohort.site_alleles import read_cohorts
from ..components.pca import has_weights, place_by_weights, read_axes
from ..components.relationship import blocks_of_others, relationship_to
from ..components.scaling import principal_coordinates, project_coordinates
from ..core.tables import read_rows, read_table
from ..engine.backend import Backend
from ..engine.ranks import smallest
from ..io.bed import read_fam
from .frame import place_among


def place_on_axes(
    prefixes: Sequence[Path], person: Path, definition: Path, backend: Backend
) -> np.ndarray:
    """Scores of a person on the axes of a study, float64 (k,).

    Parameters
    ----------
    prefixes : list of Path
        Stems of the genotypes of the founder cohorts.
    person : Path
        Stem of the person's genotypes on the panel.
    definition : Path
        `axes.npz` of `define_axes`.
    """
    return place_people(list(prefixes), person, definition, backend)[-1]


def place_people(
    prefixes: list[Path], people: Path, definition: Path, backend: Backend
) -> np.ndarray:
    """Scores of people who are no part of a study, float64 (n, k): those of a further cohort.

    Nobody else is placed. Where the axes have weights of sites, no other genotype is read.

    Parameters
    ----------
    prefixes, definition
        As in `place_everyone`.
    people : Path
        Stem of their genotypes. None of them defines axes, even if a founder has the same name.
    """
    if has_weights(definition):
        return place_by_weights(
            [people], [np.ones(len(read_fam(people)), bool)], definition, backend
        )
    stored, axes = read_axes(definition)
    defining = set(stored["samples"].tolist())
    founders = [x in defining for p in prefixes for x in read_fam(p)["sample"].tolist()]
    read, sizes = read_cohorts([*prefixes, people], stored["sites"])
    founders = np.append(np.array(founders, bool), np.zeros(sizes[-1], bool))
    first = int((~founders).sum()) - sizes[-1]
    blocks = [bounds for bounds in blocks_of_others(sizes, founders) if bounds[0] >= first]
    given = read, sizes, founders, stored["af"]
    return axes.project(*relationship_to(*given, backend.threads, blocks))


def place_in_frame(
    table: pd.DataFrame,
    founders: np.ndarray,
    lengths: tuple[np.ndarray, np.ndarray],
    *,
    method: str,
    components: int,
    neighbors: int,
) -> np.ndarray:
    """Place of a person on a stable PCoA or UMAP, as `compute_pcoa` and `compute_umap` place.

    Parameters
    ----------
    table : DataFrame
        The map.
    founders : bool array, (n,)
        Its founders.
    lengths : two float64 arrays, (n_founders, n_founders) and (n_founders,)
        Of paths through founders: among them, and from the person to them.
    components, neighbors : int
        Of the PCoA; of the UMAP.
    """
    among, own = lengths
    if method == "pcoa":
        coordinates, _ = principal_coordinates(among, components)
        return project_coordinates(own[None], among, coordinates)[0]
    points = table[axis_names(table)].to_numpy(np.float64)[founders]
    return place_among(own[None], points, neighbors)[0]


def place_by_nearest(
    path: Path, distances: np.ndarray, neighbors: int
) -> tuple[list[str], np.ndarray]:
    """Names of the axes of any map, and the mean place of the nearest people on it.

    `distances`: float64 (n,) to those of the map, of which only the nearest are read.
    """
    near = np.sort(smallest(distances, max(neighbors, 2)))
    table = read_map_table(path, near)
    points = table[axis_names(table)].to_numpy(np.float64)
    return axis_names(table), place_among(distances[near][None], points, neighbors)[0]


def axis_names(table: pd.DataFrame) -> list[str]:
    """The columns of coordinates (PC1, PCo1, UMAP1 and so on), in order."""
    return [name for name in table if COORDINATE.fullmatch(name)]


def read_map_table(path: Path, rows: np.ndarray | None = None) -> pd.DataFrame:
    """A map's table with numeric coordinates; some of its rows, if they are given."""
    table = read_table(path) if rows is None else read_rows(path, rows)
    names = axis_names(table)
    return table.assign(**{name: pd.to_numeric(table[name]) for name in names})
