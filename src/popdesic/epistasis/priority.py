"""How many tests a combination's p is corrected for: fewer where its sites have main effects.

Sites that interact usually have effects of their own, too. In a large sample the statistic of an
interaction is independent of the statistics of its sites' main effects (both are of nested models),
so these may decide how the family-wise error is shared among the combinations of a scan, as long as
the shares sum to it: weighted Bonferroni (Genovese, Roeder & Wasserman 2006, Biometrika 93:509), by
independent statistics (Dai, Kooperberg, LeBlanc & Prentice 2012, Biometrika 99:929).

The sites are ranked by their main effects. All combinations share 1 - `SHARE` of the error
equally. The rest goes in equal parts to those whose last site is among the first 2, 4, 8, 16, ...
and not before (of triples and quads: 4, 8, ...), shared equally in each group. So a pair of the two
strongest sites of half a million is corrected for about 200 tests instead of 10^11, and a pair of
sites without main effects for up to a ninth more than all of them.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

#: Share of the family-wise error that goes by main effects.
SHARE = 0.1
#: Half a chi-square beyond which its tail is computed by its asymptotic series.
FAR_OUT = 300.0


def correction_factors(
    last: np.ndarray, n_sites: int, order: int, shared: np.ndarray | None = None
) -> np.ndarray:
    """The number that p of each combination is multiplied with, float64 (n,).

    The reciprocals of those of all combinations of a scan sum to 1.

    Parameters
    ----------
    last : int array, (n,)
        Rank of the combination's weakest site, 1 for the strongest main effect of all sites of the
        scan. It must not depend on anything but the tables of single sites.
    n_sites : int
        Sites of the scan.
    order : {2, 3, 4}
    shared : bool array, (n,), optional
        Which combinations have a part in the share by main effects; all by default. What the
        others leave is not given to anyone.
    """
    whole = max(math.comb(n_sites, order), 1)  # of too few sites there is no combination
    ends = [order if order == 2 else 4]
    while 2 * ends[-1] <= n_sites:
        ends.append(2 * ends[-1])
    ends[-1] = n_sites
    up_to = [0, *(math.comb(end, order) for end in ends)]
    group = np.searchsorted(ends, np.asarray(last))
    sizes = np.diff(np.array(up_to, np.float64))
    by_rank = SHARE / (len(ends) * sizes[group])
    if shared is not None:
        by_rank = np.where(shared, by_rank, 0.0)
    return 1 / ((1 - SHARE) / whole + by_rank)


def ranks_of_main_effects(strength: np.ndarray) -> np.ndarray:
    """Rank of each site, 1 for the strongest; equal ones in their order. int64 (n_sites,)."""
    ranks = np.empty(len(strength), np.int64)
    ranks[np.argsort(-np.asarray(strength), kind="stable")] = np.arange(1, len(strength) + 1)
    return ranks


def log_tail(half: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """ln P(chi-square >= 2 half), float64 (n,); 0 where `freedom` is 0 or `half` not positive."""
    from scipy.special import gammaincc, gammaln

    half, a = np.asarray(half, float), np.asarray(freedom, float) / 2
    far = half > FAR_OUT
    near = np.clip(half, 0.0, FAR_OUT)
    tail = np.log(gammaincc(np.maximum(a, 0.5), near))
    x = np.maximum(half, FAR_OUT)  # Abramowitz & Stegun 6.5.32
    series = 1 + (a - 1) / x * (1 + (a - 2) / x * (1 + (a - 3) / x))
    far_out = (a - 1) * np.log(x) - x - gammaln(np.maximum(a, 0.5)) + np.log(series)
    return np.where(a > 0, np.where(far, far_out, tail), 0.0)


def strength_of(tests: pd.DataFrame) -> np.ndarray:
    """-ln p of the genotypic test of each site, float64 (n_sites,); -1 where it has none.

    tests : DataFrame
        `genotypic_chi2` and `genotypic_df` of `single_sites.SiteTests.test`.
    """
    chi2 = pd.to_numeric(tests["genotypic_chi2"], errors="coerce").to_numpy(float)
    freedom = pd.to_numeric(tests["genotypic_df"], errors="coerce").fillna(0).to_numpy(float)
    known = np.isfinite(chi2) & (freedom > 0)
    return np.where(known, -log_tail(np.where(known, chi2, 0.0) / 2, freedom), -1.0)


def read_strength(path: Path, rank: np.ndarray) -> np.ndarray:
    """`strength_of` the sites of a scan, in the scan's order.

    Parameters
    ----------
    path : Path
        `results/epistasis/sites.tsv`: the sites in panel order.
    rank : int array, (n_sites,)
        Panel order of the scanned sites.
    """
    columns = ["genotypic_chi2", "genotypic_df"]
    strength = strength_of(pd.read_csv(path, sep="\t", usecols=columns, na_values="NA"))
    ordered = np.empty(len(rank))
    ordered[np.argsort(rank)] = strength
    return ordered
