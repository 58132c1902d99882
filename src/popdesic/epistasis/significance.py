"""Significance of hits: null distribution of the best score, interaction tests, BitEpi's measures.

Phenotypes are permuted within strata. The best score of each permuted scan is one draw from the
null distribution of the maximum, which corrects for all tests of a scan (Westfall & Young 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from ..engine.base import Backend, Hits
from ..io.tables import read_table, write_table
from .interaction import interaction_test
from .loci import describe_loci, list_units
from .options import MAX_PER_SITE
from .phantoms import mark_cis
from .reorder import read_reordered
from .scan import genotypes_of, load_scan, permuted, scanner
from .scores import scale_bits, score_tables, table_cost

#: Fewest permutations for an extreme-value fit.
LEAST_FOR_FIT = 20
#: Lower bound of the fitted p, relative to the smallest p of N permutations, 1 / (N + 1).
LEAST_OF_RESOLUTION = 0.1


def permute_scan(
    folder: Path,
    backend: Backend,
    out: Path,
    *,
    order: int,
    permutations: int,
    seed: int,
    score: str,
    min_distance_bp: int,
    max_r2: float,
) -> list[str]:
    """Write the best cost of each permuted scan, one row each; return warnings for the log."""
    words, _, _ = read_reordered(folder)
    data, _, samples = load_scan(folder, score, min_distance_bp, max_r2)
    best = []
    for index in range(permutations):
        hits = scanner(backend, order)(
            permuted(words, samples, data, seed, index), range(data.n_sites), 1
        )
        best.append(int(hits.cost[0]) if len(hits.cost) else 0)
    numbers = np.arange(1, permutations + 1)
    write_table(out, pd.DataFrame({"permutation": numbers, "cost": best}, dtype=np.int64))
    return strata_warnings(samples)


def strata_warnings(samples: pd.DataFrame) -> list[str]:
    """Warnings about strata of one class; see `structure` for what strata leave."""
    table = pd.crosstab(samples["stratum"], samples["class"])
    if len(table) < 2:
        return []
    single = table.index[(table == 0).any(axis=1)].tolist()
    return [f"all of stratum {name} are of one class: it is never permuted" for name in single]


def permutation_p(cost: np.ndarray, null: np.ndarray) -> np.ndarray:
    """(1 + permutations with an equal or better best) / (1 + permutations); NaN without any."""
    if not len(null):
        return np.full(len(cost), np.nan)
    return (1 + np.searchsorted(np.sort(null), cost, "right")) / (1 + len(null))


def extreme_value_p(cost: np.ndarray, null: np.ndarray) -> np.ndarray:
    """p of each cost under a generalised extreme-value fit to the null; NaN with too few draws.

    Never below LEAST_OF_RESOLUTION times the smallest permutation p: the fitted tail may end
    before a cost, and a p of 0 would claim more than permutations can show.
    """
    if len(null) < LEAST_FOR_FIT or np.ptp(null) == 0:
        return np.full(len(cost), np.nan)
    centre, scale = null.mean(), null.std()
    shape, location, width = stats.genextreme.fit(-(null - centre) / scale)
    fitted = stats.genextreme.sf(-(cost - centre) / scale, shape, location, width)
    return np.maximum(fitted, LEAST_OF_RESOLUTION / (1 + len(null)))


def hit_tables(genotypes: np.ndarray, n_controls: int) -> np.ndarray:
    """Contingency table of k sites over jointly called samples: int64 (2, 3, ..., 3)."""
    k = len(genotypes)
    called = (genotypes >= 0).all(axis=0)
    cell = np.zeros(genotypes.shape[1], np.int64)
    for row in genotypes:
        cell = 3 * cell + row
    case = np.arange(genotypes.shape[1]) >= n_controls
    index = cell[called] + 3**k * case[called]
    return np.bincount(index, minlength=2 * 3**k).reshape(2, *(3,) * k)


def bitepi_beta(table: np.ndarray) -> float:
    """BitEpi's beta: purity of the cells, weighted by their size (Bayat et al. 2021)."""
    controls, cases = (part.astype(np.float64) for part in table)
    n = controls + cases
    purity = np.divide(controls**2 + cases**2, n, out=np.zeros_like(n), where=n > 0)
    return float(purity.sum() / max(n.sum(), 1))


def bitepi_alpha(table: np.ndarray) -> float:
    """BitEpi's alpha: beta minus the best beta with one site removed."""
    sites = range(1, table.ndim)
    return bitepi_beta(table) - max(bitepi_beta(table.sum(axis=site)) for site in sites)


