"""PC-Relate kinship of the study's samples, with frequencies of the unrelated founders."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table
from popdesic.engine.needs import expected_bytes
from popdesic.engine.select import select_backend
from popdesic.relatives.options import MOST_SITES
from popdesic.relatives.relatedness import relate_samples
from popdesic.relatives.resolution import load_resolution

FILES = ("panel", "samples", "scores", "axes", "king")

with logged(snakemake.log[0], snakemake.input) as log:
    n_samples = len(read_table(snakemake.input.samples))
    backend = select_backend(
        snakemake.params.device,
        snakemake.threads,
        device_bytes=expected_bytes(n_samples, MOST_SITES),
    )
    log.info("device: %s", backend.describe())
    counts = relate_samples(
        [Path(bed).with_suffix("") for bed in snakemake.input.genotypes],
        {name: Path(snakemake.input[name]) for name in FILES},
        {name: Path(path) for name, path in snakemake.output.items()},
        founders=set(snakemake.params.founders),
        unrelated=next(map(Path, snakemake.input.get("unrelated", [])), None),
        resolution=load_resolution(Path(snakemake.input.resolution)),
        min_kinship=snakemake.params.min_kinship,
        error_rate=snakemake.params.error_rate,
        backend=backend,
    )
    log_counts(log, counts)
