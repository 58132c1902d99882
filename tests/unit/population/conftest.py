"""Counts of small populations, as the stage has them."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.population.allele_counts import PopulationCounts


def counts_of(
    genotypes: np.ndarray, labels: np.ndarray, haploid: np.ndarray | None = None
) -> PopulationCounts:
    """Counts of genotypes int8 (n_sites, n), populations named by `labels`."""
    haploid = np.zeros(len(labels), bool) if haploid is None else haploid
    names = sorted(set(labels.tolist()))
    n_sites = len(genotypes)
    alleles = np.zeros((n_sites, len(names), 2), np.int32)
    states = np.zeros((n_sites, len(names), 3), np.int32)
    for k, name in enumerate(names):
        own = genotypes[:, (labels == name) & ~haploid]
        single = genotypes[:, (labels == name) & haploid]
        for state in range(3):
            states[:, k, state] = (own == state).sum(axis=1)
        alleles[:, k, 0] = 2 * (own >= 0).sum(axis=1) + (single >= 0).sum(axis=1)
        alleles[:, k, 1] = np.where(own > 0, own, 0).sum(axis=1) + (single == 2).sum(axis=1)
    people = np.array([(labels == name).sum() for name in names])
    pseudo = np.array([((labels == name) & haploid).sum() for name in names])
    return PopulationCounts([str(n) for n in names], people, pseudo, alleles, states)


@pytest.fixture
def make_counts():
    return counts_of
