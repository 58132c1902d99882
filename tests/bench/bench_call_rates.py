"""Sites that the call rate of a population removes by chance, and bad sites that it finds.

    python tests/bench/bench_call_rates.py [--sites 1000000] [--data FOLDER] [--quick]

`panel.min_call_rate` (0.95) holds in every population of at least 20 samples with what chance
allows, `call_rates.BY_CHANCE`. Here this level varies. The rule sees only how many samples of a
population miss a call, so genotypes need no drawing. "null": calls are missing at random, at the
same rate in all populations or at a rate that varies by site around it (beta-distributed, at most
5 %); sites per 100 000 that a population removes, not the call rate of everyone. "real": the same
for the data sets below --data, whose own missing calls of a population are given to random
samples of all. "power": the smallest population alone misses a share of the calls; sites found.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from timing import print_table

from popdesic.cohort import call_rates

LEAST = 0.95
LEVELS = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
#: Samples of the populations: eleven of HapMap3, six of 20 to 400, one of 20 beside a large one.
SIZES = {
    "11 populations": [165, 137, 110, 109, 101, 90, 86, 84, 77, 71, 49],
    "6 of 20 to 400": [400, 200, 100, 50, 30, 20],
    "1 000 and 20": [1_000, 20],
}


def removed(missing: np.ndarray, sizes: np.ndarray, level: float) -> np.ndarray:
    """Sites that any population removes: bool, from missing calls int (n_sites, n_populations)."""
    call_rates.BY_CHANCE = level
    bounds = [
        call_rates.call_rate_bound(column, n)
        for column, n in zip(missing.T, sizes.tolist(), strict=True)
    ]
    return np.min(bounds, axis=0) < LEAST


def passing(missing: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sites that the call rate of everyone keeps."""
    return missing.sum(axis=1) <= (1 - LEAST) * sizes.sum()


def null_rows(rng: np.random.Generator, n: int) -> list[tuple]:
    rows = []
    for name, given in SIZES.items():
        sizes = np.array(given)
        for rate, varies in ((0.01, False), (0.03, False), (0.05, False), (0.02, True)):
            each = np.minimum(rng.beta(1, 1 / rate - 1, n), 0.05) if varies else np.full(n, rate)
            missing = rng.binomial(sizes, each[:, None])
            kept = missing[passing(missing, sizes)]
            share = [1e5 * removed(kept, sizes, level).sum() / n for level in LEVELS]
            what = f"{rate:.0%}{' by site' if varies else ''}"
            rows.append((f"null, {name}", what, *(f"{value:.1f}" for value in share)))
    return rows


def real_rows(rng: np.random.Generator, data: Path, n: int, scratch: Path) -> list[tuple]:
    """Missing calls of real data, given to random samples of all populations."""
    from popdesic.cohort.ingest import ingest_cohort
    from popdesic.cohort.missingness import _count_missing
    from popdesic.io.bed import read_fam

    rows = []
    for folder in sorted(data.glob("*/samples.tsv")):
        (vcf,) = folder.parent.glob("*.vcf.gz")
        sheet = pd.read_csv(folder, sep="\t", dtype=str)
        if "population" not in sheet:
            continue
        raw = scratch / folder.parent.name
        ingest_cohort(vcf, raw)
        names = read_fam(raw)["sample"]
        sizes = sheet.set_index("sample_id").population.reindex(names).value_counts()
        sizes = sizes[sizes >= 20].to_numpy()
        total = _count_missing(raw, np.zeros(len(names), np.int64), 1)[:, 0]
        if not len(sizes) or not total.any():
            continue
        total = np.minimum(rng.choice(total, n) * sizes.sum() // len(names), sizes.sum())
        missing = np.empty((n, len(sizes)), np.int64)
        for value in np.unique(total):
            which = np.flatnonzero(total == value)
            missing[which] = rng.multivariate_hypergeometric(sizes, int(value), size=len(which))
        kept = missing[passing(missing, sizes)]
        share = [1e5 * removed(kept, sizes, level).sum() / n for level in LEVELS]
        what = f"{len(sizes)} populations"
        rows.append((f"real, {folder.parent.name}", what, *(f"{value:.1f}" for value in share)))
    return rows


def power_rows(rng: np.random.Generator, n: int) -> list[tuple]:
    rows = []
    for size in (20, 50, 100):
        for share in (1.0, 0.5, 0.3, 0.2, 0.1):
            missing = rng.binomial(size, share, (n, 1))
            found = [removed(missing, np.array([size]), level).mean() for level in LEVELS]
            text = [f"{value:.1%}" for value in found]
            rows.append((f"power, {size} samples", f"{share:.0%}", *text))
    return rows


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--sites", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, help="folder of data sets: VCF and samples.tsv each")
    options = commandline.parse(parser, sites=2_000)
    rng = np.random.default_rng(1)
    rows = null_rows(rng, options.sites)
    if options.data is not None:
        with tempfile.TemporaryDirectory() as scratch:
            rows += real_rows(rng, options.data, options.sites, Path(scratch))
    rows += power_rows(rng, min(options.sites, 20_000))
    head = ("populations", "missing", *(f"level {level:g}" for level in LEVELS))
    print_table("Sites removed per 100 000 (null, real), and bad sites found (power)", head, rows)


if __name__ == "__main__":
    main()
