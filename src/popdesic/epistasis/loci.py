"""From the best combinations of a scan to a list that shows the loci.

A scan keeps `options.CANDIDATES` times as many combinations as are listed. They are clumped: the
best one leads a locus, and every other combination whose sites can be matched one to one with the
lead's sites belongs to it, each site within LOCUS_BP of its partner on the chromosome, or with an
r2 of at least LOCUS_R2 on the same chromosome. The best of those left leads the next locus, as in
PLINK's `--clump`. Listed are, from the best on, combinations of whose sites none has been listed
`max_per_site` times: one site cannot fill the list. What is not listed still counts in its locus.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd

from .options import LOCUS_BP, LOCUS_R2
from .reorder import split_classes
from .scan_data import NAMES, Hits, ScanData

log = logging.getLogger(__name__)
#: Sites of leads whose correlations are kept in memory.
SITES_AT_ONCE = 512


@dataclass(frozen=True)
class Listing:
    """The hits to list, and the loci of all candidates.

    Attributes
    ----------
    hits : Hits
    chosen : int64 array, (n_hits,)
        Their rows among the candidates.
    locus : int64 array, (n_hits,)
        Number of each hit's locus, 1 the best.
    loci : DataFrame
        One row per locus: `locus`, `rank` (of the lead in the list), `n_hits`, `n_listed`,
        `best_r2` (of the member most correlated with the lead: the smaller r2 of its sites; NaN for
        a lead alone), and for each site k of the lead, in panel order, `start{k}` and `end{k}`, the
        first and last position of members on that side.
    """

    hits: Hits
    chosen: np.ndarray
    locus: np.ndarray
    loci: pd.DataFrame


def list_hits(
    kept: Hits,
    words: np.ndarray,
    sites: pd.DataFrame,
    n_controls: int,
    n_cases: int,
    *,
    top: int,
    max_per_site: int,
) -> Listing:
    """Choose the hits to list, and clump all candidates into loci.

    Parameters
    ----------
    kept : Hits
        The best combinations of a scan, best first (`evidence.candidates_of`).
    words, sites
        Of `reorder.read_reordered`.
    """
    used, local = np.unique(kept.sites, return_inverse=True)
    members = local.reshape(kept.sites.shape)
    of_sites = sites.iloc[used].reset_index(drop=True)
    classes = split_classes(np.asarray(words[used]), n_controls, n_cases)
    empty = np.zeros(0, np.int64)
    data = ScanData(classes, empty, empty, of_sites["rank"].to_numpy(np.int32))
    n, order = members.shape if len(members) else (0, kept.sites.shape[1])
    locus = np.zeros(n, np.int64)
    listed, leads, r2_to_lead = np.zeros(n, bool), [], np.full(n, np.nan)
    sides = np.zeros((n, order), np.int64)
    times = np.zeros(len(used), np.int64)
    ranks = of_sites["rank"].to_numpy()
    n_listed = 0

    @functools.lru_cache(SITES_AT_ONCE)  # a site is of many leads
    def near(site: int) -> tuple[np.ndarray, np.ndarray]:
        return _near(data, of_sites, site)

    for k in range(n):
        full = n_listed == top or (times[members[k]] >= max_per_site).any()
        if not locus[k]:
            if full:
                continue
            leads.append(k)
            lead = members[k][np.argsort(ranks[members[k]])]
            rest = k + np.flatnonzero(locus[k:] == 0)
            inside, r2, side = _members([near(site) for site in lead.tolist()], members[rest])
            chosen = rest[inside]
            locus[chosen] = len(leads)
            r2_to_lead[chosen], sides[chosen] = r2[inside], side[inside]
        if not full:
            listed[k] = True
            times[members[k]] += 1
            n_listed += 1
    rows = []
    rank = np.cumsum(listed)
    pos = of_sites.pos.to_numpy() if "pos" in of_sites else np.zeros(len(used), np.int64)
    for number, k in enumerate(leads, 1):
        inside = np.flatnonzero(locus == number)
        others = r2_to_lead[inside[inside != k]]
        known = others[np.isfinite(others)]
        row = {"locus": number, "rank": int(rank[k]), "n_hits": len(inside)}
        row |= {"n_listed": int(listed[inside].sum())}
        row["best_r2"] = float(known.max()) if len(known) else np.nan
        for place in range(order):
            at = pos[sides[inside, place]]
            row |= {f"start{place + 1}": int(at.min()), f"end{place + 1}": int(at.max())}
        rows.append(row)
    columns = ["locus", "rank", "n_hits", "n_listed", "best_r2"]
    columns += [f"{name}{place + 1}" for place in range(order) for name in ("start", "end")]
    hits = Hits(kept.cost[listed], kept.sites[listed])
    loci = pd.DataFrame(rows, columns=columns)
    return Listing(hits, np.flatnonzero(listed), locus[listed], loci)


def no_hits(order: int, named: Sequence[str]) -> pd.DataFrame:
    """The ranked table of a scan in which no combination of sites was eligible: its main columns.

    The log says so.
    """
    name = NAMES[order]
    log.warning(
        "none of the %s of sites was eligible: sites of one contig closer than "
        "epistasis.min_distance_bp and sites that are correlated are not combined, so nothing was "
        "tested.",
        name,
    )
    sites = [f"{column}{k}" for k in range(1, order + 1) for column in named]
    tests = ["tests", "p_interaction", "p_association", "p_permutation"]
    return pd.DataFrame(columns=["rank", "score", *tests, *sites, "lr_p"])


def describe_loci(listing: Listing, table: pd.DataFrame, order: int) -> pd.DataFrame:
    """The table of loci (columns: config/README.md), from the ranked table of their hits."""
    sites = [f"{name}{k}" for k in range(1, order + 1) for name in ("id", "chrom", "pos")]
    wanted = [*sites, "score", "lr_p", "p_interaction", "cis", "p_conditional"]
    if not len(listing.loci):
        return listing.loci
    there = [name for name in wanted if name in table]
    leads = table.iloc[listing.loci["rank"].to_numpy() - 1][there].reset_index(drop=True)
    return pd.concat([listing.loci, leads], axis=1)


def _near(data: ScanData, sites: pd.DataFrame, site: int) -> tuple[np.ndarray, np.ndarray]:
    """Which sites are of one locus with a site, bool (n_sites,), and their r2, float64 (n_sites,).

    r2 is -1 on other chromosomes and where it is undefined.
    """
    r2 = np.full(data.n_sites, -1.0)
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy()
    beside = np.flatnonzero(chrom == chrom[site])
    r2[beside] = site_correlations(data, sites, site, beside)
    close = r2 >= LOCUS_R2
    close[beside] |= np.abs(pos[beside] - pos[site]) <= LOCUS_BP
    return close, r2


def _members(
    near: list[tuple[np.ndarray, np.ndarray]], members: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which combinations belong to a lead, their r2 to it, and their sites in the lead's order.

    bool (n,), float64 (n,), int64 (n, order). Of several ways to match the sites with those of the
    lead, the one of the largest r2 counts. near: `_near` of each site of the lead.
    """
    order = len(near)
    inside, best = np.zeros(len(members), bool), np.full(len(members), -2.0)
    side = members.astype(np.int64)
    matches = np.ones(len(members), bool)
    for close, _ in near:
        matches &= close[members].any(axis=1)
    rows = np.flatnonzero(matches)
    for way in permutations(range(order)):
        matched = members[rows][:, list(way)]
        fits = np.all([near[place][0][matched[:, place]] for place in range(order)], axis=0)
        value = np.min([near[place][1][matched[:, place]] for place in range(order)], axis=0)
        better = fits & (value > best[rows])
        best[rows[better]], side[rows[better]] = value[better], matched[better]
        inside[rows] |= fits
    return inside, np.where(best >= 0, best, np.nan), side


def site_correlations(
    data: ScanData, sites: pd.DataFrame, site: int, others: np.ndarray
) -> np.ndarray:
    """r2 of ALT counts of one site with others, over jointly called people; -1 where undefined."""
    from .site_tables_cpu import count_tables

    pairs = np.stack([np.full(len(others), site), others], axis=1)
    counts = count_tables(data, pairs).sum(axis=1).reshape(-1, 3, 3)
    labels = sites[["state0", "state1", "other"]].to_numpy(np.int64)
    a, b = labels[site], labels[others]
    n = counts.sum(axis=(1, 2))
    of_a, of_b = counts.sum(axis=2), counts.sum(axis=1)
    s_a, s_b = of_a @ a, (of_b * b).sum(axis=1)
    covariance = n * np.einsum("nij,i,nj->n", counts, a, b) - s_a * s_b
    variances = (n * (of_a @ a**2) - s_a**2) * (n * (of_b * b**2).sum(axis=1) - s_b**2).astype(
        float
    )
    defined = variances > 0
    return np.where(defined, covariance.astype(float) ** 2 / np.where(defined, variances, 1), -1.0)
