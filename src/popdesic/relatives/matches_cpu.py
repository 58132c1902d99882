"""Best matches of query profiles in a database, counted and kept in one pass on a CPU.

Formula   mismatches: sites called in both at which u or v differ; or, of mixtures, at which the
          profile has an allele that the mixture lacks. Key of a pair: its `rank_key` above the 40
          bits of the profile's number. The k smallest keys are a query's best matches.
Shapes    words (n, 2 or 3, n_words) of profiles; queries (n_queries, 2 or 3, n_words), the words of
          both padded with zeros to whole groups; kept (n_queries, k) keys, ascending.
Loops     tiles of SIZE profiles, turned so that equal words of all lie side by side; queries;
          words; profiles, which the compiler makes vectors. With 1 024 sites a tile stays in the
          first-level cache. A pair that fails costs one product after its counts, no division.
Limits    less than 2**31 sites, 2**40 profiles.
"""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks
from ..distance.nearest import SHARE_BITS
from ..engine.layout import divide_up
from ..engine.popcount_cpu import popcount
from ..engine.terms import Planes
from .matches import INDEX_BITS, NEVER
from .one_against_all_cpu import TASK_BYTES, MappedRows

#: Profiles of a tile, and words of a query that are compared with them at a time.
SIZE, GROUP = 64, 4
#: Fewest profiles of a task: each task finds limits of its own.
TASK_PROFILES = 1 << 12


@numba.njit(nogil=True, cache=True)
def turn_profiles(words, n_planes, lanes):
    """Write up to SIZE profiles as lanes (n_words, n_planes, SIZE); all called without a mask."""
    masked = words.shape[1] == 3
    for i in range(words.shape[0]):
        for w in range(min(words.shape[2], lanes.shape[0])):
            lanes[w, 0, i] = words[i, 0, w]
            lanes[w, 1, i] = words[i, 1, w]
            if n_planes == 3:
                lanes[w, 2, i] = words[i, 2, w] if masked else ~np.uint64(0)


@numba.njit(nogil=True, cache=True)
def insert_key(key, kept):
    """Insert a key into the ascending row `kept` where it belongs, dropping the last."""
    j = len(kept) - 1
    while j > 0 and kept[j - 1] > key:
        kept[j] = kept[j - 1]
        j -= 1
    kept[j] = key


