"""Finer communities: the components of a community's own samples, and the splits on these.

Components of everyone show what parts communities, and leave out what differs within one. So the
founders of each community define axes of their own, as those of a study do, and are split on these.
Its other samples are placed on the same axes, and belong to the group of the nearest of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from ..components.noise_null import significant_axes
from ..components.pca import Axes
from ..components.projection import FURTHER
from ..components.relationship import (
    CHUNK_SITES,
    DIPLOID,
    Alleles,
    alt_frequency,
    groups_of_others,
    relationship_among,
    relationship_to,
)
from ..core.errors import UserError
from ..core.threads import one_blas_thread, run_tasks
from ..io.sites import chunks
from .depth import Genotypes, measure_depths
from .founders import Founders, Seen, group_key
from .near import nearest_to
from .splits import MOST_COMPONENTS, cut_tree, describe_split, evenly_spaced, split_samples

#: Fewest and most samples of a community in which structure is looked for; of more, so many evenly
#: spaced.
FEWEST_SAMPLES, MOST_SAMPLES = 20, 500
#: Samples whose genotypes are in memory at once: 200 MB at the sites of `depth.MOST_SITES`.
READ_SAMPLES = 10_000
#: Allele frequencies below this, in a community, do not count: a few carriers make components.
MIN_MAF = 0.02


@one_blas_thread
def structure_within(
    genotypes: Genotypes, community: np.ndarray, threads: int = 1, known: Founders | None = None
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Finer groups, and what is known of each community, in their order.

    Parameters
    ----------
    community : int array, (n,)
        Communities 1, 2, …
    threads : int
        Changes no byte: communities are looked at side by side.

    Returns
    -------
    fine : int64 array, (n,)
        Group of each sample in its community, from 0.
    about : list of dict
        `community`, `samples`, `fine` (groups in it), `significant` (components of its own
        unrelated samples; None if these are fewer than FEWEST_SAMPLES), `splits` (those of the
        samples that were looked at, as `splits.describe_split` has them) and `structure`:
        ``discrete`` where there are several groups, ``continuous`` where components are significant
        and show no gap, ``one`` where none is, and ``unknown`` for too few samples.
    """
    known = known or Founders(np.ones(len(community), bool))
    members = [np.flatnonzero(community == k) for k in range(1, int(community.max()) + 1)]
    drawn = [_drawn(genotypes, own, known.among) for own in members]
    keys = [group_key(own) for own in drawn]
    earlier = {key: known.within[key] for key in keys if key in known.within}

    def look(number: int, values: np.ndarray | None, threads: int) -> Seen:
        if values is None:
            return earlier.get(keys[number], Seen(None))
        own = genotypes
        if own.alleles:
            copies = own.copies_of(drawn[number])
            own = replace(own, alleles=own.alleles._replace(copies=copies))
        return _look(values, own, threads)

    seen: list[Seen] = []
    unseen = [own[:0] if key in earlier else own for own, key in zip(drawn, keys, strict=True)]
    for first, last in _batches([len(own) for own in unseen]):
        there = _read(genotypes, unseen[first:last])
        share = max(1, threads // len(there))
        tasks = [(number, values, share) for number, values in enumerate(there, first)]
        seen += run_tasks(look, tasks, threads)
    of_founders = (known.among[own].all() for own in drawn)
    known.within = dict(compress(zip(keys, seen, strict=True), of_founders))
    fine, found = np.zeros(len(community), np.int64), []
    for own, shown, one in zip(members, drawn, seen, strict=True):
        kind = {None: "unknown", 0: "one"}.get(one.significant, "continuous")
        if one.splits:
            kind, fine[own] = "discrete", _place(genotypes, own, shown, one, threads)
        about = {"community": len(found) + 1, "samples": len(own)}
        about |= {"fine": len(one.splits) + 1, "significant": one.significant}
        found.append(about | {"structure": kind, "splits": one.splits})
    return fine, found


def _look(values: np.ndarray, source: Genotypes, threads: int) -> Seen:
    """Splits of some samples on the components of their genotypes (n_sites, n)."""
    alleles = source.alleles or Alleles(source.most)
    axes, af = own_axes(values, source.sites, threads, alleles)
    if axes is None or not axes.k:
        return Seen(0)
    everyone = np.ones(values.shape[1], bool)
    scores = axes.with_scores(everyone, np.empty((0, axes.k)))
    tree = split_samples(alleles.as_shares(scores))
    if not tree.halves:
        return Seen(axes.significant)
    opened = replace(source, read=lambda first, last: values[first:last], unrelated=everyone)
    (tree,) = measure_depths([tree], opened, [np.arange(len(everyone))], threads)
    splits = [describe_split(node) for node in tree.walk() if node.halves]
    return Seen(axes.significant, splits, cut_tree(tree), axes, af)


def own_axes(
    values: np.ndarray, sites: pd.DataFrame, threads: int = 1, alleles: Alleles = DIPLOID
) -> tuple[Axes | None, np.ndarray]:
    """The significant axes of some genotypes (n_sites, n), MOST_COMPONENTS at most, and `Seen.af`.

    No axes where nothing varies.
    """
    n = values.shape[1]
    most, weights = alleles.most, alleles.weights
    af = alt_frequency(values, most, alleles.copies)
    with np.errstate(invalid="ignore"):
        used = np.minimum(af, 1 - af) >= MIN_MAF
    common, places = values[used], sites[used]

    def read(first: int, last: int) -> np.ndarray:
        return common[first:last]

    relationship = relationship_among(read, [n], af[used], threads, most, weights)
    try:
        axes, tests, _ = significant_axes(
            relationship,
            read,
            [n],
            af[used],
            places,
            "auto",
            threads=threads,
            most=most,
            weights=weights,
        )
    except UserError:
        return None, np.zeros(len(af))
    k = min(tests.count, MOST_COMPONENTS)
    kept = slice(k + FURTHER)
    axes = replace(axes, values=axes.values[kept], vectors=axes.vectors[:, kept], k=k)
    return axes, np.where(used, af, 0.0)


def _place(
    genotypes: Genotypes, members: np.ndarray, drawn: np.ndarray, seen: Seen, threads: int
) -> np.ndarray:
    """Group of each member of a community: that of the nearest of those drawn, on their axes."""
    shown, axes = np.isin(members, drawn), seen.axes
    alleles = Alleles(genotypes.most, genotypes.copies_of(members))

    def read(first: int, last: int) -> np.ndarray:
        return genotypes.read(first, last)[:, members]

    others = [np.empty((0, axes.k))]
    for blocks in groups_of_others([len(members)], shown):
        given = read, [len(members)], shown, seen.af, threads, blocks
        rows, own = relationship_to(*given, alleles.most, alleles.weights)
        others.append(axes.project(rows, own))
    scores = alleles.as_shares(axes.with_scores(shown, np.concatenate(others)))
    groups = np.empty(len(members), np.int64)
    groups[shown] = seen.groups
    if not shown.all():
        nearest, _ = nearest_to(scores[~shown], scores[shown], threads)
        groups[~shown] = seen.groups[nearest]
    return groups


def _drawn(genotypes: Genotypes, members: np.ndarray, founders: np.ndarray) -> np.ndarray:
    """The unrelated of some samples, at most MOST_SAMPLES; none of fewer than FEWEST_SAMPLES.

    Of the founders, if these are enough and at least half of them.
    """
    own = members[genotypes.unrelated[members]]
    first = own[founders[own]]
    if len(first) >= max(FEWEST_SAMPLES, len(own) / 2):
        own = first
    if len(own) < FEWEST_SAMPLES:
        return own[:0]
    return evenly_spaced(own, MOST_SAMPLES)


def _batches(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """First and end of runs of communities of which READ_SAMPLES at most are drawn."""
    first, total = 0, 0
    for number, size in enumerate(sizes):
        if total and total + size > READ_SAMPLES:
            yield first, number
            first, total = number, 0
        total += size
    yield first, len(sizes)


def _read(genotypes: Genotypes, drawn: list[np.ndarray]) -> list[np.ndarray | None]:
    """Genotypes of sets of samples, int8 (n_sites, n) each, in one pass; None of empty sets."""
    parts: list[list[np.ndarray]] = [[np.empty((0, len(own)), np.int8)] for own in drawn]
    for first, last in chunks(len(genotypes.sites), CHUNK_SITES):
        there = genotypes.read(first, last)
        for own, part in zip(drawn, parts, strict=True):
            part.append(there[:, own])
    return [np.concatenate(part) if part[0].shape[1] else None for part in parts]
