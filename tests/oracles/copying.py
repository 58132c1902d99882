"""Li and Stephens' recurrence in plain float64, one haplotype at a time."""

from __future__ import annotations

import numpy as np


def posteriors(haplotypes, cm, alleles, ne, mismatch):
    """Posterior of every haplotype at every called site, and the natural logarithm of likelihood.

    `haplotypes` (n_haplotypes, n_called) and `alleles` (n_called) are 0 and 1, without missing.
    """
    n, n_sites = haplotypes.shape
    rho = np.ones(n_sites)
    rho[1:] = -np.expm1(-0.04 * ne * np.maximum(np.diff(cm), 1e-6) / n)
    emission = np.where(haplotypes == alleles, 1 - mismatch, mismatch)
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
