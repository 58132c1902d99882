"""Measure LD between panel sites in the founders, write lists of LD pruning, draw."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.engine.needs import LD_BYTES
from popdesic.engine.select import select_backend
from popdesic.relatives.ld_scan import LdOptions, measure_ld
from popdesic.report.figures.compare import draw_comparisons

with logged(snakemake.log[0], snakemake.input) as log:
    figures = snakemake.output.get("png", [])
    out = {
        name: Path(path) for name, path in snakemake.output.items() if name not in ("svg", "png")
    }
    backend = select_backend(snakemake.params.device, snakemake.threads, device_bytes=LD_BYTES)
    log.info("device: %s", backend.describe())
    counts = measure_ld(
        [Path(bed).with_suffix("") for bed in snakemake.input.genotypes],
        snakemake.params.sources,
        Path(snakemake.input.panel),
        next(map(Path, snakemake.input.get("unrelated", [])), None),
        Path(snakemake.params.sheet),
        out,
        backend,
        LdOptions(**snakemake.params.options),
    )
    log_counts(log, counts)
    if figures:
        tables = {name: out[name] for name in ("decay", "populations", "region")}
        draw_comparisons(tables, Path(figures[0]).parent)
