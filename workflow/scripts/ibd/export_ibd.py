"""Write segments of identity by descent in formats of other programs."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.ibd.formats import export_segments

with logged(snakemake.log[0], snakemake.input) as log:
    rows = export_segments(
        Path(snakemake.input.segments),
        Path(snakemake.input.genome),
        Path(snakemake.input.panel),
        dict(zip(snakemake.params.formats, map(Path, snakemake.output), strict=True)),
    )
    log_counts(log, {"rows": rows})
