"""Find the communities of the study."""

from pathlib import Path

import numpy as np

from popdesic.communities.founders import founders_of
from popdesic.communities.partition import PartitionFiles, find_communities
from popdesic.communities.study_splits import SplitSource
from popdesic.core.log import log_counts, logged
from popdesic.distance.landmarks import read_landmarks

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    tree, rows = outputs.get("tree"), files.get("landmarks")
    lists = rows and np.load(files.lengths)
    if files.get("splits"):
        source, founders, seed = Path(files.splits), None, 0
    else:
        source = SplitSource(
            Path(files.scores),
            Path(files.axes),
            [Path(bed).with_suffix("") for bed in files.genotypes],
            Path(files.definition),
            next(map(Path, files.get("unrelated", [])), None),
            params.ploidy,
        )
        kept = Path(files.samples), params.founders, Path(outputs.partition), params.code
        founders, seed = founders_of(*kept), params.seed
    about = find_communities(
        source,
        None if rows else Path(files.lengths),
        next(map(Path, files.get("blocks", [])), None),
        Path(files.samples),
        methods=params.methods,
        founders=founders,
        seed=seed,
        out=PartitionFiles(
            Path(outputs.partition), Path(outputs.about), Path(tree[0]) if tree else None
        ),
        landmarks=read_landmarks(Path(rows[0]), lists["landmarks"]) if rows else None,
        threads=snakemake.threads,
    )
    log_counts(log, about)
