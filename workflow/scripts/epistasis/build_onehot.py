"""Build one-hot planes of the scanned sites, split by phenotype."""

from pathlib import Path

import numpy as np

from popdesic.cohort.phenotype import of_phenotype
from popdesic.cohort.samples import read_samples
from popdesic.core.log import log_counts, logged
from popdesic.epistasis.halves import discovery_half
from popdesic.epistasis.phenotype import scan_phenotype
from popdesic.epistasis.reorder import build_onehot

with logged(snakemake.log[0], snakemake.input) as log:
    sheet, orders = snakemake.params.sheet, snakemake.params.orders
    samples = of_phenotype(
        read_samples(Path(sheet)), snakemake.wildcards.get("phenotype", ""), sheet
    )
    phenotype = scan_phenotype(samples, source=sheet, orders=orders, **snakemake.params.phenotype)
    classes = phenotype.classes
    if snakemake.params.replication == "half":
        half = discovery_half(samples, classes, snakemake.params.strata, snakemake.params.seed)
        classes = np.where(half, classes, -1)
    restrict = snakemake.input.get("restrict")
    counts = build_onehot(
        [Path(path).with_suffix("") for path in snakemake.input.beds],
        samples,
        classes,
        quantitative=phenotype.quantitative,
        strata=snakemake.params.strata,
        restrict=Path(restrict) if restrict else None,
        least=max(orders),
        onehot_out=Path(snakemake.output.onehot),
        sites_out=Path(snakemake.output.sites),
        samples_out=Path(snakemake.output.samples),
    )
    log_counts(log, counts)
