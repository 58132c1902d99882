"""Write the table of counts at every filter."""

from pathlib import Path

from popdesic.cohort.summary import summarize_filters
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input):
    summarize_filters(
        snakemake.params.cohorts,
        ingest=[Path(path) for path in snakemake.input.ingest],
        samples=[Path(path) for path in snakemake.input.samples],
        populations=[Path(path) for path in snakemake.input.populations],
        panel=Path(snakemake.input.panel),
        encode=[Path(path) for path in snakemake.input.encode],
        identity=next(map(Path, snakemake.input.get("identity", [])), None),
        out=Path(snakemake.output[0]),
    )
