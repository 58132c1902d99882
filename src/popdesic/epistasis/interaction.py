"""The likelihood-ratio test of a table's interaction: statistic, degrees of freedom, p.

The statistic, its bounds and their proofs are in `engine.host.interaction`.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def interaction_statistics(tables: np.ndarray) -> np.ndarray:
    """LR of each table, float64 (n,), rounded to 2**-19.

    tables : int array, (n, 2, 3, 3[, 3])
        Controls, then cases.
    """
    from ..engine.host.interaction import UNIT_BITS, interaction_costs

    return -2.0 * interaction_costs(tables, UNIT_BITS) / 2**UNIT_BITS


def lower_order_information(tables: np.ndarray) -> np.ndarray:
    """I(S; class) of the best margin S of one site fewer, in nats: float64 (n,)."""
    sites = range(2, tables.ndim)
    return np.max([class_information(tables.sum(axis=site)) for site in sites], axis=0)


def class_information(tables: np.ndarray) -> np.ndarray:
    """N times the mutual information of genotypes and class, in nats: float64 (n,)."""
    from scipy.special import xlogy

    tables = tables.reshape(len(tables), 2, -1).astype(np.float64)
    parts = (tables, tables.sum(axis=1), tables.sum(axis=2), tables.sum(axis=(1, 2)))
    cells, genotypes, classes, whole = (xlogy(n, n).reshape(len(n), -1).sum(axis=1) for n in parts)
    return cells - genotypes - classes + whole


def independence_bounds(tables: np.ndarray) -> np.ndarray:
    """Bound 1 of LR / 2 in nats, float64 (n,): conditional independence given the best margin."""
    return class_information(tables) - lower_order_information(tables)


def degrees_of_freedom(table: np.ndarray) -> int:
    """Of the chi-square distribution of LR: combinations that occur, less fitted parameters.

    Genotypes, and combinations of them, that nobody carries do not count; 4 and 8 if all occur, the
    number that `refit` counts without covariates. Combinations in a margin of one class alone do
    count, although the model fits them exactly: they hold few people, and without them p is too
    small more often (tests/bench/bench_interactions.py).

    Parameters
    ----------
    table : int array, (2, 3, 3[, 3])
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

    For pairs that of BOOST (Wan et al. 2010); for triples the model keeps the effects of all pairs.
    """
    from scipy.special import chdtrc

    statistic = float(interaction_statistics(table[None])[0])
    freedom = degrees_of_freedom(table)
    return statistic, freedom, float(chdtrc(freedom, max(statistic, 0.0))) if freedom else 1.0
