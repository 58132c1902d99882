"""Find the communities of the study and measure their agreement with its labels."""

from pathlib import Path

import numpy as np

from popdesic.communities.partition import find_communities
from popdesic.distance.landmarks import read_landmarks
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    tree, rows = snakemake.output.get("tree"), snakemake.input.get("landmarks")
    lists = rows and np.load(snakemake.input.lengths)
    about = find_communities(
        Path(snakemake.input.scores),
        Path(snakemake.input.axes),
        None if rows else Path(snakemake.input.lengths),
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
        landmarks=read_landmarks(Path(rows[0]), lists["landmarks"]) if rows else None,
        threads=snakemake.threads,
    )
    log_counts(log, about)
