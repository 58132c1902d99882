"""Fits and segments of the haploid samples of two cohorts, block by block (`ibd.haploid`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ..engine.terms import Planes
from ..io.sites import chunks
from ..relatives.identity import genotypes_of
from .definition import SegmentLimits, Segments
from .haploid import HaploidPairs, allele_ratios, haploid_pairs, morgan_steps
from .windows import GeneticSites

#: Most iterations of a fit.
ITERATIONS = 100
#: Samples of one side of a block of pairs.
BLOCK_SAMPLES = 1024
#: Columns of the fits of all pairs of a tile.
FITS = ["sample1", "sample2", "sites", "differ", "fraction", "generations", "LOD"]


def haploid_blocks(
    a: Planes,
    b: Planes | None,
    names: tuple[Sequence[str], Sequence[str]],
    sites: GeneticSites,
    af: np.ndarray,
    limits: SegmentLimits,
    threads: int,
) -> Iterator[tuple[Segments, tuple[Sequence[str], Sequence[str]], pd.DataFrame]]:
    """Fit all pairs between two blocks of haploid samples, or within one (`b` None).

    Yields
    ------
    segments : Segments
        Of at least `limits.min_cm` and `limits.min_lod`; rows within their parts.
    names : tuple
        Names of the parts' samples.
    fits : DataFrame
        All pairs of the parts, columns FITS.
    """
    if not sites.used.any():
        return
    chosen = np.flatnonzero(sites.used)
    own_af, cm = af[chosen], sites.cm[chosen]
    steps = morgan_steps(sites.chrom[chosen], cm)
    logs = np.log10(allele_ratios(own_af, limits.error_rate))
    for row0, row1 in chunks(a.n_samples, BLOCK_SAMPLES):
        one = _alleles(a, row0, row1, chosen)
        for column0, column1 in chunks((b or a).n_samples, BLOCK_SAMPLES):
            if b is None and column0 < row0:
                continue
            within = b is None and column0 == row0
            split = 0 if within else len(one)
            other = one[:0] if within else _alleles(b or a, column0, column1, chosen)
            alleles = np.concatenate([one, other])
            found = haploid_pairs(
                *(alleles, own_af, steps),
                split=split,
                error_rate=limits.error_rate,
                max_generations=np.inf,
                iterations=ITERATIONS,
                threads=threads,
            )
            who = names[0][row0:row1], names[1][column0:column1]
            first_names = np.array(who[0], object)[found.a]
            second_names = np.array(who[1], object)[found.b - split]
            values = (first_names, second_names, found.called, found.differ, *found.fits[:, :3].T)
            fits = pd.DataFrame(dict(zip(FITS, values, strict=True)))
            yield _segments(found, alleles, split, logs, cm, chosen, limits), who, fits


def _alleles(planes: Planes, first: int, last: int, chosen: np.ndarray) -> np.ndarray:
    """Alleles 0 and 1 of some samples at the chosen sites, -1 where missing; int8."""
    genotypes = genotypes_of(planes, np.arange(first, last))[:, chosen]
    return np.where(genotypes > 0, 1, genotypes).astype(np.int8)


def _segments(
    found: HaploidPairs,
    alleles: np.ndarray,
    split: int,
    logs: np.ndarray,
    cm: np.ndarray,
    chosen: np.ndarray,
    limits: SegmentLimits,
) -> Segments:
    """The stretches of the most likely paths that are long and sure enough."""
    pair, first, last, called, differ = found.segments[
        cm[found.segments[:, 2]] - cm[found.segments[:, 1]] >= limits.min_cm
    ].T
    a, b = found.a[pair], found.b[pair]
    lod = np.zeros(len(pair))
    for k, (start, end) in enumerate(zip(first.tolist(), (last + 1).tolist(), strict=True)):
        one, two = alleles[a[k], start:end], alleles[b[k], start:end]
        both = np.flatnonzero((one >= 0) & (two >= 0))
        lod[k] = logs[start + both, one[both] + two[both]].sum()
    kept = lod >= limits.min_lod
    values = (chosen[first], chosen[last], cm[last] - cm[first], lod, called, differ)
    values = (a.astype(np.int32), (b - split).astype(np.int32), *values, np.ones(len(pair), int))
    return Segments(*(column[kept] for column in values))
