"""Slow, obvious versions of the SNP comparisons: the oracles of their tests."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np


def king_robust(a: np.ndarray, b: np.ndarray) -> float:
    """KING-robust kinship of two samples, site by site (Manichaikul et al. 2010, eq. 11)."""
    both_het = opposite = het_a = het_b = 0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        if x < 0 or y < 0:
            continue
        both_het += x == 1 and y == 1
        opposite += {x, y} == {0, 2}
        het_a += x == 1
        het_b += y == 1
    least = min(het_a, het_b)
    if least == 0:
        return math.nan
    # the paper's form: (N_Aa,Aa - 2 N_AA,aa) / (2 N_Aa(least)) + 1/2 - (N_Aa(i) + N_Aa(j)) / (4 ..)
    return (both_het - 2 * opposite) / (2 * least) + 0.5 - 0.25 * (het_a + het_b) / least


def r2(a: np.ndarray, b: np.ndarray) -> float:
    """Squared Pearson correlation over jointly called entries, in exact fractions."""
    pairs = [(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True) if x >= 0 and y >= 0]
    if not pairs:
        return math.nan
    n = len(pairs)
    mean_x, mean_y = (Fraction(sum(p[k] for p in pairs), n) for k in (0, 1))
    cov = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    var_x = sum((x - mean_x) ** 2 for x, _ in pairs)
    var_y = sum((y - mean_y) ** 2 for _, y in pairs)
    return float(cov**2 / (var_x * var_y)) if var_x and var_y else math.nan


def largest_unrelated(n: int, edges: list[tuple[int, int]]) -> int:
    """Size of a maximum independent set, by trying all sets."""
    return max(
        size
        for size in range(n + 1)
        for chosen in itertools.combinations(range(n), size)
        if not any(a in chosen and b in chosen for a, b in edges)
    )


def haplotype_likelihood(table: np.ndarray, p: float, q: float, d: float) -> float:
    """Log likelihood of a 3 x 3 genotype table given allele frequencies and D."""
    f = {(1, 1): p * q + d, (1, 0): p * (1 - q) - d, (0, 1): (1 - p) * q - d}
    f[0, 0] = 1 - sum(f.values())
    total = 0.0
    for x in range(3):
        for y in range(3):
            chance = sum(
                f[a, b] * f[c, e]
                for a, b, c, e in itertools.product((0, 1), repeat=4)
                if a + c == x and b + e == y
            )
            total += table[x, y] * math.log(max(chance, 1e-300))
    return total


def prune(r2s: np.ndarray, major, contig, pos, amount, unit, step, limit, constant) -> set[int]:
    """Sites that PLINK 1.9's --indep-pairwise removes, from its documentation, window by window."""
    removed = set(np.flatnonzero(constant).tolist())
    checked: set[tuple[int, int]] = set()
    for name in dict.fromkeys(contig):
        here = [i for i in range(len(contig)) if contig[i] == name]
        start = 0
        while True:
            if unit == "sites":
                window = here[start : start + int(amount)]
            else:
                window = [i for i in here[start:] if pos[i] <= pos[here[start]] + amount]
            again = True
            while again:
                again = False
                for i in window:
                    if i in removed:
                        continue
                    for j in window:
                        if j <= i or j in removed or (i, j) in checked:
                            continue
                        checked.add((i, j))
                        if r2s[i, j] > limit:
                            removed.add(i if major[i] > major[j] * (1 + 2.0**-44) else j)
                            again = True
                            break
            if window[-1] == here[-1]:
                break
            if unit == "sites":
                start += step
            else:
                first_new = here[here.index(window[-1]) + 1]
                start += 1
                while pos[here[start]] < pos[first_new] - amount:
                    start += 1
    return removed


def meiosis(parent: np.ndarray, breaks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One gamete of a parent (2, n_sites); `breaks` holds the crossover probability per site."""
    switches = np.cumsum(rng.random(parent.shape[1]) < breaks) + rng.integers(2)
    return parent[switches % 2, np.arange(parent.shape[1])]


def child(mother: np.ndarray, father: np.ndarray, breaks: np.ndarray, rng) -> np.ndarray:
    """A child of two parents, (2, n_sites): one gamete of each."""
    return np.stack([meiosis(mother, breaks, rng), meiosis(father, breaks, rng)])


def pc_relate(
    genotypes: np.ndarray, scores: np.ndarray, training: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """PC-Relate kinship (n, n) and that with oneself (n,), pair by pair, correction included."""
    n, n_sites = genotypes.shape
    axes = np.column_stack([np.ones(n), scores])
    frequency = np.full((n, n_sites), np.nan)
    for site in range(n_sites):
        use = training & (genotypes[:, site] >= 0)
        fit = np.linalg.lstsq(axes[use], genotypes[use, site] / 2, rcond=None)[0]
        frequency[:, site] = axes @ fit
    good = (frequency >= 0.01) & (frequency <= 0.99) & (genotypes >= 0)
    found = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            sites = good[i] & good[j]
            p, q = frequency[i, sites], frequency[j, sites]
            shared = (genotypes[i, sites] - 2 * p) * (genotypes[j, sites] - 2 * q)
            found[i, j] = shared.sum() / (4 * np.sqrt(p * (1 - p) * q * (1 - q)).sum())
    # expectation of residuals R K R', with R = 1 - H and H the fit on the training samples
    hat = np.zeros((n, n))
    hat[:, training] = axes @ np.linalg.pinv(axes[training])
    residual = np.eye(n) - hat

    def bias(related: np.ndarray) -> np.ndarray:
        return residual @ related @ residual.T - related

    # the fit sees training samples' kinships alone
    found -= bias(np.diag(np.full(n, 0.5)))
    among = found[np.ix_(training, training)]
    error = np.sqrt(np.mean(among[np.triu_indices(len(among), 1)] ** 2))
    relatives = np.where(found >= max(2**-4.5, 4 * error), found, 0.0)
    np.fill_diagonal(relatives, 0.0)
    found -= bias(relatives)
    own = np.diag(found).copy()
    root = np.sqrt(np.where(own < 0.5 - 2 * error, np.maximum(2 * own, 0.6), 1.0))
    return found / np.outer(root, root), own
