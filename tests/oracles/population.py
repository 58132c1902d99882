"""Slow, obvious statistics of populations: one site, one pair, one person at a time."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def runs_of(
    genotypes: np.ndarray,
    pos: np.ndarray,
    *,
    window_sites: int = 50,
    window_hets: int = 1,
    window_missing: int = 5,
    threshold: float = 0.05,
    min_sites: int = 100,
    min_kb: float = 1000,
    kb_per_site: float = 50,
    max_gap_kb: float = 1000,
    max_hets: int = -1,
) -> list[tuple[int, int, int, int]]:
    """Runs of one sample on one chromosome: first and last site, heterozygous, missing."""
    n = len(genotypes)
    windows = [
        sum(genotypes[k : k + window_sites] == 1) <= window_hets
        and sum(genotypes[k : k + window_sites] == -1) <= window_missing
        for k in range(n - window_sites + 1)
    ]
    if not windows:
        return []
    candidate = []
    for site in range(n):
        over = [k for k in range(site - window_sites + 1, site + 1) if 0 <= k < len(windows)]
        homozygous = sum(windows[k] for k in over)
        # PLINK takes the share of the windows that there could be at this end of the chromosome.
        most = min(window_sites, site + 1) if site < len(windows) else n - site
        candidate.append(homozygous >= int(most * threshold + 1 - 2.0**-30))
    stretches, own = [], []
    for site in range(n):
        hets = sum(genotypes[k] == 1 for k in own)
        gap = own and pos[site] - pos[site - 1] > max_gap_kb * 1000
        too_many = genotypes[site] == 1 and hets == max_hets
        if own and (not candidate[site] or gap or too_many):
            stretches.append(own)
            own = []
        if candidate[site] and (own or not (max_hets == 0 and genotypes[site] == 1)):
            own = [*own, site]
    stretches += [own] if own else []
    runs = []
    for own in stretches:
        length = pos[own[-1]] - pos[own[0]] + 1
        dense = len(own) * kb_per_site * 1000 >= length
        if len(own) >= min_sites and length >= min_kb * 1000 and dense:
            states = genotypes[own]
            runs.append((own[0], own[-1], int(sum(states == 1)), int(sum(states == -1))))
    return runs


def hudson(a: np.ndarray, b: np.ndarray) -> tuple[float, float, int]:
    """Sums over sites of Hudson's numerator and denominator, and sites.

    a, b: alleles, int (n_sites, n_alleles), -1 missing; mean differences of all pairs of alleles.
    """
    top, bottom, sites = 0.0, 0.0, 0
    for x, y in zip(a, b, strict=True):
        x, y = x[x >= 0], y[y >= 0]
        if len(x) < 2 or len(y) < 2:
            continue
        between = np.mean([i != j for i in x for j in y])
        within = [np.mean([i != j for i, j in combinations(z, 2)]) for z in (x, y)]
        top += between - np.mean(within)
        bottom += between
        sites += 1
    return top, bottom, sites


def f2_of_samples(a: list[np.ndarray], b: list[np.ndarray]) -> tuple[float, int]:
    """Sum over sites of f2 from alleles of different samples alone, and sites.

    a, b: samples of a population, each its alleles, int (n_sites, 1 or 2), -1 missing. The mean
    over pairs of different samples of the product of their alleles is p^2, without bias.
    """
    total, sites = 0.0, 0
    for s in range(len(a[0])):
        squares = []
        for samples in (a, b):
            called = [[x for x in sample[s] if x >= 0] for sample in samples]
            pairs = [x * y for u, v in combinations(called, 2) for x in u for y in v]
            squares.append(np.mean(pairs) if pairs else np.nan)
        p = [np.mean([x for sample in g for x in sample[s] if x >= 0] or [np.nan]) for g in (a, b)]
        if np.isfinite(squares).all():
            total += squares[0] + squares[1] - 2 * p[0] * p[1]
            sites += 1
    return total, sites


def weir_cockerham(groups: list[np.ndarray]) -> np.ndarray:
    """Components a, b, c of one site (Weir and Cockerham 1984), by their equations 2 to 4.

    groups: genotypes of the people called, one array a population.
    """
    r, sizes = len(groups), np.array([len(g) for g in groups], float)
    p = np.array([g.mean() / 2 for g in groups])
    h = np.array([(g == 1).mean() for g in groups])
    mean = sizes.sum() / r
    size = (r * mean - (sizes**2).sum() / (r * mean)) / (r - 1)
    frequency = (sizes * p).sum() / (r * mean)
    spread = (sizes * (p - frequency) ** 2).sum() / ((r - 1) * mean)
    het = (sizes * h).sum() / (r * mean)
    rest = frequency * (1 - frequency) - (r - 1) / r * spread
    a = mean / size * (spread - (rest - het / 4) / (mean - 1))
    b = mean / (mean - 1) * (rest - (2 * mean - 1) / (4 * mean) * het)
    return np.array([a, b, het / 2])


def sharing_distance(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Sum over sites and pairs of people of |g - g'|, and number of pairs; (n_sites, n) each."""
    differences, pairs = 0, 0
    for x in a.T:
        for y in b.T:
            both = (x >= 0) & (y >= 0)
            differences += np.abs(x[both].astype(int) - y[both]).sum()
            pairs += both.sum()
    return float(differences), float(pairs)


def lostruct_distances(windows: list[np.ndarray], k: int = 2) -> np.ndarray:
    """Distances of windows by lostruct (Li and Ralph 2019), genotypes (n_sites, n), none missing.

    Its `cov_pca` takes the covariances of people over sites, after centring each site, and their k
    leading eigenvectors; `pc_dist(normalize="L1")` divides the k values by their sum, and compares
    the matrices sum of l v v' by the Frobenius norm.
    """
    matrices = []
    for x in windows:
        x = x - x.mean(axis=1, keepdims=True)
        values, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
        matrices.append((vectors * (values / np.abs(values).sum())) @ vectors.T)
    return np.array([[np.sqrt(((a - b) ** 2).sum()) for b in matrices] for a in matrices])


def with_swapped_alleles(genotypes: np.ndarray) -> np.ndarray:
    """Every site twice, the second time with REF and ALT swapped.

    The mean of a person over such sites is that of everybody, so that centring people, as a
    covariance does, changes nothing.
    """
    return np.concatenate([genotypes, 2 - genotypes])
