"""Cost of kinship, identity and contamination where few sites can tell, in CPU seconds.

    python tests/bench/bench_mixture_search.py [--quick]

Panels on which nearly every pair has hardly any absent allele: rare sites (`panel.min_maf` of 0),
a few common sites of many samples, and common sites for comparison. Rows are those of the table of
contaminated samples; all samples are unrelated, so any row is wrong.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from support.study import Cohort, encode_cohorts, make_sites
from timing import print_table

from popdesic.cohort.panel import load_panel
from popdesic.core.tables import read_table
from popdesic.engine.select import cpu_backend
from popdesic.relatives.cohorts import ENDINGS, TABLES, Limits, compare_cohorts
from popdesic.relatives.independence import measure_resolution

#: Samples, sites, lowest and highest allele frequency.
PANELS = {
    "rare sites": (150, 6_000, 0.004, 0.02),
    "four sites": (2_535, 4, 0.1, 0.5),
    "common sites": (150, 6_000, 0.1, 0.5),
}


def measure(name: str, samples: int, sites: int) -> tuple:
    _, _, low, high = PANELS[name]
    rng = np.random.default_rng(1)
    frequency = rng.uniform(low, high, sites)
    drawn = rng.binomial(2, frequency[:, None], (sites, samples)).astype(np.int8)
    names = [f"s{k}" for k in range(samples)]
    cohort = Cohort("all", names, make_sites(sites), drawn)
    backend = cpu_backend(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (planes,) = encode_cohorts(folder, [cohort])
        panel = folder / "panel.tsv"
        found = measure_resolution(
            [planes], panel, folder / "kinship.json", backend, max_mismatch=0.02
        )
        limits = Limits(0.0884, 0.005, 1, found, top=1)
        out = {table: folder / f"x{end}" for table, end in zip(TABLES, ENDINGS, strict=True)}
        af = load_panel(panel)[0].af.to_numpy()
        start, cpu = time.perf_counter(), time.process_time()
        compare_cohorts(planes, planes, af, out, backend, limits)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        rows = len(read_table(out["mixture"]))
    least = "-" if found.needed_common is None else found.needed_common
    return name, samples, sites, found.common_sites, least, rows, f"{cpu:.2f}", f"{wall:.2f}"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--most-samples", type=int, default=1_000_000, help="of a panel")
    parser.add_argument("--most-sites", type=int, default=1_000_000, help="of a panel")
    options = commandline.parse(parser, most_samples=60, most_sites=300)
    sizes = {
        name: (min(samples, options.most_samples), min(sites, options.most_sites))
        for name, (samples, sites, _, _) in PANELS.items()
    }
    measure("common sites", 20, 100)  # compiles
    rows = [measure(name, *size) for name, size in sizes.items()]
    head = ("panel", "samples", "sites", "common", "needed", "rows", "CPU s", "s")
    print_table("Comparison of a cohort with itself", head, rows)


if __name__ == "__main__":
    main()
