"""Run one unit of the exhaustive scan of several phenotypes."""

from pathlib import Path

from popdesic.engine.select import select_backend
from popdesic.epistasis.shared import scan_shared_unit
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    backend = select_backend("cpu", snakemake.threads)
    log.info("device: %s", backend.describe())
    planes = [path for path in snakemake.input.planes if path.endswith("onehot.npy")]
    counts = scan_shared_unit(
        [Path(path).parent for path in planes],
        backend,
        [Path(path) for path in snakemake.output],
        order=int(snakemake.wildcards.order),
        unit=int(snakemake.wildcards.unit),
        n_units=snakemake.params.n_units,
        score=snakemake.params.score,
        top=snakemake.params.top,
        **snakemake.params.limits,
    )
    log_counts(log, counts)
