"""Measures of imputed genotypes, from sums over those that were hidden."""

from __future__ import annotations

import numpy as np

#: Sums over the hidden genotypes: t is the true genotype, d the imputed dosage.
SUMS = ["n", "right", "carriers", "carriers_right", "t", "d", "tt", "dd", "td"]


def measures(sums: np.ndarray) -> tuple[int, float, float, float]:
    """Return hidden genotypes, concordance, non-reference concordance and dosage r2 of `SUMS`."""
    n, right, carriers, carriers_right, t, d, tt, dd, td = sums
    variance = (n * tt - t * t) * (n * dd - d * d)
    covariance = n * td - t * d
    return (
        int(n),
        right / n if n else np.nan,
        carriers_right / carriers if carriers else np.nan,
        covariance**2 / variance if variance > 0 else np.nan,
    )


def squared_correlation(truth: np.ndarray, imputed: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Squared correlation by row; 0 where the correlation is negative or nothing varies.

    Parameters
    ----------
    truth, imputed : int8 arrays, (n_sites, n_samples)
    which : bool array, (n_sites, n_samples)
        Genotypes that count.
    """
    t, d = (np.where(which, x, 0).astype(np.int64) for x in (truth, imputed))
    n = which.sum(axis=1)

    def covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return n * (a * b).sum(axis=1) - a.sum(axis=1) * b.sum(axis=1)

    variances = covariance(t, t).astype(np.float64) * covariance(d, d)
    top = np.maximum(covariance(t, d), 0).astype(np.float64) ** 2
    return np.divide(top, variances, out=np.zeros(len(n)), where=variances > 0)