def rank_hits(
    folder: Path,
    units: list[Path],
    null: Path | None,
    out: Path,
    *,
    order: int,
    score: str,
    top: int,
    tests: int,
    max_per_site: int = MAX_PER_SITE,
    loci_out: Path | None = None,
    design: np.ndarray | None = None,
    labels: dict[str, str] | None = None,
) -> dict[str, float]:
    """Merge the units' hits and write the ranked table (columns: config/README.md).

    `labels`: further columns with one value for all rows. `loci_out`: table of the hits' loci.
    `design`: of the null model, for the hits in cis (`phantoms`); none by default.
    """
    words, sites, samples = read_reordered(folder)
    n_cases = int((samples["class"] == "case").sum())
    sizes = len(samples) - n_cases, n_cases
    listing = list_units(units, words, sites, *sizes, top=top, max_per_site=max_per_site)
    hits = listing.hits
    drawn = np.zeros(0, np.int64)
    if null is not None:
        drawn = read_table(null)["cost"].to_numpy(np.int64)
    table = describe_hits(
        hits, words, sites, len(samples) - n_cases, n_cases, order=order, score=score, drawn=drawn
    )
    if len(table):
        table = table.assign(locus=listing.locus)
        table = mark_cis(table, hits, words, sites, *sizes, tests=tests, covariates=design)
        table = table.assign(**labels or {})
    write_table(out, table)
    if loci_out is not None:
        write_table(loci_out, describe_loci(listing, table, order))
    counts = {"tests": tests, "hits": len(table), "loci": len(listing.loci)}
    return counts | {"permutations": len(drawn)}


def describe_hits(
    hits: Hits,
    words: np.ndarray,
    sites: pd.DataFrame,
    n_controls: int,
    n_cases: int,
    *,
    order: int,
    score: str,
    drawn: np.ndarray,
    named: Sequence[str] = ("id", "chrom", "pos", "ref", "alt"),
) -> pd.DataFrame:
    """The ranked table of a scan (columns: config/README.md).

    Parameters
    ----------
    hits : Hits
    words, sites
        From `reorder.reorder_sites`; `sites` also has the columns of `named`.
    drawn : int64 array
        Best cost of each permuted scan.
    named : sequence of str
        Columns of `sites` that are written for each site of a hit.

    Returns
    -------
    DataFrame
        One row per hit; without columns if there are no hits.
    """
    n_samples = n_controls + n_cases
    total, part = score_tables(score, n_controls, n_cases)
    unit = 2.0 ** scale_bits(n_samples)
    used, local = np.unique(hits.sites, return_inverse=True)
    genotypes = genotypes_of(words[used], sites.iloc[used], n_controls, n_cases)
    local = local.reshape(hits.sites.shape)
    p, p_fit = permutation_p(hits.cost, drawn), extreme_value_p(hits.cost, drawn)

    def cost(table: np.ndarray) -> float:
        return float(table_cost(table.reshape(2, -1), total, part)) / unit

    ranks, rows = sites["rank"].to_numpy(), []
    for k, members in enumerate(hits.sites):
        by_rank = np.argsort(ranks[members])
        table = hit_tables(genotypes[local[k][by_rank]], n_controls)
        row = {"rank": k + 1, "score": hits.cost[k] / unit}
        row |= {"p_permutation": p[k], "p_extreme_value": p_fit[k]}
        for number, member in enumerate(members[by_rank], 1):
            site = sites.iloc[member]
            row |= {f"{name}{number}": site[name] for name in named}
        axes = range(1, order + 1)
        main = [cost(table.sum(axis=tuple(a for a in axes if a != site))) for site in axes]
        row |= {f"main{number}": value for number, value in enumerate(main, 1)}
        parts_of = {f"{site}": value for site, value in zip(axes, main, strict=True)}
        if order == 3:
            pairs = {f"{a}+{b}": cost(table.sum(axis=6 - a - b)) for a, b in combinations(axes, 2)}
            best = min(pairs, key=pairs.get)
            row |= {"best_pair": best, "best_pair_score": pairs[best]}
            parts_of |= pairs
        row["interaction_gain"] = min(parts_of.values()) - cost(table)
        row |= {"alpha": bitepi_alpha(table), "beta": bitepi_beta(table)}
        row |= dict(zip(("lr_chi2", "lr_df", "lr_p"), interaction_test(table), strict=True))
        for name, counts in zip(("controls", "cases"), table, strict=True):
            row[name] = ",".join(map(str, counts.ravel()))
        rows.append(row)
    return pd.DataFrame(rows)
