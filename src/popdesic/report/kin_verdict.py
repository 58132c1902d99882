"""What the page says of relatives and duplicates: the verdicts of `compare/relatives.tsv`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.files import read_json
from ..core.tables import read_table
from ..ibd.verdict import CLOSE, SHORT, STRANGERS, WIDE
from ..relatives.kinship import SAME, untold_cohorts
from ..relatives.options import is_measured
from ..relatives.resolution import FIRST, SECOND, THIRD, Resolution, load_resolution
from .words import count_relations, join, number, plural

#: Degrees of relatives, closest first, with their smallest kinship.
DEGREES = {"first": FIRST, "second": SECOND, "third": THIRD}
#: A limit in the configuration may be rounded by this share (0.0884 for 2**-3.5).
ROUNDED = 1e-3
#: Most pairs of duplicates that the sentence names.
MOST_PAIRS = 2
#: Analyses that find relatives; those of them by KING-robust kinship.
KIN, KING = frozenset({"kinship", "pc_relate", "ibd"}), frozenset({"kinship", "pc_relate"})
#: What a study may ask for in `compare.analyses` that this page reads.
SOUGHT = KIN | {"identity"}
#: Start of the sentence on a genome too short to tell degrees.
TOO_SHORT = "Degrees are not named: "


def judges_relatives(results: Path, analyses: Collection[str]) -> bool:
    """Whether this run looks for relatives; segments of haploids tell no degrees."""
    path = results / "ibd/summary.json"
    if not KING.isdisjoint(analyses) or "ibd" not in analyses:
        return not KIN.isdisjoint(analyses)
    return not (path.exists() and read_json(path).get("ploidy") == 1)


def untold_by_ancestry(about: dict[str, Any]) -> list[str]:
    """Cohorts whose samples mostly look related to each other by `compare/pc_relate.json`."""
    medians = about.get("median_kinship", {})
    return [cohort for cohort, median in medians.items() if median > STRANGERS]


def by_ancestry(results: Path, analyses: Collection[str]) -> dict[str, Any]:
    """`compare/pc_relate.json` of this run; empty where it does without."""
    path = results / "compare/pc_relate.json"
    if "pc_relate" not in analyses or not path.exists():
        return {}
    judged = judged_relatives(results)
    if judged and "pc_relate" not in judged[1]["sources"]:  # too many samples
        return {}
    return read_json(path)


def measured_resolution(
    results: Path, analyses: Collection[str], max_kinship: float
) -> Resolution | None:
    """Resolution of kinship on the panel; None where this run does not measure it.

    Parameters
    ----------
    analyses : collection of str
        `compare.analyses`.
    max_kinship : float
        `close_kinship`.
    """
    path = results / "compare/kinship.json"
    asked = is_measured(analyses, max_kinship)
    return load_resolution(path) if asked and path.exists() else None


def judged_relatives(results: Path) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """`compare/relatives.tsv` and `.json`; None if no analysis looks for relatives."""
    path = results / "compare/relatives.tsv"
    if not path.exists():
        return None
    return read_table(path), read_json(path.with_suffix(".json"))


def why_no_degrees(about: dict[str, Any]) -> str:
    """The sentence on a genome that is too short to tell degrees; empty where it is not."""
    if about["tells"]:
        return ""
    return (
        f"{TOO_SHORT}they need {number(round(about['least_cm']))} cM. In the "
        f"{about['searched_cm']:.0f} cM searched, chance decides how much relatives share."
    )


def kin_verdict(
    results: Path,
    min_kinship: float,
    analyses: Collection[str] = SOUGHT,
    max_kinship: float = 1.0,
) -> str | None:
    """What all analyses of a study together say of relatives; None if none looks for them.

    Nothing is called absent that the panel cannot show, or that another analysis found.

    Parameters
    ----------
    min_kinship : float
        Pairs with less are not listed.
    analyses, max_kinship
        As of `measured_resolution`.
    """
    judged = judged_relatives(results) if judges_relatives(results, analyses) else None
    if judged is None:
        return None
    _, about = judged
    relations, reasons = about["relations"], about["why"]
    found = measured_resolution(results, analyses, max_kinship)
    identity = "identity" in analyses and (results / "compare/identity.tsv").exists()
    same = _same_pairs(results, identity)
    close = {name: relations[name] for name in CLOSE if name in relations}
    said = []
    if same:
        named = "; ".join(" and ".join(pair) for pair in same) if len(same) <= MOST_PAIRS else ""
        said.append(
            f"{plural(len(same), 'pair')} of duplicates or identical twins"
            f"{f' ({named})' if named else ''}"
        )
    if close:
        total = plural(sum(close.values()), "pair")
        said.append(f"{total} of relatives ({count_relations(close)})")
    if count := reasons.get(SHORT, 0):
        said.append(f"{plural(count, 'pair')} that share more than unrelated samples do")
    if count := reasons.get(WIDE, 0):
        said.append(
            f"{plural(count, 'pair')} of relatives whose degree is uncertain (their intervals "
            "span more than two degrees)"
        )
    other = _left_out(results, analyses)
    if said:
        text = f"{join(said)}."
        if reasons.get(SHORT):
            text += f" {why_no_degrees(about)}"
        elif about["differ"]:
            pairs = plural(about["differ"], "listed pair")
            text += f" For {pairs}, the analyses differ (compare/relatives.tsv)."
        return text + _limit(found, about) + other
    return _nothing(found, about, min_kinship, identity) + other


def _left_out(results: Path, analyses: Collection[str]) -> str:
    """Sentences on cohorts in which one of the analyses fails."""
    text = ""
    for names, why in (
        (
            untold_by_ancestry(by_ancestry(results, analyses)),
            "most samples look related by PC-Relate, so it is not used there.",
        ),
        (
            untold_by_king(results, analyses)["cohort"].tolist(),
            "KING-robust kinship fails, so it finds only duplicates there.",
        ),
    ):
        if names:
            text += f" In {'cohort' if len(names) == 1 else 'cohorts'} {join(names)} {why}"
    return text


def untold_by_king(results: Path, analyses: Collection[str]) -> pd.DataFrame:
    """`untold_cohorts` of this run."""
    table = untold_cohorts(results)
    return table[:0] if KING.isdisjoint(analyses) else table


def _same_pairs(results: Path, identity: bool) -> list[tuple[str, str]]:
    """Pairs of samples of one person, by identity or, where this was not sought, by kinship."""
    table, _ = judged_relatives(results)
    rows = table[table.relation == SAME]
    pairs = {tuple(sorted(pair)) for pair in zip(rows.sample_a, rows.sample_b, strict=True)}
    if identity:
        table = read_table(results / "compare/identity.tsv")
        table = table[table.verdict == "same"]
        same = zip(table["query"], table["match"], strict=True)
        pairs |= {tuple(sorted(pair)) for pair in same}
    return sorted(pairs)


def _told(found: Resolution, min_kinship: float) -> list[str]:
    """Degrees of which every pair would be listed."""
    least = min_kinship * (1 - ROUNDED)
    return [
        name
        for name, kinship in DEGREES.items()
        if name in found.degrees and kinship - found.lowered >= least
    ]


def _nothing(
    found: Resolution | None, about: dict[str, Any], min_kinship: float, identity: bool
) -> str:
    """The verdict where no analysis found anybody."""
    degrees = _told(found, min_kinship) if found else []
    if _by_segments(about):
        degrees = list(DEGREES)
    duplicates = bool(identity and found and found.least_called is not None)
    absent = ["no duplicates"] if duplicates else []
    hidden = ["duplicates"] if identity and not duplicates else []
    if degrees:
        absent.append(f"no relatives of the {join(degrees).replace(' and ', ' or ')} degree")
    else:
        hidden.append("relatives")
    said = []
    if absent:
        said.append(f"{join(absent)} were found.")
    if hidden:
        said.append(f"{join(hidden)} cannot be identified on this panel.")
    return " ".join(text[:1].upper() + text[1:] for text in said) + _limit(
        found, about, not degrees
    )


def _by_segments(about: dict[str, Any]) -> bool:
    """Whether segments find relatives of all degrees."""
    return about["tells"] and "segments" in about["sources"]


def _limit(found: Resolution | None, about: dict[str, Any], said: bool = False) -> str:
    """Which relatives the panel cannot show; empty where it shows all three, or that was said."""
    if found is None or said or _by_segments(about):
        return ""
    hidden = [name for name in DEGREES if name not in found.degrees]
    if not hidden:
        return ""
    if len(hidden) == len(DEGREES):
        return " Other relatives cannot be distinguished from unrelated samples on this panel."
    return f" Relatives of the {hidden[0]} degree and beyond cannot all be found on this panel."
