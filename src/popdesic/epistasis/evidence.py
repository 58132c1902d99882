"""The order of a scan's candidates: p of the interaction, corrected by main effects.

A scan keeps the combinations of the largest likelihood ratios. Two sites of strong main effects are
corrected for fewer tests (`priority`), so that a smaller ratio of theirs may be the better
evidence. Therefore all combinations of the sites with the strongest main effects are scanned once
more and join the candidates, and the candidates are put in the order of

    log p + log(tests),

p of the likelihood ratio by chi-square with the table's own degrees of freedom, tests the number
that p is multiplied with.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..engine.backend import Backend
from ..io.sites import chunks
from .interaction import degrees_of_freedom
from .partners import far_enough, hardly_correlated, partners_of
from .phantoms import CIS_BP, CIS_CHI2, CIS_R2
from .priority import correction_factors, log_tail, ranks_of_main_effects, read_strength
from .reorder import join_classes, split_classes
from .scan_data import Hits, OneHot, ResidualData, ScanData
from .scan_sites import scanner
from .scores import make_scan_data, scale_bits

#: Sites of the strongest main effects all of whose pairs, or triples, are candidates: half a
#: million combinations. One core of a CPU takes 0.1 s (triples: 1 to 3 s) for 5 000 people and 2.5
#: s for 100 000. Quads: 90 000.
STRONG_SITES = {2: 1000, 3: 150, 4: 40}
#: Of these combinations, the best of so many by likelihood ratio: one in 100, but not fewer than
#: the least. If nothing interacts, they have p below 0.01; one that counts has p below 0.001.
ONE_KEPT_OF, LEAST_KEPT = 100, 1000
#: Bits after the point of a candidate's key, in nats: the last digits of a logarithm are not the
#: same on every machine.
KEY_BITS = 20
#: Tables that are counted at once.
CHUNK = 1024


@dataclass(frozen=True)
class Prior:
    """What decides how a scan shares its family-wise error.

    Attributes
    ----------
    strength : float64 array, (n_sites,)
        Of each site's main effect, the stronger the larger (`priority.strength_of`).
    backend : Backend
        Scans the sites of the strongest main effects.
    min_distance_bp, max_r2
        Rules for partners, as of the scan.
    levels : tuple, optional
        Of `null_model.read_levels`, for scans by residuals.
    """

    strength: np.ndarray
    backend: Backend
    min_distance_bp: int = 0
    max_r2: float = 1.0
    levels: tuple[np.ndarray, float] | None = None


@dataclass(frozen=True)
class WeightedHits:
    """Combinations, best first, and the number that p of each is multiplied with, float64 (n,)."""

    hits: Hits
    tests: np.ndarray


class MainEffects(NamedTuple):
    """`results/epistasis/sites.tsv`, and the other fields of the `Prior` that it gives."""

    table: Path
    backend: Backend
    min_distance_bp: int = 0
    max_r2: float = 1.0
    levels: tuple[np.ndarray, float] | None = None

    def prior(self, sites: pd.DataFrame) -> Prior:
        """The prior of a scan of `sites` (`reorder.read_reordered`)."""
        return Prior(read_strength(self.table, sites["rank"].to_numpy()), *self[1:])


def candidates_of(
    kept: Hits,
    words: np.ndarray,
    sites: pd.DataFrame,
    sizes: tuple[int, int],
    prior: Prior | None,
    *,
    tests: int,
    top: int,
) -> WeightedHits:
    """The best `top` combinations, best first, of what a scan kept and of the strongest sites.

    Parameters
    ----------
    kept : Hits
        The best combinations of a scan. With a `prior`, their costs are minus half of a statistic
        with a chi-square distribution, in nats with `scores.scale_bits` bits after the point.
    words, sites
        Of `reorder.read_reordered`.
    sizes : tuple of int
        Controls and cases; everybody and 0 if the phenotype is a number.
    prior : Prior, optional
        Without it, as with scores of association, the order of `kept` stays and p of each is
        multiplied by `tests`, the number of combinations of the scan.
    """
    if prior is None:
        hits = Hits(kept.cost[:top], kept.sites[:top])
        return WeightedHits(hits, np.full(len(hits.cost), float(tests)))
    strong = scan_strongest(words, sites, sizes, prior, kept.sites.shape[1])
    return weigh([kept, strong], words, sites, sizes, prior.strength, top)


def scan_strongest(
    words: np.ndarray, sites: pd.DataFrame, sizes: tuple[int, int], prior: Prior, order: int
) -> Hits:
    """The best combinations by interaction of the sites with the strongest main effects."""
    rows = np.flatnonzero(ranks_of_main_effects(prior.strength) <= STRONG_SITES[order])
    chosen, of_rows = np.asarray(words[rows]), sites.iloc[rows].reset_index(drop=True)
    partners = partners_of(of_rows, prior.min_distance_bp, prior.max_r2)
    if prior.levels is None:
        data = make_scan_data(chosen, of_rows, *sizes, "interaction", partners)
    else:
        planes = OneHot(join_classes(chosen, *sizes), sum(sizes))
        data = ResidualData(planes, *prior.levels, of_rows["rank"].to_numpy(np.int32), partners)
    scan = scanner(prior.backend, order, residuals=prior.levels is not None)
    kept = max(LEAST_KEPT, math.comb(data.n_sites, order) // ONE_KEPT_OF)
    hits = scan(data, range(data.n_sites), kept)
    cost = hits.cost if prior.levels is None else rescaled_cost(hits.cost, sum(sizes))
    return Hits(cost, rows[hits.sites].astype(np.int32))


def rescaled_cost(cost: np.ndarray, n_samples: int) -> np.ndarray:
    """Costs of a scan by residuals with the bits of the other scans."""
    from .interaction_cpu import UNIT_BITS

    return cost << (scale_bits(n_samples) - UNIT_BITS)


def weigh(
    parts: list[Hits],
    words: np.ndarray,
    sites: pd.DataFrame,
    sizes: tuple[int, int],
    strength: np.ndarray,
    top: int,
) -> WeightedHits:
    """The best `top` combinations of all parts by corrected evidence; each counts once.

    Combinations in cis are corrected for all tests: near an untyped causal site, the statistic of
    an interaction is not independent of the main effects (`phantoms`).
    """
    members, first = np.unique(
        np.concatenate([part.sites for part in parts]), axis=0, return_index=True
    )
    cost = np.concatenate([part.cost for part in parts])[first]
    n, order = members.shape
    freedom, cis = np.zeros(n, np.int64), np.zeros(n, bool)
    for start, stop in chunks(n, CHUNK):
        part = slice(start, stop)
        freedom[part], cis[part] = _look_at(words, sites, sizes, members[part])
    last = ranks_of_main_effects(strength)[members].max(axis=1, initial=0)
    tests = correction_factors(last, len(sites), order, shared=~cis)
    key = log_tail(-cost / 2.0 ** scale_bits(sum(sizes)), freedom) + np.log(tests)
    places = np.sort(sites["rank"].to_numpy()[members], axis=1)
    best = np.lexsort((*places.T[::-1], np.rint(key * 2.0**KEY_BITS)))[:top]
    return WeightedHits(Hits(cost[best], members[best].astype(np.int32)), tests[best])


def _look_at(
    words: np.ndarray, sites: pd.DataFrame, sizes: tuple[int, int], members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Degrees of freedom of each combination's table, and whether two of its sites are in cis."""
    from .site_tables_cpu import count_tables

    used, local = np.unique(members, return_inverse=True)
    local = local.reshape(members.shape)
    of_used = sites.iloc[used].reset_index(drop=True)
    empty = np.zeros(0, np.int64)
    classes = split_classes(np.asarray(words[used]), *sizes)
    data = ScanData(classes, empty, empty, of_used["rank"].to_numpy(np.int32))
    n, order = members.shape
    tables = count_tables(data, local).reshape(n, 2, *(3,) * order)
    states = np.argsort(of_used[["state0", "state1", "other"]].to_numpy(), axis=1)
    for site in range(order):  # from states to ALT counts
        shape = [n, *(3 if axis == site + 1 else 1 for axis in range(order + 1))]
        index = states[local[:, site]].reshape(shape)
        tables = np.take_along_axis(tables, index, axis=site + 2)
    tables = tables.reshape(n, 2, -1).swapaxes(0, 1)
    people = tables.sum(axis=0)
    freedom = np.array([_freedom(there.tobytes(), order) for there in people > 0], np.int64)
    limit = np.maximum(CIS_R2, CIS_CHI2 / np.maximum(people.sum(axis=1), 1))
    apart = hardly_correlated(tables, limit)
    if "chrom" in of_used:
        partners = partners_of(of_used, CIS_BP, 1.0)
        for a in range(order):
            for b in range(a):
                apart &= far_enough(partners, local[:, a], local[:, b])
    return freedom, ~apart


@functools.cache
def _freedom(there: bytes, order: int) -> int:
    """Degrees of freedom of a table in which these combinations of genotypes occur."""
    one = np.frombuffer(there, bool).astype(np.int64).reshape((3,) * order)
    return degrees_of_freedom(np.stack([one, one]))
