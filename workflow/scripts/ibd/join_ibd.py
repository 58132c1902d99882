"""Join the segments of the study, of few samples find them; totals of pairs, graph, exports."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend
from popdesic.ibd.cohorts import join_tiles, measure_rows
from popdesic.ibd.formats import export_segments
from popdesic.ibd.graph import build_graph
from popdesic.io.bed import read_fam

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    cohorts = zip(params.order, files.fams, strict=True)
    prefixes = [(cohort, Path(fam).with_suffix("")) for cohort, fam in cohorts]
    genome, panel = Path(files.genome), Path(files.panel)
    segments, pairs, summary = map(Path, (outputs.segments, outputs.pairs, outputs.summary))
    if made := [Path(path) for path in outputs.get("rows", [])]:
        counts = measure_rows(
            {out: list(map(tuple, params.row_pairs[out.parent.name])) for out in made},
            folders_of(files.planes),
            genome,
            panel,
            lambda need: select_backend(params.device, snakemake.threads, device_bytes=need),
            params.tile_code,
        )
        log_counts(log, counts)
    about = join_tiles(
        made or [Path(path) for path in files.rows],
        genome,
        panel,
        {name: cohort for cohort, prefix in prefixes for name in read_fam(prefix)["sample"]},
        *(segments, pairs, summary),
        params.min_cm,
    )
    log_counts(log, {key: about[key] for key in ("segments", "pairs_with_segments")})
    for graph, samples in zip(
        outputs.get("graph", []), map(Path, files.get("samples", [])), strict=True
    ):
        log.info("%d edges", build_graph(pairs, samples, params.min_cm, Path(graph)))
    if params.formats:
        exports = dict(zip(params.formats, map(Path, outputs.exports), strict=True))
        log_counts(log, {"rows exported": export_segments(segments, genome, panel, exports)})
