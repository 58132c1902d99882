"""Section on the comparisons: relatives, identical samples, contamination, LD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ...core.tables import read_table
from ...ibd.verdict import SOURCES
from ..inline import describe_drawn
from ..kin_verdict import judged_relatives, judges_relatives, measured_resolution, why_no_degrees
from ..registry import comparison_figures
from ..words import number, plural

#: Most rows of a table on the page; the files have all.
MOST_ROWS = 20


def same_people(results: Path, analyses: list[str]) -> pd.DataFrame | None:
    """Pairs of samples that come from the same person, by `compare/identity.tsv`.

    Returns
    -------
    DataFrame or None
        `sample_a`, `sample_b`, each pair once, in the order of the table; None if the study does
        not search for them.
    """
    path = results / "compare/identity.tsv"
    if "identity" not in analyses or not path.exists():
        return None
    table = read_table(path)
    table = table[table.verdict == "same"]
    pairs = [tuple(sorted(pair)) for pair in zip(table["query"], table["match"], strict=True)]
    return pd.DataFrame(list(dict.fromkeys(pairs)), columns=["sample_a", "sample_b"])


def _once(table: pd.DataFrame) -> pd.DataFrame:
    """The first row of each pair: two samples can be the best match of each other."""
    pairs = [frozenset(pair) for pair in zip(table["query"], table["match"], strict=True)]
    return table[~pd.Series(pairs, table.index, dtype=object).duplicated()]


def _shown(row: dict[str, str]) -> dict[str, str]:
    """A row with kinships to three decimals, and counts as they are written elsewhere."""
    values = dict(row)
    for name in {"kinship", "low", "high", *SOURCES} & set(row):
        values[name] = row[name] if row[name] in ("", "NA") else f"{float(row[name]):.3f}"
    for name in {"called", "mismatches", "absent"} & set(row):
        values[name] = row[name] if row[name] in ("", "NA") else number(int(row[name]))
    return values


def _ld_founders(results: Path, max_kinship: float) -> str:
    """Who LD is measured on; all founders if `close_kinship` is 0."""
    path = results / "panel/unrelated.tsv"
    if not max_kinship or not path.exists():
        return "All founder samples"
    chosen = int((read_table(path).unrelated == "yes").sum())
    return f"{plural(chosen, 'founder sample')} without known relatives"


def comparison_section(
    results: Path, figures: Path, analyses: list[str], max_kinship: float = 1.0
) -> dict[str, Any] | None:
    """Tables and figures of the analyses that were run; None if there are none.

    `max_kinship`: `close_kinship`.

    Returns
    -------
    dict
        ``kinship`` (the verdicts), ``identity`` and ``mixture``: rows (at most MOST_ROWS) and their
        total number, or None; ``no_degrees``: why there are none; ``figures``: list of FigureText;
        ``resolution``: the Resolution of the panel, or None.
    """
    section: dict[str, Any] = {"kinship": None, "identity": None, "mixture": None}
    for name in section:
        path = results / "compare" / f"{'relatives' if name == 'kinship' else name}.tsv"
        relatives = name == "kinship"
        asked = judges_relatives(results, analyses) if relatives else name in analyses
        if not asked or not path.exists():
            continue
        table = read_table(path)
        if name == "identity":
            table = _once(table[table.verdict == "same"])
        rows = [_shown(row) for row in table.head(MOST_ROWS).to_dict("records")]
        section[name] = {"rows": rows, "n": len(table), "shown": len(rows)}
    judged = judged_relatives(results) if section["kinship"] else None
    section["no_degrees"] = why_no_degrees(judged[1]) if judged else ""
    section["resolution"] = measured_resolution(results, analyses, max_kinship)
    sizes = {"n_close": number(section["kinship"]["n"]) if section["kinship"] else 0}
    sizes["ld_founders"] = _ld_founders(results, max_kinship)
    texts = describe_drawn(comparison_figures(analyses), figures, sizes)
    section["figures"] = texts
    return section if texts or any(section[name] for name in ("kinship", "identity")) else None
