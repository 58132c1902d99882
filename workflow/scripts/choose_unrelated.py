"""Choose a maximal set of unrelated founders, who define the PCA axes."""

from pathlib import Path

from popdesic.compare.kinship import choose_unrelated, kinship_tiles
from popdesic.compare.resolution import load_resolution
from popdesic.io.log import log_counts, logged

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
