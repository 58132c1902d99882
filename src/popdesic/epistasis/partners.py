"""Which sites a scan may combine (rules: `scan_data.Partners`)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from .scan_data import Partners


def partners_of(sites: pd.DataFrame, min_distance_bp: int, max_r2: float) -> Partners | None:
    """The rules for sites of `reorder.reorder_sites`; None if all combinations are permitted.

    `sites` has `state0` and `state1` and, if `min_distance_bp` is positive, `chrom` and `pos`.
    """
    if min_distance_bp <= 0 and max_r2 >= 1:
        return None
    stored = sites[["state0", "state1"]].to_numpy()
    middle = np.where(stored[:, 0] == 1, 0, np.where(stored[:, 1] == 1, 1, 2)).astype(np.int8)
    chrom, pos = (np.zeros(len(sites), np.int32) for _ in range(2))
    if min_distance_bp > 0:
        chrom = pd.factorize(sites.chrom)[0].astype(np.int32)
        pos = sites.pos.to_numpy(np.int32)
    return Partners(chrom, pos, middle, min_distance_bp, max_r2)


def far_enough(partners: Partners | None, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rule 1 for sites `a` and `b` (indices, broadcast): bool."""
    if partners is None:
        return np.ones(np.broadcast_shapes(np.shape(a), np.shape(b)), bool)
    apart = np.abs(partners.pos[a].astype(np.int64) - partners.pos[b])
    return (partners.chrom[a] != partners.chrom[b]) | (apart >= partners.min_distance_bp)


def hardly_correlated(tables: np.ndarray, max_r2: float | np.ndarray) -> np.ndarray:
    """Rule 2 for every two sites of tables by ALT counts: bool (...).

    tables : int array, (2, ..., 3**order)
        Controls, then cases; the last site's ALT count varies fastest.
    max_r2 : float or float64 array, (...)
    """
    people = np.asarray(tables).sum(axis=0)
    fits = np.ones(people.shape[:-1], bool)
    order = {9: 2, 27: 3, 81: 4}[people.shape[-1]]
    if np.all(np.asarray(max_r2) >= 1):
        return fits
    counts = people.reshape(*people.shape[:-1], *(3,) * order)
    value = np.array([-1, 0, 1])
    for pair in combinations(range(order), 2):
        others = tuple(k - order for k in range(order) if k not in pair)
        table = counts.sum(axis=others)
        a, b = table.sum(axis=-1), table.sum(axis=-2)
        n, s_a, s_b = table.sum(axis=(-1, -2)), a @ value, b @ value
        covariance = n * (table @ value @ value) - s_a * s_b
        variances = [n * (x @ value**2) - s * s for x, s in ((a, s_a), (b, s_b))]
        product = variances[0].astype(np.float64) * variances[1].astype(np.float64)
        fits &= ~(covariance.astype(np.float64) ** 2 > max_r2 * product)
    return fits
