"""Li and Stephens' recurrence in plain float64, one haplotype at a time."""

from __future__ import annotations

import numpy as np


def posteriors(haplotypes, cm, alleles, ne, mismatch, unseen=()):
    """Posterior of every haplotype at every called site, and the natural logarithm of likelihood.

    The calls of the sites `unseen` say nothing.

    `haplotypes` (n_haplotypes, n_called) and `alleles` (n_called) are 0 and 1, without missing.
    """
    emission = np.where(haplotypes == alleles, 1 - mismatch, mismatch)
    emission[:, list(unseen)] = 1
    return of_emissions(emission, cm, ne)


def chances(cm, ne, n):
    """Probability of a new haplotype in front of each site."""
    rho = np.ones(len(cm))
    rho[1:] = -np.expm1(-0.04 * ne * np.maximum(np.diff(cm), 1e-6) / n)
    return rho


def of_emissions(emission, cm, ne):
    """`posteriors` of what every haplotype emits at every site, (n_haplotypes, n_sites)."""
    n, n_sites = emission.shape
    rho = chances(cm, ne, n)
    forward, backward = np.empty((n_sites, n)), np.ones((n_sites, n))
    state, likelihood = np.full(n, 1 / n), 0.0
    for m in range(n_sites):
        state = (state * (1 - rho[m]) + rho[m] / n) * emission[:, m]
        likelihood += np.log(state.sum())
        state /= state.sum()
        forward[m] = state
    for m in range(n_sites - 1, 0, -1):
        state = backward[m] * emission[:, m]
        backward[m - 1] = state * (1 - rho[m]) + rho[m] * state.mean()
        backward[m - 1] /= backward[m - 1].mean()
    both = forward * backward
    return both / both.sum(axis=1, keepdims=True), likelihood


def impute(haplotypes, cm, sites, alleles, ne, mismatch):
    """Expected ALT alleles at every site, of one haplotype; -1: missing."""
    known = alleles >= 0
    sites, alleles = sites[known], alleles[known]
    if not len(sites):
        return haplotypes.mean(axis=0)
    shares, _ = posteriors(haplotypes[:, sites], cm[sites], alleles, ne, mismatch)
    found = np.empty(haplotypes.shape[1])
    for site in range(haplotypes.shape[1]):
        right = np.searchsorted(sites, site)
        left = max(right - 1, 0)
        right = min(right, len(sites) - 1)
        span = cm[sites[right]] - cm[sites[left]]
        weight = (cm[site] - cm[sites[left]]) / span if span > 0 else 0
        mixed = shares[left] * (1 - weight) + shares[right] * weight
        found[site] = mixed @ haplotypes[:, site]
    found[sites] = alleles
    return found


def ways(haplotypes, cm, heads, tails, site, ne, mismatch):
    """Weights of the four ways on at a heterozygous site, the largest 1: likelihoods of whole rows.

    `heads` and `tails`: two haplotypes each (2, n_called), -1 where an allele is not known. The
    ways: straight tails with ALT on head 0, then on head 1; then crossed tails, likewise.
    """

    def likelihood(row):
        known = row >= 0
        return posteriors(haplotypes[:, known], cm[known], row[known], ne, mismatch)[1]

    logs = []
    for crossed in (False, True):
        for first in (1, 0):
            both = 0.0
            for h, allele in enumerate((first, 1 - first)):
                tail = tails[h ^ crossed]
                both += likelihood(np.concatenate([heads[h][:site], [allele], tail[site + 1 :]]))
            logs.append(both)
    return np.exp(np.array(logs) - max(logs))


def sweep(haplotypes, cm, genotypes, before, uniforms, ne, mismatch):
    """Alleles (2, n_called) after a sweep, and how near each draw was to another way.

    `before`: alleles that the sweep begins with; None: the start, whose tails are not known at
    heterozygous sites and do not cross.
    """
    hets = np.flatnonzero(genotypes == 1)
    heads = np.stack([genotypes // 2] * 2)
    tails = heads.copy()
    tails[:, hets] = -1
    if before is not None:
        tails = before.copy()
    near = []
    for place, site in enumerate(hets):
        weights = ways(haplotypes, cm, heads, tails, site, ne, mismatch)
        if before is None:
            weights[2:] = 0
        steps = np.cumsum(weights) / weights.sum()
        near.append(np.abs(steps[:-1] - uniforms[place]).min())
        way = int((uniforms[place] >= steps[:-1]).sum())
        heads[0, site], heads[1, site] = 1 - way % 2, way % 2
        if way >= 2:
            tails = tails[::-1].copy()
    return heads, np.array(near)


def left_out(haplotypes, cm, alleles, ne, mismatch):
    """Expected ALT alleles at every called site, each without its own call."""
    return np.array(
        [
            posteriors(haplotypes, cm, alleles, ne, mismatch, [m])[0][m] @ haplotypes[:, m]
            for m in range(len(alleles))
        ]
    )
