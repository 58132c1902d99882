"""Find the communities of the study and measure their agreement with its labels."""

from pathlib import Path

from popdesic.communities.partition import find_communities
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    tree = snakemake.output.get("tree")
    about = find_communities(
        Path(snakemake.input.scores),
        Path(snakemake.input.axes),
        Path(snakemake.input.lengths),
        next(map(Path, snakemake.input.get("blocks", [])), None),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        genotypes=[Path(bed).with_suffix("") for bed in snakemake.input.genotypes],
        definition=Path(snakemake.input.definition),
        unrelated=next(map(Path, snakemake.input.get("unrelated", [])), None),
        methods=snakemake.params.methods,
        min_cluster_size=snakemake.params.min_cluster_size,
        draws=snakemake.params.subsamples,
        seed=snakemake.params.seed,
        partition_out=Path(snakemake.output.partition),
        agreement_out=Path(snakemake.output.agreement),
        about_out=Path(snakemake.output.about),
        tree_out=Path(tree[0]) if tree else None,
        threads=snakemake.threads,
    )
    log_counts(log, about)
