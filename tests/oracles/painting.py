"""Painting in plain float64, one haplotype at a time, from joint posteriors of neighbours."""

from __future__ import annotations

import numpy as np


def paint(haplotypes, cm, alleles, ne, mismatch, ends):
    """Lengths by site and haplotype, and numbers of segments by haplotype.

    `haplotypes` (n_haplotypes, n_called) may all be copied, `alleles` (n_called) has none missing.
    `ends`: begin and end of the map.
    """
    n, n_sites = haplotypes.shape
    rho = -np.expm1(-0.04 * ne * np.maximum(np.diff(cm), 1e-6) / n)
    emission = np.where(haplotypes == alleles, 1 - mismatch, mismatch).T
    forward, backward = np.empty((n_sites, n)), np.ones((n_sites, n))
    forward[0] = emission[0] / n
    for m in range(1, n_sites):
        step = np.full((n, n), rho[m - 1] / n) + (1 - rho[m - 1]) * np.eye(n)
        forward[m] = (forward[m - 1] @ step) * emission[m]
        forward[m] /= forward[m].sum()
    segments = np.zeros(n)
    for m in range(n_sites - 1, 0, -1):
        step = np.full((n, n), rho[m - 1] / n) + (1 - rho[m - 1]) * np.eye(n)
        backward[m - 1] = step @ (emission[m] * backward[m])
        backward[m - 1] /= backward[m - 1].sum()
        joint = forward[m - 1][:, None] * step * (emission[m] * backward[m])
        joint /= joint.sum()
        segments += joint.sum(axis=0) - np.diag(joint)
    shares = forward * backward
    shares /= shares.sum(axis=1, keepdims=True)
    segments += shares[0]
    borders = np.concatenate([ends[:1], (cm[1:] + cm[:-1]) / 2, ends[1:]])
    return shares * np.diff(borders)[:, None], segments
