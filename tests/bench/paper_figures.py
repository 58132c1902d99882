"""Central figures of the five papers, with our rates beside theirs.

python tests/bench/paper_figures.py [--out FOLDER]   SVG and PNG, build/paper-figures by default

The rows are in tests/bench/measured. `ours.tsv` has what pages of this repository state, with card
and command in its present form; date and commit are those that wrote the figure to its page.
`published.tsv` has what the papers print in text and tables; nothing is read from a plot.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import pandas as pd
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
ROWS = Path(__file__).with_name("measured")
#: Of Okabe and Ito, black for ours; told apart without colour by their hatches and symbols.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#CC79A7")
HATCHES, SYMBOLS = ("", "//", "..", "xx", "\\\\", "--"), "osD^vP"


@dataclass(frozen=True)
class Figure:
    """What one figure shows: its title, axes, and whether x is a number."""

    title: str
    x: str
    y: str
    curve: bool = False
    log: bool = True


RATE = "T combinations × samples/s"
FIGURES = {
    "epiclear_mixes": Figure(
        "EPIClear: triples of 16 384 sites × 524 288 samples",
        "frequencies of the three genotypes, %",
        RATE,
    ),
    "epiclear_real": Figure(
        "EPIClear: triples of about 5 000 samples, 6.7/23.7/69.6 %", "sites", RATE
    ),
    "episdet_rates": Figure("Tensor-Episdet: best rates", "combinations", RATE),
    "popc_scans": Figure("Scans of triples on CUDA cores", "card", RATE),
    "share_of_peak": Figure(
        "Portable SNP comparison: share of the card's limit", "card", "%", log=False
    ),
    "thesis_distances": Figure("Thesis: distances", "samples × sites", "seconds"),
    "thesis_paths": Figure("Thesis: shortest paths", "samples", "seconds", curve=True),
}


def read_rows() -> pd.DataFrame:
    """All rows, ours first; columns `figure`, `series`, `x`, `value`, `machine`, `ours`."""
    tables = [
        pd.read_csv(ROWS / f"{name}.tsv", sep="\t", dtype={"x": str, "commit": str})
        for name in ("ours", "published")
    ]
    return pd.concat(
        [table.assign(ours=own) for table, own in zip(tables, (True, False), strict=True)]
    )


def draw(name: str, rows: pd.DataFrame) -> plt.Figure:
    """One figure of the rows that belong to it."""
    made = FIGURES[name]
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    series = list(rows.groupby("series", sort=False))
    labels = [f"{who} ({', '.join(dict.fromkeys(part.machine))})" for who, part in series]
    places = {x: place for place, x in enumerate(dict.fromkeys(rows.x))}
    beside = {x: [who for who, part in series if x in set(part.x)] for x in places}
    width = 0.8 / max(map(len, beside.values()))
    for number, ((who, part), label) in enumerate(zip(series, labels, strict=True)):
        colour = COLOURS[number]
        if made.curve:
            axes.plot(
                part.x.astype(float),
                part.value,
                color=colour,
                marker=SYMBOLS[number],
                label=label,
            )
        else:
            axes.bar(
                [
                    places[x] + (beside[x].index(who) - (len(beside[x]) - 1) / 2) * width
                    for x in part.x
                ],
                part.value,
                width,
                label=label,
                facecolor=colour if number == 0 else "white",
                edgecolor=colour,
                hatch=HATCHES[number],
            )
    if made.curve:
        axes.set_xscale("log", base=2)
        ticks = rows.x[rows.ours].astype(float)
        axes.set_xticks(ticks, [f"{x:,.0f}".replace(",", " ") for x in ticks])
        axes.minorticks_off()
    else:
        axes.set_xticks(list(places.values()), list(places), rotation=20 if len(places) > 4 else 0)
    if made.log:
        axes.set_yscale("log")
    axes.set(title=made.title, xlabel=made.x, ylabel=made.y)
    figure.legend(fontsize="small", loc="outside lower center", ncols=2)
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build/paper-figures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "popdesic"
    for name, rows in read_rows().groupby("figure", sort=False):
        figure = draw(name, rows)
        figure.savefig(options.out / f"{name}.svg", metadata={"Date": None})
        figure.savefig(options.out / f"{name}.png", dpi=120)
        plt.close(figure)
        print(options.out / f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
