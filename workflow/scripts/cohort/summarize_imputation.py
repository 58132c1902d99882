"""Write the table and figure of imputation accuracy."""

from pathlib import Path

from popdesic.cohort.accuracy import summarize_evaluation
from popdesic.core.log import logged
from popdesic.report.figures.imputation import save_accuracy

with logged(snakemake.log[0], snakemake.input):
    params = snakemake.params
    table = summarize_evaluation(
        {cohort: [Path(path) for path in paths] for cohort, paths in params.parts.items()},
        {c: Path(p) for c, p in zip(params.cohorts, snakemake.input.samples, strict=True)},
        params.methods,
        Path(snakemake.output.table),
    )
    save_accuracy(table, Path(snakemake.output.svg[0]).with_suffix(""))
