"""Find the communities of the study."""

from pathlib import Path

import numpy as np

from popdesic.communities.founders import founders_of
from popdesic.communities.partition import find_communities, join_communities
from popdesic.communities.study_splits import SplitSource
from popdesic.core.log import log_counts, logged
from popdesic.distance.landmarks import read_landmarks

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    tree, rows = outputs.get("tree"), files.get("landmarks")
    lists = rows and np.load(files.lengths)
    common = (
        None if rows else Path(files.lengths),
        next(map(Path, files.get("blocks", [])), None),
        Path(files.samples),
    )
    options = {
        "methods": params.methods,
        "partition_out": Path(outputs.partition),
        "about_out": Path(outputs.about),
        "tree_out": Path(tree[0]) if tree else None,
        "landmarks": read_landmarks(Path(rows[0]), lists["landmarks"]) if rows else None,
        "threads": snakemake.threads,
    }
    if files.get("splits"):
        about = join_communities(Path(files.splits), *common, **options)
    else:
        source = SplitSource(
            Path(files.scores),
            Path(files.axes),
            [Path(bed).with_suffix("") for bed in files.genotypes],
            Path(files.definition),
            next(map(Path, files.get("unrelated", [])), None),
        )
        kept = Path(files.samples), params.founders, Path(outputs.partition), params.code
        about = find_communities(
            source, *common, founders=founders_of(*kept), seed=params.seed, **options
        )
    log_counts(log, about)
