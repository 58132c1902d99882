"""Hide called genotypes of a window, impute them with each requested method, compare."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.accuracy import by_beagle, by_mode, evaluate_window
from popdesic.cohort.beagle import beagle_settings
from popdesic.cohort.copy_cohort import by_copying
from popdesic.cohort.copy_haplotypes import CopyOptions
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params, wildcards = snakemake.params, snakemake.wildcards
    beagle = beagle_settings(snakemake.resources.mem_mb, params.seed, params.reference, params.map)
    imputers = {"mode": by_mode, "beagle": by_beagle(beagle)}
    if "copying" in params.methods:
        frozen, options = snakemake.input.frozen[0], CopyOptions(params.seed, snakemake.threads)
        imputers["copying"] = by_copying(Path(frozen), Path(snakemake.input.panel), options)
    counts = evaluate_window(
        Path(snakemake.input.raw).with_suffix(""),
        Path(snakemake.input.samples),
        Path(snakemake.input.panel),
        Path(snakemake.input.windows),
        int(wildcards.window),
        Path(snakemake.output[0]),
        cohort=wildcards.cohort,
        seed=params.seed,
        imputers={method: imputers[method] for method in params.methods},
        absent=Absent(*params.absent),
    )
    log_counts(log, counts)
