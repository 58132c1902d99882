"""Find the nearest samples of everyone on principal components."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.matrix import leading_scores
from popdesic.engine.needs import points_bytes
from popdesic.engine.select import select_backend
from popdesic.maps.near_maps import write_component_neighbors

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    scores = leading_scores(Path(snakemake.input.scores), params.pcs)
    need = points_bytes(*scores.shape, params.k)
    backend = select_backend(params.device, snakemake.threads, device_bytes=need)
    log.info("device: %s", backend.describe())
    counts = write_component_neighbors(
        scores,
        Path(snakemake.input.samples),
        set(params.founders),
        backend,
        k=params.k,
        out=Path(snakemake.output.neighbors),
        landmarks_out=Path(snakemake.output.landmarks),
    )
    log_counts(log, counts)
