"""Best matches of query profiles in a database: how they are ranked and kept."""

from __future__ import annotations

import numpy as np

from ..distance.nearest import SHARE_BITS
from ..engine.terms import Planes

#: Rank of a pair with too few jointly called sites.
NEVER = np.iinfo(np.int64).max
#: Bits of a profile's number in a key of a search; the share of mismatches is above them.
INDEX_BITS = 40


def rank_key(mismatches: np.ndarray, called: np.ndarray, min_called: int) -> np.ndarray:
    """Whole numbers that order pairs by their share of mismatches: floor(share * 2**20).

    int64, `NEVER` where fewer than `min_called` (at least one) sites are jointly called.
    """
    key = (mismatches << SHARE_BITS) // np.maximum(called, 1)
    return np.where(called >= max(min_called, 1), key, NEVER)


def count_mismatches(query: np.ndarray, profiles: np.ndarray, n_sites: int):
    """Mismatches and jointly called sites of one query and some profiles, on the host."""
    n_planes = len(query)
    if n_planes == 3:
        both = query[2] & profiles[:, 2]
        called = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    else:
        both, called = ~np.uint64(0), np.full(len(profiles), n_sites)
    differ = query[0] ^ profiles[:, 0]
    if n_planes > 1:
        differ |= query[1] ^ profiles[:, 1]
    return np.bitwise_count(differ & both).sum(axis=1, dtype=np.int64), called


def count_absent(mixture: np.ndarray, profiles: np.ndarray):
    """Sites at which profiles have an allele that a mixture lacks, and jointly called sites.

    Planes with a mask: uint64 (3, n_words) and (n_profiles, 3, n_words).
    """
    both = mixture[2] & profiles[:, 2]
    lack = (profiles[:, 0] & ~mixture[0]) | (mixture[1] & ~profiles[:, 1])
    absent = np.bitwise_count(lack & both).sum(axis=1, dtype=np.int64)
    return absent, np.bitwise_count(both).sum(axis=1, dtype=np.int64)


class TopMatches:
    """The best `k` database profiles of each query so far; ties go to the earlier profile."""

    def __init__(self, n_queries: int, k: int):
        self.k = k
        self.key = np.full((n_queries, k), NEVER, np.int64)
        self.index = np.full((n_queries, k), -1, np.int64)
        self.mismatches = np.zeros((n_queries, k), np.int64)
        self.called = np.zeros((n_queries, k), np.int64)

    def add(self, first: int, mismatches: np.ndarray, called: np.ndarray, min_called: int) -> None:
        """Counts int64 (n_queries, n) of the profiles from number `first` on."""
        key = rank_key(mismatches, called, min_called)
        columns = np.arange(key.shape[1])
        if key.shape[1] > self.k:
            # Only what can be among the k best; ties of the k-th keep their order by number.
            limit = np.partition(key, self.k - 1, axis=1)[:, self.k - 1]
            possible = (key <= np.minimum(limit, self.key[:, -1])[:, None]) & (key < NEVER)
            columns = np.flatnonzero(possible.any(axis=0))
        index = np.broadcast_to(first + columns, (len(key), len(columns)))
        self._take(key[:, columns], index, mismatches[:, columns], called[:, columns])

    def merge(self, other: TopMatches, first: int) -> None:
        """Take in the best of a further database, whose profiles are numbered from `first` on."""
        index = np.where(other.index >= 0, other.index + first, -1)
        self._take(other.key, index, other.mismatches, other.called)

    def _take(self, key, index, mismatches, called) -> None:
        joined = np.concatenate([self.key, key], axis=1)
        order = np.argsort(joined, axis=1, kind="stable")[:, : self.k]
        self.key = np.take_along_axis(joined, order, axis=1)
        for name, new in (("index", index), ("mismatches", mismatches), ("called", called)):
            both = np.concatenate([getattr(self, name), new], axis=1)
            setattr(self, name, np.take_along_axis(both, order, axis=1))
        self.index[self.key == NEVER] = -1

    @classmethod
    def at(
        cls,
        index: np.ndarray,
        queries: Planes,
        database: Planes,
        min_called: int,
        *,
        mixed: bool = False,
    ) -> TopMatches:
        """The matches with these numbers, int64 (n_queries, k), -1 for none; counts them again.

        `mixed`: queries are mixtures, and absent alleles are counted in place of mismatches.
        """
        best = cls(*index.shape)
        best.index = index
        n_planes = 3 if mixed else max(queries.words.shape[1], database.words.shape[1])
        queries = queries.with_mask() if n_planes == 3 else queries
        for q, row in enumerate(index):
            found = row >= 0
            chosen = Planes(np.asarray(database.words[row[found]]), database.n_sites)
            words = (chosen.with_mask() if n_planes == 3 else chosen).words
            best.mismatches[q, found], best.called[q, found] = (
                count_absent(queries.words[q], words)
                if mixed
                else count_mismatches(queries.words[q], words, queries.n_sites)
            )
        key = rank_key(best.mismatches, best.called, min_called)
        best.key = np.where(index >= 0, key, NEVER)
        return best
