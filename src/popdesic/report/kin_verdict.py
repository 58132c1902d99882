"""One verdict on relatives and duplicates, from kinship, PC-Relate, identity and segments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd

from ..core.files import read_json
from ..core.tables import read_table
from ..ibd.degrees import surely_close
from ..relatives.kinship import SAME, untold_cohorts
from ..relatives.resolution import FIRST, SECOND, THIRD, Resolution, load_resolution
from .words import count_relations, join, plural

#: Degrees of relatives, closest first, with their smallest kinship.
DEGREES = {"first": FIRST, "second": SECOND, "third": THIRD}
#: A limit in the configuration may be rounded by this share (0.0884 for 2**-3.5).
ROUNDED = 1e-3
#: Median kinship of a cohort, by PC-Relate, from which it tells no relatives: the limit of fourth
#: degree.
STRANGERS = 2**-5.5


def untold_by_ancestry(results: Path) -> list[str]:
    """Cohorts whose samples mostly look related to each other by PC-Relate."""
    path = results / "compare/pc_relate.json"
    medians = read_json(path)["median_kinship"] if path.exists() else {}
    return [cohort for cohort, median in medians.items() if median > STRANGERS]


def told_by_ancestry(results: Path) -> pd.DataFrame:
    """Pairs of `compare/pc_relate.tsv` of which neither is of an `untold_by_ancestry` cohort."""
    table = read_table(results / "compare/pc_relate.tsv")
    if missed := untold_by_ancestry(results):
        table = table[~(table.cohort_a.isin(missed) | table.cohort_b.isin(missed))]
    return table


def kin_verdict(results: Path, min_kinship: float) -> str | None:
    """What all analyses of a study together say of relatives; None if kinship was not computed.

    Nothing is called absent that the panel cannot show, or that another analysis found.

    Parameters
    ----------
    min_kinship : float
        `close_kinship`: pairs with less are not listed.
    """
    path = results / "compare/kinship.tsv"
    if not path.exists():
        return None
    table = read_table(path)
    king = Counter(table.relation)
    king.pop(SAME, None)
    resolution = results / "compare/kinship.json"
    found = load_resolution(resolution) if resolution.exists() else None
    same = _same_pairs(results, table)
    failing = untold_cohorts(results)["cohort"].tolist()
    but = ""
    if failing:
        what = "cohort" if len(failing) == 1 else "cohorts"
        but = f" In {what} {join(failing)} kinship fails, and only duplicates are found."
    said = []
    if same:
        said.append(f"{plural(same, 'pair')} of duplicates or identical twins")
    if king:
        said.append(_relatives(king))
    other = _others(results, king.total())
    if said:
        text = f"{' and '.join(said)}.{other}"
    elif other and found and not set(DEGREES) & set(found.degrees):
        return f"KING-robust kinship cannot identify relatives on this panel.{other}{but}"
    elif other:
        text = f"KING-robust kinship lists no relatives.{other}"
    else:
        return _nothing(results, found, min_kinship) + but
    return f"{text}{_limit(found)}{but}"


def _relatives(counts: Counter[str]) -> str:
    listed = count_relations(dict(sorted(counts.items())))
    return f"{plural(counts.total(), 'pair')} of relatives ({listed})"


def _same_pairs(results: Path, kinship: pd.DataFrame) -> int:
    """Pairs of samples of one person, by identity or, where this was not sought, by kinship."""
    rows = kinship[kinship.relation == SAME]
    pairs = {frozenset(pair) for pair in zip(rows.sample_a, rows.sample_b, strict=True)}
    path = results / "compare/identity.tsv"
    if path.exists():
        table = read_table(path)
        table = table[table.verdict == "same"]
        pairs |= {frozenset(pair) for pair in zip(table["query"], table["match"], strict=True)}
    return len(pairs)


def _others(results: Path, king: int) -> str:
    """A sentence on each analysis that finds other relatives than KING-robust kinship."""
    text, known = "", king
    path = results / "compare/pc_relate.tsv"
    if path.exists():
        relations = Counter(told_by_ancestry(results).relation)
        counts = Counter({k: n for k, n in relations.items() if k not in (SAME, "distant")})
        missed = untold_by_ancestry(results)
        if missed:
            what = "cohort" if len(missed) == 1 else "cohorts"
            text += (
                f" In {what} {join(missed)} most samples look related by PC-Relate, and its pairs "
                "are not counted."
            )
        if counts.total() != king and not (missed and not counts):
            what = _relatives(counts) if counts else "none"
            text += f" PC-Relate, which accounts for ancestry, finds {what}."
            known = max(known, counts.total())
    path = results / "ibd/summary.json"
    close = surely_close(read_json(path)) if path.exists() else None
    if close and not known:
        text += f" Shared segments show {plural(close, 'pair')} of relatives."
    return text


def _told(found: Resolution, min_kinship: float) -> list[str]:
    """Degrees of which every pair would be listed."""
    least = min_kinship * (1 - ROUNDED)
    return [
        name
        for name, kinship in DEGREES.items()
        if name in found.degrees and kinship - found.lowered >= least
    ]


def _nothing(results: Path, found: Resolution | None, min_kinship: float) -> str:
    """The verdict where no analysis found anybody."""
    degrees = _told(found, min_kinship) if found else []
    identity = (results / "compare/identity.tsv").exists()
    duplicates = bool(identity and found and found.least_called is not None)
    absent = ["no duplicates"] if duplicates else []
    hidden = ["duplicates"] if identity and not duplicates else []
    if degrees:
        absent.append(f"no relatives of the {' or '.join(degrees)} degree")
    else:
        hidden.append("relatives")
    said = []
    if absent:
        said.append(f"{join(absent)} were found.")
    if hidden:
        said.append(f"{join(hidden)} cannot be identified on this panel.")
    return " ".join(text[:1].upper() + text[1:] for text in said) + _limit(found, not degrees)


def _limit(found: Resolution | None, said: bool = False) -> str:
    """Which relatives the panel cannot show; empty where it shows all three, or that was said."""
    if found is None or said:
        return ""
    hidden = [name for name in DEGREES if name not in found.degrees]
    if not hidden:
        return ""
    if len(hidden) == len(DEGREES):
        return " Other relatives cannot be distinguished from unrelated samples on this panel."
    return f" Relatives of the {hidden[0]} degree and beyond cannot all be found on this panel."
