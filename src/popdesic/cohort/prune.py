"""LD pruning with the semantics of `plink2 --indep-pairwise` (PLINK 1.x order of comparisons)."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.files import atomic_path
from ..engine.backend import Backend
from ..engine.site_pairs import band_blocks, band_pairs, called_samples, is_narrow, moments
from ..engine.terms import Planes
from ..io.sites import contig_runs
from .dosage_r2 import dosage_blocks


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
        reach = first + np.searchsorted(here, here + amount, "right")
        back = first + np.searchsorted(here, here - amount, "left")
        following = np.append(back, last)[reach - first]
        following = np.maximum(following, np.arange(first, last) + 1).tolist()
        while start < last:
            starts.append(start)
            start = following[start - first]
        chosen = np.array(starts[len(stops) :], np.int64)
        stops += reach[chosen - first].tolist()
    return np.array(starts, np.int64), np.array(stops, np.int64)


def widest_window(sites: pd.DataFrame, amount: float, unit: str) -> int:
    """Sites of the widest window of `prune_windows`, at most; `chrom`, `pos` in genome order."""
    if unit == "sites":
        return min(int(amount), len(sites))
    widest, pos = 0, sites.pos.to_numpy(np.int64)
    for first, last in contig_runs(sites.chrom.to_numpy()):
        here = pos[first:last]
        reach = np.searchsorted(here, here + amount, "right") - np.arange(len(here))
        widest = max(widest, int(reach.max(initial=0)))
    return widest


def pruned(
    planes: Planes,
    sites: pd.DataFrame,
    pruning: tuple,
    backend: Backend,
    alleles: np.ndarray | None = None,
) -> np.ndarray:
    """Select the sites that LD pruning removes.

    In each window all pairs of remaining sites are compared once. Where r2 > threshold, the site
    with the lower minor allele frequency is removed (the later one if equal), and the comparison
    moves on to the next first site; this repeats until a pass removes nothing. Monomorphic sites
    are removed first. This is the order of PLINK 1.9 and of PLINK 2 up to 2023 (``--indep-order 1``
    since).

    Parameters
    ----------
    planes : Planes
        Genotypes of the founders, variant-major (`site_planes`).
    sites : DataFrame
        `chrom`, `pos`; sites of a contig are consecutive, positions ascend.
    pruning : tuple
        From `parse_pruning`.
    alleles : int8 array, (n_sites, n), optional
        Of polyploids, whose planes have several columns of a sample: their ALT alleles, -1 where
        missing. They are correlated, not the planes.

    Returns
    -------
    bool array, (n_sites,)
    """
    from ..engine.site_pairs_cpu import prune

    amount, unit, step, threshold = pruning
    alt, squares = moments(planes)
    called = called_samples(planes)
    with np.errstate(invalid="ignore"):
        af = alt / (2 * called)
    removed = called * squares - alt * alt <= 0
    chrom = sites.chrom.to_numpy()
    contig = np.cumsum(chrom[1:] != chrom[:-1], dtype=np.int64)
    contig = np.concatenate([np.zeros(min(len(chrom), 1), np.int64), contig])
    start, stop = prune_windows(contig, sites.pos.to_numpy(np.int64), amount, unit, step)
    rows = np.arange(planes.n_samples)
    ends = stop[np.searchsorted(start, rows, "right") - 1]  # of the last window that has the site
    correlated = np.zeros((len(rows), max(1, int((ends - rows).max()) - 1)), bool)
    if alleles is not None:
        for first, r2 in dosage_blocks(alleles, ends, backend.threads):
            for i in range(first, first + len(r2)):
                own = r2[i - first, i - first + 1 : ends[i] - first]
                correlated[i, : len(own)] = own > threshold
    elif is_narrow(ends):
        for first, r2 in band_blocks(backend, planes, ends):
            correlated[first : first + len(r2), : r2.shape[1]] = r2 > threshold  # False for NaN
    else:
        for i, j, r2 in band_pairs(backend, planes, ends):
            above = r2 > threshold
            correlated[i[above], j[above] - i[above] - 1] = True
    prune(correlated, start, stop, np.maximum(af, 1 - af), removed)
    return removed


def write_lists(sites: pd.DataFrame, removed: np.ndarray, kept_out: Path, removed_out: Path):
    """Write `prune.in` and `prune.out`: one chrom:pos:ref:alt per line, in panel order.

    Identifiers from files can repeat or be '.'; these are unique.
    """
    columns = (sites[name].tolist() for name in ("chrom", "pos", "ref", "alt"))
    names = [f"{chrom}:{pos}:{ref}:{alt}\n" for chrom, pos, ref, alt in zip(*columns, strict=True)]
    for path, flags in ((kept_out, ~removed), (removed_out, removed)):
        with atomic_path(path) as temporary:
            temporary.write_text("".join(n for n, f in zip(names, flags, strict=True) if f))
