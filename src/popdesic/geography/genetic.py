"""Genetic distances between places, from the squared genotype distances between their people.

Over sites at which two people are called, the mean squared difference of their genotypes is 4 p q
within a place and 2 p q + 2 p' q' + 4 (p - p')^2 between two places (p, p' allele frequencies, q =
1 - p, mates random). So, with B the mean between two places and W that within them,
``F_ST / (1 - F_ST) = (B - W) / (2 W)`` in Hudson's F_ST as a ratio of averages (Bhatia et al.
2013). Differences between people are unbiased by the size of samples. Geodesics are not used:
their lengths depend on how densely people were sampled, which here is the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.triangle import open_symmetric
from ..io.sites import chunks

#: Pairs of people in memory at a time.
BLOCK = 1 << 22


@dataclass(frozen=True)
class GeneticDistances:
    """Genetic distances between places.

    Attributes
    ----------
    values : float64 array, (n_places, n_places)
        F_ST / (1 - F_ST); unbiased, so it can be slightly negative. Zero diagonal; NaN where no
        pair of people can be compared. If no place has two samples, mean squared differences a
        site.
    differences : float64 array, (n_places, n_places)
        The same above the line, but over the mean of W of all places: (B - W) / (2 mean W). Places
        at the rim of a range have less diversity, so that their own W makes every F_ST larger; on
        a grid of 10 x 10 demes this marked a false barrier there in 7 of 40 draws, these
        differences in 1.
    within : float64 array, (n_places,)
        Mean squared difference a site between people of the place; NaN for fewer than two.
    linearised : bool
        Whether `values` are F_ST / (1 - F_ST).
    """

    values: np.ndarray
    differences: np.ndarray
    within: np.ndarray
    linearised: bool


def place_sums(folder: Path, home: np.ndarray, n_places: int, min_called: int):
    """Sum of mean squared differences, and number of pairs, of people of every two places.

    Parameters
    ----------
    folder : Path
        `results/distance`, with the matrices `squared.npy` and `called.npy`.
    home : int64 array, (n_samples,)
        Place of each sample; -1 leaves it out.
    min_called : int
        Pairs with fewer jointly called sites are left out, and so are people with themselves.

    Returns
    -------
    sums : float64 array, (n_places, n_places)
    pairs : int64 array, (n_places, n_places)
        Both count each pair within a place twice.
    """
    squared, called = (open_symmetric(folder / f"{name}.npy") for name in ("squared", "called"))
    people = np.flatnonzero(home >= 0)
    people = people[np.argsort(home[people], kind="stable")]
    found, starts = np.unique(home[people], return_index=True)
    sums = np.zeros((n_places, n_places))
    pairs = np.zeros((n_places, n_places), np.int64)
    for first, last in chunks(len(people), max(1, BLOCK // max(len(home), 1))):
        rows = people[first:last]
        differences = squared[rows][:, people].astype(np.float64)
        counts = called[rows][:, people]
        valid = counts >= max(min_called, 1)
        valid[np.arange(len(rows)), np.arange(first, last)] = False
        differences = np.where(valid, differences / np.maximum(counts, 1), 0.0)
        for total, block in ((sums, differences), (pairs, valid.astype(np.int64))):
            added = np.add.reduceat(block, starts, axis=1)
            np.add.at(total, (home[rows][:, None], found[None, :]), added)
    return sums, pairs


def genetic_distances(sums: np.ndarray, pairs: np.ndarray) -> GeneticDistances:
    """Genetic distances of places from `place_sums`.

    Where a place has only one person, the mean over all pairs within places stands for its own.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(pairs > 0, sums / pairs, np.nan)
    within = means.diagonal().copy()
    inside = pairs.diagonal()
    linearised = bool(inside.any() and sums.diagonal().any())
    values = differences = means
    if linearised:
        pooled = sums.diagonal().sum() / inside.sum()
        # A place of identical people (a clone, a family) has no differences of its own.
        own = np.where(within > 0, within, pooled)
        both = own[:, None] + own[None, :]
        above = means - both / 2
        values, differences = above / both, above / (2 * pooled)
    values, differences = values.copy(), differences.copy()
    np.fill_diagonal(values, 0.0)
    np.fill_diagonal(differences, 0.0)
    return GeneticDistances(values, differences, within, linearised)
