"""PCoA of geodesics: classical multidimensional scaling, optionally with axes of the founders."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cohort.samples import describe_samples
from ..components.scaling import principal_coordinates, project_coordinates
from ..components.tables import write_embedding, write_statistics
from ..core.files import write_json
from ..geodesic.lengths import open_lengths
from .frame import register


def compute_pcoa(
    lengths: Path,
    order: Path,
    sheet: Path,
    *,
    components: int,
    table_out: Path,
    statistics_out: Path,
    frame: Path | None = None,
    founders: set[str] | None = None,
    refit_out: Path | None = None,
    threads: int = 1,
) -> dict:
    """PCoA of one geodesic distance: table and variance explained.

    With `frame`, lengths to the founders (n, n_founders), the founders define the axes and all
    other samples are projected. The PCoA of everyone is aligned to that map and written to
    `refit_out`, with a JSON of the displacements.
    """
    samples = describe_samples(order, sheet)
    matrix = open_lengths(lengths)
    coordinates, explained = principal_coordinates(matrix, components, threads)
    if frame:
        among = samples.cohort.isin(founders).to_numpy()
        near = np.load(frame).astype(np.float64)
        own, explained = principal_coordinates(near[among], components, threads)
        fixed = np.empty((len(samples), own.shape[1]))
        fixed[among] = own
        fixed[~among] = project_coordinates(near[~among], near[among], own)
        moved, about = register(coordinates[:, : own.shape[1]], fixed, among)
        write_embedding(refit_out, samples, moved, "PCo")
        write_json(refit_out.with_suffix(".json"), about)
        coordinates = fixed
    write_embedding(table_out, samples, coordinates, "PCo")
    return write_statistics(statistics_out, explained, len(coordinates))
