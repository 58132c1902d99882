"""The choice of geodesics without the truth (`popdesic.geodesic.metrics`), made on a scene."""

from __future__ import annotations

import numpy as np
import pandas as pd

from popdesic.engine.select import cpu_backend
from popdesic.geodesic import metrics
from popdesic.geodesic.held_out import SPLITS, genome_parts, weigh_ways

from .methods import Way
from .scenes import Scene


def evidence_of(
    scene: Scene, *, splits: int = SPLITS, metric: str | None = None, threads: int = 2
) -> metrics.Evidence:
    """What held-out sites of a scene say of components, or of distances of genotypes (`metric`)."""
    genotypes = scene.genotypes

    def read(rows: np.ndarray):
        return lambda first, last: genotypes[rows[first:last]]

    return weigh_ways(
        read,
        genotypes.shape[1],
        genome_parts(pd.DataFrame({"chrom": scene.chrom, "pos": scene.pos})),
        cpu_backend(),
        components=() if metric else metrics.COMPONENTS,
        metric=metric,
        splits=splits,
        threads=threads,
    )


def named(way: metrics.Way) -> Way:
    """The same way as `methods` names it."""
    kind = "PCs" if way.is_plain else {"knn": "knn", "complete": "Fermat"}[way.graph]
    neighbors = {"neighbors": way.neighbors} if way.neighbors else {}
    return Way(kind, way.alpha, components=way.pcs, **neighbors)


def choose_on(scene: Scene, splits: int = SPLITS) -> metrics.Choice:
    """The choice on a scene's components."""
    return metrics.choose_way(evidence_of(scene, splits=splits))
