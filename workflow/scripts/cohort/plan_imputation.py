"""Split the panel into imputation windows."""

from pathlib import Path

from popdesic.cohort.impute import write_windows
from popdesic.cohort.panel import load_panel
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    windows = write_windows(
        load_panel(Path(snakemake.input.panel))[0],
        Path(snakemake.output[0]),
        window_mb=snakemake.params.window_mb,
    )
    log.info("%d windows", len(windows))
