"""Tables of maps: coordinates of every sample.

Those that jobs read have no labels, so that no map is computed again because a sample got another
one. Those for users have all columns of the sheet (`label_maps`).
"""

from __future__ import annotations

import io
import logging
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.samples import describe_samples
from ..io.files import atomic_path, write_json
from ..io.tables import open_lines, write_rows, write_table

log = logging.getLogger("popdesic")

#: Fewest samples of which neighbours say anything: UMAP, densMAP and t-SNE.
FEWEST = 5


def is_too_small(method: str, n: int) -> bool:
    """Whether so few samples have no map of neighbours; the log then says so."""
    if n < FEWEST:
        log.warning(
            "%s needs at least %d samples to define it, but there are %d: it is not drawn, and its "
            "coordinates are NA.",
            *(method, FEWEST, n),
        )
    return n < FEWEST


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


def label_maps(tables: dict[Path, Path], order: Path, sheet: Path) -> None:
    """Write each map again with the columns of the sheet behind its own, which keep their text.

    Parameters
    ----------
    tables : dict
        Where to write each map of `write_embedding`.
    order, sheet : Path
        `distance/samples.tsv`, whose order all maps have, and the sample sheet.
    """
    labels = describe_samples(order, sheet).drop(columns=["sample", "cohort"])
    behind = [""] * (1 + len(labels))
    if len(labels.columns):
        text = io.StringIO()
        write_rows(text, labels, header=True)
        behind = [f"\t{line}" for line in text.getvalue().split("\n")[:-1]]
    for path, out in tables.items():
        with (
            open(path, encoding="utf-8") as own,
            atomic_path(out) as temporary,
            open_lines(temporary) as file,
        ):
            rows = zip(own, behind, strict=True)
            file.writelines(f"{line[:-1]}{further}\n" for line, further in rows)
