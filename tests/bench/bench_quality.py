"""How far the quality of a map measured on a sample is from that of everyone, and what it states.

    python tests/bench/bench_quality.py [--samples 10000] [--drawn 1000] [--seeds 1000]

The people of bench_maps.py in the order of their populations, as sheets are, and the UMAP of their
points. The neighbourhoods of all of them are measured; then samples of --drawn are taken from
these: at random, as above `quality.MAX_ANCHORS` samples, and evenly spaced from every possible
start, as landmarks of a study without a matrix of all pairs. For either: the root mean square of
the errors made over the standard errors stated, and how many of the 95 % intervals hold the value
of everyone.
"""

from __future__ import annotations

import commandline
import numpy as np
from bench_maps import UMAP, structured
from support.one_map import umap_layout
from timing import print_table

from popdesic.core.threads import usable_cpus
from popdesic.distance.matrix import rows_of_points
from popdesic.maps.agreement import ERROR, compare_each

#: Standard errors to either side of a 95 % interval.
SIDES = 1.96


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--drawn", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=1_000)
    options = commandline.parse(parser, samples=600, drawn=150, seeds=100)
    n, drawn = options.samples, options.drawn
    points = structured(n)
    points = points[np.argsort(points[:, 0], kind="stable")]
    rows, threads = rows_of_points(points), usable_cpus()
    layout = umap_layout(rows, n, points, seed=1, threads=threads, **UMAP)
    found = compare_each({0: layout}, {0: rows}, {0: [0]}, np.arange(n), threads)[0, 0]
    everyone = found.summary(n)
    rng = np.random.default_rng(1)
    designs = {
        "at random": [rng.choice(n, drawn, replace=False) for _ in range(options.seeds)],
        "evenly spaced": [np.arange(start, n, n // drawn) for start in range(n // drawn)],
    }
    samples = {
        name: [found.of(chosen).summary(n) for chosen in some] for name, some in designs.items()
    }
    table = []
    for key in (key for key in everyone if not key.endswith(ERROR)):
        cells = [key.replace("_", " "), f"{everyone[key]:.4f}"]
        for some in samples.values():
            off = np.array([one[key] - everyone[key] for one in some])
            stated = np.array([one[key + ERROR] for one in some])
            held = (np.abs(off) <= SIDES * stated).mean()
            made = np.sqrt((off**2).mean() / (stated**2).mean())
            cells += [f"{np.sqrt((stated**2).mean()):.4f}", f"{made:.2f}", f"{held:.1%}"]
        table.append(cells)
    counts = ", ".join(f"{len(some)} {name}" for name, some in designs.items())
    columns = ["measure", "everyone", *("error stated", "made / stated", "95 % hold") * 2]
    print_table(f"{drawn} of {n} people; samples: {counts}", columns, table)


if __name__ == "__main__":
    main()
