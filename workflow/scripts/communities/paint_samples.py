"""Paint the samples of all cohorts by the founders' haplotypes; find groups, and draw them."""

from pathlib import Path

from popdesic.cohort.paint_cohorts import ENDINGS, paint_cohorts
from popdesic.communities.painted_groups import group_study
from popdesic.core.log import log_counts, logged
from popdesic.core.tables import write_table
from popdesic.io.bed import read_fam
from popdesic.report.figures.communities import draw_painting

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    fams = dict(zip(params.cohorts, map(Path, files.fams), strict=True))
    row = Path(outputs.row)
    donors, counts = paint_cohorts(
        dict(zip(params.cohorts, map(Path, files.haplotypes), strict=True)),
        fams,
        params.founders,
        row,
        panel=Path(files.panel),
        reference=Path(files.reference[0]),
        unrelated=next(map(Path, files.get("unrelated", [])), None),
        code=params.tile_code,
        threads=snakemake.threads,
    )
    log_counts(log, counts)
    write_table(Path(outputs.donors), donors[["sample", "cohort"]])
    lengths, stretches = (
        {cohort: row.parent / f"{cohort}{ending}" for cohort in fams} for ending in ENDINGS
    )
    group = group_study(
        stretches,
        {name: read_fam(fam.with_suffix(""))["sample"].tolist() for name, fam in fams.items()},
        donors,
        Path(outputs.groups),
        Path(outputs.about),
    )
    draw_painting(lengths, donors, group, Path(outputs.png[0]).parent)
