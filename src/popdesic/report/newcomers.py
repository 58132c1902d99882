"""Where samples of a newcomer lie, and whether they are shifted from founders of their labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN
from ..components.cohort_shifts import LEAST_SAMPLES, find_cohort_shifts
from .outcome import Outcome
from .words import join, number, plural

#: Founders around a newcomer whose labels are counted.
NEAREST = 5
#: Most founders, and most samples of a newcomer, that are compared within labels; evenly spaced.
MOST_COMPARED = 2_000
#: A newcomer is reported whose allele frequencies differ from the panel's this many times more than
#: expected from sampling, and more than those of any founder.
DRIFT_FACTOR = 2.0
#: Founders of a label from which the shift of one newcomer's sample is measured: their standard
#: deviation must be known to a fifth or so.
LEAST_FOUNDERS = 10


@dataclass(frozen=True)
class Placed:
    """Where the samples of a newcomer lie.

    Attributes
    ----------
    samples : int
    nearest : list of (str, int)
        Labels of the founders nearest to its samples, with numbers of samples, the most frequent
        first. Empty without labels or significant components, and where it has drifted: the axes
        may not describe it.
    axes : int
        Number of significant components.
    off, expected : float
        Mean difference of its allele frequencies from the panel's, and that of sampling alone.
    drifted : bool
        `has_drifted`.
    shifts : list of dict or None
        `newcomer_shifts`.
    compared : int
        Samples with enough founders of their label.
    """

    cohort: str
    samples: int
    nearest: list[tuple[str, int]]
    axes: int
    off: float
    expected: float
    drifted: bool
    shifts: list[dict[str, Any]] | None
    compared: int


def place_newcomer(
    outcome: Outcome, cohort: str, color_by: str, scores: np.ndarray, near: bool = True
) -> Placed:
    """Labels of the founders nearest to its samples, its drift, and shifts within labels.

    Parameters
    ----------
    scores : float64 array, (n, k)
        From `significant_scores`.
    near : bool
        Whether nearest founders are sought.
    """
    samples = outcome.samples
    new = (samples.cohort == cohort).to_numpy()
    labels = samples.get(color_by, pd.Series("NA", samples.index))
    known = _founders(outcome) & ~labels.isin(UNKNOWN).to_numpy()
    drifted = has_drifted(outcome, cohort)
    nearest = []
    if near and scores.shape[1] and known.sum() > NEAREST and new.any() and not drifted:
        found = _labels_around(scores[known], labels[known].to_numpy(), scores[new])
        nearest = Counter(found).most_common()
    row = outcome.drift.loc[cohort]
    return Placed(
        cohort=cohort,
        samples=int(new.sum()),
        nearest=nearest,
        axes=scores.shape[1],
        off=float(row.mean_af_difference),
        expected=float(row.expected_af_difference),
        drifted=drifted,
        shifts=newcomer_shifts(outcome, cohort, color_by, scores),
        compared=int((new & labels.isin(shared_labels(outcome, cohort, color_by))).sum()),
    )


def describe_newcomer(outcome: Outcome, cohort: str, color_by: str) -> str:
    """What `place_newcomer` finds, in words."""
    placed = place_newcomer(outcome, cohort, color_by, significant_scores(outcome))
    text = f"Cohort {cohort} ({plural(placed.samples, 'sample')})"
    if placed.nearest:
        listed = join([f"{label} ({number(count)})" for label, count in placed.nearest[:3]])
        components = f"{number(placed.axes)} components" if placed.axes > 1 else "component"
        text += f" lies nearest to founders of {listed} on the first {components}"
    else:
        text += " was placed on the founders’ axes"
    if np.isfinite(placed.off) and np.isfinite(placed.expected):
        text += f"; its allele frequencies differ by {placed.off:.3f} "
        text += f"(sampling alone: {placed.expected:.3f})"
    text += "."
    if placed.drifted:
        text += " The axes may not describe it, so its nearest founders are not named."
    if placed.shifts:
        axes = join([f"PC{shift['axis']}" for shift in placed.shifts])
        all_of_it = placed.compared == placed.samples
        some = "" if all_of_it else f" ({number(placed.compared)} samples could be compared)"
        text += (
            f" On {axes} it is shifted from founders with the same label, as by a batch effect"
            f"{some}."
        )
    elif placed.shifts is not None and placed.compared == placed.samples:
        text += " Its samples are not shifted from founders with the same label on any component."
    elif placed.shifts is not None:
        text += (
            f" {number(placed.compared)} of its samples have founders with the same label to "
            "compare with, and are not shifted from these on any component; the other "
            f"{number(placed.samples - placed.compared)} could not be compared."
        )
    elif placed.axes:
        text += (
            " Whether it is shifted from founders with the same label could not be tested: no "
            f"label has {LEAST_SAMPLES} samples of both."
        )
    return text


def founder_drift(outcome: Outcome) -> float:
    """Largest difference of a founder cohort's allele frequencies from the panel's."""
    drift = outcome.drift
    return float(drift.mean_af_difference[drift.founder == "yes"].max())


def has_drifted(outcome: Outcome, cohort: str) -> bool:
    """Whether a newcomer's allele frequencies differ by more than sampling and than a founder's."""
    row = outcome.drift.loc[cohort]
    off = row.mean_af_difference
    return bool(off > DRIFT_FACTOR * row.expected_af_difference and off > founder_drift(outcome))


def newcomer_shifts(
    outcome: Outcome, cohort: str, color_by: str, scores: np.ndarray
) -> list[dict[str, Any]] | None:
    """Significant components on which a newcomer lies apart from all founders within labels.

    Parameters
    ----------
    scores : float64 array, (n, k)
        From `significant_scores`.

    Returns
    -------
    list of dict or None
        As `find_cohort_shifts`; None where no label has LEAST_SAMPLES of both, or no component is
        significant.
    """
    samples = outcome.samples
    shared = shared_labels(outcome, cohort, color_by)
    if not shared or not scores.shape[1]:
        return None
    new, founder = (samples.cohort == cohort).to_numpy(), _founders(outcome)
    labels = samples[color_by]
    known = labels.isin(shared).to_numpy()
    rows = np.sort(np.concatenate([_spaced(known & group) for group in (new, founder)]))
    who = np.where(new[rows], cohort, "founders")
    table = pd.DataFrame({"cohort": who, "population": labels[rows].to_numpy()})
    return find_cohort_shifts(scores[rows], table)


def sample_shifts(outcome: Outcome, color_by: str) -> dict[str, tuple[float, int]]:
    """How far each sample of newcomers lies from founders of its label, and on which component.

    The largest difference from their mean over the significant components, in standard deviations
    of these founders. Samples whose label fewer than LEAST_FOUNDERS founders have are left out.
    """
    scores, founder = significant_scores(outcome), _founders(outcome)
    if not scores.shape[1] or founder.all() or color_by not in outcome.samples:
        return {}
    names, labels = outcome.samples["sample"].to_numpy(), outcome.samples[color_by]
    found = {}
    for label in set(labels[~founder]) - set(UNKNOWN):
        alike = (labels == label).to_numpy()
        known, new = scores[alike & founder], np.flatnonzero(alike & ~founder)
        if len(known) < LEAST_FOUNDERS:
            continue
        spread = np.maximum(known.std(axis=0, ddof=1), np.finfo(float).tiny)
        off = np.abs(scores[new] - known.mean(axis=0)) / spread
        for i, row in zip(new, off, strict=True):
            axis = int(np.argmax(row))
            found[str(names[i])] = float(row[axis]), axis + 1
    return found


def shared_labels(outcome: Outcome, cohort: str, color_by: str) -> set[str]:
    """Labels of which both a newcomer and the founders have LEAST_SAMPLES samples."""
    samples = outcome.samples
    if color_by not in samples:
        return set()
    labels = samples[color_by].where(~samples[color_by].isin(UNKNOWN))
    new = (samples.cohort == cohort).to_numpy()
    both = [labels[rows].value_counts() for rows in (new, _founders(outcome))]
    return set.intersection(*(set(c.index[c >= LEAST_SAMPLES]) for c in both))


def _founders(outcome: Outcome) -> np.ndarray:
    return outcome.samples.cohort.isin(outcome.founders).to_numpy()


def _spaced(chosen: np.ndarray) -> np.ndarray:
    """Positions of the chosen samples, at most MOST_COMPARED of them."""
    places = np.flatnonzero(chosen)
    return places[:: -(-len(places) // MOST_COMPARED) or 1]


def significant_scores(outcome: Outcome) -> np.ndarray:
    """Scores on the significant components, float64 (n, k)."""
    used = int(outcome.axes["significant"])
    if not used:
        return np.zeros((len(outcome.samples), 0))
    table = outcome.embedding("pca")
    axes = [column for column in table if column.startswith("PC") and column[2:].isdigit()]
    return table[axes[:used]].to_numpy(float)


def _labels_around(scores: np.ndarray, labels: np.ndarray, new: np.ndarray) -> list[str]:
    """The most frequent label among the NEAREST labelled samples of each new one; the nearest's if
    several are as frequent.
    """
    from scipy.spatial import cKDTree

    _, near = cKDTree(scores).query(new, NEAREST)
    return [Counter(labels[row].tolist()).most_common(1)[0][0] for row in near]
