"""Significance of hits: tests of interaction and association, BitEpi's measures.

`hit_test` gives p of a hit's interaction and of its association, corrected for all tests of a scan.

Permutations test association, whatever the score: a permuted phenotype loses main effects as well.
They are run for association scores alone (`permutations.py`). Phenotypes are permuted within strata
and families. The best score of each permuted scan is one draw from the null distribution of the
maximum, which corrects for all tests of a scan (Westfall & Young 1993).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.tables import read_table, write_table
from ..core.threads import one_blas_thread
from .adjusted import cells_of
from .evidence import MainEffects, candidates_of
from .finished import FinishedScan
from .interaction import interaction_test
from .loci import describe_loci, list_hits, no_hits
from .options import MAX_PER_SITE, kept_combinations
from .phantoms import mark_cis
from .relatedness import Relatives, kin_warnings, no_relatives
from .reorder import genotypes_of_planes, read_reordered
from .scan_data import Hits
from .scores import scale_bits, score_tables, table_cost
from .units import merge_units

if TYPE_CHECKING:
    from .hit_test import HitTest

log = logging.getLogger(__name__)


def strata_columns(samples: pd.DataFrame) -> np.ndarray:
    """One column of 0 and 1 for each stratum but the first: float64 (n_samples, n_strata - 1)."""
    codes, names = pd.factorize(samples["stratum"], sort=True)
    return (codes[:, None] == np.arange(1, len(names))).astype(np.float64)


def permutation_p(cost: np.ndarray, null: np.ndarray) -> np.ndarray:
    """(1 + permutations with an equal or better best) / (1 + permutations); NaN without any."""
    if not len(null):
        return np.full(len(cost), np.nan)
    return (1 + np.searchsorted(np.sort(null), cost, "right")) / (1 + len(null))


def hit_tables(genotypes: np.ndarray, n_controls: int) -> np.ndarray:
    """Contingency table of k sites over jointly called samples: int64 (2, 3, ..., 3)."""
    k = len(genotypes)
    called = (genotypes >= 0).all(axis=0)
    case = np.arange(genotypes.shape[1]) >= n_controls
    index = cells_of(genotypes[:, called]) + 3**k * case[called]
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
    scan: FinishedScan,
    out: Path,
    *,
    top: int,
    max_per_site: int = MAX_PER_SITE,
    loci_out: Path | None = None,
    design: np.ndarray | None = None,
    relatives: Relatives | None = None,
    labels: dict[str, str] | None = None,
    main_effects: MainEffects | None = None,
) -> dict[str, float]:
    """Merge the units' hits and write the ranked table (columns: config/README.md).

    Parameters
    ----------
    max_per_site, loci_out
        See `loci.list_hits`; table of the hits' loci.
    design : float64 array, (n_samples, n_columns), optional
        Columns of the null model of the tests, see `hit_test.HitTest`; the strata by default.
    relatives : Relatives, optional
    labels : dict, optional
        Further columns with one value for all rows.
    main_effects : MainEffects, optional
        They decide how the family-wise error is shared. None: equally, as with scores of
        association.
    """
    from .hit_test import hit_test

    units, order, score, tests, null = scan
    words, sites, samples = read_reordered(folder)
    if design is None:
        design = strata_columns(samples)
    for warning in kin_warnings(relatives or no_relatives(), len(samples), permutations=False):
        log.warning("%s", warning)
    test = hit_test((samples["class"] == "case").to_numpy(), tests, design, relatives)
    n_cases = int((samples["class"] == "case").sum())
    sizes = len(samples) - n_cases, n_cases
    kept = merge_units(units, sites["rank"].to_numpy(), kept_combinations(top))
    prior = main_effects.prior(sites) if main_effects else None
    best = candidates_of(kept, words, sites, sizes, prior, tests=tests, top=kept_combinations(top))
    listing = list_hits(best.hits, words, sites, *sizes, top=top, max_per_site=max_per_site)
    hits, shared = listing.hits, best.tests[listing.chosen]
    drawn = np.zeros(0, np.int64)
    if null is not None:
        drawn = read_table(null)["cost"].to_numpy(np.int64)
    described = {"order": order, "score": score, "drawn": drawn, "tests": shared}
    described |= {"locus": listing.locus}
    table = describe_hits(hits, words, sites, test, **described)
    if len(table):
        table = table.assign(locus=listing.locus)
        table = mark_cis(
            table, hits, words, sites, *sizes, tests=shared, covariates=design,
            strength=None if prior is None else prior.strength, relatives=relatives,
        )  # fmt: skip
        table = table.assign(**labels or {})
    write_table(out, table)
    if loci_out is not None:
        write_table(loci_out, describe_loci(listing, table, order))
    tested = tests if len(table) else 0
    counts = {"tests": tested, "hits": len(table), "loci": len(listing.loci)}
    return counts | {"permutations": len(drawn)}


@one_blas_thread
def describe_hits(
    hits: Hits,
    words: np.ndarray,
    sites: pd.DataFrame,
    test: HitTest,
    *,
    order: int,
    score: str,
    drawn: np.ndarray,
    tests: np.ndarray,
    named: Sequence[str] = ("id", "chrom", "pos", "ref", "alt"),
    locus: np.ndarray | None = None,
) -> pd.DataFrame:
    """The ranked table of a scan (columns: config/README.md).

    Parameters
    ----------
    hits : Hits
    words, sites
        From `reorder.reorder_sites`; `sites` also has the columns of `named`.
    test : HitTest
        Of the scan's samples, controls first.
    drawn : int64 array
        Best cost of each permuted scan.
    tests : float64 array, (n_hits,)
        What p of each hit's interaction is multiplied by.
    named : sequence of str
        Columns of `sites` that are written for each site of a hit.
    locus : int array, (n_hits,), optional
        Number of each hit's locus. The first hit of a locus is drawn fully. The others are drawn
        roughly, and their p is at least that of the first: they are the same signal.

    Returns
    -------
    DataFrame
        One row per hit; `loci.no_hits` if there are none.
    """
    n_samples, n_cases = len(test.case), int(test.case.sum())
    n_controls = n_samples - n_cases
    total, part = score_tables(score, n_controls, n_cases)
    unit = 2.0 ** scale_bits(n_samples)
    used, local = np.unique(hits.sites, return_inverse=True)
    genotypes = genotypes_of_planes(words[used], sites.iloc[used], n_controls, n_cases)
    local = local.reshape(hits.sites.shape)
    p = permutation_p(hits.cost, drawn)

    def cost(table: np.ndarray) -> float:
        return float(table_cost(table.reshape(2, -1), total, part)) / unit

    ranks, rows = sites["rank"].to_numpy(), []
    told = {name: sites[name].iloc[used].tolist() for name in named}
    place = {member: k for k, member in enumerate(used.tolist())}
    locus = np.arange(len(hits.sites)) if locus is None else locus
    leads: dict[int, float] = {}
    for k, members in enumerate(hits.sites):
        by_rank = np.argsort(ranks[members])
        members_genotypes = genotypes[local[k][by_rank]]
        table = hit_tables(members_genotypes, n_controls)
        row = {"rank": k + 1, "score": hits.cost[k] / unit}
        rough = locus[k] in leads
        p_interaction = test.p_interaction(members_genotypes, tests[k], rough=rough)
        least = leads.setdefault(locus[k], p_interaction)
        row |= {
            "tests": tests[k],
            "p_interaction": max(p_interaction, least),
            "p_association": test.p_association(members_genotypes, rough=rough),
            "p_permutation": p[k],
        }
        for number, member in enumerate(members[by_rank], 1):
            row |= {f"{name}{number}": told[name][place[member]] for name in named}
        axes = range(1, order + 1)
        main = [cost(table.sum(axis=tuple(a for a in axes if a != site))) for site in axes]
        row |= {f"main{number}": value for number, value in enumerate(main, 1)}
        parts_of = {f"{site}": value for site, value in zip(axes, main, strict=True)}
        for size, name in ((2, "best_pair"), (3, "best_triple"))[: order - 2]:
            smaller = {
                "+".join(map(str, group)): cost(
                    table.sum(axis=tuple(site for site in axes if site not in group))
                )
                for group in combinations(axes, size)
            }
            best = min(smaller, key=smaller.get)
            row |= {name: best, f"{name}_score": smaller[best]}
            parts_of |= smaller
        row["interaction_gain"] = min(parts_of.values()) - cost(table)
        row |= {"alpha": bitepi_alpha(table), "beta": bitepi_beta(table)}
        row |= dict(zip(("lr_chi2", "lr_df", "lr_p"), interaction_test(table), strict=True))
        for name, counts in zip(("controls", "cases"), table, strict=True):
            row[name] = ",".join(map(str, counts.ravel()))
        rows.append(row)
    return pd.DataFrame(rows) if rows else no_hits(order, named)
