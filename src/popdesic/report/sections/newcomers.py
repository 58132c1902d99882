"""Newcomers: where each lies, and warnings about those apart from founders of the same labels."""

from __future__ import annotations

from typing import Any

from ...core.tables import read_table
from ...ibd.verdict import UNRELATED
from ..findings import Finding
from ..newcomers import (
    LEAST_SAMPLES,
    NEAREST,
    Placed,
    newcomer_shifts,
    place_newcomer,
    significant_scores,
)
from ..outcome import Outcome
from ..words import join, number, percent

#: Labels of nearest founders that a row of the table names.
MOST_LABELS = 3
#: Samples of all newcomers above which their nearest founders are not sought for the table.
MOST_PLACED = 20_000


def newcomer_findings(outcome: Outcome, color_by: str) -> list[Finding]:
    """One warning for each newcomer and component of `newcomer_shifts`."""
    if not outcome.newcomers:
        return []
    scores = significant_scores(outcome)
    return [
        Finding(
            "warning",
            "Cohorts apart",
            f"On PC{shift['axis']} cohort {cohort} lies apart from founders of the same labels "
            f"({join(shift['labels'])}): cohort explains {percent(shift['share'])} of the variance "
            "there. Either its genotyping differs, or one label names different populations.",
        )
        for cohort in outcome.newcomers
        for shift in newcomer_shifts(outcome, cohort, color_by, scores) or []
    ]


def newcomer_section(outcome: Outcome, color_by: str, related: bool) -> dict[str, Any]:
    """Content of the section, empty without newcomers.

    Parameters
    ----------
    related : bool
        Whether this study seeks relatives; files may be of an earlier run.
    """
    if not outcome.newcomers:
        return {}
    scores = significant_scores(outcome)
    near = int(outcome.samples.cohort.isin(outcome.newcomers).sum()) <= MOST_PLACED
    placed = [place_newcomer(outcome, c, color_by, scores, near) for c in outcome.newcomers]
    relatives = _related_samples(outcome) if related else None
    present = outcome.drift.share_present
    return {
        "rows": [
            {
                "cohort": one.cohort,
                "samples": one.samples,
                "present": float(present[one.cohort]),
                "nearest": _nearest(one),
                "off": f"{one.off:.3f}",
                "expected": f"{one.expected:.3f}",
                "drifted": one.drifted,
                "compared": one.compared,
                "shifted": _shifted(one),
                "related": None if relatives is None else relatives.get(one.cohort, 0),
            }
            for one in placed
        ],
        "axes": scores.shape[1],
        "near": near,
        "labels": color_by,
        "neighbors": NEAREST,
        "least": LEAST_SAMPLES,
        "related": relatives is not None,
    }


def _nearest(placed: Placed) -> str:
    listed = [f"{label} ({number(count)})" for label, count in placed.nearest[:MOST_LABELS]]
    more = sum(count for _, count in placed.nearest[MOST_LABELS:])
    return join([*listed, *([f"others ({number(more)})"] if more else [])]) if listed else "NA"


def _shifted(placed: Placed) -> str:
    if placed.shifts is None:
        return "not tested"
    return join([f"PC{shift['axis']}" for shift in placed.shifts]) if placed.shifts else "none"


def _related_samples(outcome: Outcome) -> dict[str, int]:
    """Samples of each cohort that have a duplicate or a relative in another cohort."""
    path = outcome.folder / "compare/relatives.tsv"
    if not path.exists():
        return {}
    pairs = read_table(path)
    pairs = pairs[(pairs.relation != UNRELATED) & (pairs.cohort_a != pairs.cohort_b)]
    found: dict[str, set[str]] = {}
    for end in "ab":
        for cohort, sample in zip(pairs[f"cohort_{end}"], pairs[f"sample_{end}"], strict=True):
            found.setdefault(cohort, set()).add(sample)
    return {cohort: len(samples) for cohort, samples in found.items()}
