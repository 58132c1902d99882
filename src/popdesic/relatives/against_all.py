"""One person against everyone in a study: distances and kinship in one reading of the planes.

The counts of `engine.terms.KINSHIP` give both: the squared distance over jointly called sites is
``4 ibs0 + het_a + het_b - 2 both_het``. So they are the integers that the study computes for a
cohort of this one person.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..distance.matrix import distances_of_counts
from ..distance.tiles import People, load_cohorts, pairwise_counts, within_panel
from ..engine.backend import Backend
from ..engine.ranks import smallest
from ..engine.terms import KINSHIP, Planes
from ..io.sites import chunks
from . import kinship
from .resolution import Resolution

#: Bytes of planes that are compared at a time, and read ahead while others are compared.
CHUNK_BYTES = 1 << 26


@dataclass(frozen=True)
class AgainstAll:
    """What one person has in common with each of n others.

    Attributes
    ----------
    people : People
        The others, in sample order.
    counts : dict of int64 arrays, (n,)
        Outputs of `KINSHIP`; the person is `a`.
    distances : float64 array, (n,)
        By the study's metric, scaled to all sites; infinite below `min_called`.
    """

    people: People
    counts: dict[str, np.ndarray]
    distances: np.ndarray


def compare_with_all(
    query: Planes,
    folders: Sequence[Path],
    backend: Backend,
    *,
    metric: str,
    missing: str,
    min_called: int,
) -> AgainstAll:
    """Compare one person with all samples of some cohorts.

    Parameters
    ----------
    query : Planes
        Of one sample.
    folders : list of Path
        Folders of `planes.npy`, in sample order.
    metric, missing, min_called
        As in `distance.matrix` and `distance.tiles.pairwise_counts`.

    Raises
    ------
    UserError
        Planes of different panels.
    """
    from .one_against_all_cpu import count_with_all  # numba starts slowly

    planes, people = load_cohorts(folders)
    found = [count_with_all(query, part, backend.threads) for part in planes.parts]
    counts = dict(zip(KINSHIP.outputs, np.concatenate(found, axis=1), strict=True))
    if missing == "pairwise" and metric != "normalized":
        # Distances over jointly called sites follow from the counts of kinship.
        used = {name: counts[name][None] for name in ("called", "ibs0")}
        used["squared"] = kinship.squared_distance(counts)[None]
    else:
        options = {"metric": metric, "missing": missing}
        blocks = _blocks(planes.parts)
        further = [pairwise_counts(query, block, backend, **options) for block in blocks]
        used = {name: np.concatenate([part[name] for part in further], 1) for name in further[0]}
    least = within_panel(min_called, query.n_sites)
    limits = {"metric": metric, "n_sites": query.n_sites, "min_called": least}
    distances = distances_of_counts(used, np.zeros(0, np.int64), **limits)[0]
    return AgainstAll(people, counts, distances)


def _blocks(parts: Sequence[Planes]) -> Iterator[Planes]:
    """Runs of samples of CHUNK_BYTES; the next is read ahead from disk."""
    ranges = [
        (part, first, last)
        for part in parts
        for first, last in chunks(part.n_samples, max(1, CHUNK_BYTES // part.words[0].nbytes))
    ]
    for k, (part, first, last) in enumerate(ranges):
        if k + 1 < len(ranges):
            _read_ahead(*ranges[k + 1])
        yield Planes(part.words[first:last], part.n_sites)


def _read_ahead(part: Planes, first: int, last: int) -> None:
    """Ask the system to read these samples of a memory-mapped file; returns at once."""
    words = part.words
    if isinstance(words, np.memmap) and words.filename and hasattr(os, "posix_fadvise"):
        row = words[0].nbytes
        with open(words.filename, "rb") as file:
            start, length = words.offset + first * row, (last - first) * row
            os.posix_fadvise(file.fileno(), start, length, os.POSIX_FADV_WILLNEED)


def nearest_people(against: AgainstAll, k: int) -> np.ndarray:
    """Numbers of the k nearest at a finite distance, nearest first, ties in sample order."""
    order = smallest(against.distances, k)
    return order[np.isfinite(against.distances[order])]


def relatives_of_one(
    against: AgainstAll,
    *,
    min_kinship: float,
    min_called: int,
    resolution: Resolution,
) -> np.ndarray:
    """Numbers of the relatives and duplicates of a person, closest first, ties by name.

    By the same rules as those of all pairs (`kinship.as_close`).
    """
    counts = np.array([against.counts[output] for output in KINSHIP.outputs])
    close = np.flatnonzero(kinship.as_close(counts, min_kinship, min_called, resolution))
    phi = kinship.king_robust(against.counts)[close]
    # NaN, two profiles of one person without a heterozygous site, comes last
    names = [against.people.samples[i] for i in close]
    return close[np.lexsort((np.array(names, str), -phi))]


def describe_pairs(
    name: str,
    against: AgainstAll,
    which: np.ndarray,
    *,
    resolution: Resolution | None,
) -> pd.DataFrame:
    """Rows of some pairs of a person.

    Parameters
    ----------
    resolution : Resolution, optional
        Without it there are no columns of kinship and relation.

    Returns
    -------
    DataFrame
        `sample`, `cohort`, `distance`, `called`, `ibs0`, then `kinship` (KING-robust) and
        `relation`.
    """
    people = against.people
    table = pd.DataFrame(
        {
            "sample": [people.samples[i] for i in which],
            "cohort": [people.cohorts[i] for i in which],
            "distance": against.distances[which],
            "called": against.counts["called"][which],
            "ibs0": against.counts["ibs0"][which],
        }
    )
    if resolution is None:
        return table
    counts = {output: values[which] for output, values in against.counts.items()}
    pairs = kinship.pairs_table(
        [(name, "")] * len(which),
        list(zip(table["sample"], table.cohort, strict=True)),
        counts,
        kinship.king_robust(counts),
        resolution=resolution,
    )
    return table.assign(kinship=pairs.kinship, relation=pairs.relation)
