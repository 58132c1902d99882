"""Section on imputation: which genotypes results rest on, accuracy, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ...cohort.genotype_choice import describe_genotypes, imputed_cohorts
from ...cohort.impute import NO_BEAGLE
from ...core.files import read_json
from ...core.tables import read_table
from ..findings import Finding
from ..inline import describe_drawn
from ..outcome import Outcome
from ..registry import imputation_figures
from ..words import number


def genotype_findings(outcome: Outcome, config: dict[str, Any]) -> list[Finding]:
    """What rests on imputed genotypes, and how many of the missing ones were filled."""
    counts = filled_counts(outcome, config)
    if not counts:
        return []
    text = f"{describe_genotypes(config)} Called genotypes are never changed."
    missing, filled = (sum(count[name] for count in counts) for name in ("missing", "filled"))
    if missing:
        text += f" {number(filled)} of {number(missing)} missing genotypes were filled."
    level = "warning" if missing and not filled else "note"
    return [Finding(level, "Imputation", text)]


def filled_counts(outcome: Outcome, config: dict[str, Any]) -> list[dict[str, Any]]:
    """Counts of `fill_calls` and `cohort`, for the cohorts that are read as imputed."""
    found = []
    for cohort in imputed_cohorts(config, outcome.cohorts, outcome.founders):
        about = read_json(outcome.folder / "cohorts" / cohort / "imputed.json")
        found.append({"cohort": cohort, **about["counts"]})
    return found


def beagle_findings(results: Path, impute: dict[str, Any]) -> list[Finding]:
    """Warnings if a study requests Beagle (in its block `impute`) and the command was missing."""
    found = []
    if impute["method"] == "beagle":
        windows = [read_json(path) for path in sorted(results.glob("impute/*/*.json"))]
        if any("missing" in window for window in windows):
            text = "Missing genotypes were filled with the panel's most frequent genotype"
            found.append(Finding("warning", "Imputation", f"{text}: {NO_BEAGLE}"))
    path = results / "impute/evaluation.tsv"
    if "beagle" in impute["evaluate"] and path.exists():
        table = read_table(path)
        hidden = table[table.by == "all"].hidden.astype(int).groupby(table.method).sum()
        if hidden["beagle"] == 0 and (hidden.max() > 0 or len(hidden) == 1):
            text = "The accuracy of Beagle was not measured"
            found.append(Finding("warning", "Imputation", f"{text}: {NO_BEAGLE}"))
    return found


def imputation_section(
    outcome: Outcome, figures: Path, config: dict[str, Any]
) -> dict[str, Any] | None:
    """What was imputed for which result, and accuracy at masked genotypes; None without either.

    Returns
    -------
    dict
        ``genotypes``: a sentence, or None if all results rest on called genotypes; ``filled``:
        counts by cohort; ``copied``: what `copied_reference` says; ``founders``: whether the
        founders were copied; ``accuracy``: None, or ``rows``, per cohort and method, for all sites,
        for common sites and by MAF, and ``figures``, list of FigureText.
    """
    filled = filled_counts(outcome, config)
    accuracy = measured_accuracy(outcome.folder, figures)
    if not (filled or accuracy):
        return None
    return {
        "genotypes": describe_genotypes(config) if filled else None,
        "min_r2": config["impute"]["min_r2"],
        "filled": filled,
        "copied": copied_reference(outcome, config["impute"]),
        "founders": not config["impute"]["reference"],
        "accuracy": accuracy,
    }


def copied_reference(outcome: Outcome, impute: dict[str, Any]) -> dict[str, int] | None:
    """The reference that was copied from: `samples`, `haplotypes`, and how many of the panel's
    `sites` it has (`in_reference`); None for other methods."""
    if impute["method"] != "copying":
        return None
    about = read_json(outcome.folder / "impute" / outcome.cohorts[0] / "copied.json")
    return about["reference"] | about["counts"]


def measured_accuracy(results: Path, figures: Path) -> dict[str, Any] | None:
    """``rows`` and ``figures`` of `imputation_section`; None if accuracy was not measured."""
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
