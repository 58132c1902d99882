"""Summarize the counts of all filters, drift from the panel, artefacts and missing calls."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.artefacts import write_artefacts
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
    beds = [Path(bed).with_suffix("") for bed in given.beds]
    stems = dict(zip(cohorts, beds, strict=True))
    counts, tables = Path(given.counts), map(Path, outputs.artefacts)
    for sentence in write_artefacts(stems, params.founders, panel, counts, *tables):
        log.info("%s", sentence)
    if params.compared:
        sheet = read_samples(Path(params.sheet))
        classes = {
            name or "phenotype": case_control(of_phenotype(sheet, name, params.sheet), params.sheet)
            for name in params.phenotypes
        }
        groups = {name: stems[name] for name in params.compared}
        for one in compare_missing(
            groups, params.founders, classes, panel, *map(Path, outputs.missing)
        ):
            log.info(
                "%s and %s: missing calls differ at %d of %d sites compared",
                *(one[key] for key in ("group", "other", "different", "compared")),
            )
