"""Interactions of sets of sites: counts, figures and the best sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ...epistasis.options import set_files
from ...epistasis.set_results import quantiles_of_sets, read_set_table
from ...epistasis.single_sites import genomic_control, genomic_control_error
from ..figures.sites_scan import LEVEL
from ..inline import describe_drawn
from ..registry import set_figures
from ..words import number

#: Most rows of the table on the page; the file has all.
MOST_ROWS = 15
#: Rows of the table of replication, as many sets as in the forest plot.
BEST = 10
P_VALUES = (
    *("p", "p_adjusted", "p_quadratic", "p_pair", "p_burden"),
    *("p_conditional", "p_untyped"),
)


def set_section(
    path: Path, figures: Path, sets: str | dict, phenotype: str = "", several: bool = True
) -> dict[str, Any] | None:
    """What epistasis/sets.tsv says; None without the file.

    Parameters
    ----------
    path : Path
        Of the table.
    sets : str or dict
        `epistasis.sets`.
    phenotype : str
        As in `registry.set_figures`.
    several : bool
        Whether there are several cohorts; without them a table of a former run may be there.

    Returns
    -------
    dict
        ``listed``, ``tested``, ``significant``: numbers of sets; ``people``; ``lambda``: λ of
        `p_quadratic` with its standard error; ``rows``: the best sets, formatted, the best first;
        ``lead``: the first of them if it is significant, or None; ``replication``: rows of the best
        sets of the discovery cohorts, formatted; ``environments``: of `_environments`, or None;
        ``figures``: FigureText.
    """
    files = set_files(sets)
    if files is None or not path.exists():
        return None
    table = read_set_table(path)
    tested = int(table.p.notna().sum())
    factor = _lambda(table)
    people = int(table.n.iloc[0])
    sizes = {
        "n_tested_sets": number(tested),
        "n_set_people": number(people),
        "lambda_sets": factor,
    }
    best = table[table.p.notna()].sort_values("p", kind="stable").head(MOST_ROWS)
    rows = [_row(row) for _, row in best.iterrows()]
    significant = int((table.p_adjusted <= LEVEL).sum())
    return {
        "listed": len(table),
        "tested": tested,
        "significant": significant,
        "people": people,
        "lambda": factor,
        "rows": rows,
        "lead": rows[0] if significant else None,
        "replication": _replication(path.with_name("sets_replication.tsv")) if several else [],
        "environments": _environments(path.with_name("sets_environment.tsv"), files.environments),
        "figures": describe_drawn(set_figures(sets, phenotype, several), figures, sizes),
    }


def _lambda(table: pd.DataFrame) -> str:
    """λ of `p_quadratic`, with its standard error for independent sets."""
    chi2, tested = quantiles_of_sets(table).chi2.to_numpy(float), int(table.p.notna().sum())
    return f"{genomic_control(chi2):.2f} ± {genomic_control_error(tested):.2f}"


def _environments(path: Path, names: list[str]) -> dict[str, Any] | None:
    """What epistasis/sets_environment.tsv says; None without environments.

    ``tested``, ``significant``: numbers of rows; ``each``: name and ``lambda`` of each environment;
    ``rows``, ``lead``: as of `set_section`.
    """
    if not names or not path.exists():
        return None
    table = read_set_table(path)
    best = table[table.p.notna()].sort_values("p", kind="stable").head(MOST_ROWS)
    shown = ("p", "p_adjusted", "p_quadratic", "p_pair", "p_burden")
    rows = [
        {name: p_text(float(row[name])) for name in shown}
        | {name: row[name] for name in ("set", "environment", "site")}
        | {"place": _place(row), "sites": number(int(row["sites"]))}
        for _, row in best.iterrows()
    ]
    significant = int((table.p_adjusted <= LEVEL).sum())
    return {
        "tested": int(table.p.notna().sum()),
        "significant": significant,
        "each": [
            {"name": name, "lambda": _lambda(own)}
            for name, own in table.groupby("environment", sort=False)
        ],
        "rows": rows,
        "lead": rows[0] if significant else None,
    }


def _replication(path: Path) -> list[dict[str, Any]]:
    """The best sets of the discovery cohorts in the others."""
    table = read_set_table(path)
    best = table[table.p_discovery.notna()].sort_values("p_discovery", kind="stable").head(BEST)
    shown = ("p_discovery", "p_replication", "p_random", "p_q", "p_all", "p_without")
    return [
        {name: p_text(float(row[name])) for name in shown}
        | {name: row[name] for name in ("set", "tested", "without")}
        | {"cohorts": number(int(row.cohorts))}
        | {"i2": "NA" if pd.isna(row.i2) else f"{100 * row.i2:.0f} %"}
        for _, row in best.iterrows()
    ]


def _row(row: pd.Series) -> dict[str, Any]:
    """A set as text."""
    shown = {name: p_text(float(row[name])) for name in P_VALUES}
    return shown | {
        "set": row["set"],
        "place": _place(row),
        "sites": number(int(row["sites"])),
        "products": number(int(row["products"])),
        "best": f"{row['site1']} × {row['site2']}",
    }


def _place(row: pd.Series) -> str:
    places = [
        f"{row[f'chrom{k}']}:{int(row[f'start{k}'])}–{int(row[f'end{k}'])}"
        for k in ("", "2")
        if pd.notna(row[f"start{k}"])
    ]
    return " × ".join(places) or "several contigs"


def p_text(p: float, permutations: int = 0) -> str:
    """A p-value for the page; the smallest one that permutations can give as ≤ 1/(n + 1)."""
    if pd.isna(p):
        return "NA"
    if permutations and p <= 1.0000001 / (permutations + 1):
        return f"≤ 1/{number(permutations + 1)}"
    return "1" if p >= 0.995 else f"{p:.2g}"
