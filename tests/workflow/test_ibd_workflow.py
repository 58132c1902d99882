"""The stage run by Snakemake: a planted family, a newcomer, other formats, a sparse panel."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scenes.ibd_pedigrees import branching_family, drop_genes, shared_alleles
from scenes.ibd_people import read_with_errors
from support.running import finished, planned, snakemake
from support.study import FAST, Cohort, make_cohorts, write_sheets, write_study

from popdesic.core.files import read_json
from popdesic.core.tables import read_table

RULES = {"prepare_ibd", "join_ibd"}
CONFIG = {
    **FAST,
    "contigs": {"exclude": []},
    "compare": {"analyses": ["kinship", "identity", "ibd"]},
    "ibd": {"min_cm": 6},
    "export": {"formats": ["hap-ibd", "ibis"]},
}
#: Two contigs of 40 cM, and one that may be haploid.
CONTIGS, PER_CM = ("1", "2", "X"), 60
FAMILY = branching_family(3)
#: Person with a duplicate, who is the last sample.
DOUBLED = 4


def family_cohorts() -> tuple[list[Cohort], np.ndarray, np.ndarray]:
    """Founders, newcomers with a duplicate; alleles shared by descent of all pairs; contigs."""
    rng = np.random.default_rng(5)
    chrom = np.repeat(np.arange(3), 40 * PER_CM)
    cm = np.tile(np.arange(40 * PER_CM) / PER_CM, 3)
    n_sites = len(cm)
    origin = drop_genes(FAMILY, chrom, cm, rng)
    common = rng.uniform(0.2, 0.8, n_sites)
    haplotypes = (rng.random((origin.max() + 1, n_sites)) < common).astype(np.int8)
    true = haplotypes[origin, np.arange(n_sites)].sum(axis=1, dtype=np.int8)
    true = np.concatenate([true, true[DOUBLED : DOUBLED + 1]])
    genotypes = read_with_errors(true, rng, 0.001, 0.01)
    sites = [
        (CONTIGS[c], 1 + round(1e6 * x), f"s{k}", *(("A", "C"), ("G", "T"))[k % 2])
        for k, (c, x) in enumerate(zip(chrom.tolist(), cm.tolist(), strict=True))
    ]
    n = len(genotypes)
    cohorts = []
    for name, rows in (
        ("north", range(0, n, 3)),
        ("south", range(1, n, 3)),
        ("west", range(2, n, 3)),
    ):
        people, own = [f"p{k:02}" for k in rows], genotypes[list(rows)]
        if name == "north":  # and one whose call rate is too low
            people.append("faint")
            unread = rng.random(n_sites) < 0.4
            own = np.concatenate([own, np.where(unread, -1, own[:1])])
        cohorts.append(Cohort(name, people, sites, own.T, name != "west"))
    everyone = [*range(n - 1), DOUBLED]
    shared = np.array([[shared_alleles(origin, a, b) for b in everyone] for a in everyone])
    return cohorts, shared, chrom


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    cohorts, shared, chrom = family_cohorts()
    folder = write_study(tmp_path_factory.mktemp("ibd"), cohorts[:2], CONFIG)
    ran = finished(snakemake(folder, "ibd", "compare"))
    assert set(ran) >= RULES and "find_ibd_row" not in ran
    return folder, cohorts, shared, chrom


def test_segments_and_degrees_are_those_of_the_family(study):
    folder, _, shared, chrom = study
    pairs = read_table(folder / "results/ibd/pairs.tsv")
    expected = np.sum(shared[:, :, chrom < 2] > 0, axis=2) / PER_CM
    for row in pairs.itertuples():
        a, b = int(row.sample1[1:]), int(row.sample2[1:])
        assert abs(float(row.total_cM) - expected[a, b]) < 12  # short pieces are lost
    found = {frozenset((row.sample1, row.sample2)) for row in pairs.itertuples()}
    close = {
        frozenset((f"p{a:02}", f"p{b:02}"))
        for a, b in np.argwhere(expected > 30).tolist()
        if a < b and a % 3 < 2 and b % 3 < 2
    }
    assert close <= found


def test_people_who_did_not_pass_quality_control_are_not_counted(study):
    folder, *_ = study
    fams = [folder / f"results/cohorts/{name}/genotypes.fam" for name in ("north", "south")]
    analysed = [line.split()[1] for fam in fams for line in fam.read_text().splitlines()]
    assert "p00" in analysed and "faint" not in analysed
    assert read_json(folder / "results/ibd/summary.json")["samples"] == len(analysed)


def test_parents_and_duplicates_agree_with_kinship(study):
    folder, cohorts, _, _ = study
    write_sheets(folder, cohorts, CONFIG)
    (folder / cohorts[2].path).write_text(cohorts[2].vcf())
    tiles = sorted((folder / "results/ibd/tiles").glob("*/*.tsv.gz"))
    dates = [tile.stat().st_mtime_ns for tile in tiles]
    ran = finished(snakemake(folder, "ibd", "compare"))
    # A newcomer computes its own pairs.
    assert ran["join_ibd"] == 1 and "prepare_ibd" not in ran
    assert dates == [tile.stat().st_mtime_ns for tile in tiles]
    names = ["sample1", "sample2"]
    pairs = read_table(folder / "results/ibd/pairs.tsv")
    shared = {frozenset(row[:2]): float(row[2]) for row in pairs[[*names, "kinship"]].values}
    kinship = read_table(folder / "results/compare/kinship.tsv")
    judged = read_table(folder / "results/compare/relatives.tsv")
    assert set(judged.relation) == {"duplicate or identical twin", "sharing only"}  # 80 cM
    assert set(judged.why) == {"none", "genome too short"}
    assert set(judged.basis) <= {"segments", "king"}
    for row in kinship.itertuples():
        found = shared[frozenset((row.sample_a, row.sample_b))]
        if row.relation == "duplicate or identical twin":
            assert found == pytest.approx(0.5, abs=0.02)
        elif float(row.ibs0) == 0 and float(row.kinship) > 0.2:
            assert found == pytest.approx(0.25, abs=0.02)


def test_other_formats_and_summary(study):
    folder, *_ = study
    about = read_json(folder / "results/ibd/summary.json")
    assert about["haploid_contigs"] == ["X"] and about["map"] is None
    with gzip.open(folder / "results/ibd/export/hap-ibd.ibd.gz", "rt") as file:
        rows = [line.split("\t") for line in file.read().splitlines()]
    segments = read_table(folder / "results/ibd/segments.tsv.gz")
    assert len(rows) == len(segments) and {len(row) for row in rows} == {8}
    assert [row[4:7] for row in rows] == segments[["contig", "start", "end"]].values.tolist()
    with gzip.open(folder / "results/ibd/export/ibis.seg.gz", "rt") as file:
        rows = [line.split("\t") for line in file.read().splitlines()]
    assert {len(row) for row in rows} == {12} and {row[5] for row in rows} == {"IBD1", "IBD2"}
    # Pieces do not overlap, and cover what the segments cover.
    whole = segments[segments.ibd == "1"]
    covered = (whole.end.astype(int) - whole.start.astype(int)).sum() / 1e6
    assert sum(int(row[4]) - int(row[3]) for row in rows) / 1e6 == pytest.approx(covered, rel=0.02)
    assert not RULES & set(planned(snakemake(folder, "ibd", "-n")))
    for name in ("ibd", "families"):
        assert (folder / f"results/figures/{name}.svg").stat().st_size > 700


def test_the_block_model_can_take_the_graph_of_segments(tmp_path):
    config = {**FAST, "compare": {"analyses": ["ibd"]}}
    config |= {"communities": {"methods": ["blockmodel"], "space": "ibd"}}
    folder = write_study(tmp_path, make_cohorts((6, 6)), config)
    jobs = set(planned(snakemake(folder, "communities", "-n")))
    assert {"join_ibd", "fit_blocks"} <= jobs and "build_graph" not in jobs


def test_a_panel_on_which_nothing_can_be_found_gives_empty_tables(tmp_path):
    folder: Path = write_study(
        tmp_path, make_cohorts((6, 6)), {**FAST, "compare": {"analyses": ["ibd"]}}
    )
    snakemake(folder, "ibd")
    why = read_json(folder / "results/ibd/genome.json")["not_searched"]
    assert "contigs of at most" in why and "ibd.min_cm = 7" in why


def test_without_segments_there_is_no_job(tmp_path):
    folder = write_study(tmp_path, make_cohorts((6, 6)), FAST)
    assert not RULES & set(planned(snakemake(folder, "-n")))
