"""Where newcomers come to lie on the PCA: plain projection, OADP, and what is kept apart in it.

python tests/bench/bench_projection.py [--data FOLDER] [--splits 5] [--quick]

People of HapMap3 (POPDESIC_SHARED) are divided at random into founders and newcomers, two thirds,
half and a fifth of them founders. PC1 and so on: slope of the newcomers' population means on the
founders', the mean of all splits; 1 is no shrinkage. `near`: share of newcomers among a newcomer's
15 nearest; by chance their share of everyone. `+0 alone` is OADP that keeps as many components
apart as are asked for and forgets the others; `+10` is the default, with all others as one of their
mean size.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import commandline
import numpy as np
from scenes.newcomers import newcomer_neighbors, plain_scores, population_slopes
from scenes.people import load_people
from timing import print_table

from popdesic.cohort.panel import load_panel
from popdesic.cohort.site_alleles import read_cohorts
from popdesic.components.pca import Axes, axes_of
from popdesic.components.relationship import alt_frequency, relationship_among, relationship_to

SHARES = {"2/3": 2 / 3, "1/2": 1 / 2, "1/5": 1 / 5}


def kept_apart(axes: Axes, further: int, rest: bool) -> Axes:
    """Axes with so many further components apart, and the others as one or forgotten."""
    q = min(axes.k + further, len(axes.values))
    values = axes.values[:q]
    trace = axes.trace if rest else float(values.sum())
    return replace(axes, values=values, vectors=axes.vectors[:, :q], trace=trace)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--data", type=Path, help="the folder of hapmap3_957")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--components", type=int, default=8)
    options = commandline.parse(parser, splits=1)
    shared = Path(os.environ.get("POPDESIC_SHARED", commandline.ROOT.parent / "shared"))
    data = options.data or shared / "data"
    if not (data / "hapmap3_957").is_dir():
        print(f"HapMap3 is left out: {data}/hapmap3_957 is not there (set POPDESIC_SHARED).")
        return
    with tempfile.TemporaryDirectory() as temporary:
        people = load_people(data, "hapmap3_957", Path(temporary))
        prefix = Path(temporary) / "genotypes"
        n_sites = len(load_panel(Path(temporary) / "panel.tsv")[0])
        genotypes = read_cohorts([prefix])[0](0, n_sites)
    measure(genotypes, people.labels.population.to_numpy(), options.splits, options.components)


def measure(genotypes: np.ndarray, label: np.ndarray, splits: int, k: int) -> None:
    n = genotypes.shape[1]
    rows = []
    for name, share in SHARES.items():
        found: dict[str, list] = {}
        seconds = []
        for split in range(splits):
            founders = np.random.default_rng(split).permutation(n) < round(share * n)
            af = alt_frequency(genotypes[:, founders])
            read = partial(read_some, genotypes, founders)
            axes, _ = axes_of(relationship_among(read, [int(founders.sum())], af), k)
            given = relationship_to(lambda a, b: genotypes[a:b], [n], founders, af)
            ways = {"plain": plain_scores(axes, founders, given[0])}
            for title, further, rest in (
                ("+0 alone", 0, False),
                ("+0", 0, True),
                ("+10", 10, True),
                ("+50", 50, True),
            ):
                start = time.perf_counter()
                ways[title] = kept_apart(axes, further, rest).place(founders, *given)
                if title == "+10":
                    seconds.append((time.perf_counter() - start) / (~founders).sum())
            for title, scores in ways.items():
                slopes = population_slopes(scores, founders, label)
                found.setdefault(title, []).append([*slopes, newcomer_neighbors(scores, founders)])
        for title, numbers in found.items():
            mean = np.mean(numbers, axis=0)
            rows.append((name, title, *(f"{x:.2f}" for x in mean[:-1]), f"{mean[-1]:.3f}"))
        rows.append((name, "chance", *[""] * k, f"{1 - share:.3f}"))
        print(f"{name}: {1e3 * np.mean(seconds):.2f} ms a newcomer (+10)", flush=True)
    head = ("founders", "way", *(f"PC{i + 1}" for i in range(k)), "near")
    print_table(f"slopes of {splits} splits of {n} people, {len(genotypes)} sites", head, rows)


def read_some(genotypes: np.ndarray, who: np.ndarray, first: int, last: int) -> np.ndarray:
    return genotypes[first:last][:, who]


if __name__ == "__main__":
    main()
