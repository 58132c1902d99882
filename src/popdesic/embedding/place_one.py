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
from ..io.tables import read_table
from .frame import place_among
from .pca import place_people
from .pcoa import principal_coordinates, project_coordinates


def place_on_axes(
    prefixes: Sequence[Path], person: Path, definition: Path, threads: int = 1
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
    return place_people(list(prefixes), person, definition, threads)[-1]


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


def place_by_nearest(table: pd.DataFrame, distances: np.ndarray, neighbors: int) -> np.ndarray:
    """Mean place of the nearest people on any map; `distances` float64 (n,) to those of the map."""
    points = table[axis_names(table)].to_numpy(np.float64)
    return place_among(distances[None], points, neighbors)[0]


def axis_names(table: pd.DataFrame) -> list[str]:
    """The columns of coordinates (PC1, PCo1, UMAP1 and so on), in order."""
    return [name for name in table if COORDINATE.fullmatch(name)]


def read_map(path: Path) -> pd.DataFrame:
    """A map's table with numeric coordinates."""
    table = read_table(path)
    names = axis_names(table)
    return table.assign(**{name: pd.to_numeric(table[name]) for name in names})
