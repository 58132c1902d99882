"""How well distances, maps and communities agree with the truth of a scene."""

from __future__ import annotations

import numpy as np
from scipy.spatial import procrustes
from scipy.stats import rankdata
from sklearn.metrics import adjusted_rand_score


def rank_correlation(found: np.ndarray, truth: np.ndarray) -> float:
    """Spearman's rank correlation of two symmetric matrices (n, n) over pairs of samples.

    The order of distances is compared, not their scale: d and d^α score the same. NaN where all
    true distances are equal.
    """
    upper = np.triu_indices(len(truth), 1)
    return _correlation(rankdata(found[upper]), rankdata(truth[upper]))


def rank_correlation_by_sample(found: np.ndarray, truth: np.ndarray) -> float:
    """Mean over samples of Spearman's correlation of the distances to all others.

    What `rank_correlation` gives but within the view of one sample each: lengths need not compare
    between dense and sparse regions. Samples whose true distances are all equal do not count.
    """
    others = ~np.eye(len(truth), dtype=bool)
    rows = [
        _correlation(rankdata(found[i, others[i]]), rankdata(truth[i, others[i]]))
        for i in range(len(truth))
    ]
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else float("nan")


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")


def procrustes_r2(found: np.ndarray, truth: np.ndarray) -> float:
    """Share of the variance of true coordinates that a map explains, 0 to 1.

    The map (n, j) is shifted, turned, mirrored and scaled as a whole to fit the true coordinates
    (n, k) best; with j = k = 1 it is the squared correlation. Axes that one of them lacks are 0.
    """
    axes = max(found.shape[1], truth.shape[1])
    found, truth = (
        np.pad(points, ((0, 0), (0, axes - points.shape[1]))) for points in (found, truth)
    )
    return float(1 - procrustes(truth, found)[2])


def neighbour_recall(found: np.ndarray, truth: np.ndarray, k: int = 15) -> float:
    """Share of each sample's `k` nearest by `found` that are among its `k` nearest in truth.

    True distances are often tied (a deme's people are all at 0): whoever is as near as the k-th
    counts as one of them. Of ties in `found` the first in sample order are taken.
    """
    n = len(truth)
    others = ~np.eye(n, dtype=bool)
    hits = 0
    for i in range(n):
        there, true = found[i, others[i]], truth[i, others[i]]
        near = np.argsort(there, kind="stable")[:k]
        hits += int((true[near] <= np.sort(true)[k - 1]).sum())
    return hits / (n * k)


def community_ari(found: np.ndarray, truth: np.ndarray) -> float:
    """Adjusted Rand index of communities and true populations (Hubert and Arabie 1985)."""
    return float(adjusted_rand_score(truth, found))


def false_splits(found: np.ndarray, truth: np.ndarray, least: float = 0.05) -> int:
    """How many communities too many the true populations are cut into.

    A population counts as cut by each community beyond the first that holds at least the share
    `least` of its people. Where the truth is one population or a continuum, give one label to all.
    """
    splits = 0
    for name in np.unique(truth):
        _, counts = np.unique(found[truth == name], return_counts=True)
        splits += max(0, int((counts >= least * counts.sum()).sum()) - 1)
    return splits


def hudson_f_st(genotypes: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """F_ST of two groups: ratio of sums over sites (Hudson 1992; Bhatia et al. 2013, equation 10).

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        -1 where missing.
    one, other : bool arrays, (n,)
    """
    between = within = 0.0
    (p, a), (q, b) = (_frequency(genotypes[:, group]) for group in (one, other))
    within = p * (1 - p) / (a - 1) + q * (1 - q) / (b - 1)
    between = p * (1 - q) + q * (1 - p)
    return float(((p - q) ** 2 - within).sum() / between.sum())


def _frequency(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ALT frequency of each site, and number of called gene copies."""
    called = genotypes >= 0
    copies = 2 * called.sum(axis=1)
    return np.where(called, genotypes, 0).sum(axis=1) / copies, copies
