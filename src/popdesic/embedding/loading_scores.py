"""Scores of very many samples from loadings: no matrix of samples and those that define the axes.

`relationship_to` divides each product of two samples by the sites called in both. Here the sites
called in both are taken to be the product of the two shares of sites that are called, so that the
products of a sample with all axes follow from loadings. The sum of its squared relationships, which
`project` needs for the components beyond those that are known, is estimated from random signs.
"""

from __future__ import annotations

import numpy as np

from ..engine.threads import one_blas_thread
from .lots import columns_of_signs, lots_of
from .projection import project_along
from .relationship import Reader, blocks_of_others, passes

#: Pairs of a sample and one that defines the axes above which loadings take their place: two
#: groups of 100 000, of which exact products at 100 000 sites take hours on eight cores.
MOST_PAIRS = 10**10
#: Vectors of random signs: the sum of squares has a relative error of sqrt(2 / SIGNS).
SIGNS = 64
#: Sites of a pass: of a million samples 2.3 GB.
PASS_SITES = 256


@one_blas_thread
def score_by_loadings(
    read: Reader,
    sizes: list[int],
    axes: np.ndarray,
    af: np.ndarray,
    names: list[str],
    *,
    values: np.ndarray,
    vectors: np.ndarray,
    trace: float,
    n_components: int,
    threads: int = 1,
) -> np.ndarray:
    """Scores of the samples that do not define the axes, float64 (m, n_components).

    Two passes over the genotypes; memory grows with n. A sample's scores depend on its own
    genotypes and those of `axes` alone.

    Parameters
    ----------
    read, sizes, axes, af, threads
        As in `relationship_to`.
    names : list of str
        Of the samples that define the axes: they decide the random signs.
    values, vectors, trace, n_components
        As in `project`.
    """
    others, founders = np.flatnonzero(~axes), np.flatnonzero(axes)
    called, used = np.zeros(len(axes)), 0
    for _, there in passes(read, af, len(axes), threads, PASS_SITES):
        called += there.sum(axis=0)
        used += len(there)
    lots = lots_of(names)
    signs = columns_of_signs(lots, range(SIGNS), threads)
    share = np.maximum(called[founders], 1) / max(used, 1)
    basis = np.concatenate([vectors, signs], axis=1) / share[:, None]
    blocks = blocks_of_others(sizes, axes)
    sums, squares = np.zeros((len(others), basis.shape[1])), np.zeros(len(others))
    for genotypes, _ in passes(read, af, len(axes), threads, PASS_SITES):
        loadings = genotypes[:, founders] @ basis
        for first, last in blocks:
            block = genotypes[:, others[first:last]]
            sums[first:last] += block.T @ loadings
            squares[first:last] += np.einsum("ij,ij->j", block, block)
    counts = np.maximum(called[others], 1)
    sums /= counts[:, None]
    q = len(values)
    row_squares = (sums[:, q:] ** 2).mean(axis=1)
    return project_along(
        sums[:, :q], row_squares, squares / counts, values, len(vectors), trace, n_components
    )
