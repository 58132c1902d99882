"""Phantoms: how often one untyped additive site makes a pair of typed sites look like interaction.

    python tests/bench/bench_phantoms.py ../shared/data [--replicates 200] [--people 2000]
                                         [--odds 3] [--bonferroni] [--quick]

Each replicate is a study of people made of real haplotypes of chromosome 22
(tests/scenes/interactions/real_haplotypes.py). One common site that is not typed multiplies the
odds of being a case; there is no interaction. All pairs of the typed sites within 1 Mb of it are
scanned. A row is the share of studies with at least one pair that is significant, with its 95 %
interval (Wilson). Rows differ in which partners are permitted and which p counts:

    equal        p_interaction, corrected for all pairs of the region
    p            p_interaction, corrected by the main effects of the sites (epistasis/priority.py)
    conditional  for pairs in cis the larger one of it and that given the best sites of the region

With --bonferroni, which is fast, p is that of the likelihood ratio times the number of pairs.
In 'nothing', the untyped site has no effect: what the test itself does. In 'trans', there are two
unlinked regions with an untyped site each, and pairs have one site in each region.
"""

from __future__ import annotations

from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from timing import print_table

from bench_interactions import wilson  # isort: skip
from scenes.interactions.real_haplotypes import Study, untyped_site  # isort: skip
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.evidence import Prior, candidates_of
from popdesic.epistasis.hit_test import hit_test
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.options import MAX_R2, MIN_DISTANCE_BP, kept_combinations
from popdesic.epistasis.p_values import p_of_hits
from popdesic.epistasis.partners import partners_of
from popdesic.epistasis.phantoms import mark_cis
from popdesic.epistasis.priority import strength_of
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan import count_tests
from popdesic.epistasis.scan_sites import scan_pairs
from popdesic.epistasis.scores import make_scan_data
from popdesic.epistasis.significance import describe_hits, hit_tables
from popdesic.epistasis.single_sites import SiteTests

LEVEL = 0.05
KINDS = ("equal", "p", "conditional")
#: Best pairs of a study that are looked at.
TOP, TOP_BY_LR = 10, 40


def significant(
    study: Study, limits: tuple[int, float], *, trans: bool = False, bonferroni: bool = False
) -> tuple[bool, ...]:
    """Whether any pair of a study is significant by `KINDS`."""
    order = np.argsort(study.case, kind="stable")
    genotypes = np.ascontiguousarray(study.genotypes[:, order])
    sizes = int((~study.case).sum()), int(study.case.sum())
    words, sites, _ = reorder_sites(
        lambda part: genotypes[part], np.arange(len(genotypes)), sizes[0]
    )
    place = pd.DataFrame({"chrom": study.chrom, "pos": study.pos})
    sites = sites.join(place, on="rank")
    min_distance_bp, max_r2 = limits
    rules = {"min_distance_bp": 10**9 if trans else min_distance_bp, "max_r2": max_r2}
    data = make_scan_data(words, sites, *sizes, "interaction", partners_of(sites, **rules))
    backend, top = CpuBackend(1), TOP_BY_LR if bonferroni else TOP
    kept = scan_pairs(backend, data, range(data.n_sites), kept_combinations(top))
    case = study.case[order]
    null = fit_null(case.astype(float), np.empty((len(case), 0)), "logistic")
    strength = strength_of(SiteTests(null).test(genotypes[sites["rank"]]))
    tests, found = count_tests(len(sites), 2), []
    for prior in (None, Prior(strength, backend, **rules)):
        best = candidates_of(kept, words, sites, sizes, prior, tests=tests, top=top)
        if bonferroni:
            rows = sites["rank"].to_numpy()[best.hits.sites]
            lr_p = [interaction_test(hit_tables(genotypes[pair], sizes[0]))[2] for pair in rows]
            p = np.minimum(np.array(lr_p) * best.tests, 1)
            table = pd.DataFrame({"lr_p": lr_p, "p_interaction": p})
        else:
            table = describe_hits(
                best.hits, words, sites, hit_test(case, tests), order=2, score="interaction",
                drawn=np.zeros(0, np.int64), tests=best.tests, named=("chrom", "pos"),
            )  # fmt: skip
        found.append(len(table) > 0 and bool((table.p_interaction <= LEVEL).any()))
    if not len(table):
        return False, False, False
    table = mark_cis(table, best.hits, words, sites, *sizes, tests=best.tests)
    return *found, bool((p_of_hits(table, tests) <= LEVEL).any())


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder of the real data, with kg1_chr22_564")
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--odds", type=float, default=3.0, help="odds ratio of each allele")
    parser.add_argument("--bonferroni", action="store_true", help="p of the likelihood ratio alone")
    options = commandline.parse(parser, replicates=2, people=500)
    none, r2, both = (0, 1.0), (0, MAX_R2), (MIN_DISTANCE_BP, MAX_R2)
    scenes = (
        (1.0, 1, {"nothing": none}),
        (
            options.odds,
            1,
            {
                "untyped site": none,
                f"r2 <= {MAX_R2:g}": r2,
                f"and {MIN_DISTANCE_BP / 1e3:g} kb apart (default)": both,
            },
        ),
        (options.odds, 2, {"trans": both}),
    )
    rows = []
    for odds, regions, limits in scenes:
        found = np.zeros((len(limits), options.replicates, len(KINDS)))
        for seed in range(options.replicates):
            rng = np.random.default_rng([seed, regions])
            study = untyped_site(options.data, rng, options.people, odds, regions=regions)
            for k, limit in enumerate(limits.values()):
                found[k, seed] = significant(
                    study, limit, trans=regions > 1, bonferroni=options.bonferroni
                )
        for name, of_scene in zip(limits, found, strict=True):
            row = [name, options.replicates]
            for column in of_scene.T:
                low, high = wilson(int(column.sum()), options.replicates)
                row.append(f"{column.mean():.3f} ({max(low, 0):.3f} to {high:.3f})")
            rows.append(tuple(row))
    title = f"{options.people} people, odds ratio {options.odds:g}: studies with a significant pair"
    print_table(title, ("scene", "studies", *KINDS), rows)


if __name__ == "__main__":
    main()
