"""Compare windows along the genome by principal components, and score haplotypes of founders."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.core.log import log_counts, logged
from popdesic.population.local_structure import measure_local_structure
from popdesic.population.sweep_study import SweepFiles, sweep_study

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    x_contigs = genome_of_panel(Path(files.counts)).x_contigs(params.x_contigs)
    unrelated = next(map(Path, files.get("unrelated", [])), None)
    if outputs.get("table"):
        about = measure_local_structure(
            [Path(path).with_suffix("") for path in files.genotypes],
            Path(files.panel),
            unrelated,
            x_contigs=x_contigs,
            seed=params.seed,
            table_out=Path(outputs.table[0]),
            summary_out=Path(outputs.table[1]),
        )
        log_counts(log, about)
    if outputs.get("sweeps"):
        about = sweep_study(
            dict(zip(params.founders, map(Path, files.haplotypes), strict=True)),
            dict(zip(params.founders, map(Path, files.fams), strict=True)),
            SweepFiles(*map(Path, outputs.sweeps)),
            panel=Path(files.panel),
            reference=Path(files.reference[0]),
            unrelated=unrelated,
            sheet=Path(params.sheet),
            column=params.column,
            x_contigs=x_contigs,
            threads=snakemake.threads,
        )
        log_counts(log, about)
