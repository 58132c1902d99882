"""Scan one unit of the permuted phenotypes and record the best scores."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.engine.select import select_backend
from popdesic.epistasis.permutations import permute_unit
from popdesic.epistasis.relatedness import read_relatives

with logged(snakemake.log[0], snakemake.input) as log:
    score = snakemake.params.score
    backend = select_backend(snakemake.params.device, snakemake.threads, scans=True)
    log.info("device: %s", backend.describe())
    folder, out = Path(snakemake.input.planes[0]).parent, Path(snakemake.output[0])
    kinship = map(Path, snakemake.input.get("kinship", []))
    for warning in permute_unit(
        folder,
        backend,
        out,
        order=int(snakemake.wildcards.order),
        score=score,
        permutations=snakemake.params.permutations,
        seed=snakemake.params.seed,
        part=(int(snakemake.wildcards.unit), snakemake.params.n_units),
        device=snakemake.params.device,
        relatives=read_relatives(folder, kinship, Path(snakemake.params.sheet)),
        **snakemake.params.limits,
    ):
        log.warning("%s", warning)
