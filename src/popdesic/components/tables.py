"""Tables of maps: coordinates of every sample.

Those that jobs read have no labels, so that no map is computed again because a sample got another
one. Those for users have all columns of the sheet (`labels.label_maps`).
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN
from ..cohort.sheet_text import COORDINATE
from ..core.files import write_json
from ..core.tables import read_table, write_table

log = logging.getLogger("popdesic")

#: Fewest samples of which neighbours say anything: UMAP, densMAP and t-SNE.
FEWEST = 5
#: Fewest components of whose distances a UMAP is drawn: it bends fewer, which a plane shows as they
#: are, into rings and threads that are no structure.
FEWEST_COMPONENTS = 5


def is_too_small(method: str, n: int) -> bool:
    """Whether so few samples have no map of neighbours; the log then says so."""
    if n < FEWEST:
        log.warning(
            "%s needs at least %d samples to define it, but there are %d: it is not drawn, and its "
            "coordinates are NA.",
            *(method, FEWEST, n),
        )
    return n < FEWEST


def is_too_flat(method: str, components: int | None) -> bool:
    """Whether so few components have no map of neighbours; the log then says so. None: no limit."""
    flat = components is not None and components < FEWEST_COMPONENTS
    if flat:
        log.info(
            "%s of %d components is not drawn: they are shown as they are. Its coordinates are NA.",
            *(method, components),
        )
    return flat


def no_map(n: int) -> np.ndarray:
    """Coordinates of a map that is not drawn: missing, float64 (n, 2)."""
    return np.full((n, 2), np.nan)


def write_statistics(path: Path, explained: np.ndarray, n_samples: int) -> dict:
    about = {"samples": n_samples, "variance_explained": [round(float(x), 8) for x in explained]}
    write_json(path, about)
    return about


def write_embedding(
    path: Path, samples: pd.DataFrame, coordinates: np.ndarray, prefix: str
) -> None:
    """One row per sample: name, coordinates `{prefix}1`, …, then the cohort."""
    table = pd.DataFrame(
        coordinates, columns=[f"{prefix}{i + 1}" for i in range(coordinates.shape[1])]
    )
    described = samples.reset_index(drop=True)
    write_table(path, pd.concat([described[["sample"]], table, described[["cohort"]]], axis=1))


def is_drawn(path: Path) -> bool:
    """Whether a map has coordinates; a UMAP of too few samples or components has none."""
    with path.open(encoding="utf-8") as file:
        names, values = (file.readline().rstrip("\n").split("\t") for _ in range(2))
    axis = next((k for k, name in enumerate(names) if COORDINATE.fullmatch(name)), None)
    if axis is None or axis >= len(values) or values[axis] not in UNKNOWN:
        return True  # most maps: the table is not read
    return not read_table(path)[names[axis]].isin(UNKNOWN).all()
