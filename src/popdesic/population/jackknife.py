"""Errors of ratios of sums over blocks of sites: the block jackknife."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """An estimate with its error; arrays of one shape.

    Attributes
    ----------
    value : float64
        Ratio of the sums over all blocks.
    error : float64
        Standard error; NaN with fewer than two blocks.
    z : float64
        value / error; NaN where the error is 0 or NaN.
    blocks : int64
        Blocks that hold any site.
    sites : float64
    skewness : float64
        Of the blocks' pseudo-values, each divided by the square root of h - 1; NaN as `error`.
    """

    value: np.ndarray
    error: np.ndarray
    z: np.ndarray
    blocks: np.ndarray
    sites: np.ndarray
    skewness: np.ndarray


def jackknife(top: np.ndarray, bottom: np.ndarray, sites: np.ndarray) -> Estimate:
    """Delete-m jackknife (Busing, Meijer and van der Leeden 1999) of sum(top) / sum(bottom).

    Blocks may have different numbers of sites m; with h = sum(m) / m, theta the estimate and
    theta_j the one without block j, the pseudo-values are h theta - (h - 1) theta_j and

        variance = mean over j of (pseudo_j - mean)^2 / (h_j - 1),
        mean     = sum over j of (theta - theta_j) + sum over j of theta_j / h_j.

    With equal blocks this is the ordinary jackknife.

    Parameters
    ----------
    top, bottom : float64 arrays, (n_blocks, ...)
    sites : float64 array, (n_blocks, ...)
        Sites of each block; a block without any does not count.
    """
    shape = np.broadcast_shapes(top.shape, bottom.shape, sites.shape)
    top, bottom, sites = (np.broadcast_to(a, shape) for a in (top, bottom, sites))
    total, below, m = top.sum(axis=0), bottom.sum(axis=0), sites.sum(axis=0)
    used = sites > 0
    n = used.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(below != 0, total / below, np.nan)
        without = (total - top) / (below - bottom)
        h = m / sites
        mean = np.where(used, value - without + without / h, 0.0).sum(axis=0)
        pseudo = h * value - (h - 1) * without
        own = np.where(used, (pseudo - mean) / np.sqrt(h - 1), 0.0)
        spread = (own * own).sum(axis=0)
        error = np.where(n > 1, np.sqrt(spread / n), np.nan)
        skewness = np.where(n > 1, (own**2 * own).sum(axis=0) / n / error**3, np.nan)
        z = np.where(error > 0, value / error, np.nan)
    return Estimate(value, error, z, n, m, skewness)
