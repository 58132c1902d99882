"""Correlation between sites: r2 within windows and its decay with distance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..cohort.prune_options import parse_window
from ..core.errors import UserError
from ..engine.backend import Backend
from ..engine.site_pairs import BLOCK_SITES, r2_block
from ..engine.terms import Planes
from ..io.sites import chunks, contig_runs

#: Bounds of the distance bins of the decay curve, in bp: five per decade.
DECAY_BOUNDS = np.unique(np.rint(10 ** np.arange(1, 8.01, 0.2)).astype(np.int64))


#: Unit of the sums of r2: as integers they do not depend on the order.
UNIT = 2.0**-28


@dataclass
class Decay:
    """Mean r2 by distance; `total` is in UNIT."""

    total: np.ndarray = field(default_factory=lambda: np.zeros(len(DECAY_BOUNDS) - 1, np.int64))
    pairs: np.ndarray = field(default_factory=lambda: np.zeros(len(DECAY_BOUNDS) - 1, np.int64))

    def add(self, distance: np.ndarray, r2: np.ndarray) -> None:
        there = np.isfinite(r2)
        index = np.searchsorted(DECAY_BOUNDS, distance[there], "right") - 1
        inside = (index >= 0) & (index < len(self.pairs))
        size = len(self.pairs)
        # Sums of these integers are exact in float64, up to 2**25 pairs at once.
        units = np.rint(r2[there][inside] / UNIT)
        self.total += np.bincount(index[inside], units, size).astype(np.int64)
        self.pairs += np.bincount(index[inside], minlength=size)

    def merge(self, other: Decay) -> None:
        """Add what another one has counted."""
        self.total += other.total
        self.pairs += other.pairs

    def table(self) -> pd.DataFrame:
        """`from_bp`, `to_bp`, `pairs`, `mean_r2` of the non-empty distance bins."""
        some = self.pairs > 0
        return pd.DataFrame(
            {
                "from_bp": DECAY_BOUNDS[:-1][some],
                "to_bp": DECAY_BOUNDS[1:][some],
                "pairs": self.pairs[some],
                "mean_r2": self.total[some] * UNIT / self.pairs[some],
            }
        )


def window_ends(sites: pd.DataFrame, window: str, cm: np.ndarray | None = None) -> np.ndarray:
    """The end of each site's window: the site is compared with the sites before this row.

    Parameters
    ----------
    sites : DataFrame
        `chrom`, `pos`; grouped by contig, positions ascending.
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
        The window is invalid, or is in cM without a map.
    """
    amount, unit = parse_window(window)
    ends = np.empty(len(sites), np.int64)
    for first, last in contig_runs(sites.chrom.to_numpy()):
        here = np.arange(first, last)
        if unit == "sites":
            ends[here] = np.minimum(here + 1 + int(amount), last)
            continue
        if unit == "cM" and cm is None:
            raise UserError(
                f"config/config.yaml: a window of '{window}' needs a genetic map; name it in "
                "genetic_map or give the window in bp, kb or sites."
            )
        place = cm[here] if unit == "cM" else sites.pos.to_numpy()[here]
        ends[here] = first + np.searchsorted(place, place + amount, "right")
    return ends


def r2_matrix(planes: Planes, backend: Backend, other: Planes | None = None) -> np.ndarray:
    """r2 of all pairs of sites, computed in blocks to limit memory.

    Parameters
    ----------
    planes : Planes
        Variant-major (`site_planes`).
    other : Planes, optional
        Further sites of the same samples: each of `planes` is compared with each of these.

    Returns
    -------
    float64 array, (n_sites, n_sites) or (n_sites, n_other_sites)
        As from `r2_block`.
    """
    blocks = _blocks(planes)
    if other is not None:
        found = np.empty((planes.n_samples, other.n_samples))
        for rows, a in blocks:
            for columns, b in _blocks(other):
                found[slice(*rows), slice(*columns)] = r2_block(a, b, backend)
        return found
    found = np.empty((planes.n_samples, planes.n_samples))
    for k, (rows, a) in enumerate(blocks):
        for columns, b in blocks[k:]:
            block = r2_block(a, None if columns == rows else b, backend)
            found[slice(*rows), slice(*columns)] = block
            found[slice(*columns), slice(*rows)] = block.T
    return found


def _blocks(planes: Planes) -> list[tuple[tuple[int, int], Planes]]:
    """Bounds and planes of runs of BLOCK_SITES sites."""
    return [
        (rows, Planes(planes.words[slice(*rows)], planes.n_sites))
        for rows in chunks(planes.n_samples, BLOCK_SITES)
    ]
