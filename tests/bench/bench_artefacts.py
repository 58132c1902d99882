"""Artefacts between cohorts: null studies that are flagged, and planted artefacts that are found.

    python tests/bench/bench_artefacts.py [--seeds 25] [--first-seed 1000] [--cost] [--quick]

Studies of `tests/scenes/artefacts.py`, eight designs for each seed: two to six cohorts of 30 to 250
samples, a third of them newcomers, at 8 000 sites. "flagged" studies have a cohort that departs,
and nothing is planted. Then one cohort, on odd seeds a newcomer where there is one, is spoiled at
1, 2, 3 or 5 % of its sites. "found": that cohort departs. "sites": share of the spoiled sites that
are named; many have no genotype that changes, or are rare. "false": share of all named sites of
that cohort that are not spoiled. "others": studies in which a further cohort departs, which of two
founders is not told. Cohorts whose ancestry no other has (`own_population`) have rows of their own.

The constants of `cohort/artefacts.py` were chosen on seeds 0 to 5 and 5000 to 5007. --cost: CPU
seconds of eight cohorts of 500 samples at 300 000 sites.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import commandline
import numpy as np
import pandas as pd
from scenes.artefacts import DESIGNS, KINDS, Cohorts, draw_cohorts, plant
from timing import print_table

from popdesic.cohort.artefacts import find_artefacts, find_study_artefacts

SHARES = (0.01, 0.02, 0.03, 0.05)


def search(study: Cohorts) -> tuple[pd.DataFrame, list]:
    """What is found in a study."""

    def reader(names: Sequence[str]) -> Callable[[int, int], np.ndarray]:
        columns = np.concatenate([np.arange(*study.columns(name).indices(10**9)) for name in names])
        return lambda first, last: study.genotypes[first:last][:, columns]

    return find_study_artefacts(reader, study.sites, study.sizes, study.founders)


def null_rows(seeds: range, n_sites: int) -> list[tuple]:
    rows = []
    for design in DESIGNS:
        flagged = [
            any(one.departs for one in search(draw_cohorts(design, s, n_sites))[1]) for s in seeds
        ]
        rows.append((design, len(flagged), sum(flagged)))
    rows.append(("all", *np.sum([row[1:] for row in rows], axis=0).tolist()))
    return rows


def planted_rows(seeds: range, n_sites: int) -> list[tuple]:
    cases: dict[tuple[str, str], list] = {}
    for design in DESIGNS:
        for kind in KINDS:
            for seed in seeds:
                study = draw_cohorts(design, seed + 10_000, n_sites)
                study = plant(study, kind, SHARES[seed % 4], seed, newcomer=seed % 2 == 1)
                table, found = search(study)
                mine = table[table.cohort == study.cohort].index.unique()
                spoiled = np.isin(mine, study.planted)
                (own,) = (one for one in found if one.cohort == study.cohort)
                further = any(one.departs for one in found if one is not own)
                where = "own" if own.own_population else "shared"
                cases.setdefault((where, kind), []).append(
                    (own.departs, spoiled.sum(), len(study.planted), len(mine), further)
                )
    rows = []
    for where in ("shared", "own"):
        for kind in KINDS:
            if (where, kind) in cases:
                some = np.array(cases[where, kind], float)
                found, named, planted, listed, further = some.sum(axis=0)
                rows.append(
                    (
                        where,
                        kind,
                        len(some),
                        int(found),
                        f"{named / planted:.2f}",
                        f"{1 - named / max(listed, 1):.3f}",
                        int(further),
                    )
                )
    return rows


def cost(n_sites: int, n_samples: int) -> float:
    """CPU seconds of a search among eight founder cohorts, without reading files."""
    rng = np.random.default_rng(1)
    base = rng.binomial(2, rng.uniform(0.05, 0.5, (4_000, 1)), (4_000, n_samples)).astype(np.int8)
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(n_sites), "id": ".", "ref": "A"})
    sizes = {f"c{k}": n_samples // 8 for k in range(8)}

    def read(first: int, last: int) -> np.ndarray:
        return base[np.arange(first, last) % len(base), : sum(sizes.values())]

    start = time.process_time()
    find_artefacts(read, sites.assign(alt="C"), sizes, list(sizes), list(sizes))
    return time.process_time() - start


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--first-seed", type=int, default=1_000)
    parser.add_argument("--sites", type=int, default=8_000)
    parser.add_argument("--cost", action="store_true", help="CPU seconds alone")
    options = commandline.parse(parser, seeds=1, sites=1_500)
    if options.cost:
        print(f"{cost(300_000, 4_000):.1f} CPU-s: eight cohorts of 500 at 300 000 sites")
        return
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    head = ("design", "studies", "flagged")
    print_table("Studies without artefacts", head, null_rows(seeds, options.sites))
    head = ("ancestry", "artefact", "studies", "found", "sites", "false", "others")
    print_table("Artefacts of one cohort", head, planted_rows(seeds, options.sites))


if __name__ == "__main__":
    main()
