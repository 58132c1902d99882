"""Scan permuted phenotypes and record each scan's best score."""

from pathlib import Path

from popdesic.engine.select import select_backend
from popdesic.epistasis.kin import read_relatives
from popdesic.epistasis.significance import permute_scan
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    score = snakemake.params.score
    backend = select_backend(snakemake.params.device, snakemake.threads, scans=True)
    log.info("device: %s", backend.describe())
    folder, out = Path(snakemake.input.planes[0]).parent, Path(snakemake.output[0])
    kinship = map(Path, snakemake.input.get("kinship", []))
    for warning in permute_scan(
        folder,
        backend,
        out,
        order=int(snakemake.wildcards.order),
        score=score,
        permutations=snakemake.params.permutations,
        seed=snakemake.params.seed,
        relatives=read_relatives(folder, kinship, Path(snakemake.params.sheet)),
        **snakemake.params.limits,
    ):
        log.warning("%s", warning)
