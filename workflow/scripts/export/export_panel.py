"""Export the panel's genotypes as PLINK files, VCF and VCF-Zarr, side by side."""

from pathlib import Path

from popdesic.cohort.samples import samples_in_order
from popdesic.core.log import logged
from popdesic.core.threads import run_forked
from popdesic.export.panel import export_plink, export_vcf
from popdesic.export.zarr import export_zarr

with logged(snakemake.log[0], snakemake.input) as log:
    params, panel = snakemake.params, Path(snakemake.input.panel)
    stems = [Path(bed).with_suffix("") for bed in snakemake.input.genotypes if bed.endswith(".bed")]

    def export(name: str) -> None:
        first = snakemake.output[name]
        out = Path(first if isinstance(first, str) else first[0])
        if name == "plink":
            samples = samples_in_order(Path(params.sheet), params.cohorts)
            export_plink(stems, samples, out.with_suffix(""))
        else:
            more = {"shards": name == "zarr3"} if "zarr" in name else {}
            write = export_zarr if more else export_vcf
            write(stems, panel, out, missing=params.missing, **more)

    run_forked(export, [(name,) for name in params.formats], snakemake.threads)
    log.info("written: %s", ", ".join(params.formats))
