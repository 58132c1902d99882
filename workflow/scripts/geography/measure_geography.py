"""Measure isolation by distance and barriers between the places of the study."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.geography.measure import measure_geography
from popdesic.relatives.kinship import kinship_tiles
from popdesic.report.figures.geography import draw_geography

OUTPUTS = ("places", "edges", "pairs", "summary")

with logged(snakemake.log[0], snakemake.input) as log:
    about = measure_geography(
        Path(snakemake.input.samples).parent,
        Path(snakemake.params.sheet),
        next(map(Path, snakemake.input.get("partition", [])), None),
        kinship_tiles(snakemake.input.get("rows", [])),
        founders=snakemake.params.founders,
        n_sites=read_json(snakemake.input.panel)["n_sites"],
        min_called=snakemake.params.min_called,
        seed=snakemake.params.seed,
        out={name: Path(snakemake.output[name]) for name in OUTPUTS},
    )
    log_counts(log, about)
    summary = Path(snakemake.output.summary)
    names = draw_geography(
        summary.parent,
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        summary.parents[1] / "figures",
        color_by=snakemake.params.color_by,
    )
    log.info("drawn: %s", ", ".join(names))
