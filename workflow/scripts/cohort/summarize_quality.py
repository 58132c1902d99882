"""Summarize the counts of all filters, drift from the panel, and differences of missing calls."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.drift import measure_drift
from popdesic.cohort.missingness import compare_missing
from popdesic.cohort.phenotype import case_control, of_phenotype
from popdesic.cohort.samples import read_samples
from popdesic.cohort.summary import summarize_filters
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    params, given, outputs = snakemake.params, snakemake.input, snakemake.output
    cohorts, panel = params.cohorts, Path(given.panel)
    ingest, samples = [Path(path) for path in given.ingest], [Path(path) for path in given.samples]
    summarize_filters(
        cohorts,
        ingest=ingest,
        samples=samples,
        populations=[Path(path) for path in given.populations],
        panel=Path(given.counts),
        encode=[Path(path) for path in given.encode],
        identity=next(map(Path, given.get("identity", [])), None),
        out=Path(outputs.summary),
    )
    drift = measure_drift(
        dict(zip(cohorts, map(Path, given.sites), strict=True)),
        panel,
        set(params.founders),
        Path(outputs.drift),
        genotypes={
            cohort: (file.with_suffix(""), table)
            for cohort, file, table in zip(cohorts, ingest, samples, strict=True)
        },
        absent={cohort: Absent(*said) for cohort, said in zip(cohorts, params.absent, strict=True)},
    )
    log.info("\n%s", drift.to_string(index=False))
    if params.compared:
        sheet, beds = read_samples(Path(params.sheet)), [Path(bed) for bed in given.beds]
        found = compare_missing(
            {name: bed.with_suffix("") for name, bed in zip(params.compared, beds, strict=True)},
            params.founders,
            {
                phenotype or "phenotype": case_control(
                    of_phenotype(sheet, phenotype, params.sheet), params.sheet
                )
                for phenotype in params.phenotypes
            },
            panel,
            *map(Path, outputs.missing),
        )
        for one in found:
            log.info(
                "%s and %s: missing calls differ at %d of %d sites compared",
                *(one[key] for key in ("group", "other", "different", "compared")),
            )
