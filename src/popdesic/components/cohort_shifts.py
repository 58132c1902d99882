"""Founder cohorts that lie apart on the axes although their labels agree."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN

#: Samples of one label that a cohort needs to be compared.
LEAST_SAMPLES = 5
#: A shift is reported where the cohort explains this share of the variance within labels on an
#: axis, and more than on any axis in all PERMUTATIONS of the cohorts within labels: by chance in
#: one study of 200.
LEAST_SHARE = 0.1
PERMUTATIONS = 199
SEED = 1


def find_cohort_shifts(scores: np.ndarray, samples: pd.DataFrame) -> list[dict]:
    """Axes on which cohorts with labels in common stand apart within these labels.

    Only labels that at least two cohorts share take part, each with LEAST_SAMPLES. Nothing is
    found, and nothing said, where no two cohorts share a label.

    Parameters
    ----------
    scores : float64 array, (n, k)
        Of the samples that define the axes: those of others have another spread.
    samples : DataFrame
        Their `cohort` and, if the sheet has it, `population`.

    Returns
    -------
    list of dict
        `axis` (from 1), `share` of the variance within labels that cohorts explain, `cohorts` (the
        two farthest apart), `labels` in common, sorted by axis.
    """
    if "population" not in samples:
        return []
    table = samples[["cohort", "population"]].reset_index(drop=True)
    table = table[~table.population.isin(UNKNOWN)]
    counts = table.groupby(["population", "cohort"]).size()
    counts = counts[counts >= LEAST_SAMPLES]
    shared = counts.groupby("population").size()
    shared = sorted(shared.index[shared > 1])
    table = table[table.population.isin(shared)]
    cells = pd.MultiIndex.from_frame(table[["population", "cohort"]])
    table = table[cells.isin(counts.index)]
    if table.empty:
        return []
    label = pd.Categorical(table.population).codes.astype(np.int64)
    names = pd.Categorical(table.cohort)
    cohort = names.codes.astype(np.int64)
    centred = scores[table.index]
    for code in np.unique(label):
        centred[label == code] -= centred[label == code].mean(axis=0)
    total = np.maximum((centred**2).sum(axis=0), np.finfo(float).tiny)
    shares = _between(centred, label, cohort) / total
    rng = np.random.default_rng(SEED)
    groups = [np.flatnonzero(label == code) for code in np.unique(label)]
    largest = 0.0
    for _ in range(PERMUTATIONS):
        shuffled = cohort.copy()
        for group in groups:
            shuffled[group] = cohort[rng.permutation(group)]
        largest = max(largest, float((_between(centred, label, shuffled) / total).max()))
    found = []
    for axis, share in enumerate(shares.tolist(), 1):
        if share >= LEAST_SHARE and share > largest:
            means = pd.Series(centred[:, axis - 1]).groupby(cohort).mean()
            apart = sorted(str(names.categories[k]) for k in (means.idxmin(), means.idxmax()))
            found.append(
                {"axis": axis, "share": round(share, 6), "cohorts": apart, "labels": shared}
            )
    return found


def _between(centred: np.ndarray, label: np.ndarray, cohort: np.ndarray) -> np.ndarray:
    """Sum of squares between cohorts within labels, of values centred by label, (k,)."""
    cell = label * (cohort.max() + 1) + cohort
    order = np.argsort(cell, kind="stable")
    first = np.flatnonzero(np.diff(cell[order], prepend=-1))
    sums = np.add.reduceat(centred[order], first, axis=0)
    sizes = np.diff(np.append(first, len(cell)))
    return (sums**2 / sizes[:, None]).sum(axis=0)
