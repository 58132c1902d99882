"""Copying from genotype likelihoods in plain float64: rows given the other one, and exact pairs."""

from __future__ import annotations

import numpy as np

from .copying import chances, of_emissions


def emissions(haplotypes, likelihoods, mismatch):
    """What each haplotype emits (n, n_sites), of likelihoods of both alleles (n_sites, 2)."""
    ref, alt = likelihoods.T
    return np.where(
        haplotypes == 1,
        (1 - mismatch) * alt + mismatch * ref,
        (1 - mismatch) * ref + mismatch * alt,
    )


def shares(haplotypes, cm, likelihoods, ne, mismatch):
    """Expected ALT alleles of one haplotype at each site."""
    emitted = emissions(haplotypes, likelihoods, mismatch)
    posterior, _ = of_emissions(emitted, cm, ne)
    of_alt = np.where(haplotypes == 1, 1 - mismatch, mismatch) * likelihoods[:, 1] / emitted
    return (posterior * of_alt.T).sum(axis=1)


def drawn(haplotypes, cm, likelihoods, uniforms, ne, mismatch):
    """A row of alleles, each drawn by likelihoods of all reads, and how near a draw was."""
    given, near = likelihoods.copy(), []
    found = np.empty(len(cm), int)
    for m in range(len(cm)):
        logs = []
        for allele in (1, 0):
            one = given.copy()
            one[m, 1 - allele] = 0  # this allele, with its own likelihood
            logs.append(of_emissions(emissions(haplotypes, one, mismatch), cm, ne)[1])
        share = 1 / (1 + np.exp(logs[1] - logs[0]))
        near.append(abs(share - uniforms[m]))
        found[m] = uniforms[m] < share
        given[m, 1 - found[m]] = 0
    return found, np.array(near)


def pairs(haplotypes, cm, likelihoods, ne, mismatch):
    """Expected ALT alleles of a sample by forward and backward passes over pairs of haplotypes.

    `likelihoods` of the genotypes, (n_sites, 3).
    """
    n, n_sites = haplotypes.shape
    rho = chances(cm, ne, n)
    copied = np.where(haplotypes == 1, 1 - mismatch, mismatch)  # of ALT
    both = copied[:, None] * copied[None]
    none = (1 - copied[:, None]) * (1 - copied[None])
    genotypes = np.stack([none, 1 - none - both, both])  # (3, n, n, n_sites)
    emission = np.einsum("gxym,mg->mxy", genotypes, likelihoods)

    def moved(state, m):
        one = state * (1 - rho[m]) + rho[m] * state.sum(axis=0, keepdims=True) / n
        return one * (1 - rho[m]) + rho[m] * one.sum(axis=1, keepdims=True) / n

    forward, state = [], np.full((n, n), 1 / n**2)
    for m in range(n_sites):
        state = moved(state, m) * emission[m]
        state /= state.sum()
        forward.append(state)
    found, behind = np.empty(n_sites), np.ones((n, n))
    for m in range(n_sites - 1, -1, -1):
        posterior = forward[m] * behind
        posterior /= posterior.sum()
        share = genotypes[..., m] * likelihoods[m][:, None, None] / emission[m]
        found[m] = (posterior * (share[1] + 2 * share[2])).sum()
        behind = moved(behind * emission[m], m)
        behind /= behind.sum()
    return found
