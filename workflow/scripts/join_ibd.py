"""Join the segments of the whole study, and estimate degrees of pairs."""

from pathlib import Path

from popdesic.cohort.samples import samples_in_order
from popdesic.ibd.cohorts import join_tiles
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    sheet = samples_in_order(Path(snakemake.params.sheet), snakemake.params.order)
    about = join_tiles(
        [Path(path) for path in snakemake.input.rows],
        Path(snakemake.input.genome),
        Path(snakemake.input.panel),
        dict(zip(sheet["sample"], sheet.cohort, strict=True)),
        *(Path(path) for path in snakemake.output),
        snakemake.params.min_cm,
    )
    log_counts(log, {key: about[key] for key in ("segments", "pairs_with_segments")})
    log_counts(log, about["pairs_by_degree"])
