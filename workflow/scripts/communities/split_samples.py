"""Find the splits of the samples of a study: its communities, their depth and stability."""

from pathlib import Path

from popdesic.communities.study_splits import split_study, write_splits
from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    splits, _ = split_study(
        Path(files.scores),
        Path(files.axes),
        read_table(Path(files.samples))["sample"],
        genotypes=[Path(bed).with_suffix("") for bed in files.genotypes],
        definition=Path(files.definition),
        unrelated=next(map(Path, files.get("unrelated", [])), None),
        seed=params.seed,
        threads=snakemake.threads,
    )
    write_splits(splits, Path(snakemake.output[0]))
    log_counts(log, splits.about)
