"""Checks of the samples on the page: heterozygosity, sex, pedigree."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...cohort.samples import SEX_CODES, UNKNOWN
from ...core.tables import read_table
from ..findings import Finding
from ..outcome import Outcome
from ..words import join, percent, plural

#: Most rows of a table on the page; the files have all.
MOST_ROWS = 20
#: Robust standard deviations from the median heterozygosity at which a sample is listed.
FAR = 4.0
#: Rate of Mendelian errors above which the stated pedigree is doubtful.
MENDEL = 0.01
_MEASURED = ["het_sd", "x_sites", "x_f", "mendel_sites", "mendel_errors"]


def check_section(outcome: Outcome) -> dict[str, Any]:
    """Sex, pedigree and heterozygosity of the samples, from `qc/{cohort}.samples.tsv`.

    Returns
    -------
    dict
        ``sex``, ``mendel``, ``heterozygosity``: ``rows`` of conspicuous samples (at most
        MOST_ROWS), their number ``n``, and the number of samples ``checked``. ``sex`` also has
        ``missing``, why it was not checked if so,
        ``unclear``, the number of samples with data on X from which sex cannot be inferred, and
        ``few``, those of them with too few sites. ``findings``: warnings for the top of the page.
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
    unclear = table[table.x_sites.notna() & (table.sex_from_x == "NA")]
    table["rate"] = table.mendel_errors / table.mendel_sites.where(table.mendel_sites > 0)
    pedigree = table[table.rate.notna()].sort_values("rate", ascending=False, kind="stable")
    called = pd.to_numeric(table.call_rate) > 0  # without a call, none is heterozygous
    measured = table[table.het_sd.notna() & called]
    far = measured[measured.het_sd.abs() >= FAR]
    far = far.sort_values("het_sd", key=lambda sd: -sd.abs(), kind="stable")
    return {
        "sex": {
            "n": len(wrong),
            "checked": int(known.sum()),
            "missing": _why_unchecked(table),
            "rows": _records(wrong),
            "unclear": len(unclear),
            "few": int(unclear.x_f.isna().sum()),
        },
        "mendel": {
            "n": int((pedigree.rate > MENDEL).sum()),
            "checked": len(pedigree),
            "rows": _records(pedigree),
        },
        "heterozygosity": {"n": len(far), "checked": len(measured), "rows": _records(far)},
        "findings": _findings(wrong, pedigree[pedigree.rate > MENDEL]),
    }


def _why_unchecked(table: pd.DataFrame) -> str:
    """Why sex was not checked: no sites on X, no sex in the sheet, or both."""
    reasons = []
    if table.x_sites.isna().all():
        reasons.append("no sites on X were read")
    elif (table.sex_from_x == "NA").all():
        reasons.append("sex cannot be inferred from the sites on X")
    if table.sex.isin(UNKNOWN).all():
        reasons.append("the sheet has no sex")
    return join(reasons) or "no sample has both a sex in the sheet and one inferred from X"


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
                "The sex inferred from X disagrees with the sample sheet in "
                f"{plural(len(wrong), 'sample')}: {join(names)}. Samples may have been swapped, or "
                "the sheet is wrong.",
            )
        )
    if len(pedigree):
        names = [f"{row.sample} ({percent(row.rate)})" for row in pedigree.itertuples()]
        found.append(
            Finding(
                "warning",
                "Pedigree",
                f"{plural(len(pedigree), 'child has', 'children have')} a rate of Mendelian errors "
                f"above {percent(MENDEL, 0)}, given the parents in the sheet: {join(names)}.",
            )
        )
    return found
