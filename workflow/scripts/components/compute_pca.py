"""Compute the PCA of the genotypes, with axes from the founders."""

from pathlib import Path

from popdesic.components.pca import compute_pca
from popdesic.core.log import log_counts, logged
from popdesic.engine.needs import genotype_bytes
from popdesic.engine.select import select_backend
from popdesic.export.matrices import export_eigenvec
from popdesic.io.bed import open_bed, read_fam

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    prefixes = [Path(bed).with_suffix("") for bed in snakemake.input.genotypes]
    sizes = sum(len(read_fam(prefix)) for prefix in prefixes), len(open_bed(prefixes[0]))
    need = genotype_bytes(*sizes)
    backend = select_backend(params.device, snakemake.threads, device_bytes=need)
    log.info("device: %s", backend.describe())
    statistics = compute_pca(
        prefixes,
        Path(snakemake.input.axes),
        Path(snakemake.input.about),
        Path(snakemake.input.samples),
        Path(params.sheet),
        table_out=Path(snakemake.output.table),
        scores_out=Path(snakemake.output.scores),
        statistics_out=Path(snakemake.output.statistics),
        backend=backend,
    )
    log_counts(log, statistics)
    for path in snakemake.output.get("eigenvec", []):
        export_eigenvec(Path(snakemake.output.table), Path(path))
