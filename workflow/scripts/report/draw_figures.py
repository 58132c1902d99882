"""Draw the figures of the study."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.distance.store import open_distances
from popdesic.report.figures import draw_figures
from popdesic.report.outcome import load_outcome

with logged(snakemake.log[0], snakemake.input) as log:
    results = Path(snakemake.output[0]).parents[1]
    outcome = load_outcome(results, Path(snakemake.params.sheet), **snakemake.params.study)
    names = draw_figures(
        outcome,
        open_distances(
            snakemake.params.store,
            results / "distance",
            n_sites=outcome.panel["n_sites"],
            **snakemake.params.distance,
            threads=max(1, snakemake.threads // 2),
        ),
        results / "figures",
        **snakemake.params.drawn,
        accuracy=next(map(Path, snakemake.input.get("accuracy", [])), None),
        code=snakemake.params.code,
        processes=snakemake.threads,
    )
    log.info("drawn: %s", ", ".join(names))
