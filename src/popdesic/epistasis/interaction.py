"""The likelihood-ratio test of a table's interaction: statistic, degrees of freedom, p.

The statistic, its bounds and their proofs are in `epistasis.interaction_cpu`.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def interaction_statistics(tables: np.ndarray) -> np.ndarray:
    """LR of each table, float64 (n,), rounded to 2**-19.

    tables : int array, (n, 2, 3, 3[, 3[, 3]])
        Controls, then cases.
    """
    from .interaction_cpu import UNIT_BITS, interaction_costs

    return -2.0 * interaction_costs(tables, UNIT_BITS) / 2**UNIT_BITS


def degrees_of_freedom(table: np.ndarray) -> int:
    """Of the chi-square distribution of LR: combinations that occur, less fitted parameters.

    Genotypes, and combinations of them, that nobody carries do not count; 4, 8 and 16 if all occur,
    the number that `refit` counts without covariates. Combinations in a margin of one class alone
    do count, although the model fits them exactly: they hold few people, and without them p is too
    small more often (tests/bench/bench_interactions.py).

    Parameters
    ----------
    table : int array, (2, 3, 3[, 3[, 3]])
    """
    order = table.ndim - 1
    cells = np.argwhere(table.sum(axis=0) > 0)
    columns = [
        (cells[:, list(margin)] == states).all(axis=1)
        for margin in combinations(range(order), order - 1)
        for states in np.ndindex(*(3,) * (order - 1))
    ]
    if not len(cells):
        return 0
    return len(cells) - int(np.linalg.matrix_rank(np.stack(columns, axis=1).astype(float)))


def interaction_test(table: np.ndarray) -> tuple[float, int, float]:
    """Likelihood-ratio test of the interaction of all sites of a table: LR, df, p.

    For pairs that of BOOST (Wan et al. 2010); for triples the model keeps the effects of all pairs,
    for quads those of all triples.
    """
    from scipy.special import chdtrc

    statistic = float(interaction_statistics(table[None])[0])
    freedom = degrees_of_freedom(table)
    return statistic, freedom, float(chdtrc(freedom, max(statistic, 0.0))) if freedom else 1.0
