"""Segments of identity by descent of real families: parents, duplicates, and nobody else.

`pytest tests/golden/test_real_segments.py -s` prints the measured figures. The data sets have few
sites a centimorgan, so only long segments are sought, and a megabase counts as a centimorgan.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.people import encode_alone

from popdesic.cohort.ingest import ingest_cohort
from popdesic.engine.select import select_backend
from popdesic.ibd.cohorts import read_segments, segment_pairs, segment_sums, write_tile
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.degrees import DegreeScale
from popdesic.ibd.genome import load_genome, prepare_genome
from popdesic.ibd.verdict import KinEvidence, SearchedGenome, judge_pairs, relation_by_pair

pytestmark = pytest.mark.shared

FILTERS = {"exclude_contigs": ["X"], "min_call_rate": 0.9, "min_maf": 0.05, "min_hwe_p": 0.0}
#: 4 to 6 sites a centimorgan: shorter segments are refused on the sparser of the two panels.
MIN_CM = 65.0
#: Verdicts of the first degree and of duplicates, whose genotypes are not compared here.
FIRST = ("first degree or closer", "parent and child", "full siblings")


def related_pairs(data: Path, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, float]:
    """Table of pairs with segments, sheet, and length of the contigs that can have segments."""
    (vcf,) = data.glob("*.vcf.gz")
    ingest_cohort(vcf, folder / "raw", threads=1)
    encode_alone(folder / "raw", folder, FILTERS)
    limits, backend = SegmentLimits(min_cm=MIN_CM), select_backend("cpu", 1)
    panel, out = folder / "panel.tsv", folder / "genome.npz"
    prepare_genome(
        *([folder], panel, out, folder / "genome.json", backend),
        **{"limits": limits, "genetic_map": None, "x_contigs": ["X"], "regions": []},
        max_sharing=0,
    )
    genome = load_genome(out, panel)
    tile = folder / "only.segments.tsv.gz"
    write_tile(folder, folder, tile, genome, limits, backend)
    lengths = genome.sites.lengths()
    sums = segment_sums(pd.concat(list(read_segments(tile)), ignore_index=True))
    scale = DegreeScale(lengths, MIN_CM)
    table = segment_pairs([sums], {}, scale)
    judged = relation_by_pair(
        judge_pairs(KinEvidence(segments=table), SearchedGenome(scale, scale))
    )
    pairs = zip(table.sample1, table.sample2, strict=True)
    table["relation"] = [judged.get(frozenset(pair), "distant") for pair in pairs]
    sheet = pd.read_csv(data / "samples.tsv", sep="\t", dtype=str).set_index("sample_id")
    for side in ("1", "2"):
        table["population" + side] = table["sample" + side].map(sheet.population)
    return table, sheet, float(lengths[lengths >= MIN_CM].sum())


def test_real_parents_and_duplicates_are_found_and_nobody_else(shared_data, tmp_path):
    table, sheet, whole = related_pairs(shared_data / "hapmap279", tmp_path)
    person = [name.split(".")[0] for name in sheet.index]
    person = dict(zip(sheet.index, person, strict=True))
    parents = {
        frozenset((child, parent))
        for child, row in sheet.iterrows()
        for parent in (row.father_id, row.mother_id)
        if parent in sheet.index
    }
    # Parent and child of different families: stated in later releases of HapMap.
    parents.add(frozenset(("NA18913", "NA19238")))
    pairs = [frozenset(two) for two in zip(table.sample1, table.sample2, strict=True)]
    people = [frozenset(map(person.get, two)) for two in pairs]
    share = table.total_cM.to_numpy() / whole
    child = np.array([two in parents for two in pairs])
    double = np.array([len(two) == 1 for two in people])
    print(
        f"\nparents {child.sum()} of {len(parents)}, share of the genome "
        f"{share[child].min():.3f} to {share[child].max():.3f}; duplicates {double.sum()} of 10, "
        f"both alleles at {(table.ibd2_cM[double] / whole).min():.3f} or more"
    )
    assert parents == {two for two, yes in zip(pairs, child, strict=True) if yes}
    assert (table.relation[child] == "parent and child").all()
    assert share[child].min() > 0.85 and np.median(share[child]) > 0.98
    assert double.sum() == 10 and (table.relation[double] == "first degree or closer").all()
    assert (table.ibd2_cM[double] / whole).min() > 0.99
    # Every other pair of the first degree is one of these people with the double of another.
    for two, relation in zip(people, table.relation, strict=True):
        if relation in FIRST:
            assert len(two) == 1 or two in parents
    assert (table.population1 == table.population2).all()


def test_no_relatives_between_real_populations(shared_data, tmp_path):
    table, sheet, whole = related_pairs(shared_data / "hapmap3_957", tmp_path)
    sizes = sheet.population.value_counts()
    between = (len(sheet) ** 2 - (sizes**2).sum()) // 2
    first = table.relation.isin(FIRST)
    share = table.total_cM[first] / whole
    print(
        f"\n{len(table)} pairs with segments, {first.sum()} of the first degree sharing "
        f"{share.min():.3f} to {share.max():.3f} of the genome; none of {between} pairs between "
        "populations"
    )
    assert (table.population1 == table.population2).all() and between > 380_000
    # Undeclared parents and children, and five pairs of siblings (Pemberton et al. 2010).
    assert first.sum() == 26 and (share > 0.9).sum() == 21
    assert (table.relation == FIRST[0]).sum() == 0
