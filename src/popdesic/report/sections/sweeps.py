"""Part of the section on populations: haplotype statistics of the founders."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...core.files import read_json
from ...core.tables import read_table
from ..words import join, number, percent, plural

#: Rows of the table on the page.
ROWS = 30
#: The highest H12 over the median, and the largest share of a window's sites with an absolute iHS
#: above 2, in simulations without selection (`test_h12_of_coalescents`, docs/population.md).
DRIFT_TIMES, DRIFT_SHARE = 2.7, 0.36


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
    left_out = _left_out(about)
    if "reason" in about:
        reason = f"There are no haplotype statistics: {about['reason']}."
        return SweepsPart([], [reason, *left_out], [], {})
    populations = about["populations"]
    sizes = {
        "n_swept": number(sum(populations.values())),
        "n_swept_sites": number(about["sites"]),
        "n_swept_windows": number(about["windows"]),
    }
    scores = ["iHS", "nSL", *(["XP-EHH"] if about["compared"] else []), "Garud's H"]
    words = (
        f"The phased haplotypes of {sizes['n_swept']} founders of "
        f"{plural(len(populations), 'population')} are scored by {join(scores)} at "
        f"{sizes['n_swept_sites']} sites."
    )
    if len(populations) > 1 and not about["compared"]:
        left_out.append(
            "There are too many populations to compare haplotypes of all pairs (XP-EHH)."
        )
    if len(populations) > ROWS:
        left_out.append(
            f"The table lists {ROWS} populations; results/population/sweep_windows.tsv has all."
        )
    windows = read_table(folder / "sweep_windows.tsv")
    for name in ("h12", "extreme_ihs"):
        windows[name] = pd.to_numeric(windows[name], errors="coerce")
    return SweepsPart(
        [words, *_trust(windows)],
        [
            *left_out,
            "High scores alone are no evidence of selection: they have no p, and low recombination "
            "and drift raise them too. Without selection, simulations had windows in which up to "
            f"{percent(DRIFT_SHARE, 0)} of the sites have an |iHS| above 2.",
        ],
        _rows(windows, populations),
        sizes,
    )


def _left_out(about: dict[str, Any]) -> list[str]:
    """Which populations are not scored; empty if all are."""
    small = about["too_small"]
    if not small:
        return []
    names = sorted(small, key=lambda name: -small[name])
    named = join(names) if len(names) < 4 else f"{', '.join(names[:3])} and others"
    least = plural(about["fewest"], "unrelated founder")
    return [f"Haplotypes of {named} are not scored: a population needs {least} or more."]


def _excess(windows: pd.DataFrame) -> float:
    """The highest H12 of a population's windows over their median; NaN without windows."""
    return float(windows.h12.max() / windows.h12.median()) if len(windows) else np.nan


def _trust(windows: pd.DataFrame) -> list[str]:
    """How far the highest H12 stands out, and what that is worth; empty without windows."""
    found = {str(name): _excess(own) for name, own in windows.groupby("population")}
    if not found:
        return []
    best = max(found, key=lambda name: found[name])
    own = windows[windows.population == best]
    verdict = (
        "so look at this window first"
        if found[best] > DRIFT_TIMES
        else "so no window stands out by H12"
    )
    return [
        f"H12 is most uneven in {best}: its highest value is {found[best]:.1f} times the median of "
        f"the population's {plural(len(own), 'window')}. Drift alone gave up to {DRIFT_TIMES:g} "
        f"times in simulations of 20 founders, {verdict}."
    ]


def _rows(windows: pd.DataFrame, sizes: dict[str, int]) -> list[dict[str, str]]:
    """The windows of each population with the highest H12 and the most sites of extreme iHS."""
    found = []
    for name, founders in list(sizes.items())[:ROWS]:
        own = windows[windows.population == name].reset_index(drop=True)
        ratio = _excess(own)
        row = {"population": name, "founders": number(founders)}
        row["excess"] = "NA" if np.isnan(ratio) else f"{ratio:.1f}"
        for column in ("h12", "extreme_ihs"):
            values = own[column]
            row |= {column: "NA", f"{column}_window": "NA"}
            if values.notna().any():
                best = own.iloc[int(values.idxmax())]
                share = float(values.max())
                row[column] = percent(share) if column == "extreme_ihs" else f"{share:.2f}"
                row[f"{column}_window"] = f"{best.chrom}:{best.start}-{best.end}"
        found.append(row)
    return found