@numba.njit(nogil=True, cache=True)
def search_tiles(words, queries, first, sizes, mixed, kept):
    """Take profiles into `kept`; they are numbered from `first` on.

    `sizes`: number of sites and least called ones. `mixed`: queries, of three planes, are mixtures.
    """
    n_sites, min_called = sizes
    n_planes, n_words, last = queries.shape[1], queries.shape[2], kept.shape[1] - 1
    lanes = np.zeros((n_words, n_planes, SIZE), np.uint64)
    differ, called = np.empty(SIZE, np.int64), np.full(SIZE, n_sites)
    for start in range(0, words.shape[0], SIZE):
        tile = words[start : start + SIZE]
        turn_profiles(tile, n_planes, lanes)
        for q in range(queries.shape[0]):
            u, v = queries[q, 0], queries[q, 1]
            differ[:] = 0
            if n_planes == 2:
                for w in range(0, n_words, GROUP):
                    u0, u1, u2, u3 = u[w], u[w + 1], u[w + 2], u[w + 3]
                    v0, v1, v2, v3 = v[w], v[w + 1], v[w + 2], v[w + 3]
                    for i in range(SIZE):
                        differ[i] += (
                            popcount((lanes[w, 0, i] ^ u0) | (lanes[w, 1, i] ^ v0))
                            + popcount((lanes[w + 1, 0, i] ^ u1) | (lanes[w + 1, 1, i] ^ v1))
                            + popcount((lanes[w + 2, 0, i] ^ u2) | (lanes[w + 2, 1, i] ^ v2))
                            + popcount((lanes[w + 3, 0, i] ^ u3) | (lanes[w + 3, 1, i] ^ v3))
                        )
            else:
                c = queries[q, 2]
                called[:] = 0
                for w in range(0, n_words if mixed else 0):
                    u0, v0, c0 = ~u[w], v[w], c[w]
                    for i in range(SIZE):
                        both0 = lanes[w, 2, i] & c0
                        called[i] += popcount(both0)
                        lack = (lanes[w, 0, i] & u0) | (v0 & ~lanes[w, 1, i])
                        differ[i] += popcount(lack & both0)
                for w in range(0, 0 if mixed else n_words, 2):
                    u0, u1, v0, v1, c0, c1 = u[w], u[w + 1], v[w], v[w + 1], c[w], c[w + 1]
                    for i in range(SIZE):
                        both0, both1 = lanes[w, 2, i] & c0, lanes[w + 1, 2, i] & c1
                        called[i] += popcount(both0) + popcount(both1)
                        differ[i] += popcount(
                            ((lanes[w, 0, i] ^ u0) | (lanes[w, 1, i] ^ v0)) & both0
                        ) + popcount(
                            ((lanes[w + 1, 0, i] ^ u1) | (lanes[w + 1, 1, i] ^ v1)) & both1
                        )
            limit, some = (kept[q, last] >> INDEX_BITS) + 1, False
            for i in range(SIZE):
                some |= (differ[i] << SHARE_BITS) < limit * called[i]
            if some:
                for i in range(len(tile)):
                    if called[i] >= min_called:
                        share = (differ[i] << SHARE_BITS) // called[i]
                        key = share << INDEX_BITS | (first + start + i)
                        if key < kept[q, last]:
                            insert_key(key, kept[q])


def _padded(queries: Planes, n_planes: int) -> np.ndarray:
    """Words of the queries, C-ordered, in whole groups; no plane has bits behind the last site."""
    n_words = divide_up(queries.n_sites, 64)
    words = np.zeros((queries.n_samples, n_planes, divide_up(n_words, GROUP) * GROUP), np.uint64)
    words[:, : queries.words.shape[1], :n_words] = queries.words[:, :, :n_words]
    if n_planes == 3 and queries.complete:
        bits = np.arange(64 * n_words) < queries.n_sites
        words[:, 2, :n_words] = np.packbits(bits, bitorder="little").view(np.uint64)
    return words


def best_indices(
    queries: Planes,
    database: Planes,
    k: int,
    min_called: int,
    threads: int = 1,
    *,
    mixed: bool = False,
) -> np.ndarray:
    """Numbers of the `k` best matches of each query, int64 (n_queries, k), -1 for none.

    `mixed`: queries are mixtures, profiles references. The database may be a memory map, whose
    rows each thread reads from the file. `threads` changes no number.

    Raises
    ------
    OSError
        The file of a memory map is shorter than its shape.
    """
    n_planes = 3 if mixed else max(queries.words.shape[1], database.words.shape[1])
    own, n = _padded(queries, n_planes), database.n_samples
    task = max(TASK_PROFILES, divide_up(n, 4 * threads))
    part = max(SIZE, TASK_BYTES // max(1, database.words[:1].nbytes) // SIZE * SIZE)
    sizes = queries.n_sites, max(min_called, 1)
    with MappedRows(database.words) as rows:

        def search(first: int) -> np.ndarray:
            kept = np.full((len(own), k), NEVER)
            end = min(first + task, n)
            for start in range(first, end, part):
                words = np.require(rows.read(start, min(start + part, end)), requirements="CW")
                search_tiles(words, own, start, sizes, mixed, kept)
            return kept

        parts = run_tasks(search, [(first,) for first in range(0, n, task)], threads)
    kept = np.sort(np.concatenate([np.full((len(own), k), NEVER), *parts], axis=1), axis=1)[:, :k]
    return np.where(kept == NEVER, -1, kept & (2**INDEX_BITS - 1))
