"""Identity search: who of a database is a query profile, tolerant of genotyping error."""

from __future__ import annotations

import numpy as np

from ..engine.base import Backend, Planes, Product, Terms

#: Genotype mismatches and jointly called sites, from the genotype classes (DESIGN section 5).
MATCHES = Terms(
    ("matches", "called"),
    (*(Product(0, 1, letter, letter) for letter in "zev"), Product(1, 1, "c", "c")),
)
#: Mismatch shares are compared as whole numbers of this fraction: no rounding decides an order.
SHARE_UNIT = 1 << 20
#: Rank of a pair with too few jointly called sites.
NEVER = np.iinfo(np.int64).max
#: Database profiles of one block of the search.
BLOCK_PROFILES = 1 << 14


def rank_key(mismatches: np.ndarray, called: np.ndarray, min_called: int) -> np.ndarray:
    """Whole numbers that order pairs by their share of mismatches: floor(share * 2**20).

    int64, `NEVER` where fewer than `min_called` (at least one) sites are jointly called.
    """
    key = mismatches * SHARE_UNIT // np.maximum(called, 1)
    return np.where(called >= max(min_called, 1), key, NEVER)


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


def search(
    queries: Planes, database: Planes, backend: Backend, *, k: int, min_called: int = 1
) -> TopMatches:
    """The `k` profiles of the database with the smallest share of mismatches, for each query.

    Parameters
    ----------
    queries, database : Planes
        Over the same sites; the database may be a memory map, it is read block by block.
    min_called : int
        Pairs with fewer jointly called sites are no match.

    Returns
    -------
    TopMatches
        Arrays (n_queries, k); `index` -1 where there are fewer than `k`. The same on every device.
    """
    fused = getattr(backend, "top_matches", None)
    best = TopMatches(queries.n_samples, k)
    if fused is not None:
        found = fused(queries, database, k, min_called)
        if found is not None:
            best.key, best.index, best.mismatches, best.called = found
            return best
    for first in range(0, database.n_samples, BLOCK_PROFILES):
        block = Planes(database.words[first : first + BLOCK_PROFILES], database.n_sites)
        matches, called = backend.bitgemm(queries, block, MATCHES)
        best.add(first, called - matches, called, min_called)
    return best


def genotypes_of(planes: Planes, which: np.ndarray) -> np.ndarray:
    """int8 (len(which), n_sites) genotypes of these samples, -1 where not called."""
    bits = np.unpackbits(
        np.ascontiguousarray(planes.words[which]).view(np.uint8), axis=2, bitorder="little"
    )[:, :, : planes.n_sites]
    genotypes = (bits[:, 0] + bits[:, 1]).astype(np.int8)
    if not planes.complete:
        genotypes[bits[:, 2] == 0] = -1
    return genotypes


def match_statistics(
    query: np.ndarray, found: np.ndarray, af: np.ndarray, error_rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """How probable a match is by chance, and how much it says.

    Parameters
    ----------
    query, found : int8 arrays, (n_pairs, n_sites)
        Genotypes, -1 missing.
    af : float64 array, (n_sites,)
        ALT frequency on the panel; 0 and 1 are drawn in by half an allele in 10 000.
    error_rate : float
        Probability that a genotype is called as one of the other two.

    Returns
    -------
    log10_rmp : float64 array, (n_pairs,)
        log10 of the random match probability: that an unrelated person of the panel's frequencies,
        in Hardy-Weinberg proportions and with independent sites, has the query's genotype at all
        jointly called sites. Sites in LD make it too small.
    log10_lr : float64 array, (n_pairs,)
        log10 likelihood ratio of the pair's genotypes: the same person with genotyping errors
        against an unrelated one.
    """
    p = np.clip(af, 5e-5, 1 - 5e-5)
    frequency = np.log10(np.stack([(1 - p) ** 2, 2 * p * (1 - p), p**2], axis=1))
    sites = np.arange(len(af))
    both = (query >= 0) & (found >= 0)
    of_query = np.where(both, frequency[sites, np.maximum(query, 0)], 0.0)
    of_found = np.where(both, frequency[sites, np.maximum(found, 0)], 0.0)
    same = np.where(query == found, np.log10(1 - error_rate), np.log10(error_rate / 2))
    return of_query.sum(axis=1), np.where(both, same, 0.0).sum(axis=1) - of_found.sum(axis=1)
