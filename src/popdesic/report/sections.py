"""Parts of the report: checks of the samples, relatives, accuracy of imputation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..cohort.impute import NO_BEAGLE
from ..cohort.samples import SEX_CODES, UNKNOWN
from ..compare.kinship import SAME
from ..compare.resolution import Resolution, load_resolution
from ..io.files import read_json
from ..io.tables import read_table
from .findings import Finding
from .inline import describe_drawn
from .outcome import Outcome
from .registry import imputation_figures
from .words import join, number, percent, plural

#: Rows of each table of the page; the files have all.
MOST_ROWS = 20
#: Robust standard deviations of heterozygosity from which a sample is listed.
FAR = 4.0
#: Share of impossible genotypes above which parent and child are hardly that.
MENDEL = 0.01
#: Share of full siblings who are identical on the panel from which the page warns of it.
SIBLINGS = 1e-3
_MEASURED = ["het_sd", "x_sites", "x_f", "mendel_sites", "mendel_errors"]


def check_section(outcome: Outcome) -> dict[str, Any]:
    """Sex, pedigree and heterozygosity of the samples, from `qc/{cohort}.samples.tsv`.

    Returns
    -------
    dict
        ``sex``, ``mendel``, ``heterozygosity``: rows that stand out (at most MOST_ROWS), ``n`` of
        each, and ``checked``: how many samples were looked at; ``sex`` also has ``untold``, the
        samples with sites of X that tell no sex, and ``few``, those of them with too few sites.
        ``findings``: warnings for the top of the page.
    """
    tables = []
    for cohort in outcome.cohorts:
        table = read_table(outcome.folder / "qc" / f"{cohort}.samples.tsv")
        for column in (*_MEASURED, "sex_from_x"):
            if column not in table:
                table[column] = "NA"
        tables.append(table.assign(cohort=cohort))
    table = pd.concat(tables, ignore_index=True)
    has_sex = "sex" in outcome.qc
    table[_MEASURED] = table[_MEASURED].apply(pd.to_numeric, errors="coerce")
    stated = dict(zip(outcome.qc["sample"], outcome.qc["sex"], strict=True)) if has_sex else {}
    words = [stated.get(name, "NA") for name in table["sample"]]
    table["sex"] = [SEX_CODES.get(word, word) for word in words]
    known = ~table.sex.isin(UNKNOWN) & (table.sex_from_x != "NA")
    wrong = table[known & (table.sex != table.sex_from_x)]
    untold = table[table.x_sites.notna() & (table.sex_from_x == "NA")]
    table["rate"] = table.mendel_errors / table.mendel_sites.where(table.mendel_sites > 0)
    pedigree = table[table.rate.notna()].sort_values("rate", ascending=False, kind="stable")
    measured = table[table.het_sd.notna()]
    far = measured[measured.het_sd.abs() >= FAR]
    far = far.sort_values("het_sd", key=lambda sd: -sd.abs(), kind="stable")
    return {
        "sex": {
            "n": len(wrong),
            "checked": int(known.sum()),
            "rows": _records(wrong),
            "untold": len(untold),
            "few": int(untold.x_f.isna().sum()),
        },
        "mendel": {
            "n": int((pedigree.rate > MENDEL).sum()),
            "checked": len(pedigree),
            "rows": _records(pedigree),
        },
        "heterozygosity": {"n": len(far), "checked": len(measured), "rows": _records(far)},
        "findings": _findings(wrong, pedigree[pedigree.rate > MENDEL]),
    }


def _records(table: pd.DataFrame) -> list[dict]:
    return table.head(MOST_ROWS).to_dict("records")


def _findings(wrong: pd.DataFrame, pedigree: pd.DataFrame) -> list[Finding]:
    found = []
    if len(wrong):
        names = [
            f"{row.sample} (sheet {row.sex}, X {row.sex_from_x})" for row in wrong.itertuples()
        ]
        found.append(
            Finding(
                "warning",
                "Sex",
                f"X contradicts the sample sheet in {plural(len(wrong), 'sample')}: {join(names)}. "
                "Samples may have been exchanged, or the sheet is wrong.",
            )
        )
    if len(pedigree):
        names = [f"{row.sample} ({percent(row.rate)})" for row in pedigree.itertuples()]
        found.append(
            Finding(
                "warning",
                "Pedigree",
                f"{plural(len(pedigree), 'child', 'children')} with more than {percent(MENDEL, 0)} "
                f"of genotypes that the parents in the sheet cannot have passed on: {join(names)}.",
            )
        )
    return found


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


def beagle_findings(results: Path, impute: dict[str, Any]) -> list[Finding]:
    """Warnings where a study asks for Beagle (its block `impute`) and the command was missing."""
    found = []
    if impute["method"] == "beagle":
        windows = [read_json(path) for path in sorted(results.glob("impute/*/*.json"))]
        if any("missing" in window for window in windows):
            text = "The panel's most frequent genotype stands in for missing genotypes"
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
    """How well hidden genotypes were found again, None where that was not measured.

    Returns
    -------
    dict
        ``rows``: one a cohort and method over all frequencies, and for common sites;
        ``figures``: list of FigureText.
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
