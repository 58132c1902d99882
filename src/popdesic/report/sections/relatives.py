"""Findings about relatives and duplicates, and about the panel's power to resolve them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.files import read_json
from ...core.tables import read_table
from ...ibd.verdict import UNRELATED
from ...relatives.independence import LEAST_JUDGED, MOST_SHIFT
from ...relatives.kinship import RELATED, SAME, connected_groups, neighbours_of
from ...relatives.resolution import FIRST, Resolution
from ..findings import Finding
from ..kin_verdict import (
    KING,
    SOUGHT,
    by_ancestry,
    judged_relatives,
    judges_relatives,
    measured_resolution,
    untold_by_ancestry,
    untold_by_king,
    why_no_degrees,
)
from ..words import count_relations, join, number, percent, plural


def relatives_findings(
    results: Path, max_kinship: float = 0.0, analyses: Collection[str] = SOUGHT
) -> list[Finding]:
    """Resolution of kinship on the panel, and the close pairs of `compare/kinship.tsv`.

    Parameters
    ----------
    max_kinship : float
        `close_kinship`.
    analyses : collection of str
        `compare.analyses`: files of others are of an earlier run.
    """
    found = []
    if resolution := measured_resolution(results, analyses, max_kinship):
        found += _resolution_findings(resolution, max_kinship)
    by_king = not KING.isdisjoint(analyses)
    found += _untold_findings(untold_by_king(results, analyses))
    found += _small_findings(results) if by_king else []
    judged = judged_relatives(results) if judges_relatives(results, analyses) else None
    if judged is not None:
        _, about = judged
        # Duplicates are reported as such; unrelated pairs are none.
        counts = {k: n for k, n in about["relations"].items() if k not in (SAME, UNRELATED)}
        if counts:
            found.append(
                Finding(
                    "note",
                    "Relatives",
                    f"{plural(sum(counts.values()), 'close pair')}: {count_relations(counts)}. "
                    "Relatives form small clusters on maps and serve as bridges in the geodesics.",
                )
            )
        if counts and (text := why_no_degrees(about)):
            found.append(Finding("note", "Degrees", text))
    found += _sibship_findings(results) if by_king else []
    return found + _ancestry_findings(by_ancestry(results, analyses))


#: Most cohorts that a sentence names.
MOST_NAMED = 5
#: Why kinship fails in a cohort (`independence.judge_cohort`).
REASONS = {
    "heterozygotes": "it has too few heterozygotes, as inbred lines and selfing plants have",
    "triangles": (
        "most of its pairs like parent and child form triangles, which no pedigree has; its "
        "samples are clones, or missing calls are mostly homozygous reference"
    ),
    "missing": (
        "by the sites' missing calls, homozygotes are missing, which makes strangers look like "
        "relatives"
    ),
}


def _untold_findings(untold: pd.DataFrame) -> list[Finding]:
    """Cohorts in which KING-robust kinship fails, while founders as a whole are fine."""
    return [
        Finding(
            "warning",
            "Kinship fails",
            f"KING-robust kinship fails in cohort {row.cohort}: {REASONS[row.fault]}. "
            f"{plural(int(row.pairs), 'close pair')} with its samples are not listed. Only "
            "duplicates are, by their genotypes.",
        )
        for row in untold.itertuples()
    ]


def _small_findings(results: Path) -> list[Finding]:
    """Cohorts with relatives that are too small to be judged (`independence.judge_cohort`)."""
    path = results / "compare/kinship.tsv"
    if not path.exists():
        return []
    table = read_table(path)
    table = table[table.relation != SAME]
    small = []
    for cohort in sorted({*table.cohort_a, *table.cohort_b}):
        about = results / f"cohorts/{cohort}/planes.json"
        if about.exists() and len(read_json(about)["samples"]) < LEAST_JUDGED:
            small.append(cohort)
    if not small:
        return []
    one = len(small) == 1
    named = join(small) if len(small) <= MOST_NAMED else number(len(small))
    return [
        Finding(
            "note",
            "Kinship",
            f"{'Cohort' if one else 'Cohorts'} {named} {'has' if one else 'have'} close pairs but "
            f"fewer than {LEAST_JUDGED} samples, too few to see whether they are clones or inbred "
            "lines, which look like close relatives too.",
        )
    ]


#: Fewest samples of a group of siblings that the page doubts, and share of its pairs that are.
SIBSHIP, COMPLETE = 8, 0.9


def _sibship_findings(results: Path) -> list[Finding]:
    """Large groups of samples that all look like full siblings: clones look the same."""
    path = results / "compare/kinship.tsv"
    if not path.exists():
        return []
    table = read_table(path)
    table = table[
        (table.relation == RELATED) & (pd.to_numeric(table.kinship, errors="coerce") > FIRST)
    ]
    neighbours = neighbours_of(zip(table.sample_a, table.sample_b, strict=True))
    sizes = [
        len(group)
        for group in connected_groups(neighbours)
        if sum(len(neighbours[name]) for name in group) >= COMPLETE * len(group) * (len(group) - 1)
    ]
    large = sorted((size for size in sizes if size >= SIBSHIP), reverse=True)
    if not large:
        return []
    text = f"{number(large[0])} samples look like full siblings of each other"
    if len(large) > 1:
        others = len(large) - 1
        text += f", and {plural(others, 'other group')} of at least {SIBSHIP} too"
    text += (
        ". They are a large family, or clones that lost heterozygosity; kinship cannot say which."
    )
    return [Finding("note", "Relatives", text)]


def _ancestry_findings(about: dict[str, Any]) -> list[Finding]:
    """What `compare/pc_relate.json` says of the same pairs, and whether it can be trusted."""
    found, related = [], about.get("related_fitted", 0)
    if related:
        found.append(
            Finding(
                "note",
                "Relatives",
                f"By PC-Relate, which accounts for ancestry, {plural(related, 'pair')} of the "
                "founders that define the axes of the PCA are relatives.",
            )
        )
    if missed := untold_by_ancestry(about):
        found.append(
            Finding(
                "warning",
                "Relatives",
                f"Most samples of {join(missed)} look related to each other by PC-Relate. Either "
                "they are, or the principal components, which founders define, do not describe "
                "their ancestry; then their kinships and inbreeding are too large. Verdicts on "
                "their pairs do not use PC-Relate.",
            )
        )
    return found


#: Share of the sites below which the effective number means that many are in LD.
LINKED = 0.8


def amount_of_sites(found: Resolution) -> str:
    """Effective number of independent sites, and its consequence for kinship."""
    if found.fault:
        return found.fault
    if found.effective_sites is None:
        return "The founders are too few, or too similar, to estimate the accuracy of kinship."
    linked = ", many of them in LD," if found.effective_sites < LINKED * found.sites else ""
    text = (
        f"For kinship, the panel's {number(found.sites)} sites{linked} amount to "
        f"{number(round(found.effective_sites))} independent ones. The kinship of unrelated "
        f"samples has a standard error of {found.standard_error:.3f}"
    )
    if found.smallest_kinship is None:
        return text + " and can reach any value by chance, so relatives cannot be identified."
    text += "."
    if found.shift >= 0.0005:
        text += (
            " If missing calls are mostly homozygous, they raise kinship by up to "
            f"{found.shift:.3f}, and the limit is as much higher."
        )
    return (
        text + f" Pairs with a kinship of at least {found.smallest_kinship:.3f} count as "
        f"relatives. The probability of any false pair among {number(found.people)} unrelated "
        f"samples is at most {percent(found.error_rate, 0)}."
    )


def _limit_in_use(found: Resolution, max_kinship: float) -> str:
    """How the resolution affects close_kinship."""
    if not max_kinship or max_kinship >= (found.smallest_kinship or 1.0):
        return ""
    if found.smallest_kinship is None:
        return (
            f" close_kinship = {max_kinship:g} cannot be applied: when the axes of the PCA "
            "are defined, only duplicates of other founders are left out."
        )
    return (
        f" close_kinship = {max_kinship:g} was raised to {found.smallest_kinship:.3f}: "
        "founders with a lower kinship can define the axes of the PCA together."
    )


#: By how much missing heterozygotes lower kinship where the page says so.
LOWERED = 0.01
#: Share of full siblings identical at all sites of the panel above which the page reports it.
SIBLINGS = 1e-3


def _resolution_findings(found: Resolution, max_kinship: float) -> list[Finding]:
    """Degrees of relationship and identity that the panel cannot resolve."""
    words = {name: f"{name} degree" for name in ("first", "second", "third")}
    unresolved = [word for name, word in words.items() if name not in found.degrees]
    findings = []
    if found.lowered >= LOWERED:
        findings.append(
            Finding(
                "warning" if found.lowered >= MOST_SHIFT else "note",
                "Kinship",
                "Heterozygotes are missing more often than homozygotes. In the founder cohort with "
                f"most of this, it lowers kinship by about {found.lowered:.3f}, so relatives look "
                "more distant than they are, or are missed.",
            )
        )
    if found.fault:
        text = f"{found.fault}{_limit_in_use(found, max_kinship)}"
        findings.append(Finding("warning", "Kinship fails", text))
    elif unresolved:
        findings.append(
            Finding(
                "note" if "first" in found.degrees else "warning",
                "Kinship",
                f"{amount_of_sites(found)} Not fully resolved: {join(unresolved)}."
                f"{_limit_in_use(found, max_kinship)}",
            )
        )
    if found.least_called is None:
        findings.append(
            Finding(
                "warning",
                "Identity",
                "The panel has too few sites to tell a duplicate from another sample. "
                f"Among {number(found.people)} unrelated samples, two may differ at no more "
                f"than {percent(found.max_mismatch)} of the sites "
                "by chance. No duplicates are reported.",
            )
        )
    elif found.siblings_alike > SIBLINGS:
        findings.append(
            Finding(
                "note",
                "Identity",
                f"The panel covers little of the genome: about {percent(found.siblings_alike)} of "
                "full siblings are identical at all of its sites and are listed as duplicates.",
            )
        )
    return findings
