"""Structure within each community: none, a continuum, or finer groups.

Components of the whole study show what parts its communities. Within one, the components of its own
samples are tested, as those of a study are, and the samples are looked at for a gap on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ..components.noise_null import significant_axes
from ..components.relationship import CHUNK_SITES, alt_frequency, relationship_among
from ..core.errors import UserError
from ..core.threads import one_blas_thread, run_tasks
from ..io.sites import chunks
from .depth import Genotypes
from .splits import evenly_spaced, split_samples

#: Fewest and most samples of a community in which structure is looked for; of more, so many evenly
#: spaced.
FEWEST_SAMPLES, MOST_SAMPLES = 20, 500
#: Samples whose genotypes are in memory at once: 200 MB at the sites of `depth.MOST_SITES`.
READ_SAMPLES = 10_000
#: Allele frequencies below this, in a community, do not count: a few carriers make components.
MIN_MAF = 0.02


@one_blas_thread
def structure_within(
    genotypes: Genotypes, community: np.ndarray, fine: np.ndarray, threads: int = 1
) -> list[dict[str, Any]]:
    """What is known of each community, in their order.

    Parameters
    ----------
    community, fine : int arrays, (n,)
        Communities 1, 2, … and finer ones.
    threads : int
        Changes no byte: communities are looked at side by side.

    Returns
    -------
    list of dict
        `community`, `samples`, `fine` (finer communities in it), `significant` (components of its
        own unrelated samples; None if these are fewer than FEWEST_SAMPLES) and `structure`:
        ``discrete`` where there are finer communities or where its own components show a gap,
        ``continuous`` where components are significant and show none, ``one`` where none is, and
        ``unknown`` for too few samples.
    """
    members = [np.flatnonzero(community == k) for k in range(1, int(community.max()) + 1)]
    drawn = [_drawn(genotypes, own) for own in members]

    def look(number: int, values: np.ndarray | None, threads: int) -> dict[str, Any]:
        finer = len(np.unique(fine[members[number]]))
        scores = None if values is None else _components(values, genotypes.sites, threads)
        significant = None if scores is None else scores.shape[1]
        kind = "unknown" if scores is None else "continuous" if significant else "one"
        if finer > 1 or (significant and split_samples(scores).halves):
            kind = "discrete"
        return {
            "community": number + 1,
            "samples": len(members[number]),
            "fine": finer,
            "significant": significant,
            "structure": kind,
        }

    found = []
    for first, last in _batches([len(own) for own in drawn]):
        there = _read(genotypes, drawn[first:last])
        share = max(1, threads // len(there))
        tasks = [(number, values, share) for number, values in enumerate(there, first)]
        found += run_tasks(look, tasks, threads)
    return found


def _drawn(genotypes: Genotypes, members: np.ndarray) -> np.ndarray:
    """The unrelated of some samples, at most MOST_SAMPLES; none of fewer than FEWEST_SAMPLES."""
    own = members[genotypes.unrelated[members]]
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


def _components(values: np.ndarray, sites: pd.DataFrame, threads: int = 1) -> np.ndarray:
    """Scores on the significant components of some genotypes (n_sites, n): (n, k)."""
    n = values.shape[1]
    af = alt_frequency(values)
    with np.errstate(invalid="ignore"):
        common = np.minimum(af, 1 - af) >= MIN_MAF
    values, af, sites = values[common], af[common], sites[common]

    def read(first: int, last: int) -> np.ndarray:
        return values[first:last]

    relationship = relationship_among(read, [n], af, threads)
    try:
        axes, tests, _ = significant_axes(
            relationship, read, [n], af, sites, "auto", threads=threads
        )
    except UserError:  # nothing varies
        return np.empty((n, 0))
    return axes.place(np.ones(n, bool), np.empty((0, n)), np.empty(0))[:, : tests.count]
