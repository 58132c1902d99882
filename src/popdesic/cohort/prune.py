"""LD pruning with the semantics of `plink2 --indep-pairwise` (PLINK 1.x order of comparisons)."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.base import Backend
from ..engine.comparisons import BLOCK_SITES, r2_block
from ..engine.terms import Planes
from ..io.files import atomic_path
from ..io.sites import chunks
from .site_planes import site_planes


def prune_windows(
    contig: np.ndarray, pos: np.ndarray, amount: float, unit: str, step: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return first and end of each window of sites, contig by contig.

    Windows in sites advance by `step`; windows in bp advance until they include one more site. The
    last window of a contig is the first that reaches its end.

    Returns
    -------
    start, stop : int64 arrays, (n_windows,)
    """
    starts, stops = [], []
    bounds = np.flatnonzero(np.diff(contig, prepend=-1, append=-1))
    for first, last in itertools.pairwise(bounds):
        start = int(first)
        if unit == "sites":
            while True:
                stop = min(start + int(amount), last)
                starts.append(start)
                stops.append(stop)
                if stop == last:
                    break
                start += step
            continue
        here = pos[first:last]
        while True:
            stop = first + int(np.searchsorted(here, pos[start] + amount, "right"))
            starts.append(start)
            stops.append(stop)
            if stop >= last:
                break
            start = max(start + 1, first + int(np.searchsorted(here, pos[stop] - amount, "left")))
    return np.array(starts, np.int64), np.array(stops, np.int64)


def pruned(genotypes: np.ndarray, sites: pd.DataFrame, pruning: tuple, backend: Backend):
    """Select the sites that LD pruning removes.

    In each window all pairs of remaining sites are compared once. Where r2 > threshold, the site
    with the lower minor allele frequency is removed (the later one if equal), and the comparison
    moves on to the next first site; this repeats until a pass removes nothing. Monomorphic sites
    are removed first. This is the order of PLINK 1.9 and of PLINK 2 up to 2023 (``--indep-order 1``
    since).

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n_samples)
        Genotypes of the founders; -1 for missing.
    sites : DataFrame
        `chrom`, `pos`; sites of a contig are consecutive, positions ascend.
    pruning : tuple
        From `parse_pruning`.

    Returns
    -------
    bool array, (n_sites,)
    """
    from ..engine.host.site_pairs import prune

    amount, unit, step, threshold = pruning
    planes = site_planes(genotypes)
    n = len(genotypes)
    called = (genotypes >= 0).sum(axis=1)
    alt = np.where(genotypes > 0, genotypes, 0).sum(axis=1, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        af = alt / (2 * called)
    squares = np.where(genotypes > 0, genotypes.astype(np.int64) ** 2, 0).sum(axis=1)
    removed = called * squares - alt * alt <= 0
    _, contig = np.unique(sites.chrom.to_numpy(), return_inverse=True)
    start, stop = prune_windows(contig, sites.pos.to_numpy(np.int64), amount, unit, step)
    width = max(1, int((stop - start).max()) - 1)
    correlated = np.zeros((n, width), bool)
    for row0, row1 in chunks(n, BLOCK_SITES):
        a = Planes(planes.words[row0:row1], planes.n_sites)
        end = min(n, row1 + width)
        above = np.zeros((row1 - row0, end - row0), bool)
        for column0 in range(row0, end, BLOCK_SITES):
            column1 = min(end, column0 + BLOCK_SITES)
            if column0 == row0:
                column1 = row1
            b = None if column0 == row0 else Planes(planes.words[column0:column1], planes.n_sites)
            with np.errstate(invalid="ignore"):
                above[:, column0 - row0 : column1 - row0] = r2_block(a, b, backend) > threshold
        for i in range(row1 - row0):
            part = above[i, i + 1 : i + 1 + width]
            correlated[row0 + i, : len(part)] = part
    removed = np.ascontiguousarray(removed)
    prune(correlated, start, stop, np.maximum(af, 1 - af), removed)
    return removed


def contig_runs(chrom: np.ndarray) -> list[tuple[int, int]]:
    """Return first and end row of each contig of the panel."""
    bounds = [0, *(np.flatnonzero(chrom[1:] != chrom[:-1]) + 1).tolist(), len(chrom)]
    return list(itertools.pairwise(bounds))


def write_lists(sites: pd.DataFrame, removed: np.ndarray, kept_out: Path, removed_out: Path):
    """Write `prune.in` and `prune.out`: one chrom:pos:ref:alt per line, in panel order.

    Identifiers from files can repeat or be '.'; these are unique.
    """
    names = [
        f"{chrom}:{pos}:{ref}:{alt}\n"
        for chrom, pos, ref, alt in zip(sites.chrom, sites.pos, sites.ref, sites.alt, strict=True)
    ]
    for path, flags in ((kept_out, ~removed), (removed_out, removed)):
        with atomic_path(path) as temporary:
            temporary.write_text("".join(n for n, f in zip(names, flags, strict=True) if f))
