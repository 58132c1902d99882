"""Identity search: match query profiles to a database, allowing for genotyping errors.

The search itself is `top_matches`.
"""

from __future__ import annotations

import numpy as np

from ..engine.terms import Planes


def genotypes_of(planes: Planes, which: np.ndarray) -> np.ndarray:
    """Genotypes of these samples, int8 (len(which), n_sites), -1 where not called."""
    bits = np.unpackbits(
        np.ascontiguousarray(planes.words[which]).view(np.uint8), axis=2, bitorder="little"
    )[:, :, : planes.n_sites]
    genotypes = (bits[:, 0] + bits[:, 1]).astype(np.int8)
    if not planes.complete:
        genotypes[bits[:, 2] == 0] = -1
    return genotypes


def match_statistics(
    query: np.ndarray, found: np.ndarray, af: np.ndarray, error_rate: float, ploidy: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Random match probability and likelihood ratio of a match.

    Parameters
    ----------
    query, found : int8 arrays, (n_pairs, n_sites)
        Genotypes, -1 missing; of haploids 0 and 2.
    af : float64 array, (n_sites,)
        ALT frequency on the panel; clipped to at least half an allele in 10 000 from 0 and 1.
    error_rate : float
        Probability that a genotype is called as one of the other two genotypes; of haploids, as
        the other one.
    ploidy : int
        2; or 1, of which a genotype is one allele.

    Returns
    -------
    log10_rmp : float64 array, (n_pairs,)
        log10 of the random match probability: the probability that an unrelated person has the
        query's genotype at all jointly called sites, given the panel's frequencies, Hardy-Weinberg
        proportions (of diploids) and independent sites. Sites in LD make it too small.
    log10_lr : float64 array, (n_pairs,)
        log10 likelihood ratio of the pair's genotypes: same person with genotyping errors
        versus unrelated person.
    """
    p = np.clip(af, 5e-5, 1 - 5e-5)
    shares = [1 - p, np.zeros(len(p)) + np.nan, p]
    if ploidy == 2:
        shares = [(1 - p) ** 2, 2 * p * (1 - p), p**2]
    frequency = np.log10(np.stack(shares, axis=1))
    sites = np.arange(len(af))
    both = (query >= 0) & (found >= 0)
    of_query = np.where(both, frequency[sites, np.maximum(query, 0)], 0.0)
    of_found = np.where(both, frequency[sites, np.maximum(found, 0)], 0.0)
    same = np.where(query == found, np.log10(1 - error_rate), np.log10(error_rate / ploidy))
    return of_query.sum(axis=1), np.where(both, same, 0.0).sum(axis=1) - of_found.sum(axis=1)
