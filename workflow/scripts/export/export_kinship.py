"""Export the KING-robust kinship of all pairs as PLINK 2's .king."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.engine.select import select_backend
from popdesic.export.matrices import export_king

with logged(snakemake.log[0], snakemake.input) as log:
    backend = select_backend(snakemake.params.device, snakemake.threads)
    log.info("device: %s", backend.describe())
    folders = [Path(path).parent for path in snakemake.input.planes if path.endswith(".npy")]
    export_king(folders, Path(snakemake.output[0]), backend)
