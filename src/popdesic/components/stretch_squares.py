"""Sums of squares of people's products with others, stretch by stretch, from pairs of sites.

With Y the standardised genotypes of one stretch, without the known components, the squares of all
entries of Y Y' sum to those of Y' Y, which has a row for each site: few, where stretches are short.
Its entries follow from counts of genotypes, so no random signs are needed.
"""

from __future__ import annotations

from copy import copy
from itertools import pairwise

import numpy as np

from ..cohort.site_planes import planes_of_beds
from ..core.threads import one_blas_thread, run_tasks
from ..engine.backend import Backend
from ..engine.genotype_products import Calls, Flips
from ..engine.terms import LD
from ..io.bed import ChosenSamples
from ..io.genotypes import MISSING, unpack_bed

#: Mean number of sites in a stretch, and genotypes, up to which pairs of sites are counted: that
#: takes less time than one pass with random signs (98 800 people at 9 521 sites on one core: 0.8 s
#: beside 3.5), of which many are needed where people are more than sites.
MOST_SITES, MOST_GENOTYPES = 256, 10_000_000_000
#: People whose products with themselves are computed; the others' squares have the same mean, and
#: these products are a small part of all.
PEOPLE = 2000


def counts_pairs(calls: Calls, stretch: np.ndarray) -> bool:
    """Whether `squares_between` is to be used for these genotypes in stretches."""
    n, n_sites = len(calls.places), calls.n_sites
    pairs = int((np.bincount(stretch) ** 2).sum())
    here = not any(hasattr(part, "__cuda_array_interface__") for part in calls.parts)
    return here and pairs <= MOST_SITES * n_sites and n * n_sites <= MOST_GENOTYPES


@one_blas_thread
def squares_between(calls: Calls, flips: Flips, lots: np.ndarray, backend: Backend) -> float:
    """Sum over stretches, and pairs of different people in both orders, of their squared product.

    It is what the sum of `GenotypeProducts.spread_by_person` estimates.

    Parameters
    ----------
    flips : Flips
        Its stretches and the known components; its signs play no role.
    lots : uint64 array, (n,)
        Random numbers of the samples, which choose PEOPLE of them.
    backend : Backend
        Of the CPU: each stretch is small.
    """
    n, alone = len(lots), copy(backend)
    alone.threads = 1
    mean, inverse = calls.standard
    rows = np.arange(calls.n_sites) if calls.rows is None else calls.rows
    chosen = np.sort(np.argsort(lots, kind="stable")[:PEOPLE])
    ends = np.cumsum([0, *(int(who.sum()) for who in calls.keep)])
    some = [
        np.flatnonzero(who)[chosen[(chosen >= a) & (chosen < b)] - a]
        for who, (a, b) in zip(calls.keep, pairwise(ends.tolist()), strict=True)
    ]
    few = [ChosenSamples(part, who) for part, who in zip(calls.parts, some, strict=True)]

    def work(first: int, last: int) -> tuple[float, float]:
        own, along = rows[first:last], flips.projections[first:last]
        mu, by = mean[first:last], inverse[first:last]
        planes = planes_of_beds(calls.parts, calls.keep, own)
        counts = dict(zip(LD.outputs, alone.bitgemm(planes, None, LD), strict=True))
        sum_a, sum_b = (counts[f"carrier_{x}"] + counts[f"hom_{x}"] for x in "ab")
        products = counts["product"] - mu * sum_a - mu[:, None] * sum_b
        products = (products + np.outer(mu, mu) * counts["called"]) * np.outer(by, by)
        products -= along @ along.T
        parts = [unpack_bed(part[own], len(who)) for part, who in zip(few, some, strict=True)]
        genotypes = np.concatenate(parts, axis=1)
        values = np.where(genotypes == MISSING, 0.0, (genotypes - mu[:, None]) * by[:, None])
        values -= along @ flips.known[chosen].T
        own_products = (values**2).sum(axis=0)
        return float((products**2).sum()), float((own_products**2).sum())

    cuts = np.flatnonzero(np.diff(flips.stretch)) + 1
    bounds = list(pairwise([0, *cuts.tolist(), calls.n_sites]))
    whole, own = np.sum(run_tasks(work, bounds, backend.threads), axis=0)
    return float(whole - own * n / len(chosen))
