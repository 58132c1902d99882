"""Scan the best pairs with every third site."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.epistasis.finished import FinishedScan
from popdesic.epistasis.options import kept_combinations
from popdesic.epistasis.relatedness import read_relatives
from popdesic.epistasis.screen import extend_pairs
from popdesic.epistasis.significance import rank_hits

with logged(snakemake.log[0], snakemake.input) as log:
    backend = select_backend(snakemake.params.device, snakemake.threads, scans=True)
    log.info("device: %s", backend.describe())
    folder, hits = Path(snakemake.input.planes[0]).parent, Path(snakemake.output.hits)
    counts = extend_pairs(
        folder,
        [Path(path) for path in snakemake.input.units],
        backend,
        hits,
        pairs=snakemake.params.pairs,
        top=kept_combinations(snakemake.params.top),
        **snakemake.params.scan,
    )
    log_counts(log, counts)
    tests = read_json(snakemake.input.plan)["screen"]["tests"]
    rank_hits(
        folder,
        FinishedScan([hits], 3, snakemake.params.scan["score"], tests),
        Path(snakemake.output.table),
        top=snakemake.params.top,
        relatives=read_relatives(
            folder, map(Path, snakemake.input.get("kinship", [])), Path(snakemake.params.sheet)
        ),
        labels={"exhaustive": "no"},
    )
