"""Join the segments of the whole study, and estimate degrees of pairs."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.ibd.cohorts import join_tiles
from popdesic.io.bed import read_fam

with logged(snakemake.log[0], snakemake.input) as log:
    cohorts = zip(snakemake.params.order, snakemake.input.fams, strict=True)
    prefixes = [(cohort, Path(fam).with_suffix("")) for cohort, fam in cohorts]
    about = join_tiles(
        [Path(path) for path in snakemake.input.rows],
        Path(snakemake.input.genome),
        Path(snakemake.input.panel),
        {name: cohort for cohort, prefix in prefixes for name in read_fam(prefix)["sample"]},
        *(Path(path) for path in snakemake.output),
        snakemake.params.min_cm,
    )
    log_counts(log, {key: about[key] for key in ("segments", "pairs_with_segments")})
    log_counts(log, about["pairs_by_degree"])
