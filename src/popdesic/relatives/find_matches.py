"""The best matches of query profiles in a database, on the device of a backend."""

from __future__ import annotations

from ..engine.backend import Backend
from ..engine.terms import Planes, Product, Terms
from .matches import TopMatches
from .mixture import MIXTURE

#: Genotype mismatches and jointly called sites, from the genotype classes.
MATCHES = Terms(
    ("matches", "called"),
    (*(Product(0, 1, letter, letter) for letter in "zev"), Product(1, 1, "c", "c")),
)
#: Database profiles of one block of a search.
BLOCK_PROFILES = 1 << 14


def search_by_blocks(
    backend: Backend,
    queries: Planes,
    database: Planes,
    k: int,
    min_called: int,
    *,
    mixed: bool = False,
) -> TopMatches:
    """`top_matches` by products of the queries and one block of profiles after another.

    `mixed`: as `top_references`. The counts of one block at a time are in host memory.
    """
    best = TopMatches(queries.n_samples, k)
    for first in range(0, database.n_samples, BLOCK_PROFILES):
        block = Planes(database.words[first : first + BLOCK_PROFILES], database.n_sites)
        counted, called = backend.bitgemm(queries, block, MIXTURE if mixed else MATCHES)
        best.add(first, counted if mixed else called - counted, called, min_called)
    return best


def top_matches(
    backend: Backend, queries: Planes, database: Planes, k: int, min_called: int = 1
) -> TopMatches:
    """The `k` profiles of a database with the smallest share of mismatches, for each query.

    Parameters
    ----------
    queries, database : Planes
        Samples over the same sites; the database may be a memory map, it is read in parts.
    k : int
        At least 1.
    min_called : int
        Pairs with fewer jointly called sites are no match.

    Returns
    -------
    TopMatches
        Arrays (n_queries, k), best first, ties by profile number; `index` -1 where there are
        fewer than `k`. The same from every backend.
    """
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from .matches_gpu import top_matches as on_gpu
        from .matches_plan import can_find_matches

        if can_find_matches(backend.device, backend.kernel):
            with device_errors(f"the search of {queries.n_samples} profiles"):
                found = on_gpu(queries, database, backend.device, k, min_called)
            if found is not None:
                return found
    else:
        from .matches_cpu import best_indices  # numba starts slowly

        index = best_indices(queries, database, k, min_called, backend.threads)
        return TopMatches.at(index, queries, database, min_called)
    return search_by_blocks(backend, queries, database, k, min_called)


def top_references(
    backend: Backend, mixtures: Planes, references: Planes, k: int, min_called: int = 1
) -> TopMatches:
    """The `k` references with the smallest share of alleles that a mixture lacks.

    As `top_matches`; its `mismatches` are the absent alleles of `mixture.MIXTURE`. A CPU keeps the
    best alone; of a GPU the counts of BLOCK_PROFILES references at a time reach the host.
    """
    if backend.name == "gpu":
        return search_by_blocks(backend, mixtures, references, k, min_called, mixed=True)
    from .matches_cpu import best_indices  # numba starts slowly

    index = best_indices(mixtures, references, k, min_called, backend.threads, mixed=True)
    return TopMatches.at(index, mixtures, references, min_called, mixed=True)
