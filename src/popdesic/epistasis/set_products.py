"""Sites, products and main effects of a set that are tested, for one phenotype or many.

Columns and products are left out by the people who carry them and the sizes of the classes, not by
which of the carriers are cases: otherwise scores of those that are left are shifted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UserError

#: Most people or products, whichever are fewer, that a set may have: a matrix of 0.5 GB.
MOST_ROWS = 8192
#: Most sites that a set may have: their main effects and pairs take 2.5 GB.
MOST_SITES = 4096
#: A site is left out if fewer people carry its minor allele, or fewer of the smaller class, cases
#: or controls, are expected to; so are the minor homozygotes of its main effect, and a product in
#: people with both minor alleles.
LEAST_CARRIERS = 5
#: Of numbers of which the null model leaves nothing.
EXPLAINED_COMPLETELY = "the sites of a set explain the phenotype completely."


class Arrays(NamedTuple):
    """Where arrays lie: the module that makes them (NumPy or CuPy), what sends an array there and
    fetches one, and a context of the work there."""

    module: Any
    send: Callable[[np.ndarray], Any]
    fetch: Callable[[Any], np.ndarray]
    use: Callable[[], AbstractContextManager]


HOST = Arrays(np, np.asarray, np.asarray, nullcontext)


class Carriers(NamedTuple):
    """Which columns enough people carry.

    `share`: of the people, those who count: the smaller class, or all (1). `cases`: bool
    (n_people,), or None for numbers.
    """

    share: float = 1.0
    cases: np.ndarray | None = None

    def suffice(self, numbers: np.ndarray) -> np.ndarray:
        """Whether enough people who count are expected among so many carriers."""
        return numbers * self.share >= LEAST_CARRIERS

    def enough(self, carriers: Any, arrays: Arrays = HOST) -> np.ndarray:
        """Of columns bool (n_people, n_columns): enough carriers, of both classes, as a fit needs.

        Cases and controls lie on the host.
        """
        kept = self.suffice(arrays.fetch(carriers.sum(axis=0)))
        if self.cases is None:
            return kept
        seen = [carriers[self.cases == c].any(axis=0) for c in (True, False)]
        return kept & np.all(seen, axis=0)


class Products(NamedTuple):
    """Of a set, on the host but for the counts.

    Attributes
    ----------
    sites : int64 array, (n_sites,)
        That are tested, ascending; the first is -1 if it is an environment.
    flipped : bool array, (n_sites,)
        Whether REF is the minor allele.
    minor : int8 array, (n_people, n_genotyped)
        Minor-allele counts.
    counts : float32 array, (n_sites, n_people)
        The same by site; float64 with an environment, whose row is the first.
    spread : float64 array, (n_sites,)
        Their standard deviations.
    i, j : int64 array, (n_products,)
        Places in `sites` of each product, i < j.
    """

    sites: np.ndarray
    flipped: np.ndarray
    minor: Any
    counts: Any
    spread: np.ndarray
    i: np.ndarray
    j: np.ndarray


def choose_products(
    genotypes: np.ndarray,
    places: tuple[np.ndarray, np.ndarray | None],
    used: np.ndarray,
    carriers: Carriers,
    arrays: Arrays = HOST,
    environment: np.ndarray | None = None,
) -> Products:
    """The sites and products of a set that are tested.

    Parameters
    ----------
    genotypes : int8 array, (n_people, n_sites)
        ALT counts, -1 missing, which counts as the site's most frequent genotype.
    places : tuple
        Sites of the set, or of two sets: products of a site of each; None for no second one.
    used : bool array, (n_people,)
    carriers : Carriers
        Of the people used.
    arrays : Arrays
        Where sums are made.
    environment : float64 array, (n_used,), optional
        Less its mean, perhaps times weights. The products are those of each site with it, if enough
        carriers are on both sides of the mean. On the host alone.

    Raises
    ------
    UserError
        The sites are too many.
    """
    xp, send, fetch, _ = arrays
    sites = sites_of(*places)
    chosen = genotypes[:, sites]
    minor, flipped = minor_counts(send(chosen if used.all() else chosen[used]))
    kept = carriers.enough(minor > 0, arrays)
    sites, flipped, minor = sites[kept], fetch(flipped)[kept], minor[:, send(np.flatnonzero(kept))]
    if len(sites) > MOST_SITES:
        raise UserError(
            f"a set has {len(sites)} sites; at most {MOST_SITES} are tested together: divide "
            "the set."
        )
    if environment is not None:
        return _with_environment(sites, flipped, minor, carriers, environment)
    i, j = pairs_of(sites, *places)
    if min(len(i), len(minor)) > MOST_ROWS:
        raise UserError(
            f"a set has {len(i)} products of two of its {len(sites)} sites in {len(minor)} samples;"
            f" at most {MOST_ROWS} products, or samples, are tested together: divide the set."
        )
    counts = xp.ascontiguousarray(minor.T).astype(xp.float32)
    spread = fetch(counts.std(axis=1, dtype=xp.float64))
    held = (counts > 0).astype(xp.float32)  # people with both minor alleles: exact up to 2^24
    varied = spread[i] * spread[j] > 0  # not where all are heterozygous
    kept = carriers.suffice(fetch(held @ held.T)[i, j]) & varied
    return Products(sites, flipped, minor, counts, spread, i[kept], j[kept])


def _with_environment(
    sites: np.ndarray,
    flipped: np.ndarray,
    minor: np.ndarray,
    carriers: Carriers,
    environment: np.ndarray,
) -> Products:
    """Products of each site with the environment, which stands before the sites."""
    counts = np.vstack([environment[None], minor.T.astype(np.float64)])
    spread, held = counts.std(axis=1), minor > 0
    above = held[environment > 0].sum(axis=0)
    fewer = np.minimum(above, held.sum(axis=0) - above)
    kept = carriers.suffice(fewer) & (spread[1:] * spread[0] > 0)
    j = 1 + np.flatnonzero(kept)
    named = np.concatenate([[-1], sites]), np.concatenate([[False], flipped])
    return Products(*named, minor, counts, spread, np.zeros_like(j), j)


def main_effects(minor: Any, dominance: bool, carriers: Carriers, arrays: Arrays = HOST) -> Any:
    """Columns float64 of main effects of minor-allele counts (n_people, n_sites).

    With `dominance`, minor homozygotes of a site have a column too, if enough people are such.
    """
    xp, send, _, _ = arrays
    main = minor.astype(xp.float64)
    if not dominance:
        return main
    twice = minor == 2
    kept = np.flatnonzero(carriers.enough(twice, arrays))
    if not len(kept):
        return main
    return xp.concatenate([main, twice[:, send(kept)].astype(xp.float64)], axis=1)


def sites_of(first: np.ndarray, second: np.ndarray | None) -> np.ndarray:
    """The sites of a set, or of two, ascending."""
    return np.unique(first if second is None else np.concatenate([first, second]))


def minor_counts(genotypes: Any) -> tuple[Any, Any]:
    """Counts of the minor allele, int8 (n_people, n_sites), the most frequent where missing, of
    equally frequent ones the smallest; and whether REF is the minor one, bool (n_sites,)."""
    zero, one, two = ((genotypes == c).sum(axis=0) for c in range(3))
    frequent = np.where(two > np.maximum(zero, one), 2, one > zero).astype(np.int8)
    filled = np.where(genotypes < 0, frequent, genotypes)
    flipped = filled.sum(axis=0) > len(filled)
    return np.where(flipped, 2 - filled, filled).astype(np.int8), flipped


def pairs_of(
    sites: np.ndarray, first: np.ndarray, second: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Places in `sites` of the sites of each product, the smaller first, each product once."""
    i, j = np.triu_indices(len(sites), 1)
    if second is None:
        return i, j
    a, b = np.isin(sites, first), np.isin(sites, second)
    kept = (a[i] & b[j]) | (a[j] & b[i])
    return i[kept], j[kept]
