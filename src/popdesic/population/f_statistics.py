"""f3, f4 and D of populations (Patterson et al. 2012, Genetics 192), with block jackknife.

With p the frequencies of ALT at a site and v what sampling adds to the square of that of the target
(`PopulationCounts.sampling`: p (1 - p) / (n - 1) of n alleles called, unless samples are inbred):

    f3(c; a, b) = mean over sites of (p_c - p_a) (p_c - p_b) - v_c
    f4(a, b; c, d) = mean over sites of (p_a - p_b) (p_c - p_d)
    D = sum of the same / sum of (p_a + p_b - 2 p_a p_b) (p_c + p_d - 2 p_c p_d)

each over the sites where all its populations are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from .allele_counts import PopulationCounts
from .jackknife import Estimate, jackknife


class _Complete(NamedTuple):
    """Sums over the sites of each block where v is known of every population.

    With q = p - the mean of all populations, f2, f3 and f4 are sums of products q_a q_b.

    Attributes
    ----------
    mask : bool array, (n_sites,)
        These sites.
    products : float64 array, (n_blocks, n_populations, n_populations)
        Sums of q_a q_b.
    excess : float64 array, (n_blocks, n_populations)
        Sums of v.
    sites : int64 array, (n_blocks,)
    """

    mask: np.ndarray
    products: np.ndarray
    excess: np.ndarray
    sites: np.ndarray


def _complete_sites(counts: PopulationCounts, starts: np.ndarray) -> _Complete:
    n_blocks, k = len(starts) - 1, len(counts.names)
    own = counts.sampling(np.arange(len(counts.alleles)))
    complete = np.isfinite(own).all(axis=1)
    bounds = np.concatenate([[0], np.cumsum(complete)])[starts]
    own = own[complete]
    p = counts.alleles[complete, :, 1] / counts.alleles[complete, :, 0].astype(np.float64)
    p -= p.mean(axis=1, keepdims=True) if k else 0.0
    products, excess = np.zeros((n_blocks, k, k)), np.zeros((n_blocks, k))
    for block, (first, last) in enumerate(pairwise(bounds)):
        q = p[first:last]
        products[block] = q.T @ q
        excess[block] = own[first:last].sum(axis=0)
    return _Complete(complete, products, excess, np.diff(bounds))


def f3_of_target(
    counts: PopulationCounts, target: int, starts: np.ndarray, complete: _Complete
) -> Estimate:
    """f3(target; a, b) of all pairs of other populations.

    Parameters
    ----------
    starts : int64 array, (n_blocks + 1,)
        `blocks.block_starts`.
    complete : _Complete
        Of the same counts and blocks.

    Returns
    -------
    Estimate
        Arrays (n_pairs,): pairs of the other populations in order.
    """
    others = np.delete(np.arange(len(counts.names)), target)
    first, second = np.triu_indices(len(others), 1)
    a, b, q = others[first], others[second], complete.products
    own = q[:, target, target] - complete.excess[:, target]
    top = own[:, None] - q[:, target, a] - q[:, target, b] + q[:, a, b]
    sites = np.repeat(complete.sites[:, None].astype(np.float64), len(first), axis=1)
    # Where some population is not called, each f3 has sites of its own.
    rest = np.flatnonzero(~complete.mask)
    bounds = np.searchsorted(rest, starts)
    for block in np.flatnonzero(np.diff(bounds)):
        part = rest[bounds[block] : bounds[block + 1]]
        called = counts.alleles[part, :, 0]
        p = counts.alleles[part, :, 1] / np.maximum(called, 1)
        own, excess = p[:, target], counts.sampling(part)[:, target]
        known = (called[:, others] > 0) & np.isfinite(excess)[:, None]
        difference = np.where(known, own[:, None] - p[:, others], 0.0)
        excess = np.nan_to_num(excess)
        marks = known.astype(np.float64)
        products = difference.T @ difference - (marks.T * excess) @ marks
        top[block] += products[first, second]
        sites[block] += (marks.T @ marks)[first, second]
    return jackknife(top, sites, sites)


def without_skewness(found: Estimate) -> np.ndarray:
    """z of the f3 of one target as it would be without their skewness: float64 (n_pairs,).

    f3 of a block is skewed to the right, because (p_c - p_a) (p_c - p_b) is. Estimates that are low
    by chance then have too small an error, so that z is below the quantiles of Student's t too
    often. Hall's transformation (1992, Journal of the Royal Statistical Society B 54) takes the
    first order of that away; with g the skewness of n blocks,

        z + g z^2 / (3 sqrt(n)) + g^2 z^3 / (27 n) + g / (6 sqrt(n)),

    which rises with z. g is the mean over all f3 of the target: the skewness of one f3 is too
    uncertain in few blocks, and is itself low where z is.
    """
    n = found.blocks.astype(np.float64)
    enough = (n > 2) & np.isfinite(found.z)
    n = np.where(enough, n, 3.0)
    g = np.where(enough, found.skewness * np.sqrt(n * (n - 1)) / (n - 2), 0.0)
    g = max(float(g.sum() / max(enough.sum(), 1)), 0.0)
    z, root = found.z, np.sqrt(n)
    shifted = z + g * z**2 / (3 * root) + g**2 * z**3 / (27 * n) + g / (6 * root)
    return np.where(enough, shifted, z)


def f3_screen(counts: PopulationCounts, starts: np.ndarray) -> pd.DataFrame:
    """f3 of every population as target and every pair of others as sources.

    Returns
    -------
    DataFrame
        `target`, `source1`, `source2`, `f3`, `error`, `z`, `z_corrected` (`without_skewness`),
        `sites`, `blocks`, by falling evidence of admixture (rising `z_corrected`).
    """
    names = np.array(counts.names, dtype=object)
    parts = []
    complete = _complete_sites(counts, starts)
    for target in range(len(names)) if len(names) > 2 else ():
        found = f3_of_target(counts, target, starts, complete)
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
                    "z_corrected": without_skewness(found),
                    "sites": found.sites.astype(np.int64),
                    "blocks": found.blocks,
                }
            )
        )
    columns = ["target", "source1", "source2", "f3", "error", "z", "z_corrected", "sites", "blocks"]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return table.sort_values(
        ["z_corrected", "target", "source1", "source2"], kind="stable", ignore_index=True
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
    complete = _complete_sites(counts, starts)
    kept = complete.sites > 0
    sizes = complete.sites[kept]
    products = complete.products[kept]
    own = np.diagonal(products, axis1=1, axis2=2) - complete.excess[kept]
    f2 = (own[:, :, None] + own[:, None] - 2 * products) / sizes[:, None, None]
    diagonal = np.arange(len(counts.names))
    f2[:, diagonal, diagonal] = 0.0
    return np.ascontiguousarray(np.moveaxis(f2, 0, -1)), sizes
