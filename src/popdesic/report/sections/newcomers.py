"""Warnings about newcomers that lie apart from founders of the same labels."""

from __future__ import annotations

from ..findings import Finding
from ..newcomers import newcomer_shifts, significant_scores
from ..outcome import Outcome
from ..words import join, percent


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
