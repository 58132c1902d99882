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
