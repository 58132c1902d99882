"""Part of the section on populations: haplotype statistics of the founders."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ...core.files import read_json
from ...core.tables import read_table
from ..words import join, number, percent, plural

#: Rows of the table on the page.
ROWS = 30


class SweepsPart(NamedTuple):
    """Sentences, notes, rows of the table, and sizes for captions."""

    words: list[str]
    notes: list[str]
    rows: list[dict[str, str]]
    sizes: dict[str, str]


def sweeps_part(folder: Path, asked: bool) -> SweepsPart:
    """What `sweeps` in `population.analyses` found; empty without it.

    Parameters
    ----------
    folder : Path
        `results/population`.
    """
    if not asked:
        return SweepsPart([], [], [], {})
    about = read_json(folder / "sweep_summary.json")
    notes = []
    if small := about["too_small"]:
        least = plural(about["fewest"], "unrelated founder")
        names = sorted(small, key=lambda name: -small[name])
        named = join(names) if len(names) < 4 else f"{', '.join(names[:3])} and others"
        notes.append(f"Haplotypes of {named} are not scored: a population needs {least} or more.")
    if "reason" in about:
        return SweepsPart(
            [], [f"There are no haplotype statistics: {about['reason']}.", *notes], [], {}
        )
    sizes = {
        "n_swept": number(sum(about["populations"].values())),
        "n_swept_sites": number(about["sites"]),
        "n_swept_windows": number(about["windows"]),
    }
    compared = ", XP-EHH" * about["compared"]
    words = (
        f"The phased haplotypes of {sizes['n_swept']} founders of "
        f"{plural(len(about['populations']), 'population')} are scored by iHS, nSL"
        f"{compared} and Garud's H at {sizes['n_swept_sites']} sites."
    )
    if len(about["populations"]) > 1 and not about["compared"]:
        notes.append("There are too many populations to compare haplotypes of all pairs (XP-EHH).")
    notes.append(
        "High scores alone are no evidence of selection: they have no p, and low recombination "
        "and drift raise them too."
    )
    table = read_table(folder / "sweep_windows.tsv")
    return SweepsPart([words], notes, _rows(table, about["populations"]), sizes)


def _rows(table: pd.DataFrame, sizes: dict[str, int]) -> list[dict[str, str]]:
    """The windows of each population with the highest H12 and the most sites of extreme iHS."""
    found = []
    for name, founders in list(sizes.items())[:ROWS]:
        own = table[table.population == name].reset_index(drop=True)
        row = {"population": name, "founders": number(founders)}
        for column in ("h12", "extreme_ihs"):
            values = pd.to_numeric(own[column], errors="coerce")
            row |= {column: "NA", f"{column}_window": "NA"}
            if values.notna().any():
                best = own.iloc[int(values.idxmax())]
                share = float(values.max())
                row[column] = percent(share) if column == "extreme_ihs" else f"{share:.2f}"
                row[f"{column}_window"] = f"{best.chrom}:{best.start}-{best.end}"
        found.append(row)
    return found
