"""Summarize filters, drift, artefacts, missing calls, and the accuracy of the imputation."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.accuracy import measure_accuracy
from popdesic.cohort.artefacts import write_artefacts
from popdesic.cohort.drift import measure_drift
from popdesic.cohort.missingness import compare_missing
from popdesic.cohort.phenotype import case_controls
from popdesic.cohort.samples import read_samples
from popdesic.cohort.summary import summarize_filters
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    params, given, outputs = snakemake.params, snakemake.input, snakemake.output
    cohorts, panel = params.cohorts, Path(given.panel)
    ingest, samples = [Path(path) for path in given.ingest], [Path(path) for path in given.samples]
    raws = {c: path.with_suffix("") for c, path in zip(cohorts, ingest, strict=True)}
    kept = dict(zip(cohorts, samples, strict=True))
    absent = {c: Absent(*said) for c, said in zip(cohorts, params.absent, strict=True)}
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
    sites = dict(zip(cohorts, map(Path, given.sites), strict=True))
    genotypes = {cohort: (raws[cohort], kept[cohort]) for cohort in cohorts}
    founders, out = params.founders, Path(outputs.drift)
    options = {"genotypes": genotypes, "absent": absent, "ploidy": params.ploidy}
    drift = measure_drift(sites, panel, set(founders), out, **options)
    log.info("\n%s", drift.to_string(index=False))
    beds = [Path(bed).with_suffix("") for bed in given.beds]
    # Artefacts are told by genotypes of diploids, or of haploids.
    stems = dict(zip(cohorts, beds, strict=True)) if params.ploidy <= 2 else {}
    counts, tables = Path(given.counts), map(Path, outputs.artefacts)
    threads = snakemake.threads
    for sentence in write_artefacts(stems, founders, panel, counts, *tables, threads=threads):
        log.info("%s", sentence)
    if params.compared:
        classes = case_controls(read_samples(Path(params.sheet)), params.phenotypes, params.sheet)
        groups = {name: stems[name] for name in params.compared}
        missing = map(Path, outputs.missing)
        for one in compare_missing(groups, founders, classes, panel, *missing):
            words = (one[key] for key in ("group", "other", "different", "compared"))
            log.info("%s and %s: missing calls differ at %d of %d sites compared", *words)
    for table in map(Path, outputs.get("accuracy", [])):
        windows = [Path(path) for path in given.get("imputed", [])]
        row = next(map(Path, outputs.get("evaluated", [])), None)
        options = params.evaluation | {"code": params.tile_code, "threads": threads}
        measure_accuracy(table, windows, row, raws, kept, panel, absent=absent, **options)
