"""Phenotypes of one locus in families: false pairs of sites, and the power to find a true pair.

    python tests/bench/bench_one_locus.py [--replicates 100] [--first-seed 0] [--quick]
    python tests/bench/bench_one_locus.py --mice ../shared/data --coats coats.tsv

Each replicate is a study of about 600 relatives (tests/scenes/interactions/pedigrees.py) with a
trait of one locus that typed sites tag imperfectly, or of two loci that interact. All pairs are
scanned, and the best are ranked as by the workflow, with the pedigree's kinship. A row is the share
of studies with a significant pair in trans, of 'two loci' on its two chromosomes, with its
95 % interval (Wilson):

    p            by p_interaction
    in cis       by p_conditional given the sites of the hit's regions, of hits in cis alone
    conditional  by p_conditional, given the best sites of the genome as well, with kinship

With --mice, the coats of 1 814 mice, all pairs of 10 346 sites, each coat against all others; the
table has the columns sample_id and coat (`CoatColour` of `mice.pheno`, BGLR). Rows are pairs of
chromosomes with a significant pair of sites.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from timing import print_table

from bench_interactions import wilson  # isort: skip
from scenes.interactions.pedigrees import NULLS, TRAITS, Study, draw_study  # isort: skip
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.evidence import Prior, candidates_of
from popdesic.epistasis.hit_test import hit_test
from popdesic.epistasis.loci import list_hits
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.options import MAX_PER_SITE, MAX_R2, MIN_DISTANCE_BP, kept_combinations
from popdesic.epistasis.p_values import p_of_hits
from popdesic.epistasis.partners import partners_of
from popdesic.epistasis.phantoms import mark_cis
from popdesic.epistasis.priority import strength_of
from popdesic.epistasis.relatedness import related_pairs
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan import count_tests
from popdesic.epistasis.scan_sites import scan_pairs
from popdesic.epistasis.scores import make_scan_data
from popdesic.epistasis.significance import describe_hits
from popdesic.epistasis.single_sites import SiteTests

LEVEL, TOP = 0.05, 100
HEAD = ("p", "in cis", "conditional")


def rank_pairs(study: Study, top: int = TOP) -> tuple[pd.DataFrame, np.ndarray]:
    """The ranked pairs of a study, and their p by each of `HEAD`, float64 (n_hits, 3)."""
    order = np.argsort(study.case, kind="stable")
    genotypes, case = np.ascontiguousarray(study.genotypes[:, order]), study.case[order]
    relatives = related_pairs(np.array(study.names)[order].tolist(), study.pairs)
    sizes = int((~case).sum()), int(case.sum())
    words, sites, _ = reorder_sites(
        lambda part: genotypes[part], np.arange(len(genotypes)), sizes[0]
    )
    sites = sites.join(pd.DataFrame({"chrom": study.chrom, "pos": study.pos}), on="rank")
    rules = {"min_distance_bp": MIN_DISTANCE_BP, "max_r2": MAX_R2}
    data = make_scan_data(words, sites, *sizes, "interaction", partners_of(sites, **rules))
    backend = CpuBackend(1)
    kept = scan_pairs(backend, data, range(data.n_sites), kept_combinations(top))
    null = fit_null(case.astype(float), np.empty((len(case), 0)), "logistic")
    strength = strength_of(SiteTests(null, relatives).test(genotypes[sites["rank"]]))
    tests = count_tests(len(sites), 2)
    best = candidates_of(
        kept, words, sites, sizes, Prior(strength, backend, **rules), tests=tests,
        top=kept_combinations(top),
    )  # fmt: skip
    listing = list_hits(best.hits, words, sites, *sizes, top=top, max_per_site=MAX_PER_SITE)
    shared = best.tests[listing.chosen]
    table = describe_hits(
        listing.hits, words, sites, hit_test(case, tests, relatives=relatives), order=2,
        score="interaction", drawn=np.zeros(0, np.int64), tests=shared, named=("chrom", "pos"),
        locus=listing.locus,
    ).assign(locus=listing.locus)  # fmt: skip
    marked = [table] + [
        mark_cis(table, listing.hits, words, sites, *sizes, tests=shared, **given)
        for given in ({}, {"strength": strength, "relatives": relatives})
    ]
    return table, np.stack([p_of_hits(one, tests) for one in marked], axis=1)


def read_mice(data: Path, coats: Path) -> tuple[Study, pd.Series]:
    """The mice with their pairs of relatives by KING-robust, and their coats."""
    from cyvcf2 import VCF

    import popdesic

    file = VCF(str(data / "mice1814/hs_mice.vcf.gz"), gts012=True)
    found = [(r.CHROM, r.POS, r.gt_types.astype(np.int8)) for r in file]
    chrom, pos, rows = (np.array(column) for column in zip(*found, strict=True))
    rows[rows == 3] = -1
    kinship = np.asarray(popdesic.kinship(rows.T, device="cpu"))
    first, second = np.nonzero(np.triu(kinship, 1) > 0)
    names = np.array(file.samples)
    pairs = {"sample_a": names[first], "sample_b": names[second]}
    pairs = pd.DataFrame(pairs | {"kinship": kinship[first, second]})
    coat = pd.read_csv(coats, sep="\t", dtype=str).set_index("sample_id").coat.loc[file.samples]
    return Study(rows, np.zeros(len(names), bool), chrom, pos, pairs, list(names)), coat


def print_mice(data: Path, coats: Path, chosen: list[str]) -> None:
    mice, coat = read_mice(data, coats)
    rows = []
    for name in chosen or sorted(coat.unique()):
        study = replace(mice, case=(coat == name).to_numpy())
        table, p = rank_pairs(study, 300)
        where = table.chrom1 + " x " + table.chrom2
        found = [where[column <= LEVEL].value_counts() for column in p.T]
        pairs = sorted(set().union(*(one.index for one in found))) or ["none"]
        rows += [
            (name, int(study.case.sum()), pair, *(one.get(pair, 0) for one in found))
            for pair in pairs
        ]
    print_table("Significant pairs of sites", ("coat", "mice", "chromosomes", *HEAD), rows)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--traits", nargs="+", default=[*NULLS, *TRAITS])
    parser.add_argument("--mice", type=Path, help="folder of the real data, with mice1814")
    parser.add_argument("--coats", type=Path, help="table of the mice's coats")
    parser.add_argument("--coat", nargs="+", default=[], help="coats; all by default")
    options = commandline.parse(parser, replicates=1)
    if options.mice:
        print_mice(options.mice, options.coats, options.coat)
        return
    rows = []
    for trait in options.traits:
        found = np.zeros((options.replicates, len(HEAD)))
        for k in range(options.replicates):
            table, p = rank_pairs(draw_study(trait, options.first_seed + k))
            counts = table.chrom1 != table.chrom2
            if trait in TRAITS:
                counts = (table.chrom1 == "1") & (table.chrom2 == "2")
            found[k] = (p[counts.to_numpy()] <= LEVEL).any(axis=0)
        row = [trait, options.replicates]
        for column in found.T:
            low, high = wilson(int(column.sum()), options.replicates)
            row.append(f"{column.mean():.2f} ({max(low, 0):.2f} to {high:.2f})")
        rows.append(tuple(row))
    print_table("Studies with a significant pair in trans", ("trait", "studies", *HEAD), rows)


if __name__ == "__main__":
    main()
