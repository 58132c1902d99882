"""Correlation between sites: r2 over windows, its decay with distance."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.prune_options import parse_window
from ..cohort.site_planes import BLOCK_SITES, r2_block
from ..engine.base import Backend, Planes
from ..io.bed import open_bed, read_fam
from ..io.errors import UserError
from ..io.genotypes import unpack_bed
from ..io.sites import chunks
from .disequilibrium import tables_of

#: Rows of blocks that the decay curve is averaged over, at least, where there are as many.
SAMPLED_BLOCKS = 32
#: Sites of one pass over the .bed files.
CHUNK_SITES = 4096
#: Bounds of the distances, in bp, over which the decay curve averages: five a decade.
DECAY_BOUNDS = np.unique(np.rint(10 ** np.arange(1, 8.01, 0.2)).astype(np.int64))


def founder_genotypes(
    prefixes: list[Path], keep: set[str] | None = None, rows: np.ndarray | None = None
) -> np.ndarray:
    """Genotypes of several cohorts on the panel, side by side: int8 (n_sites, n_samples).

    `keep` names the samples to take (all by default), `rows` the sites.
    """
    parts = []
    for prefix in prefixes:
        names = read_fam(prefix)["sample"]
        bed = open_bed(prefix)
        chosen = np.flatnonzero(names.isin(keep)) if keep is not None else np.arange(len(names))
        sites = np.arange(len(bed)) if rows is None else rows
        part = np.empty((len(sites), len(chosen)), np.int8)
        for first, last in chunks(len(sites), CHUNK_SITES):
            block = np.ascontiguousarray(bed[sites[first:last]])
            part[first:last] = unpack_bed(block, len(names))[:, chosen]
        parts.append(part)
    return np.concatenate(parts, axis=1)


@dataclass
class Decay:
    """Mean r2 by distance, summed in a fixed order."""

    total: np.ndarray = field(default_factory=lambda: np.zeros(len(DECAY_BOUNDS) - 1))
    pairs: np.ndarray = field(default_factory=lambda: np.zeros(len(DECAY_BOUNDS) - 1, np.int64))

    def add(self, distance: np.ndarray, r2: np.ndarray) -> None:
        there = np.isfinite(r2)
        index = np.searchsorted(DECAY_BOUNDS, distance[there], "right") - 1
        inside = (index >= 0) & (index < len(self.pairs))
        size = len(self.pairs)
        self.total += np.bincount(index[inside], r2[there][inside], size)
        self.pairs += np.bincount(index[inside], minlength=size)

    def table(self) -> pd.DataFrame:
        """`from_bp`, `to_bp`, `pairs`, `mean_r2` of the distances that occur."""
        some = self.pairs > 0
        return pd.DataFrame(
            {
                "from_bp": DECAY_BOUNDS[:-1][some],
                "to_bp": DECAY_BOUNDS[1:][some],
                "pairs": self.pairs[some],
                "mean_r2": self.total[some] / self.pairs[some],
            }
        )


def window_ends(sites: pd.DataFrame, window: str, cm: np.ndarray | None = None) -> np.ndarray:
    """For each site the end of its window: sites up to this one are compared with it.

    Parameters
    ----------
    sites : DataFrame
        `chrom`, `pos`, contigs in runs, positions rising.
    window : str
        Such as ``250 kb``, ``1000 bp``, ``50 sites`` (partners on one side), ``0.5 cM``.
    cm : float64 array, optional
        Genetic position of each site, for windows in cM.

    Returns
    -------
    int64 array, (n_sites,), one past the last partner.

    Raises
    ------
    UserError
        The window cannot be read, or is in cM without a map.
    """
    amount, unit = parse_window(window)
    _, run = np.unique(sites.chrom.to_numpy(), return_inverse=True)
    bounds = np.flatnonzero(np.diff(run, prepend=-1, append=-1))
    ends = np.empty(len(sites), np.int64)
    for first, last in itertools.pairwise(bounds):
        here = np.arange(first, last)
        if unit == "sites":
            ends[here] = np.minimum(here + 1 + int(amount), last)
            continue
        if unit == "cM" and cm is None:
            raise UserError(
                f"config/config.yaml: a window of '{window}' needs a genetic map; name it in "
                "compare.ld.map or give the window in bp, kb or sites."
            )
        place = cm[here] if unit == "cM" else sites.pos.to_numpy()[here]
        ends[here] = first + np.searchsorted(place, place + amount, "right")
    return ends


def correlated_pairs(
    planes: Planes, ends: np.ndarray, backend: Backend, min_r2: float, on_block=None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of sites within their windows whose r2 is at least `min_r2`.

    Parameters
    ----------
    planes : Planes
        Variant-major.
    ends : int64 array, (n_sites,)
        From `window_ends`.
    on_block : callable, optional
        Called with rows, columns (int64) and r2 of all pairs of a block, in a fixed order; of many
        blocks every n-th, about SAMPLED_BLOCKS rows of blocks.

    Returns
    -------
    rows, columns : int64 arrays; r2 : float64 array
        Ordered by row, then column; the same on every device.
    """
    fused = getattr(backend, "r2_pairs", None)
    candidates = fused(planes, ends, min_r2) if fused is not None else None
    found = [], [], []
    n = planes.n_samples
    every = max(1, -(-n // BLOCK_SITES) // SAMPLED_BLOCKS)
    for row0, row1 in chunks(n, BLOCK_SITES):
        sampled = on_block is not None and row0 // BLOCK_SITES % every == 0
        if candidates is not None and not sampled:
            continue
        a = Planes(planes.words[row0:row1], planes.n_sites)
        last = int(ends[row0:row1].max())
        for column0 in range(row0, last, BLOCK_SITES):
            column1 = min(column0 + BLOCK_SITES, last)
            diagonal = column0 == row0
            if diagonal:
                column1 = min(row1, n)
            b = None if diagonal else Planes(planes.words[column0:column1], planes.n_sites)
            r2 = r2_block(a, b, backend)
            if sampled:
                rows, columns = _pairs_inside(ends, row0, row1, column0, column1)
                on_block(rows, columns, r2[rows - row0, columns - column0])
            if candidates is not None:
                continue
            with np.errstate(invalid="ignore"):
                i, j = np.nonzero(r2 >= min_r2)
            inside = (j + column0 > i + row0) & (j + column0 < ends[i + row0])
            i, j = i[inside], j[inside]
            for part, values in zip(found, (i + row0, j + column0, r2[i, j]), strict=True):
                part.append(values)
    if candidates is not None:
        rows, columns = candidates
        r2 = r2_of_tables(tables_of(planes, rows, columns, os.cpu_count() or 1))
        there = r2 >= min_r2
        return rows[there], columns[there], r2[there]
    rows, columns, r2 = (
        np.concatenate([*part, np.zeros(0, kind)])
        for part, kind in zip(found, (np.int64, np.int64, np.float64), strict=True)
    )
    order = np.lexsort((columns, rows))
    return rows[order], columns[order], r2[order]


def r2_matrix(planes: Planes, backend: Backend) -> np.ndarray:
    """r2 of all pairs of sites, block by block so that only the result is whole.

    Parameters
    ----------
    planes : Planes
        Variant-major (`site_planes`).

    Returns
    -------
    float64 array, (n_sites, n_sites)
        As `r2_block` has it.
    """
    n = planes.n_samples
    found = np.empty((n, n))
    blocks = [
        (rows, Planes(planes.words[slice(*rows)], planes.n_sites))
        for rows in chunks(n, BLOCK_SITES)
    ]
    for k, (rows, a) in enumerate(blocks):
        for columns, b in blocks[k:]:
            block = r2_block(a, None if columns == rows else b, backend)
            found[slice(*rows), slice(*columns)] = block
            found[slice(*columns), slice(*rows)] = block.T
    return found


def r2_of_tables(tables: np.ndarray) -> np.ndarray:
    """Squared correlations of pairs from their genotype tables, int (n_pairs, 3, 3)."""
    g = np.arange(3)
    n = tables.sum(axis=(1, 2))
    by_a, by_b = tables.sum(axis=2), tables.sum(axis=1)
    sum_a, sum_b = by_a @ g, by_b @ g
    covariance = (n * (tables @ g @ g) - sum_a * sum_b).astype(np.float64)
    variance_a = (n * (by_a @ (g * g)) - sum_a * sum_a).astype(np.float64)
    variance_b = (n * (by_b @ (g * g)) - sum_b * sum_b).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return covariance * covariance / (variance_a * variance_b)


def _pairs_inside(ends, row0, row1, column0, column1):
    rows = np.arange(row0, row1)
    first = np.maximum(rows + 1, column0)
    count = np.maximum(np.minimum(ends[rows], column1) - first, 0)
    i = np.repeat(rows, count)
    offset = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    return i, np.repeat(first, count) + offset
