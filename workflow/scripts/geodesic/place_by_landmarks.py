"""Compute the PCoA of the geodesics of one space by landmarks."""

from pathlib import Path

import numpy as np

from popdesic.core.log import log_counts, logged
from popdesic.distance.landmarks import read_landmarks
from popdesic.maps.near_maps import compute_landmark_pcoa

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs = snakemake.input, snakemake.output
    for lengths, lists, table, statistics in zip(
        files.lengths, files.lists, outputs.tables, outputs.statistics, strict=True
    ):
        with np.load(lists) as found:
            rows = read_landmarks(Path(lengths), found["landmarks"])
        counts = compute_landmark_pcoa(
            rows,
            Path(files.samples),
            Path(snakemake.params.sheet),
            components=snakemake.params.components,
            table_out=Path(table),
            statistics_out=Path(statistics),
        )
        log.info("%s", lengths)
        log_counts(log, counts)
