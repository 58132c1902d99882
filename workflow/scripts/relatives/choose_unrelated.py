"""Choose a maximal set of unrelated founders, who define the PCA axes."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.relatives.kinship import choose_unrelated, kinship_tiles
from popdesic.relatives.resolution import load_resolution

with logged(snakemake.log[0], snakemake.input) as log:
    counts = choose_unrelated(
        kinship_tiles(snakemake.input.rows),
        {
            cohort: Path(fam).with_suffix("")
            for cohort, fam in zip(snakemake.params.founders, snakemake.input.fams, strict=True)
        },
        Path(snakemake.output[0]),
        max_kinship=snakemake.params.max_kinship,
        resolution=load_resolution(Path(snakemake.input.resolution)),
    )
    log_counts(log, counts)
