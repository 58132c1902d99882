"""Build one-hot planes of the scanned sites; forecast their scans, refuse any that is too long."""

from pathlib import Path

import numpy as np

from popdesic.cohort.phenotype import of_phenotype
from popdesic.cohort.samples import read_samples
from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.epistasis.discovery import divide_people
from popdesic.epistasis.phenotype import scan_phenotype
from popdesic.epistasis.reorder import build_onehot
from popdesic.epistasis.scan import plan_scan

with logged(snakemake.log[0], snakemake.input) as log:
    params, outputs = snakemake.params, snakemake.output
    sheet, orders = params.sheet, params.orders
    samples = of_phenotype(
        read_samples(Path(sheet)), snakemake.wildcards.get("phenotype", ""), sheet
    )
    phenotype = scan_phenotype(samples, source=sheet, orders=orders, **params.phenotype)
    classes = phenotype.classes
    if params.replication:
        first, _ = divide_people(samples, classes, **params.replication)
        classes = np.where(first, classes, -1)
    restrict = snakemake.input.get("restrict")
    counts = build_onehot(
        [Path(path).with_suffix("") for path in snakemake.input.beds],
        samples,
        classes,
        quantitative=phenotype.quantitative,
        strata=params.strata,
        restrict=Path(restrict) if restrict else None,
        least=max(orders, default=2),
        onehot_out=Path(outputs.onehot),
        sites_out=Path(outputs.sites),
        samples_out=Path(outputs.samples),
        threads=snakemake.threads,
    )
    log_counts(log, counts)
    backend = select_backend(params.device, snakemake.threads, scans=True)
    log.info("device: %s", backend.describe())
    folder = Path(outputs.onehot).parent
    log_counts(log, plan_scan(folder, backend, Path(outputs.plan), orders=orders, **params.scan))
