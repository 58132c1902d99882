"""Which pairs of two blocks of samples are looked at again, and the best match of every sample.

Nearly all pairs of people are of no interest: not related, not the same person, neither part of the
other. A backend goes through the counts of all pairs (`screen_pairs`) and returns the few
that may be. They are judged again by the caller, so limits of kinship may be wider here than there,
never narrower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..distance.nearest_plan import FILTER_ROWS, FILTER_THREADS
from ..engine.layout import KernelSource
from .matches import TopMatches

#: `Pair` of kernels/relatives/screen.cu: row, column, the counts of KINSHIP.
PAIR_WORDS, PAIR_BYTES = 8, 32
SCREEN = KernelSource.of(
    "relatives/screen",
    FILTER_THREADS=FILTER_THREADS,
    FILTER_ROWS=FILTER_ROWS,
    PAIR_BYTES=PAIR_BYTES,
)


@dataclass(frozen=True)
class Screen:
    """What makes a pair worth another look.

    Attributes
    ----------
    min_kinship : float
        Infinite: none by kinship.
    max_same : float
        Largest share of mismatches of one person; negative: none by mismatches.
    least_related : int
        Fewest jointly called sites of relatives.
    least_matched : int
        Fewest jointly called sites of best matches; pairs with fewer are counted.
    max_mismatch, max_absent : float
        Different people with more mismatches, of whom one lacks at most this share of the other's
        alleles, may be a mixture.
    """

    min_kinship: float
    max_same: float
    least_related: int
    least_matched: int
    max_mismatch: float
    max_absent: float


@dataclass
class Screened:
    """What a backend finds.

    Attributes
    ----------
    rows, columns : int64 arrays, (n_pairs,)
        Pairs to look at again, ordered; of a block with itself rows < columns.
    counts : int64 array, (5, n_pairs)
        Outputs of the terms `KINSHIP`.
    few : int
        Pairs with fewer jointly called sites than best matches need.
    best : TopMatches
        Of the samples of the columns among those of the rows; nobody matches himself.
    """

    rows: np.ndarray
    columns: np.ndarray
    counts: np.ndarray
    few: int
    best: TopMatches

    @classmethod
    def joined(
        cls, parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], few: int, best: TopMatches
    ) -> Screened:
        """The pairs (rows, columns, counts) of some tiles together, in order."""
        empty = np.zeros(0, np.int64)
        rows = np.concatenate([empty, *(part[0] for part in parts)])
        columns = np.concatenate([empty, *(part[1] for part in parts)])
        counts = np.concatenate([np.zeros((5, 0), np.int64), *(part[2] for part in parts)], axis=1)
        order = np.lexsort((columns, rows))
        return cls(rows[order], columns[order], counts[:, order], few, best)
