"""Phantoms: how often one untyped additive site makes a pair of typed sites look like interaction.

    python tests/bench/bench_phantoms.py ../shared/data [--replicates 200] [--people 2000]
                                         [--odds 3] [--bonferroni] [--quick]

Each replicate is a study of people made of real haplotypes of chromosome 22
(tests/interactions/real_haplotypes.py). One common site that is not typed multiplies the odds of
being a case; there is no interaction. All pairs of the typed sites within 1 Mb of it are scanned.
A row is the share of studies with at least one pair that is significant, with its 95 % interval
(Wilson). Rows differ in which partners are permitted and which p counts:

    p            p_interaction, corrected for all pairs of the region
    conditional  for pairs in cis the larger one of it and that given the best sites of the region

With --bonferroni, which is fast, p is that of the likelihood ratio times the number of pairs.
In 'nothing', the untyped site has no effect: what the test itself does. In 'trans', there are two
unlinked regions with an untyped site each, and pairs have one site in each region.
"""

from __future__ import annotations

import math
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from timing import print_table

from bench_interactions import wilson  # isort: skip
from interactions.real_haplotypes import Study, untyped_site  # isort: skip
from popdesic.engine.cpu.backend import CpuBackend
from popdesic.epistasis.hit_test import hit_test
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.options import MAX_R2, MIN_DISTANCE_BP
from popdesic.epistasis.p_values import p_of_hits
from popdesic.epistasis.partners import partners_of
from popdesic.epistasis.phantoms import mark_cis
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan import make_scan_data
from popdesic.epistasis.significance import describe_hits, hit_tables

LEVEL = 0.05
#: Best pairs of a study that are looked at.
TOP, TOP_BY_LR = 10, 40


def significant(
    study: Study, limits: tuple[int, float], *, trans: bool = False, bonferroni: bool = False
) -> tuple[bool, bool]:
    """Whether any pair of a study is significant by p, and by the conditional p."""
    order = np.argsort(study.case, kind="stable")
    genotypes = np.ascontiguousarray(study.genotypes[:, order])
    n_controls, n_cases = int((~study.case).sum()), int(study.case.sum())
    words, sites, _ = reorder_sites(
        lambda part: genotypes[part], np.arange(len(genotypes)), n_controls
    )
    place = pd.DataFrame({"chrom": study.chrom, "pos": study.pos})
    sites = sites.join(place, on="rank")
    min_distance_bp, max_r2 = limits
    partners = partners_of(sites, 10**9 if trans else min_distance_bp, max_r2)
    data = make_scan_data(words, sites, n_controls, n_cases, "interaction", partners)
    hits = CpuBackend(1).scan_pairs(data, range(data.n_sites), TOP_BY_LR if bonferroni else TOP)
    tests = math.comb(len(sites), 2)
    if trans:
        tests = math.prod(np.unique(study.chrom, return_counts=True)[1])
    if bonferroni:
        rows = sites["rank"].to_numpy()[hits.sites]
        p = [interaction_test(hit_tables(genotypes[pair], n_controls))[2] for pair in rows]
        table = pd.DataFrame({"lr_p": p, "p_interaction": np.minimum(np.array(p) * tests, 1)})
    else:
        table = describe_hits(
            hits, words, sites, hit_test(study.case[order], tests), order=2, score="interaction",
            drawn=np.zeros(0, np.int64), named=("chrom", "pos"),
        )  # fmt: skip
    if not len(table):
        return False, False
    table = mark_cis(table, hits, words, sites, n_controls, n_cases, tests=tests)
    final = p_of_hits(table, tests)
    return bool((table.p_interaction <= LEVEL).any()), bool((final <= LEVEL).any())


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
        found = np.zeros((len(limits), options.replicates, 2))
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
    print_table(title, ("scene", "studies", "p", "conditional"), rows)


if __name__ == "__main__":
    main()
