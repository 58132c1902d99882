"""Test the leads of the best loci in the half of the people that the scan did not see."""

from pathlib import Path

from popdesic.cohort.phenotype import of_phenotype
from popdesic.cohort.samples import read_samples
from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.epistasis.phenotype import scan_phenotype
from popdesic.epistasis.replication import replicate_hits
from popdesic.epistasis.scan_data import NAMES

with logged(snakemake.log[0], snakemake.input) as log:
    sheet, orders = snakemake.params.sheet, snakemake.params.orders
    samples = of_phenotype(
        read_samples(Path(sheet)), snakemake.wildcards.get("phenotype", ""), sheet
    )
    plan = read_json(snakemake.input.plan)
    phenotype = scan_phenotype(samples, source=sheet, orders=orders, **snakemake.params.phenotype)
    counts = replicate_hits(
        {
            order: (Path(hits), Path(loci))
            for order, hits, loci in zip(
                orders, snakemake.input.hits, snakemake.input.loci, strict=True
            )
        },
        [Path(path).with_suffix("") for path in snakemake.input.beds],
        samples,
        phenotype.classes,
        Path(snakemake.output[0]),
        strata=snakemake.params.strata,
        seed=snakemake.params.seed,
        tests={order: plan[NAMES[order]]["tests"] for order in orders},
    )
    log_counts(log, counts)
