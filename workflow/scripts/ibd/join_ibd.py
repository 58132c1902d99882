"""Join the segments of the study, estimate degrees of pairs, draw and export what was found."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.ibd.cohorts import join_tiles
from popdesic.ibd.formats import export_segments
from popdesic.ibd.graph import build_graph
from popdesic.io.bed import read_fam
from popdesic.report.figures.ibd import draw_ibd

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    cohorts = zip(params.order, files.fams, strict=True)
    prefixes = [(cohort, Path(fam).with_suffix("")) for cohort, fam in cohorts]
    genome, panel = Path(files.genome), Path(files.panel)
    segments, pairs, summary = map(Path, (outputs.segments, outputs.pairs, outputs.summary))
    about = join_tiles(
        [Path(path) for path in files.rows],
        genome,
        panel,
        {name: cohort for cohort, prefix in prefixes for name in read_fam(prefix)["sample"]},
        *(segments, pairs, summary),
        params.min_cm,
    )
    log_counts(log, {key: about[key] for key in ("segments", "pairs_with_segments")})
    log_counts(log, about["pairs_by_degree"])
    for graph, samples in zip(
        outputs.get("graph", []), map(Path, files.get("samples", [])), strict=True
    ):
        log.info("%d edges", build_graph(pairs, samples, params.min_cm, Path(graph)))
    if params.formats:
        exports = dict(zip(params.formats, map(Path, outputs.exports), strict=True))
        log_counts(log, {"rows exported": export_segments(segments, genome, panel, exports)})
    log.info("drawn: %s", ", ".join(draw_ibd(pairs, summary.parents[1] / "figures")))
