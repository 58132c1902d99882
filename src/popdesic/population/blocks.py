"""Blocks of neighbouring sites, over which errors are estimated by leaving one out at a time."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.map_rates import map_file
from ..core.errors import UserError
from ..io.sites import canonical_contigs, contig_runs
from .options import AUTO, parse_block

log = logging.getLogger(__name__)

#: A panel of more contigs than this is one of scaffolds, of which short ones share blocks.
MANY_CONTIGS = 100


def choose_blocks(
    sites: pd.DataFrame, block: str, genetic_map: str | None
) -> tuple[str, np.ndarray]:
    """Size of the blocks, and `block_starts`.

    Parameters
    ----------
    block : str
        ``auto``: 5 cM with a map of all contigs of the panel, else 2 Mb, which the log says.
    genetic_map : str, optional
        Needed for blocks in cM.
    """
    from ..cohort.genetic_maps import UnmappedContigError, read_map

    cm, size = None, AUTO[bool(map_file(genetic_map or ""))] if block == "auto" else block
    try:
        cm = read_map(Path(genetic_map), sites) if genetic_map else None
    except UnmappedContigError as error:
        if block != "auto":
            raise
        size = AUTO[False]
        log.warning("%s Until then blocks of populations are %s.", error, size)
    return size, block_starts(sites, size, cm)


def block_starts(sites: pd.DataFrame, block: str, cm: np.ndarray | None = None) -> np.ndarray:
    """First site of each block, and the number of sites.

    A block begins with the first site of a contig, or with the first one that lies at least the
    size of a block beyond the block's first site (as in ADMIXTOOLS). On a panel of more than
    MANY_CONTIGS contigs, short ones that follow each other share a block until their lengths add
    up to the size of a block. The length of a contig is the place of its last site (1 cM/Mb where
    the map does not rise), and a short one is shorter than a block.

    Parameters
    ----------
    sites : DataFrame
        The panel: `chrom`, `pos`, in order.
    block : str
        ``2 Mb``, ``5 cM``, …
    cm : float64 array, (n_sites,), optional
        Genetic positions, for blocks in cM.

    Returns
    -------
    int64 array, (n_blocks + 1,)
    """
    size, unit = parse_block(block)
    if unit == "cM" and cm is None:
        raise UserError(f"population.block is '{block}', which needs a genetic map.")
    pos = sites.pos.to_numpy(np.float64)
    place = cm if unit == "cM" else pos
    chrom = sites.chrom.to_numpy()
    starts = []
    runs = contig_runs(chrom) if len(sites) else []
    filled = size  # of the open block of short contigs
    for first, last in runs:
        length = place[last - 1] or pos[last - 1] / 1e6
        if len(runs) > MANY_CONTIGS and length < size:
            if filled >= size:
                starts.append(first)
                filled = 0.0
            filled += length
            continue
        filled, here = size, first
        while here < last:
            starts.append(here)
            # Genetic maps have plateaus: a block holds at least its own first site.
            step = np.searchsorted(place[here:last], place[here] + size)
            here += max(1, int(step))
    return np.array([*starts, len(sites)], np.int64)


def in_mask(sites: pd.DataFrame, starts: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Sites and base pairs within the ranges of a BED file.

    Parameters
    ----------
    sites : DataFrame
        The panel.
    starts : int64 array, (n_blocks + 1,)
        `block_starts`.
    path : Path
        BED: chrom, start, end, 0-based and half open. A position in two ranges counts once.

    Returns
    -------
    inside : bool array, (n_sites,)
    base_pairs : float64 array, (n_blocks,)
        Positions of the ranges that belong to each block: a block reaches to the first site of the
        next one on its contig, the first and last block of a contig to its ends.

    Raises
    ------
    UserError
        A row is invalid.
    """
    shown = f"{path} (population.mask)"
    try:
        table = pd.read_csv(
            path, sep=r"\s+", header=None, comment="#", dtype=str, usecols=[0, 1, 2]
        )
        table = table[~table[0].isin(["track", "browser"])]
    except (ValueError, OSError) as error:
        raise UserError(
            f"{shown} cannot be read as BED (chrom, start, end): {error}; correct it."
        ) from None
    whole = table[1].str.fullmatch("[0-9]{1,12}") & table[2].str.fullmatch("[0-9]{1,12}")
    if not whole.all():
        row = int(np.argmin(whole.to_numpy()))
        words = "\t".join(map(str, table.iloc[row]))
        raise UserError(f"{shown}, range {row + 1} is '{words}'; give chrom, start and end.")
    low, high = table[1].astype(np.int64).to_numpy(), table[2].astype(np.int64).to_numpy()
    if (low > high).any():
        row = int(np.argmax(low > high))
        raise UserError(
            f"{shown}, range {row + 1} starts at {low[row]} but ends before that, at {high[row]}; "
            "swap or correct them."
        )
    rows_of = table.groupby(canonical_contigs(table[0]), sort=False).indices
    own = canonical_contigs(sites.chrom)
    pos = sites.pos.to_numpy(np.int64)
    runs = contig_runs(own) if len(sites) else []
    # Parts of blocks, none of which has sites of two contigs.
    parts = np.union1d(starts[:-1], [first for first, _ in runs]).astype(np.int64)
    inside, of_part = np.zeros(len(sites), bool), np.zeros(len(parts))
    for first, last in runs:
        here = rows_of.get(own[first])
        if here is None:
            continue
        begin, end = _merged(low[here], high[here])
        places = np.arange(first, last)
        # Position p, counted from 1, is the range [p - 1, p).
        k = np.searchsorted(begin, pos[places], side="left") - 1
        inside[places] = (k >= 0) & (pos[places] <= end[np.maximum(k, 0)])
        blocks = np.arange(*np.searchsorted(parts, (first, last)))
        edges = pos[parts[blocks]].astype(np.float64) - 1
        edges = np.concatenate([[0.0], edges[1:], [max(float(end[-1]), edges[-1])]])
        corners = np.column_stack([begin, end]).ravel()
        below = np.column_stack([np.cumsum(end - begin) - (end - begin), np.cumsum(end - begin)])
        of_part[blocks] = np.diff(np.interp(edges, corners, below.ravel(), left=0.0))
    if not len(parts):
        return inside, np.zeros(len(starts) - 1)
    return inside, np.add.reduceat(of_part, np.searchsorted(parts, starts[:-1]))


def _merged(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Union of half-open ranges, sorted."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order]) if len(ends) else ends
    if not len(starts):
        return starts, ends
    new = np.concatenate([[True], starts[1:] > ends[:-1]])
    last = np.concatenate([np.flatnonzero(new)[1:] - 1, [len(starts) - 1]])
    return starts[new], ends[last]


def spans(sites: pd.DataFrame, max_gap: int) -> float:
    """Base pairs that the panel covers: from first to last site of each contig, without gaps.

    Distances between neighbouring sites of more than `max_gap` are not covered: no run of
    homozygosity can reach over them.
    """
    total = 0
    for _, part in sites.groupby("chrom", sort=False):
        steps = np.diff(part.pos.to_numpy(np.int64))
        total += int(steps[steps <= max_gap].sum()) + 1
    return float(total)
