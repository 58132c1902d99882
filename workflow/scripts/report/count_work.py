"""Count the jobs run for the report and the results reused."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.study.work import count_work

with logged(snakemake.log[0], snakemake.input) as log:
    log_counts(log, count_work(Path(), snakemake.input, Path(snakemake.output[0])))
