"""False relatives among unrelated samples whose calls are missing by their genotype, and families.

    python tests/bench/bench_missing_kinship.py [--samples 60] [--sites 5000] [--seeds 5] [--quick]

Genotypes of one population at independent sites; homozygous reference, heterozygous and homozygous
ALT genotypes are missing at given rates. "refused" counts draws in which kinship is not used;
"raised" is the mean rise of the limit in the others. "unjudged" counts false pairs without either,
"third", "second" and "first" those that are reported. In rows with a limit, each site has a rate
of its own, and sites above the limit are left out. Families of full siblings miss calls at random:
there "first" counts true relatives, and no draw must be refused.
"""

from __future__ import annotations

from functools import partial

import commandline
import numpy as np
from scenes.missing import (
    judge_strangers,
    missing_by_genotype,
    missing_up_to_a_limit,
    siblings,
)
from timing import print_table

from popdesic.engine.select import select_backend

#: Missing rates of genotypes with 0, 1 and 2 ALT alleles.
RATES = [
    *[(m, 0, m) for m in (0.0, 0.02, 0.05, 0.07, 0.1, 0.2, 0.3, 0.6)],
    *[(m, 0, 0) for m in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.9)],
    *[(0, m, 0) for m in (0.05, 0.1, 0.3)],
    *[(m, m, m) for m in (0.05, 0.2, 0.4)],
]
#: Largest rate of missing homozygotes of a site, and limit of its missing calls.
LIMITS = [(0.3, 0.05), (1.0, 0.05), (1.0, 0.1), (1.0, 0.2)]
#: Families of full siblings, and rates of calls missing at random.
FAMILIES = [(k, rate) for k in (1, 2, 3, 5) for rate in (0.01, 0.04, 0.1, 0.2)]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--sites", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = commandline.parse(parser, samples=20, sites=1_000, seeds=1)
    n, sites, backend, rows = options.samples, options.sites, select_backend("cpu", 2), []
    scenes = [
        (" ".join(f"{m:.0%}" for m in rates), partial(missing_by_genotype, n, sites, rates))
        for rates in RATES
    ]
    scenes += [
        (f"0-{m:.0%}, limit {k:.0%}", partial(missing_up_to_a_limit, n, sites, m, k))
        for m, k in LIMITS
    ]
    scenes += [
        (f"{k} sibships, {m:.0%}", partial(siblings, n // 2, sites, k, (m,) * 3))
        for k, m in FAMILIES
    ]
    for name, draw in scenes:
        found = [judge_strangers(draw(seed), backend) for seed in range(1, options.seeds + 1)]
        raised = [max(one.shift, 0.0) for one in found if one.fault is None]
        rows.append(
            (
                name,
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
