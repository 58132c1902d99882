"""Join the sheet's columns to the maps, count jobs run and reused, and write the report page."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.store import open_distances
from popdesic.maps.labels import label_maps
from popdesic.report.outcome import load_outcome
from popdesic.report.page import write_report
from popdesic.study.work import count_work

with logged(snakemake.log[0], snakemake.input) as log:
    out = Path(snakemake.output[0])
    results = out.parents[1]
    coordinates, labelled = snakemake.input.coordinates, snakemake.output.labelled
    label_maps(
        dict(zip(map(Path, coordinates), map(Path, labelled), strict=True)),
        results / "distance/samples.tsv",
        Path(snakemake.params.sheet),
    )
    log_counts(log, count_work(Path(), snakemake.input, Path(snakemake.output.work)))
    outcome = load_outcome(results, Path(snakemake.params.sheet), **snakemake.params.study)
    counts = write_report(
        outcome,
        open_distances(
            snakemake.params.store,
            results / "distance",
            n_sites=outcome.panel["n_sites"],
            **snakemake.params.distance,
            threads=snakemake.threads,
        ),
        Path(snakemake.input.figures[0]).parent,
        snakemake.params.configuration,
        out,
        maps=[Path(path) for path in snakemake.input.maps],
        tables=[Path(path) for path in snakemake.input.tables],
        missing=next((Path(path) for path in snakemake.input.missing[1:]), None),
    )
    log_counts(log, counts)
