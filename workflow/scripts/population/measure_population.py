"""Count the genotypes of cohorts, estimate statistics of populations, join ancestry, and draw."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.cohort.panel import SiteLists
from popdesic.core.log import log_counts, logged
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend
from popdesic.population.ancestry import join_cohorts
from popdesic.population.counts import ENDINGS, KinshipFiles, count_cohorts
from popdesic.population.further_sites import further_sites
from popdesic.population.measure import measure_population
from popdesic.population.runs import RunLimits
from popdesic.report.figures.population import draw_population

with logged(snakemake.log[0], snakemake.input) as log:
    params, files, counted = snakemake.params, snakemake.input, Path(snakemake.output[0])
    folders, options = folders_of(files.planes), dict(params.counted)
    genome = genome_of_panel(Path(files.panel_counts))
    options["x_contigs"] = genome.x_contigs(options["x_contigs"])
    device = params.device if snakemake.resources.get("gpu") else "cpu"
    lists = SiteLists(Path(files.panel), next(map(Path, files.get("further", [])), None))
    unrelated, qc = (list(map(Path, files.get(name, []))) for name in ("unrelated", "qc"))
    counts = count_cohorts(
        folders,
        counted,
        panel=lists.panel,
        sheet=Path(params.sheet),
        labels=params.labels,
        kinship=KinshipFiles(*unrelated, None, params.max_kinship) if unrelated else None,
        rows={path.parent.name: path for path in map(Path, files.get("rows", []))},
        further=further_sites(lists.further, folders, qc, params.absent),
        runs=RunLimits(**params.runs) if params.runs else None,
        code=params.tile_code,
        backend=lambda need: select_backend(device, snakemake.threads, device_bytes=need),
        threads=snakemake.threads,
        **options,
    )
    log_counts(log, counts)
    by_ending = [[counted.parent / f"{name}{end}" for name in folders] for end in ENDINGS]
    about = measure_population(
        *by_ending[:2],
        by_ending[2] if params.runs else [],
        lists,
        Path(snakemake.output.summary).parent,
        **params.options,
        threads=snakemake.threads,
    )
    log_counts(log, about)
    for joined in snakemake.output.get("ancestry", []):
        join_cohorts([Path(path) for path in snakemake.input.ancestry], Path(joined))
    folder = Path(snakemake.output.summary).parent
    names = draw_population(folder, folder.parent / "figures", snakemake.params.figures)
    log.info("drawn: %s", ", ".join(names))
