"""Section on imputation: accuracy, and warnings if Beagle was missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ...cohort.impute import NO_BEAGLE
from ...io.files import read_json
from ...io.tables import read_table
from ..findings import Finding
from ..inline import describe_drawn
from ..registry import imputation_figures
from ..words import number


def beagle_findings(results: Path, impute: dict[str, Any]) -> list[Finding]:
    """Warnings if a study requests Beagle (in its block `impute`) and the command was missing."""
    found = []
    if impute["method"] == "beagle":
        windows = [read_json(path) for path in sorted(results.glob("impute/*/*.json"))]
        if any("missing" in window for window in windows):
            text = "Missing genotypes were filled with the panel's most frequent genotype"
            found.append(Finding("warning", "Imputation", f"{text}: {NO_BEAGLE}"))
    path = results / "impute/evaluation.tsv"
    if impute["evaluate"] and "beagle" in impute["evaluate_methods"] and path.exists():
        table = read_table(path)
        hidden = table[table.by == "all"].hidden.astype(int).groupby(table.method).sum()
        if hidden["beagle"] == 0 and (hidden.max() > 0 or len(hidden) == 1):
            text = "The accuracy of Beagle was not measured"
            found.append(Finding("warning", "Imputation", f"{text}: {NO_BEAGLE}"))
    return found


def imputation_section(results: Path, figures: Path) -> dict[str, Any] | None:
    """Accuracy of imputation at masked genotypes; None if it was not measured.

    Returns
    -------
    dict
        ``rows``: per cohort and method, for all sites, for common sites and by MAF; ``figures``:
        list of FigureText.
    """
    path = results / "impute/evaluation.tsv"
    if not path.exists():
        return None
    table = read_table(path)
    table = table[table.by.isin(["all", "common", "maf"])]
    measured = ["concordance", "nonref_concordance", "dosage_r2"]
    table[measured] = table[measured].apply(pd.to_numeric, errors="coerce")
    table["hidden"] = table.hidden.astype(int)
    words = {"all": "all sites", "common": "common sites, MAF", "maf": "MAF"}
    table["which"] = [
        words[by] if by == "all" else f"{words[by]} {value}"
        for by, value in zip(table.by, table.value, strict=True)
    ]
    rows = table[table.hidden > 0].to_dict("records")
    if not rows:
        return None
    sizes = {"n_hidden": number(int(table[table.by == "all"].hidden.sum()))}
    texts = describe_drawn(imputation_figures(), figures, sizes)
    return {"rows": rows, "figures": texts}
