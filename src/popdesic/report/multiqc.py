"""What MultiQC shows of a study: three files of its custom content, found by their names.

MultiQC is not needed to write them. It puts numbers of samples into its general statistics, beside
those of other tools, a table of the cohorts and the PCA.
"""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.files import write_json
from .outcome import Outcome
from .tables import cohort_rows
from .words import percent

#: Files that MultiQC finds below the folder that it searches.
FILES = ("popdesic_samples_mqc.json", "popdesic_cohorts_mqc.json", "popdesic_pca_mqc.json")
#: With more samples, rows of the general statistics and points of the PCA are cohorts.
MOST_SAMPLES = 10_000

_SHARE = {"min": 0, "max": 1, "format": "{:,.4f}"}
_SAMPLE_COLUMNS = [
    {"call_rate": {"title": "Call rate", "description": "Share of sites called", **_SHARE}},
    {
        "heterozygosity": {
            "title": "Het.",
            "description": "Share of called genotypes that are heterozygous",
            **_SHARE,
        }
    },
    {"left_out": {"title": "Left out", "description": "Filter that excluded the sample"}},
]
_COHORT_COLUMNS = {
    "role": {"title": "Role", "description": "Founders define the panel"},
    "read": {"title": "Read", "description": "Samples read", "format": "{:,.0f}"},
    "kept": {"title": "Kept", "description": "Samples after quality control", "format": "{:,.0f}"},
    "call_rate": {"title": "Call rate", "description": "Median of the kept samples", **_SHARE},
    "heterozygosity": {"title": "Het.", "description": "Median of the kept samples", **_SHARE},
    "share_present": {"title": "Sites", "description": "Share of the panel's sites", **_SHARE},
    "difference": {
        "title": "Drift",
        "description": "Mean difference of allele frequencies from the panel",
    },
    "expected": {"title": "Expected drift", "description": "Drift expected from sampling alone"},
}


def write_multiqc(outcome: Outcome, folder: Path) -> None:
    """Write the three FILES into a folder.

    Names are escaped, because MultiQC puts them into its page as they are.
    """
    contents = (_samples(outcome), _cohorts(outcome), _components(outcome))
    for name, content in zip(FILES, contents, strict=True):
        write_json(folder / name, content)


def _samples(outcome: Outcome) -> dict[str, Any]:
    table = outcome.qc
    if len(table) > MOST_SAMPLES:
        rows = {
            str(cohort): {
                "call_rate": float(part.call_rate.median()),
                "heterozygosity": float(part.heterozygosity.median()),
            }
            for cohort, part in table.groupby("cohort", sort=False)
        }
    else:
        rows = {
            row["sample"]: {
                "call_rate": row["call_rate"],
                "heterozygosity": row["heterozygosity"],
                **({} if row["keep"] == "yes" else {"left_out": row["left_out"]}),
            }
            for row in table.to_dict("records")
        }
    return {
        "id": "popdesic_samples",
        "plot_type": "generalstats",
        "pconfig": _SAMPLE_COLUMNS,
        "data": _escaped(rows),
    }


def _cohorts(outcome: Outcome) -> dict[str, Any]:
    rows = {
        row["cohort"]: {name: row[name] for name in _COHORT_COLUMNS} for row in cohort_rows(outcome)
    }
    return {
        "id": "popdesic_cohorts",
        "section_name": "Popdesic: cohorts",
        "description": (
            f"Cohorts on a panel of {int(outcome.panel['n_sites'])} sites "
            f"({outcome.panel['digest']})."
        ),
        "plot_type": "table",
        "pconfig": {"id": "popdesic_cohorts_table", "title": "Popdesic: cohorts"},
        "headers": _COHORT_COLUMNS,
        "data": _escaped(rows),
    }


def _components(outcome: Outcome) -> dict[str, Any]:
    table = outcome.embedding("pca")
    axes = [column for column in table if column.startswith("PC") and column[2:].isdigit()][:2]
    shares = [percent(share) for share in outcome.variance["pca"][: len(axes)]]
    if len(table) > MOST_SAMPLES:
        table = table.groupby("cohort", sort=False)[axes].median().reset_index()
        table["sample"] = table["cohort"]
    y = table[axes[1]] if len(axes) > 1 else pd.Series(0.0, table.index)
    points = {
        name: {"x": float(a), "y": float(b), "group": cohort}
        for name, cohort, a, b in zip(table["sample"], table.cohort, table[axes[0]], y, strict=True)
    }
    labels = [f"{axis} ({share})" for axis, share in zip(axes, shares, strict=True)]
    return {
        "id": "popdesic_pca",
        "section_name": "Popdesic: PCA",
        "description": "Principal components of the founders; newcomers are projected.",
        "plot_type": "scatter",
        "pconfig": {
            "id": "popdesic_pca_plot",
            "title": "Popdesic: PCA",
            "xlab": labels[0],
            "ylab": labels[1] if len(labels) > 1 else "",
        },
        "data": _escaped(points),
    }


def _escaped(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Names and words as HTML text; numbers that are unknown are left out."""
    return {
        html.escape(name): {
            key: html.escape(value) if isinstance(value, str) else value
            for key, value in row.items()
            if not (isinstance(value, float) and math.isnan(value)) and value != "NA"
        }
        for name, row in rows.items()
    }
