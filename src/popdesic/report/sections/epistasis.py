"""Section on the epistasis scans: tests, best hits, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ...epistasis.kin import kin_warnings, related_pairs
from ...epistasis.options import NAMES
from ...epistasis.scores import SCORES
from ...epistasis.significance import strata_warnings
from ...io.files import read_json
from ...io.tables import read_table
from ..figures.epistasis import SIGNIFICANT, read_hits
from ..findings import Finding
from ..inline import describe_drawn
from ..registry import epistasis_figures
from ..words import number

#: Most rows of a table on the page; the files have all.
MOST_ROWS = 15


def epistasis_section(
    results: Path, figures: Path, orders: list[int], score: str = SCORES[0]
) -> dict[str, Any] | None:
    """Tables and figures of the scans by `score`; None if there was none.

    Returns
    -------
    dict
        ``score``: as given; ``controls``, ``cases``, ``sites``: counts; ``warnings`` and
        ``relatives``: sentences;
        ``scans``: for each order its ``name``, ``tests``, ``permutations``, ``significant`` hits
        (None without permutations), ``rows`` (at most MOST_ROWS, formatted) and ``figures``
        (FigureText);
        ``power`` and ``refit``: rows, empty if not requested; ``screen``: as a scan, or None.
    """
    folder = results / "epistasis"
    if not orders or not (folder / "plan.json").exists():
        return None
    plan = read_json(folder / "plan.json")
    samples = read_table(results / "reorder" / "samples.tsv")
    cases = int((samples["class"] == "case").sum())
    section: dict[str, Any] = {
        "score": score,
        "controls": len(samples) - cases,
        "cases": cases,
        "sites": plan["sites"],
        "warnings": strata_warnings(samples),
        "relatives": _relatives(results, samples, any(plan[NAMES[k]]["scans"] > 1 for k in orders)),
        "most": MOST_ROWS,
        "scans": [],
        "screen": None,
    }
    sizes = {"n_controls": number(section["controls"]), "n_cases": number(cases)}
    for order in orders:
        name = NAMES[order]
        scan = _scan(folder / f"{name}.tsv", order, name, plan[name])
        of_scan = sizes | {"n_tests": number(scan["tests"]), "scan": name}
        scan["figures"] = describe_drawn(epistasis_figures([order]), figures, of_scan)
        section["scans"].append(scan)
    if (folder / "screen.tsv").exists():
        section["screen"] = _scan(
            folder / "screen.tsv", 3, "triples", {"tests": plan["screen"]["tests"], "scans": 1}
        )
    for extra in ("power", "refit"):
        path = folder / f"{extra}.tsv"
        section[extra] = read_table(path).to_dict("records") if path.exists() else []
    section["refit"] = [row for row in section["refit"] if row["kind"] == "interaction"][:MOST_ROWS]
    return section


def epistasis_findings(section: dict[str, Any] | None) -> list[Finding]:
    """Warnings about strata, and notes about scans without permutations."""
    if section is None:
        return []
    found = [
        Finding(
            "warning",
            "Epistasis: strata",
            f"{sentence[0].upper()}{sentence[1:]}; differences between the strata can look like an "
            "interaction, and permutations within the strata do not remove them.",
        )
        for sentence in section["warnings"]
    ]
    found += [
        Finding("warning", "Epistasis: relatives", f"{sentence}.")
        for sentence in section["relatives"]
    ]
    found += [
        Finding(
            "note",
            "Epistasis: no p-values",
            f"The {scan['name']} were scanned without permutations: ranks show which of the "
            f"{number(scan['tests'])} tests are best, not whether any of them is better than "
            "expected by chance.",
        )
        for scan in section["scans"]
        if scan["significant"] is None and scan["rows"] and section["score"] != "interaction"
    ]
    return found


def _relatives(results: Path, samples: pd.DataFrame, permutations: bool) -> list[str]:
    """What relatives in the scan mean for its p-values."""
    table = results / "compare" / "kinship.tsv"
    if not table.exists():
        return []
    relatives = related_pairs(samples["sample"].tolist(), read_table(table))
    return kin_warnings(relatives, len(samples), permutations)


def _scan(path: Path, order: int, name: str, plan: dict[str, int]) -> dict[str, Any]:
    hits = read_hits(path)
    permutations = plan["scans"] - 1
    return {
        "name": name,
        "order": order,
        "tests": plan["tests"],
        "permutations": permutations,
        "hits": len(hits),
        "significant": int((hits.p_permutation <= SIGNIFICANT).sum()) if permutations else None,
        "rows": [_row(row, order) for _, row in hits.head(MOST_ROWS).iterrows()],
    }


def _row(row: pd.Series, order: int) -> dict[str, Any]:
    sites = [(row[f"id{k}"], f"{row[f'chrom{k}']}:{row[f'pos{k}']}") for k in range(1, order + 1)]
    return {
        "rank": row["rank"],
        "sites": sites,
        "score": f"{row['score']:.2f}",
        "main": ", ".join(f"{float(row[f'main{k}']):.1f}" for k in range(1, order + 1)),
        "gain": f"{float(row['interaction_gain']):.2f}",
        "lr_p": f"{float(row['lr_p']):.2g}",
        "p": "NA" if pd.isna(row["p_permutation"]) else f"{row['p_permutation']:.3g}",
    }
