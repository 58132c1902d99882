"""What the report says of relatives and duplicates, as far as the panel can resolve them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ...compare.kinship import SAME
from ...compare.resolution import Resolution, load_resolution
from ...io.tables import read_table
from ..findings import Finding
from ..words import join, number, percent, plural


def relatives_findings(results: Path, max_kinship: float = 0.0) -> list[Finding]:
    """What the panel tells of relatives, and the close pairs of `compare/kinship.tsv`.

    Parameters
    ----------
    max_kinship : float
        `embedding.max_kinship`.
    """
    found = []
    path = results / "compare/kinship.json"
    if path.exists():
        found += _resolution_findings(load_resolution(path), max_kinship)
    path = results / "compare/kinship.tsv"
    counts = read_table(path).relation.value_counts() if path.exists() else pd.Series(dtype=int)
    counts = counts.drop(SAME, errors="ignore")  # the warning on duplicates speaks of these
    if len(counts):
        listed = [f"{number(int(n))} {relation}" for relation, n in counts.items()]
        found.append(
            Finding(
                "note",
                "Relatives",
                f"{plural(int(counts.sum()), 'close pair')} by kinship: {join(listed)}. Relatives "
                "make small clusters of their own on maps and serve as bridges in the geodesics.",
            )
        )
    return found


def amount_of_sites(found: Resolution) -> str:
    """How many independent sites the panel amounts to, and what follows for unrelated people."""
    if found.effective_sites is None:
        return "The founders are too few, or too much alike, to say what a kinship means."
    text = (
        f"For kinship the panel's {number(found.sites)} sites, many of them in LD, amount to "
        f"{number(round(found.effective_sites))} independent ones: that of unrelated people has a "
        f"standard error of {found.standard_error:.3f}, and "
    )
    if found.smallest_kinship is None:
        return text + "reaches any value by chance, so no kinship makes two people relatives."
    return (
        text + f"pairs are taken for relatives from {found.smallest_kinship:.3f} on (chance of any "
        f"false one among {number(found.people)} unrelated people: at most "
        f"{percent(found.error_rate, 0)})."
    )


def _limit_in_use(found: Resolution, max_kinship: float) -> str:
    """What became of embedding.max_kinship."""
    if not max_kinship or max_kinship >= (found.smallest_kinship or 1.0):
        return ""
    if found.smallest_kinship is None:
        return (
            f" embedding.max_kinship = {max_kinship:g} cannot be held: of the founders only "
            "duplicates keep each other from defining the axes of the PCA."
        )
    return (
        f" embedding.max_kinship = {max_kinship:g} was raised to {found.smallest_kinship:.3f}: "
        "founders who are less closely related define the axes of the PCA together."
    )


#: Share of full siblings who are identical on the panel from which the page warns of it.
SIBLINGS = 1e-3


def _resolution_findings(found: Resolution, max_kinship: float) -> list[Finding]:
    """Which degrees are withheld and why; nothing where all are told."""
    words = {name: f"{name} degree" for name in ("first", "second", "third")}
    withheld = [word for name, word in words.items() if name not in found.degrees]
    findings = []
    if withheld:
        findings.append(
            Finding(
                "note" if "first" in found.degrees else "warning",
                "Kinship",
                f"{amount_of_sites(found)} Not told as a whole: {join(withheld)}."
                f"{_limit_in_use(found, max_kinship)}",
            )
        )
    if found.least_called is None:
        findings.append(
            Finding(
                "warning",
                "Identity",
                "The panel's sites are too few to tell whether two samples are one person: of "
                f"{number(found.people)} unrelated people two may differ at no more than "
                f"{percent(found.max_mismatch)} of them (compare.identity.max_mismatch) by chance. "
                "No duplicates are named.",
            )
        )
    elif found.siblings_alike > SIBLINGS:
        findings.append(
            Finding(
                "note",
                "Identity",
                f"The panel covers little of the genome: about {percent(found.siblings_alike)} of "
                "full siblings have inherited the same at all of its sites, and are listed as the "
                "same person.",
            )
        )
    return findings
