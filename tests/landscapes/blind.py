"""Which way to measure distances is best, judged without the truth: by sites that were held out.

The sites are cut in two halves, whole chromosomes each, because sites in LD would share their
error. Lengths from one half are compared with squared genetic distances at the other half, and the
other way round. The held-out distances are noisy, but their noise knows nothing of the lengths, so
the way that orders pairs best at held-out sites orders them best in truth, on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

import popdesic

from .methods import NEAREST, People, Way
from .scenes import Scene
from .scores import rank_correlation

#: What is chosen from: plain distances and geodesics of some numbers of components.
FAMILY = tuple(
    Way(kind, alpha, components=k)
    for k in (1, 2, 4, 8)
    for kind, alpha in (("PCs", 1.0), ("knn", 1.0), ("Fermat", 1.5), ("Fermat", 2.0))
)
#: How much more the rank correlation at held-out sites has to be for fewer components, or for
#: another way than geodesics among nearest neighbours, to be taken. Chosen on seeds 1 and 2 of the
#: large scenes: the largest lead of a way that is worse in truth was 0.0015, the smallest lead
#: worth having 0.0057.
MARGIN = 0.003


def unbiased_squares(genotypes: np.ndarray) -> np.ndarray:
    """Squared differences of the allele frequencies where two people come from, summed over sites.

    The f₂ statistic (Patterson et al. 2012) of two individuals taken as samples of two gene copies:
    (a - b)² less one for each heterozygote. The plain sum of (a - b)² also counts each person's own
    heterozygosity, which differs between the middle and the edge of a landscape.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        -1 where missing; sums are scaled to all sites.

    Returns
    -------
    float64 array, (n, n)
        Four times the sum; may be negative. The diagonal means nothing.
    """
    called = (genotypes >= 0).sum(axis=0)
    het = (genotypes == 1).sum(axis=0) * (len(genotypes) / called)
    squared = popdesic.pairwise_distance(genotypes.T, device="cpu") ** 2
    return squared - het[:, None] - het


def held_out_scores(
    scene: Scene, ways: Iterable[Way] = FAMILY, splits: int = 2
) -> dict[Way, float]:
    """Mean rank correlation of each way's lengths with genetic distances at held-out sites.

    Each of `splits` random halves of the chromosomes is used in both directions.
    """
    rng = np.random.default_rng(1)
    names = np.unique(scene.chrom)
    found: dict[Way, list[float]] = {way: [] for way in ways}
    for _ in range(splits):
        half = np.isin(scene.chrom, rng.permutation(names)[: len(names) // 2])
        for one in (half, ~half):
            people = People(scene.genotypes[one])
            squares = unbiased_squares(scene.genotypes[~one])
            for way in found:
                found[way].append(rank_correlation(way.lengths(people), squares))
    return {way: float(np.mean(values)) for way, values in found.items()}


def choose(held_out: Mapping[Way, float], margin: float = MARGIN) -> Way:
    """The best way at held-out sites, with two preferences.

    More components are taken unless the best way of fewer leads theirs by more than the margin;
    then geodesics among nearest neighbours, unless the best way leads them by more than it.
    """
    groups: dict[int, list[Way]] = {}
    for way in held_out:
        groups.setdefault(way.components, []).append(way)
    leaders = [max(groups[k], key=held_out.__getitem__) for k in sorted(groups, reverse=True)]
    best = leaders[0]
    for fewer in leaders[1:]:
        if held_out[fewer] > held_out[best] + margin:
            best = fewer
    default = replace(NEAREST, components=best.components)
    return best if held_out[best] > held_out[default] + margin else default
