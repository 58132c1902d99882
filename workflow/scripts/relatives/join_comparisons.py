"""Join relatives, identical samples and contamination of the whole study."""

from pathlib import Path

from popdesic.cohort.samples import samples_in_order
from popdesic.core.log import log_counts, logged
from popdesic.distance.rows import read_tiles
from popdesic.relatives.cohorts import ENDINGS, TABLES, join_identity, join_mixture
from popdesic.relatives.kinship import join_pairs, untold_pairs

with logged(snakemake.log[0], snakemake.input) as log:
    sheet = samples_in_order(Path(snakemake.params.sheet), snakemake.params.order)
    tiles = {
        name: list(read_tiles(snakemake.input, ending).values())
        for name, ending in zip(TABLES, ENDINGS, strict=True)
    }
    names = ("kinship", "untold", "identity", "mixture")
    out = {name: Path(snakemake.output[name]) for name in names}
    pairs = join_pairs(tiles["kinship"], out["kinship"], min_kinship=snakemake.params.min_kinship)
    untold = untold_pairs(tiles["kinship"], out["untold"])
    matches = join_identity(tiles["identity"], sheet, out["identity"])
    mixed = join_mixture(tiles["mixture"], out["mixture"])
    log_counts(log, pairs.relation.value_counts().sort_index().to_dict())
    log_counts(
        log, {f"not told, kinship fails: {row.cohort}": row.pairs for row in untold.itertuples()}
    )
    same = matches[matches.verdict == "same"]
    log_counts(log, {"same person by genotype": len(same), "contamination": len(mixed)})
