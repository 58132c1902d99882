"""Counts of a cohort's files: by population and site, by sample; PLINK 1.9's `--het`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.people import encode_alone
from support.study import Cohort, make_sites, write_raw

from popdesic.cohort.panel import SiteLists, load_panel
from popdesic.core.tables import read_table
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.population.allele_counts import load_counts, sum_groups
from popdesic.population.counts import (
    ENDINGS,
    KinshipFiles,
    count_cohort,
    expected_heterozygosity,
    run_windows,
)
from popdesic.population.group_counts import VALUE_BITS
from popdesic.population.measure import measure_population
from popdesic.population.plane_counts_cpu import count_by_sample, count_by_site
from popdesic.population.runs import RunLimits

OPTIONS = {
    **{"column": "population", "x_contigs": ["X"]},
    "backend": lambda need: CpuBackend(2),
}
LIMITS = RunLimits(window_sites=10, min_sites=15, min_kb=1)


def make_cohort(rng, n_sites=300, n=20, missing=0.05, haploid=()):
    genotypes = rng.binomial(2, rng.uniform(0.05, 0.95, n_sites)[:, None], (n_sites, n))
    genotypes[40:80, 3] = 2
    genotypes[rng.random(genotypes.shape) < missing] = -1
    for sample in haploid:
        genotypes[:, sample] = np.where(genotypes[:, sample] == 1, 2, genotypes[:, sample])
    return Cohort(
        "one", [f"s{k}" for k in range(n)], make_sites(n_sites), genotypes.astype(np.int8)
    )


def count(folder: Path, cohort: Cohort, populations: list[str], **options):
    """Encode a cohort on a panel of all its sites and count it."""
    write_raw(folder / "raw", cohort)
    encode_alone(folder / "raw", folder)
    rows = zip(cohort.samples, populations, strict=True)
    sheet = folder / "samples.tsv"
    lines = ["sample\tcohort\tpopulation", *(f"{s}\tone\t{p}" for s, p in rows)]
    sheet.write_text("\n".join(lines) + "\n")
    about = count_cohort(
        folder,
        folder / "panel.tsv",
        sheet,
        [folder / f"one{ending}" for ending in ENDINGS],
        cohort="one",
        **OPTIONS | {"runs": LIMITS} | options,
    )
    return about, read_table(folder / "one.tsv")


@pytest.mark.parametrize("n_sites", [15, 33, 64, 65, 300])
@pytest.mark.parametrize("missing", [0.0, 0.08])
def test_counts_by_population_and_site(tmp_path, n_sites, missing, monkeypatch):
    # Parts of a few samples, so that populations lie in several of them.
    monkeypatch.setattr("popdesic.population.group_counts.PART_BYTES", 3 * 8 * 8 * 5)
    rng = np.random.default_rng(n_sites)
    cohort = make_cohort(rng, n_sites, 21, missing)
    populations = [["A", "B", "NA", "C"][k % 4] for k in range(21)]
    count(tmp_path, cohort, populations)
    sites, _ = load_panel(tmp_path / "panel.tsv")
    place = {(c, p): k for k, (c, p, *_) in enumerate(cohort.sites)}
    rows = [place[key] for key in zip(sites.chrom, sites.pos, strict=True)]
    genotypes = cohort.genotypes[rows]
    counts = load_counts([tmp_path / "one.npz"])
    assert counts.names == ["A", "B", "C"] and counts.people.tolist() == [6, 5, 5]
    for k, name in enumerate("ABC"):
        own = genotypes[:, [p == name for p in populations]]
        for state in range(3):
            np.testing.assert_array_equal(counts.genotypes[:, k, state], (own == state).sum(axis=1))
        np.testing.assert_array_equal(counts.alleles[:, k, 0], 2 * (own >= 0).sum(axis=1))
        np.testing.assert_array_equal(counts.alleles[:, k, 1], np.maximum(own, 0).sum(axis=1))
    table = read_table(tmp_path / "one.tsv")
    assert table.population.tolist() == populations
    np.testing.assert_array_equal(table.called.astype(int), (genotypes >= 0).sum(axis=0))
    np.testing.assert_array_equal(table.heterozygous.astype(int), (genotypes == 1).sum(axis=0))
    expected = expected_heterozygosity(sites.af.to_numpy(), sites.n_called.to_numpy())
    wanted = [(expected * (g >= 0)).sum() for g in genotypes.T]
    np.testing.assert_allclose(table.expected.astype(float), wanted, rtol=1e-5)
    # Cohorts add up, and small populations are left out.
    twice = load_counts([tmp_path / "one.npz"] * 2, min_size=11)
    assert twice.names == ["A"]
    np.testing.assert_array_equal(twice.alleles[:, 0], 2 * counts.alleles[:, 0])


def test_runs_of_the_planes_leave_imputed_genotypes_out(tmp_path):
    """Sample 3 is homozygous over 40 sites; sample 4 is missing there, filled in and no run."""
    rng = np.random.default_rng(1)
    cohort = make_cohort(rng, 300, 12, 0.0)
    cohort.genotypes[40:80] = rng.random((40, 12)) < 0.45  # the most frequent genotype is 0
    cohort.genotypes[40:80, 3] = 0
    cohort.genotypes[40:80, 4] = -1
    cohort.genotypes[60] = 1  # here it is 1, which fills the missing one of sample 3
    cohort.genotypes[60, 3] = -1
    about, table = count(
        tmp_path, cohort, ["A"] * 12, runs=RunLimits(**vars(LIMITS) | {"window_missing": 2})
    )
    runs = read_table(tmp_path / "one.runs.tsv")
    assert about["runs of homozygosity"] == len(runs) > 0
    own = runs[runs["sample"] == "s3"].iloc[0]
    assert int(own.start) <= 1000 + 100 * 40 and int(own.end) >= 1000 + 100 * 79
    pos = np.array([site[1] for site in cohort.sites])
    within = cohort.genotypes[(pos >= int(own.start)) & (pos <= int(own.end)), 3]
    assert int(own.heterozygous) == (within == 1).sum() and int(own.missing) == 1
    inside = runs[(runs.start.astype(int) <= 7000) & (runs.end.astype(int) >= 7000)]
    assert inside["sample"].tolist() == ["s3"]
    total = runs.groupby("sample").kb.apply(lambda kb: kb.astype(float).sum())
    sites, _ = load_panel(tmp_path / "panel.tsv")
    covered = sum(g.pos.max() - g.pos.min() + 1 for _, g in sites.groupby("chrom")) / 1000
    rows = table.set_index("sample")
    np.testing.assert_allclose(float(rows.f_roh["s3"]), total["s3"] / covered, rtol=1e-5)
    with np.load(tmp_path / "one.npz") as arrays:
        within = arrays["in_runs"][:, 0]
    assert within.sum() == runs.sites.astype(int).sum()


def test_pseudo_haploid_samples_are_recognised(tmp_path):
    cohort = make_cohort(np.random.default_rng(2), 300, 10, 0.02, haploid=(0, 5))
    about, table = count(tmp_path, cohort, ["A"] * 5 + ["B"] * 5)
    assert about["pseudo-haploid samples"] == 2
    assert table.ploidy.tolist() == ["1" if k in (0, 5) else "2" for k in range(10)]
    assert (table.f == "NA").tolist() == (table.f_roh == "NA").tolist()
    assert (table.f == "NA").sum() == 2
    counts = load_counts([tmp_path / "one.npz"])
    assert counts.pseudo_haploid.tolist() == [1, 1]
    sites, _ = load_panel(tmp_path / "panel.tsv")
    place = {(c, p): k for k, (c, p, *_) in enumerate(cohort.sites)}
    rows = [place[key] for key in zip(sites.chrom, sites.pos, strict=True)]
    known = np.maximum(cohort.genotypes[rows], 0)
    known[:, [0, 5]] //= 2
    for k in range(2):
        wanted = known[:, 5 * k : 5 * k + 5].sum(axis=1)
        np.testing.assert_array_equal(counts.alleles[:, k, 1], wanted)
    most = counts.alleles[..., 0].max(axis=0)
    assert most.tolist() == [9, 9]
    runs = read_table(tmp_path / "one.runs.tsv")
    assert not set(runs["sample"]) & {"s0", "s5"}


def test_runs_by_the_heterozygosity_of_the_samples(tmp_path, monkeypatch):
    """Each sample has windows of its own; those of lines without heterozygotes are not endless."""
    monkeypatch.setattr("popdesic.population.group_counts.PART_BYTES", 3 * 8 * 20 * 5)
    rng = np.random.default_rng(12)
    cohort = make_cohort(rng, 1200, 14, 0.02, haploid=[13])
    cohort.genotypes[:, 12] = np.where(cohort.genotypes[:, 12] == 1, 0, cohort.genotypes[:, 12])
    cohort.genotypes[::300, 12] = 1  # a line: four heterozygotes
    limits = RunLimits(min_sites=None, min_kb=1)
    about, table = count(tmp_path, cohort, ["A"] * 14, runs=limits)
    assert table.roh_min_sites[13] == "NA" and about["runs: searched"] > 0.99
    own = table.roh_min_sites[:13].astype(int)
    assert own[:12].between(25, 60).all()
    assert own[12] < 110 and float(table.f_roh[12]) > 0.8
    sums = table[["called", "heterozygous"]].astype(int).to_numpy()[:13]
    expected = table.expected.astype(float).to_numpy()[:13]
    missing = np.rint(np.ldexp(expected.max() - expected, VALUE_BITS)).astype(np.int64)
    in_all = np.int64(np.ldexp(expected.max(), VALUE_BITS))
    wanted = run_windows(np.column_stack([sums, missing]), in_all, 1200, 14)
    np.testing.assert_array_equal(own, wanted[:, 0])
    runs = read_table(tmp_path / "one.runs.tsv")
    assert set(runs["sample"]) >= {"s3", "s12"}
    least = runs["sample"].map(dict(zip(table["sample"], table.roh_min_sites, strict=True)))
    assert (runs.sites.astype(int) >= least.astype(int)).all()
    measured = measure_population(
        *([tmp_path / "one.npz"], [tmp_path / "one.tsv"], [tmp_path / "one.runs.tsv"]),
        *(SiteLists(tmp_path / "panel.tsv"), tmp_path / "out"),
        analyses=["diversity", "runs"],
        block="5 kb",
    )
    assert measured["runs_min_sites"] == [own.min(), own.max()]


def test_few_sites_make_nobody_pseudo_haploid(tmp_path):
    cohort = make_cohort(np.random.default_rng(3), 30, 6, 0.0)
    cohort.genotypes[:, 2] = 0
    about, _ = count(tmp_path, cohort, ["A"] * 6)
    assert about["pseudo-haploid samples"] == 0


def test_x_is_left_out(tmp_path):
    cohort = make_cohort(np.random.default_rng(4), 60, 6, 0.0)
    named = [("X" if k > 40 else "1", *rest) for k, (_, *rest) in enumerate(cohort.sites)]
    cohort.sites[:] = named
    about, table = count(tmp_path, cohort, ["A"] * 6)
    assert about["sites"] == 41 and set(table.called) == {"41"}
    assert not load_counts([tmp_path / "one.npz"]).alleles[41:].any()
    assert "X" not in set(read_table(tmp_path / "one.runs.tsv").chrom)
    about, table = count(tmp_path, cohort, ["A"] * 6, x_contigs=[])
    assert about["sites"] == 60


@pytest.mark.peer
def test_heterozygosity_is_that_of_plink(tmp_path):
    """`plink1.9 --het small-sample`: O(HOM), N exactly, E(HOM) and F to the digits printed."""
    if not shutil.which("plink1.9"):
        pytest.skip("plink1.9 is not installed")
    cohort = make_cohort(np.random.default_rng(5), 900, 40)
    _, table = count(tmp_path, cohort, ["A"] * 40)
    command = ["plink1.9", "--bfile", "genotypes", "--het", "small-sample", "--out", "p"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    theirs = pd.read_csv(tmp_path / "p.het", sep=r"\s+")
    ours = table.set_index("sample").loc[theirs.IID, ["called", "heterozygous", "expected", "f"]]
    ours = ours.astype(float).reset_index(drop=True)
    np.testing.assert_array_equal(ours.called, theirs["N(NM)"])
    np.testing.assert_array_equal(ours.called - ours.heterozygous, theirs["O(HOM)"])
    # PLINK prints four significant digits of both, and we six.
    np.testing.assert_allclose(ours.called - ours.expected, theirs["E(HOM)"], rtol=6e-4)
    np.testing.assert_allclose(ours.f, theirs.F, rtol=6e-4, atol=5e-6)


def test_a_new_cohort_reads_no_genotype_of_an_old_one(tmp_path):
    """Estimates need counts alone: genotypes may be gone. The order of cohorts means nothing."""
    rng = np.random.default_rng(6)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, labels in ((first, ["A", "B"] * 8), (second, ["A", "C"] * 8)):
        folder.mkdir()
        cohort = make_cohort(np.random.default_rng(7), 300, 16)
        cohort.genotypes[:] = rng.permuted(cohort.genotypes, axis=1)
        count(folder, cohort, labels)
    for folder in (first, second):
        for name in ("genotypes.bed", "planes.npy", "planes.json"):
            (folder / name).unlink()
    found = []
    for k, order in enumerate([(first, second), (second, first)]):
        out = tmp_path / f"out{k}"
        about = measure_population(
            [folder / "one.npz" for folder in order],
            [folder / "one.tsv" for folder in order],
            [folder / "one.runs.tsv" for folder in order],
            SiteLists(first / "panel.tsv"),
            out,
            analyses=["diversity", "differentiation", "f_statistics", "runs"],
            block="5 kb",
            f4=[["A", "B", "C", "A"]],
        )
        names = ["populations.tsv", "pairs.tsv", "blocks.tsv", "tree.nwk", "f3.tsv", "spectrum.tsv"]
        names += ["f2_blocks.rds", "consensus.tsv", "summary.json", "f4.tsv"]
        found.append({name: (out / name).read_bytes() for name in names})
        assert about["populations"] == 3 and about["people"] == 32
    assert found[0] == found[1]
    table = read_table(tmp_path / "out0/populations.tsv")
    assert table.people.tolist() == ["16", "8", "8"]


def test_relatives_count_for_themselves_alone(tmp_path):
    """Founders who do not define the axes do not count; theirs is the same row as of others."""
    cohort = make_cohort(np.random.default_rng(8))
    _, everyone = count(tmp_path, cohort, ["A", "B"] * 10)
    all_counts = load_counts([tmp_path / "one.npz"])
    table = pd.DataFrame({"sample": cohort.samples, "unrelated": "yes"})
    table.loc[[2, 5, 6], "unrelated"] = "no"
    table.to_csv(tmp_path / "unrelated.tsv", sep="\t", index=False)
    about, found = count(
        tmp_path,
        cohort,
        ["A", "B"] * 10,
        kinship=KinshipFiles(tmp_path / "unrelated.tsv", None, 0.1),
    )
    assert about["relatives left out of populations"] == 3
    assert found["sample"][found.relative == "yes"].tolist() == ["s2", "s5", "s6"]
    pd.testing.assert_frame_equal(found.drop(columns="relative"), everyone.drop(columns="relative"))
    counts = load_counts([tmp_path / "one.npz"])
    assert counts.people.tolist() == [8, 9] and all_counts.people.tolist() == [10, 10]
    a = cohort.genotypes[:, [0, 4, 8, 10, 12, 14, 16, 18]]
    for state in range(3):
        np.testing.assert_array_equal(counts.genotypes[:, 0, state], (a == state).sum(axis=1))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 59, 60, 61, 62, 63, 64, 65, 120, 121, 130])
@pytest.mark.parametrize("n_planes", [2, 3])
def test_counters_overflow_nowhere(n, n_planes):
    """More samples than the bit-sliced counters hold, all with the same genotype or random ones."""
    rng = np.random.default_rng(n)
    words = rng.integers(0, 2**63, (n, n_planes, 3), dtype=np.uint64)
    words[:, 1] &= words[:, 0]
    words[:, :, 0] = ~np.uint64(0)  # everyone has two ALT alleles
    used = np.array([~np.uint64(0), 2**63 - 1, 5], np.uint64)
    rows = np.arange(n)[:: 1 if n % 2 else -1].copy()
    found = {}
    for threads in (1, 2):
        found[threads] = np.zeros((3, 192), np.int32)
        for _ in range(2):
            count_by_site(words, used, rows, found[threads], threads)
    np.testing.assert_array_equal(found[1], found[2])
    bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(bool)
    within = np.unpackbits(used.view(np.uint8), bitorder="little").astype(bool)
    u, v = bits[:, 0], bits[:, 1]
    c = (bits[:, 2] if n_planes == 3 else np.ones_like(u)) & within
    wanted = [(c & ~u).sum(axis=0), (c & u & ~v).sum(axis=0), (c & v).sum(axis=0)]
    np.testing.assert_array_equal(found[1], 2 * np.array(wanted))
    values, sums = rng.integers(0, 2**36, 192), np.empty((n, 3), np.int64)
    count_by_sample(words, used, values, sums)
    np.testing.assert_array_equal(sums[:, 0], c.sum(axis=1))
    np.testing.assert_array_equal(sums[:, 1], (c & u & ~v).sum(axis=1))
    np.testing.assert_array_equal(sums[:, 2], (within & ~c) @ values)


@pytest.mark.parametrize("ploidy", [3, 4])
def test_alleles_of_polyploids_by_layers(ploidy):
    """Two people of ploidy 3, genotypes 1 and 3; or of ploidy 4, genotypes 1 and 4."""
    counts = np.array([[[2, 0, 4]], [[1, 1, 2]]][ploidy == 4], np.int32)
    found = sum_groups([("A", ploidy, 2, counts)], ["A"], 1)
    assert found.alleles.tolist() == [[[2 * ploidy, 1 + ploidy]]]
    assert found.most_alleles.tolist() == [2 * ploidy] and not found.genotypes.any()
