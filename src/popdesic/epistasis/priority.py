"""How many tests a combination's p is corrected for: fewer where its sites have main effects.

Sites that interact usually have effects of their own, too. In a large sample the statistic of an
interaction is independent of the statistics of its sites' main effects (both are of nested models),
so these may decide how the family-wise error is shared among the combinations of a scan, as long as
the shares sum to it: weighted Bonferroni (Genovese, Roeder & Wasserman 2006, Biometrika 93:509), by
independent statistics (Dai, Kooperberg, LeBlanc & Prentice 2012, Biometrika 99:929).

The sites are ranked by their main effects. All combinations share 1 - `SHARE` of the error
equally. The rest goes in equal parts to those whose last site is among the first 2, 4, 8, 16, ...
and not before (of triples: 4, 8, ...), shared equally in each group. So a pair of the two strongest
sites of half a million is corrected for about 200 tests instead of 10^11, and a pair of sites
without main effects for a tenth more than all of them.
"""

from __future__ import annotations

import math

import numpy as np

#: Share of the family-wise error that goes by main effects.
SHARE = 0.1


def correction_factors(last: np.ndarray, n_sites: int, order: int) -> np.ndarray:
    """The number that p of each combination is multiplied with, float64 (n,).

    The reciprocals of those of all combinations of a scan sum to 1.

    Parameters
    ----------
    last : int array, (n,)
        Rank of the combination's weakest site, 1 for the strongest main effect of all sites of the
        scan. It must not depend on anything but the tables of single sites.
    n_sites : int
        Sites of the scan.
    order : {2, 3}
    """
    whole = math.comb(n_sites, order)
    ends = [order if order == 2 else 4]
    while 2 * ends[-1] <= n_sites:
        ends.append(2 * ends[-1])
    ends[-1] = n_sites
    up_to = [0, *(math.comb(end, order) for end in ends)]
    group = np.searchsorted(ends, np.asarray(last))
    sizes = np.diff(np.array(up_to, np.float64))
    return 1 / ((1 - SHARE) / whole + SHARE / (len(ends) * sizes[group]))


def ranks_of_main_effects(strength: np.ndarray) -> np.ndarray:
    """Rank of each site, 1 for the strongest; equal ones in their order. int64 (n_sites,)."""
    ranks = np.empty(len(strength), np.int64)
    ranks[np.argsort(-np.asarray(strength), kind="stable")] = np.arange(1, len(strength) + 1)
    return ranks
