"""Pairs of samples that are close by their genotypes, without an array of all pairs.

A pair's squared distance S over jointly called sites bounds what can be close. With kinship
``1/2 - S / (4 min(het_a, het_b))`` (KING-robust) at least t,

    S <= (2 - 4 t) min(het_a, het_b) <= (2 - 4 t) min(H_a, H_b),

because jointly called heterozygotes are at most a sample's own, H. With mismatching genotypes at
most a share q of the called ones, S <= 4 mismatches <= 4 q min(C_a, C_b), C the sample's called
sites. So one limit a sample decides from one product (4 with missing genotypes, instead of 6)
which few pairs are counted exactly. Where many genotypes are missing the bound is wide: tiles of
which it keeps more than one pair in CANDIDATE_SHARE take the whole product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..io.errors import UserError
from .terms import KINSHIP

#: The whole product of counts pays if the bound keeps more than one pair in so many.
CANDIDATE_SHARE = 1024
#: By how much limits are widened, so that rounding loses no pair.
WIDER = 1e-9


@dataclass(frozen=True)
class Closeness:
    """Which pairs are wanted; a few more may be returned, on the very limits.

    Attributes
    ----------
    kinship : float
        KING-robust kinship of at least this; infinite: no pair by kinship.
    mismatch_share : float
        Or at most this share of jointly called genotypes differ; 0: no pair by this rule.
    min_called : int
        Pairs with fewer jointly called sites are not wanted.
    most : int
        More pairs than this are an error.
    """

    kinship: float
    mismatch_share: float
    min_called: int
    most: int

    @property
    def slope(self) -> float:
        """Largest S in units of the fewer heterozygotes; identical genotypes always count."""
        return max(0.0, 2 - 4 * self.kinship) + WIDER

    @property
    def widened_share(self) -> float | None:
        """Largest share of mismatches; None where they do not count."""
        return self.mismatch_share + WIDER if self.mismatch_share > 0 else None

    def limits(self, het: np.ndarray, called: np.ndarray) -> np.ndarray:
        """Largest S of each sample's close pairs: int64, from its own counts."""
        largest = self.slope * het
        if self.widened_share is not None:
            largest = np.maximum(largest, 4 * self.widened_share * called)
        return np.floor(largest).astype(np.int64)

    def wanted(self, counts: np.ndarray) -> np.ndarray:
        """Pairs to return, by exact counts, int64 (5, ...) as of `KINSHIP`: bool (...)."""
        ibs0, both_het, het_a, het_b, called = counts
        mismatches = ibs0 + het_a + het_b - 2 * both_het
        close = mismatches + 3 * ibs0 <= self.slope * np.minimum(het_a, het_b)
        if self.widened_share is not None:
            close |= mismatches <= self.widened_share * called
        return close & (called >= self.min_called)

    def require_room(self, n_pairs: int, n_samples: int) -> None:
        """Raise a `UserError` if these are more pairs than are wanted."""
        if n_pairs > self.most:
            raise UserError(
                f"more than {self.most} of the pairs of {n_samples} samples are close relatives by "
                f"the limit of kinship {self.kinship:g}, so their table would explode; raise the "
                "limit, or leave out cohorts of clones, duplicates or very few sites."
            )


@dataclass
class ClosePairs:
    """Pairs of samples, ordered by row and column.

    Attributes
    ----------
    rows, columns : int64 arrays, (n_pairs,)
        Numbers of the samples, rows < columns.
    counts : int64 array, (5, n_pairs)
        Outputs of the terms `KINSHIP`.
    """

    rows: np.ndarray
    columns: np.ndarray
    counts: np.ndarray

    @classmethod
    def joined(cls, parts: list[ClosePairs]) -> ClosePairs:
        """The pairs of some tiles together, in order."""
        empty = np.zeros(0, np.int64)
        rows = np.concatenate([empty, *(part.rows for part in parts)])
        columns = np.concatenate([empty, *(part.columns for part in parts)])
        none = np.zeros((len(KINSHIP.outputs), 0), np.int64)
        counts = np.concatenate([none, *(part.counts for part in parts)], axis=1)
        order = np.lexsort((columns, rows))
        return cls(rows[order], columns[order], counts[:, order])

    def only(self, chosen: np.ndarray) -> ClosePairs:
        """Those of the pairs that are chosen, bool (n_pairs,)."""
        return ClosePairs(self.rows[chosen], self.columns[chosen], self.counts[:, chosen])
