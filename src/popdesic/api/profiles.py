"""Identity of profiles, and references in mixtures."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..engine.select import backend_for
from ..relatives.find_matches import top_matches, top_references
from ..relatives.matches import TopMatches
from .arrays import ArrayLike, thread_count, whole_number
from .packing import PackedGenotypes, packed


def identity(
    queries: ArrayLike | PackedGenotypes,
    profiles: ArrayLike | PackedGenotypes,
    *,
    top: int = 5,
    min_called: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """The profiles that differ least from each query: who is the same person as whom.

    Profiles are ranked by their share of sites with different genotypes among the sites called in
    both, in steps of 2**-20; ties in the order of `profiles`. Memory does not grow with the pairs.

    Parameters
    ----------
    queries : array-like, (n_queries, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    profiles : array-like, (n_samples, n_sites), or PackedGenotypes
        The same sites, of the people among whom is searched.
    top : int
        Profiles listed for a query.
    min_called : int
        Pairs with fewer sites called in both are not listed.
    device, threads
        As in `pairwise_distance`. Neither changes the table.

    Returns
    -------
    DataFrame
        By query, then rank: `query` and `match` (rows of the arrays), `rank` from 1, `called` sites
        of both, `mismatches` among them, and their `share`.

    Raises
    ------
    ValueError, RuntimeError
        As `pairwise_distance`.

    Examples
    --------
    >>> import popdesic
    >>> people = [[0, 1, 2, 0], [1, 1, 0, 2], [2, 0, -1, 1]]
    >>> popdesic.identity([[1, 1, 0, -1]], people, top=2, device="cpu")
       query  rank  match  called  mismatches     share
    0      0     1      1       3           0  0.000000
    1      0     2      0       3           2  0.666667
    """
    best = _search(top_matches, queries, profiles, top, min_called, device, threads)
    return _table(best, ["query", "rank", "match", "called", "mismatches", "share"])


def mixture(
    queries: ArrayLike | PackedGenotypes,
    profiles: ArrayLike | PackedGenotypes,
    *,
    top: int = 5,
    min_called: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """The profiles whose alleles a mixture lacks least: who may have contributed to it.

    Parameters
    ----------
    queries : array-like, (n_mixtures, n_sites), or PackedGenotypes
        Alleles seen in each mixture: 0 only REF, 1 both, 2 only ALT; -1, NaN or a masked entry
        where it is not known.
    profiles : array-like, (n_samples, n_sites), or PackedGenotypes
        Genotypes of the people who are looked for, as in `identity`.
    top, min_called, device, threads
        As in `identity`; ranked by the share of sites at which a profile has an allele that the
        mixture lacks, among the sites called in both.

    Returns
    -------
    DataFrame
        As of `identity`, with `absent`, the number of such sites, in place of `mismatches`. It
        gives no weight to a match: many profiles fit a mixture of many people.

    Raises
    ------
    ValueError, RuntimeError
        As `pairwise_distance`.

    Examples
    --------
    >>> import popdesic
    >>> people = [[0, 0, 2, 0], [1, 0, 0, 2], [2, 2, -1, 1]]
    >>> popdesic.mixture([[1, 0, 1, 0]], people, top=2, device="cpu")
       query  rank  match  called  absent  share
    0      0     1      0       4       0   0.00
    1      0     2      1       4       1   0.25
    """
    best = _search(top_references, queries, profiles, top, min_called, device, threads)
    return _table(best, ["query", "rank", "match", "called", "absent", "share"])


def _search(search, queries, profiles, top, min_called, device, threads) -> TopMatches:
    top, min_called = whole_number(top, "top", 1), whole_number(min_called, "min_called", 0)
    threads = thread_count(threads)
    asked, known = packed(queries), packed(profiles)
    if asked.n_sites != known.n_sites:
        raise ValueError(
            f"queries have {asked.n_sites} sites, profiles have {known.n_sites}; give the same "
            "sites in the same order."
        )
    backend = backend_for(device, threads)
    return search(backend, asked, known, min(top, known.n_samples), max(min_called, 1))


def _table(best: TopMatches, columns: list[str]) -> pd.DataFrame:
    number, rank = np.nonzero(best.index >= 0)
    index, called, counted = (
        values[number, rank] for values in (best.index, best.called, best.mismatches)
    )
    values = (number, rank + 1, index, called, counted, counted / called)
    return pd.DataFrame(dict(zip(columns, values, strict=True)))
