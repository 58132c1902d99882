"""False relatives among unrelated samples whose calls are missing by their genotype.

    python tests/bench/bench_missing_kinship.py [--samples 60] [--sites 5000] [--seeds 5] [--quick]

Genotypes of one population at independent sites; homozygous reference, heterozygous and homozygous
ALT genotypes are missing at given rates. "refused" counts draws in which kinship is not used;
"raised" is the mean rise of the limit in the others. "unjudged" counts false pairs without either,
"third", "second" and "first" those that are reported.
"""

from __future__ import annotations

import commandline
import numpy as np
from missing_scenes import judge_strangers, missing_by_genotype
from timing import print_table

from popdesic.engine.select import select_backend

#: Missing rates of genotypes with 0, 1 and 2 ALT alleles.
RATES = [
    *[(m, 0, m) for m in (0.0, 0.02, 0.05, 0.07, 0.1, 0.2, 0.3, 0.6)],
    *[(m, 0, 0) for m in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.9)],
    *[(0, m, 0) for m in (0.05, 0.1, 0.3)],
    *[(m, m, m) for m in (0.05, 0.2, 0.4)],
]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--sites", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = commandline.parse(parser, samples=20, sites=1_000, seeds=1)
    backend, rows = select_backend("cpu", 2), []
    for rates in RATES:
        found = [
            judge_strangers(
                missing_by_genotype(options.samples, options.sites, rates, seed), backend
            )
            for seed in range(1, options.seeds + 1)
        ]
        raised = [one.shift for one in found if one.fault is None]
        rows.append(
            (
                " ".join(f"{rate:.0%}" for rate in rates),
                f"{np.mean([one.missing for one in found]):.1%}",
                f"{np.mean([one.median for one in found]):.3f}",
                sum(one.fault is not None for one in found),
                f"{np.mean(raised):.3f}" if raised else "-",
                *(sum(getattr(one, k) for one in found) for k in ("unjudged", "third")),
                *(sum(getattr(one, k) for one in found) for k in ("second", "first", "pairs")),
            )
        )
    head = ("missing 0 1 2", "calls", "median kinship", "refused", "raised", "unjudged")
    print_table(
        f"{options.seeds} draws of {options.samples} unrelated samples, {options.sites} sites",
        (*head, "third", "second", "first", "pairs"),
        rows,
    )


if __name__ == "__main__":
    main()
