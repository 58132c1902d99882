"""Find the splits of the samples of a study: its communities, their depth and stability."""

from pathlib import Path

from popdesic.communities.founders import founders_of
from popdesic.communities.study_splits import SplitSource, split_study, write_splits
from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    source = SplitSource(
        Path(files.scores),
        Path(files.axes),
        [Path(bed).with_suffix("") for bed in files.genotypes],
        Path(files.definition),
        next(map(Path, files.get("unrelated", [])), None),
        params.ploidy,
    )
    kept = Path(files.samples), params.founders, Path(snakemake.output[0]), params.code
    splits, _ = split_study(
        source,
        read_table(Path(files.samples))["sample"],
        founders=founders_of(*kept),
        seed=params.seed,
        threads=snakemake.threads,
    )
    write_splits(splits, Path(snakemake.output[0]))
    log_counts(log, splits.about)
