"""Compute the PCoA of the geodesic distances of some spaces."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.maps.near_maps import study_pcoa

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs = snakemake.input, snakemake.output
    frames = list(files.get("frame", [])) or [None] * len(files.lengths)
    refits = list(outputs.get("refits", [])) or [None] * len(files.lengths)
    lists = list(files.lists) or [None] * len(files.lengths)
    for lengths, near, table, statistics, frame, refit in zip(
        files.lengths, lists, outputs.tables, outputs.statistics, frames, refits, strict=True
    ):
        found = study_pcoa(
            Path(lengths),
            Path(near) if near else None,
            Path(files.samples),
            Path(snakemake.params.sheet),
            components=snakemake.params.components,
            table_out=Path(table),
            statistics_out=Path(statistics),
            frame=Path(frame) if frame else None,
            founders=set(snakemake.params.founders),
            refit_out=Path(refit) if refit else None,
            threads=snakemake.threads,
        )
        log.info("%s", lengths)
        log_counts(log, found)
