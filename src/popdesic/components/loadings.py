"""Loadings of sites on the axes, and axes that one region of the genome carries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.files import atomic_path
from ..core.tables import open_lines, write_rows
from ..core.threads import one_blas_thread
from ..io.layers import Reader
from ..io.sites import chunks, contig_runs
from .relationship import CHUNK_SITES, standardize

#: A region is sought within windows of this many base pairs.
WINDOW = 5_000_000
#: It is reported where it carries this share of an axis, of what is not its share by its number of
#: sites alone, and more than any window in all PERMUTATIONS of the loadings over the sites.
LEAST_SHARE = 0.2
PERMUTATIONS = 199
SEED = 1


@one_blas_thread
def site_loadings(
    read: Reader,
    af: np.ndarray,
    values: np.ndarray,
    vectors: np.ndarray,
    most: int = 2,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Loadings of sites on axes: the right singular vectors of the standardised genotypes.

    Parameters
    ----------
    read : callable
        Genotypes of the n samples that define the axes.
    af : float64 array, (n_sites,)
        Their ALT frequencies, none 0 or 1.
    values, vectors : float64 arrays, (k,), (n, k)
        Of their relationship.
    most, weights
        Of `relationship.Alleles`.

    Returns
    -------
    float64 array, (n_sites, k)
        The squares of an axis add up to 1 where no genotype is missing; a missing one counts 0.
    """
    found = np.empty((len(af), len(values)))
    axes = vectors / np.sqrt(values * len(af))
    if weights is not None:
        axes *= weights[:, None]
    for first, last in chunks(len(af), CHUNK_SITES):
        found[first:last] = standardize(read(first, last), af[first:last], most)[0] @ axes
    return found


def write_loadings(path: Path, sites: pd.DataFrame, loadings: np.ndarray) -> None:
    """Write a TSV: chrom, pos, id, ref, alt of each site, its loadings PC1, … with nine digits."""
    table = pd.DataFrame(loadings, columns=[f"PC{k + 1}" for k in range(loadings.shape[1])])
    described = sites[["chrom", "pos", "id", "ref", "alt"]].reset_index(drop=True)
    with atomic_path(path) as temporary, open_lines(temporary) as file:
        write_rows(file, pd.concat([described, table], axis=1), "%.9g", header=True)


def find_regions(sites: pd.DataFrame, loadings: np.ndarray) -> list[dict]:
    """Axes that one region carries.

    Of each axis the window of WINDOW base pairs with the largest share of the squared loadings is
    compared with its share of the sites, and with the largest windows where the same loadings are
    shuffled over the sites.

    Parameters
    ----------
    sites : DataFrame
        `chrom`, `pos`, in genome order.
    loadings : float64 array, (n_sites, k)

    Returns
    -------
    list of dict
        `axis` (from 1), `chrom`, `start`, `end`, `sites`, `share` of the squared loadings,
        `expected` share by the number of sites.
    """
    windows = _windows(sites)
    n = len(sites)
    expected = (windows[:, 1] - windows[:, 0]) / n
    rng = np.random.default_rng(SEED)
    found = []
    for axis, column in enumerate(loadings.T, 1):
        squared = column**2 / (column**2).sum()
        excess = _excess(squared, windows, expected)
        best = int(excess.argmax())
        if excess[best] < LEAST_SHARE:
            continue
        shuffled = [
            _excess(rng.permutation(squared), windows, expected).max() for _ in range(PERMUTATIONS)
        ]
        if excess[best] <= max(shuffled):
            continue
        first, last = windows[best]
        found.append(
            {
                "axis": axis,
                "chrom": str(sites.chrom.iloc[first]),
                "start": int(sites.pos.iloc[first]),
                "end": int(sites.pos.iloc[last - 1]),
                "sites": int(last - first),
                "share": round(float(squared[first:last].sum()), 6),
                "expected": round(float(expected[best]), 6),
            }
        )
    return found


def _windows(sites: pd.DataFrame) -> np.ndarray:
    """First and end row of the window that begins at each site, on one contig: int64 (n, 2)."""
    pos = sites.pos.to_numpy(np.int64)
    ends = np.zeros(len(pos), np.int64)
    for first, last in contig_runs(sites.chrom.to_numpy()):
        ends[first:last] = np.searchsorted(pos[first:last], pos[first:last] + WINDOW, "left")
        ends[first:last] += first
    return np.stack([np.arange(len(pos)), ends], axis=1)


def _excess(squared: np.ndarray, windows: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Share of each window beyond what its number of sites gives, of what it could be beyond."""
    running = np.append(0.0, np.cumsum(squared))
    share = running[windows[:, 1]] - running[windows[:, 0]]
    beyond = 1 - expected
    return np.divide(share - expected, beyond, out=np.zeros_like(share), where=beyond > 1e-9)
