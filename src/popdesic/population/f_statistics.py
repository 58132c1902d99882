"""f3, f4 and D of populations (Patterson et al. 2012, Genetics 192), with block jackknife.

With p the frequencies of ALT at a site and v = p (1 - p) / (n - 1) the variance of that of the
target (`PopulationCounts.own_difference`):

    f3(c; a, b) = mean over sites of (p_c - p_a) (p_c - p_b) - v_c
    f4(a, b; c, d) = mean over sites of (p_a - p_b) (p_c - p_d)
    D = sum of the same / sum of (p_a + p_b - 2 p_a p_b) (p_c + p_d - 2 p_c p_d)

each over the sites where all its populations are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from .allele_counts import PopulationCounts
from .jackknife import Estimate, jackknife


def f3_of_target(counts: PopulationCounts, target: int, starts: np.ndarray) -> Estimate:
    """f3(target; a, b) of all pairs of other populations.

    Parameters
    ----------
    starts : int64 array, (n_blocks + 1,)
        `blocks.block_starts`.

    Returns
    -------
    Estimate
        Arrays (n_pairs,): pairs of the other populations in order.
    """
    others = np.delete(np.arange(len(counts.names)), target)
    first, second = np.triu_indices(len(others), 1)
    n_blocks = len(starts) - 1
    top, sites = np.zeros((n_blocks, len(first))), np.zeros((n_blocks, len(first)))
    for block in range(n_blocks):
        part = slice(starts[block], starts[block + 1])
        called = counts.alleles[part, :, 0]
        p = counts.alleles[part, :, 1] / np.maximum(called, 1)
        n, own = called[:, target].astype(np.float64), p[:, target]
        known = (called[:, others] > 0) & (n > 1)[:, None]
        difference = np.where(known, own[:, None] - p[:, others], 0.0)
        excess = np.where(n > 1, own * (1 - own) / np.maximum(n - 1, 1), 0.0)
        marks = known.astype(np.float64)
        products = difference.T @ difference - (marks.T * excess) @ marks
        top[block] = products[first, second]
        sites[block] = (marks.T @ marks)[first, second]
    return jackknife(top, sites, sites)


def f3_screen(counts: PopulationCounts, starts: np.ndarray) -> pd.DataFrame:
    """f3 of every population as target and every pair of others as sources.

    Returns
    -------
    DataFrame
        `target`, `source1`, `source2`, `f3`, `error`, `z`, `sites`, `blocks`, by falling evidence
        of admixture (rising z).
    """
    names = np.array(counts.names, dtype=object)
    parts = []
    for target in range(len(names)) if len(names) > 2 else ():
        found = f3_of_target(counts, target, starts)
        others = np.delete(names, target)
        first, second = np.triu_indices(len(others), 1)
        parts.append(
            pd.DataFrame(
                {
                    "target": names[target],
                    "source1": others[first],
                    "source2": others[second],
                    "f3": found.value,
                    "error": found.error,
                    "z": found.z,
                    "sites": found.sites.astype(np.int64),
                    "blocks": found.blocks,
                }
            )
        )
    columns = ["target", "source1", "source2", "f3", "error", "z", "sites", "blocks"]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return table.sort_values(
        ["z", "target", "source1", "source2"], kind="stable", ignore_index=True
    )


def f4_tests(
    counts: PopulationCounts, starts: np.ndarray, tests: Sequence[Sequence[str]]
) -> pd.DataFrame:
    """f4 and D of chosen populations.

    Returns
    -------
    DataFrame
        `a`, `b`, `c`, `d`, `f4`, `error`, `z`, `d_statistic`, `d_error`, `d_z`, `sites`, `blocks`,
        in the order of the tests. Tests of a population that is not there are left out.
    """
    index = {name: k for k, name in enumerate(counts.names)}
    known = [test for test in tests if all(name in index for name in test)]
    rows = []
    for test in known:
        four = [index[name] for name in test]
        called = (counts.alleles[:, four, 0] > 0).all(axis=1)
        n = counts.alleles[:, four, 0]
        a, b, c, d = (counts.alleles[:, four, 1] / np.maximum(n, 1)).T
        top = np.where(called, (a - b) * (c - d), 0.0)
        bottom = np.where(called, (a + b - 2 * a * b) * (c + d - 2 * c * d), 0.0)
        sums = [_by_block(values, starts) for values in (top, called.astype(float), bottom)]
        f4, ratio = jackknife(sums[0], sums[1], sums[1]), jackknife(sums[0], sums[2], sums[1])
        rows.append(
            (
                *test,
                *(float(v) for v in (f4.value, f4.error, f4.z)),
                *(float(v) for v in (ratio.value, ratio.error, ratio.z)),
                *(int(f4.sites), int(f4.blocks)),
            )
        )
    columns = ["a", "b", "c", "d", "f4", "error", "z", "d_statistic", "d_error", "d_z"]
    return pd.DataFrame(rows, columns=[*columns, "sites", "blocks"])


def _by_block(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of consecutive blocks, none of them empty."""
    return np.add.reduceat(values, starts[:-1]) if len(values) else np.zeros(0)


def f2_blocks(counts: PopulationCounts, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f2 of all pairs of populations in each block, over sites where everyone is called.

    The sites are the same for all pairs, so that f3 and f4 made of these f2 hold exactly.

    Returns
    -------
    f2 : float64 array, (n_populations, n_populations, n_kept)
        Blocks without such a site are left out.
    sites : int64 array, (n_kept,)
    """
    n = len(counts.names)
    found, sizes = [], []
    for first, last in pairwise(starts):
        called = counts.alleles[first:last, :, 0].astype(np.float64)
        complete = (called > 1).all(axis=1)
        if not complete.any():
            continue
        called = called[complete]
        p = counts.alleles[first:last, :, 1][complete] / called
        own = (p * p - p * (1 - p) / (called - 1)).mean(axis=0)
        f2 = own[:, None] + own - 2 / len(p) * (p.T @ p)
        np.fill_diagonal(f2, 0.0)
        found.append(f2)
        sizes.append(int(complete.sum()))
    stacked = np.stack(found, axis=-1) if found else np.zeros((n, n, 0))
    return stacked, np.array(sizes, np.int64)
