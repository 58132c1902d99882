"""Scan permuted phenotypes and record each scan's best score."""

from pathlib import Path

from popdesic.epistasis.device import scan_backend
from popdesic.epistasis.kin import read_relatives
from popdesic.epistasis.significance import permute_scan
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    backend = scan_backend(
        snakemake.params.device, snakemake.threads, snakemake.params.scan["score"]
    )
    log.info("device: %s", backend.describe())
    folder = Path(snakemake.input.planes[0]).parent
    for warning in permute_scan(
        folder,
        backend,
        Path(snakemake.output[0]),
        order=int(snakemake.wildcards.order),
        permutations=snakemake.params.permutations,
        seed=snakemake.params.seed,
        relatives=read_relatives(
            folder, map(Path, snakemake.input.get("kinship", [])), Path(snakemake.params.sheet)
        ),
        **snakemake.params.scan,
    ):
        log.warning("%s", warning)
