"""Association scores as their papers print them, of all combinations: a slow program of its own.

It shares no code with the scans. Of a table with n0 controls and n1 cases in a cell, n both, and
N0, N1 and N in all cells:

    k2                  sum over cells of ln (n + 1)! - ln n0! - ln n1! (Cooper and Herskovits 1992;
                        formula 1 of EPIClear and of the scan on CUDA cores, 8 of Tensor-Episdet)
    mutual_information  of cells and class, in nats
    g                   2 sum of observed ln (observed / expected), expected from the margins
    chi_squared         sum of (observed - expected)^2 / expected
    gini                sum of n / N (1 - (n0 / n)^2 - (n1 / n)^2), the impurity that is left
    beta                sum of n / N ((n0 / n)^2 + (n1 / n)^2), the purity of BitEpi
"""

from __future__ import annotations

import itertools
import math

import numpy as np

#: Whether small values are good.
LOW_IS_GOOD = {
    "k2": True,
    "mutual_information": False,
    "g": False,
    "chi_squared": False,
    "gini": True,
    "beta": False,
}


def table_scores(tables: np.ndarray) -> dict[str, np.ndarray]:
    """All scores of tables (k, 2, cells) of counts, controls first: float64 (k,) each."""
    n0, n1 = tables[:, 0], tables[:, 1]
    n, size = n0 + n1, int(tables[0].sum())
    factorial = np.array([math.lgamma(i + 1) for i in range(size + 2)])
    x_log_x = np.array([0.0, *(i * math.log(i) for i in range(1, size + 1))])
    entropies = x_log_x[n0] + x_log_x[n1] - x_log_x[n]
    classes = tables.sum(axis=2)
    expected = classes[:, :, None] * n[:, None] / size
    held = expected > 0
    ratio = np.divide(tables, expected, out=np.ones(tables.shape), where=(tables > 0) & held)
    apart = np.divide((tables - expected) ** 2, expected, out=np.zeros(tables.shape), where=held)
    purity = (n0.astype(float) ** 2 + n1.astype(float) ** 2) / np.maximum(n, 1)
    return {
        "k2": (factorial[n + 1] - factorial[n0] - factorial[n1]).sum(axis=1),
        "mutual_information": math.log(size)
        + (entropies.sum(axis=1) - x_log_x[classes].sum(axis=1)) / size,
        "g": 2 * (tables * np.log(ratio)).sum(axis=(1, 2)),
        "chi_squared": apart.sum(axis=(1, 2)),
        "gini": (n - purity).sum(axis=1) / size,
        "beta": purity.sum(axis=1) / size,
    }


def all_scores(
    genotypes: np.ndarray, case: np.ndarray, order: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """All combinations, int (k, order), and their scores; genotypes 0, 1, 2 (sites, samples)."""
    n_sites, cells = len(genotypes), 3**order
    members, found = [], {name: [] for name in LOW_IS_GOOD}
    for first in itertools.combinations(range(n_sites - 1), order - 1):
        last = np.arange(first[-1] + 1, n_sites)
        cell = case * cells + sum(
            genotypes[site].astype(int) * 3**power
            for site, power in zip(first, range(order - 1, 0, -1), strict=True)
        )
        cell = cell + genotypes[last] + 2 * cells * np.arange(len(last))[:, None]
        tables = np.bincount(cell.ravel(), minlength=2 * cells * len(last))
        for name, values in table_scores(tables.reshape(-1, 2, cells)).items():
            found[name].append(values)
        members.append(np.column_stack([np.tile(first, (len(last), 1)), last]))
    return np.concatenate(members), {name: np.concatenate(one) for name, one in found.items()}
