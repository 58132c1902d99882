"""Runs of homozygosity: the slow rule, PLINK 1.9 on the same files, and simulated inbreeding."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from oracles import population as reference
from support.plink_files import write_plink

from popdesic.population.runs import (
    RunLimits,
    consensus_regions,
    find_all_runs,
    fitting_windows,
    search_density,
    with_runs,
)
from popdesic.report.sections.population import runs_density


def bits(mask: np.ndarray) -> np.ndarray:
    """(n_samples, n_words) words of a bool array (n_sites, n_samples)."""
    n_sites, n = mask.shape
    padded = np.zeros((n, -(-n_sites // 64) * 64), np.uint8)
    padded[:, :n_sites] = mask.T
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def some_genotypes(rng, n_sites, n, *, missing=0.02, chromosomes=2):
    """Genotypes with homozygous stretches, and sites with gaps."""
    genotypes = rng.binomial(2, 0.35, (n_sites, n)).astype(np.int8)
    for sample in range(n):
        for _ in range(4):
            start, length = rng.integers(0, n_sites), rng.integers(20, max(21, n_sites // 3))
            part = genotypes[start : start + length, sample]
            part[part == 1] = 2
            part[rng.random(len(part)) < 0.01] = 1
    genotypes[rng.random(genotypes.shape) < missing] = -1
    steps = rng.integers(500, 30_000, n_sites)
    steps[rng.random(n_sites) < 0.003] = 1_200_000
    chrom = np.sort(rng.integers(1, chromosomes + 1, n_sites)).astype(str)
    sites = pd.DataFrame({"chrom": chrom, "pos": np.cumsum(steps)})
    return genotypes, sites


def found(genotypes, sites, limits, threads=1):
    missing = bits(genotypes == -1) if (genotypes == -1).any() else None
    return find_all_runs(bits(genotypes == 1), missing, sites, limits, threads)


def expected(genotypes, sites, limits):
    rows = []
    for sample in range(genotypes.shape[1]):
        for chrom in dict.fromkeys(sites.chrom):
            (here,) = np.nonzero((sites.chrom == chrom).to_numpy())
            own, pos = genotypes[here, sample], sites.pos.to_numpy()[here]
            for first, last, hets, absent in reference.runs_of(own, pos, **vars(limits)):
                rows.append((sample, here[first], here[last], hets, absent))
    return np.array(rows, np.int64).reshape(-1, 5)


SMALL = RunLimits(window_sites=7, min_sites=5, min_kb=20, window_missing=1)


@pytest.mark.parametrize("n_sites", [1, 6, 7, 15, 16, 17, 33, 63, 64, 65, 200])
@pytest.mark.parametrize(
    "limits",
    [
        SMALL,
        RunLimits(**vars(SMALL) | {"max_hets": 0}),
        RunLimits(**vars(SMALL) | {"max_hets": 1, "threshold": 0.4, "window_hets": 0}),
        RunLimits(**vars(SMALL) | {"max_gap_kb": 20, "kb_per_site": 12}),
    ],
    ids=["plain", "no het", "one het", "dense"],
)
def test_runs_are_those_of_the_slow_rule(n_sites, limits):
    rng = np.random.default_rng(n_sites)
    for missing in (0.0, 0.05):
        genotypes, sites = some_genotypes(rng, n_sites, 5, missing=missing)
        wanted = expected(genotypes, sites, limits)
        for threads in (1, 3):
            np.testing.assert_array_equal(found(genotypes, sites, limits, threads), wanted)
    assert n_sites < 60 or len(wanted)


@pytest.mark.parametrize("state", [0, 1, -1])
def test_one_state_alone(state):
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(1, 65) * 5000})
    genotypes = np.full((64, 2), state, np.int8)
    runs = found(genotypes, sites, SMALL)
    assert runs[:, :3].tolist() == ([[0, 0, 63], [1, 0, 63]] if state == 0 else [])


@pytest.mark.peer
@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"min_sites": 30, "min_kb": 200, "window_sites": 20, "window_missing": 2},
        {"max_hets": 1, "window_hets": 2, "min_sites": 40, "kb_per_site": 16, "threshold": 0.2},
        {"max_hets": 0, "min_sites": 25, "min_kb": 100, "window_sites": 10, "max_gap_kb": 25},
    ],
    ids=["defaults", "small windows", "one het", "no het"],
)
def test_runs_are_those_of_plink(tmp_path, flags):
    if not shutil.which("plink1.9"):
        pytest.skip("plink1.9 is not installed")
    genotypes, sites = some_genotypes(np.random.default_rng(7), 4000, 60, chromosomes=3)
    names = [f"s{k}" for k in range(60)]
    write_plink(tmp_path / "a", genotypes, names, sites.chrom, sites.pos)
    limits = RunLimits(**flags)
    options = {
        "window-snp": limits.window_sites,
        "window-het": limits.window_hets,
        "window-missing": limits.window_missing,
        "window-threshold": limits.threshold,
        "snp": limits.min_sites,
        "kb": limits.min_kb,
        "density": limits.kb_per_site,
        "gap": limits.max_gap_kb,
    }
    if limits.max_hets >= 0:
        options["het"] = limits.max_hets
    given = [word for key, value in options.items() for word in (f"--homozyg-{key}", str(value))]
    subprocess.run(
        ["plink1.9", "--bfile", "a", "--homozyg", *given, "--out", "p"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    theirs = pd.read_csv(tmp_path / "p.hom", sep=r"\s+")
    runs = found(genotypes, sites, limits)
    n_sites = runs[:, 2] - runs[:, 1] + 1
    ours = pd.DataFrame(
        {
            "IID": [names[k] for k in runs[:, 0]],
            "CHR": sites.chrom.astype(int).to_numpy()[runs[:, 1]],
            "POS1": sites.pos.to_numpy()[runs[:, 1]],
            "POS2": sites.pos.to_numpy()[runs[:, 2]],
            "NSNP": n_sites,
            "PHET": runs[:, 3] / n_sites,
            "PHOM": (n_sites - runs[:, 3] - runs[:, 4]) / n_sites,
        }
    )
    keys = ["IID", "CHR", "POS1"]
    ours, theirs = (t.sort_values(keys).reset_index(drop=True) for t in (ours, theirs))
    assert len(ours) > 60
    pd.testing.assert_frame_equal(ours[[*keys, "POS2", "NSNP"]], theirs[[*keys, "POS2", "NSNP"]])
    # PLINK prints three decimals.
    np.testing.assert_allclose(ours[["PHET", "PHOM"]], theirs[["PHET", "PHOM"]], atol=5.01e-4)


def test_regions_that_many_share():
    sites = pd.DataFrame({"chrom": ["1"] * 5 + ["2"] * 3, "pos": [10, 20, 30, 40, 50, 5, 6, 7]})
    shared = consensus_regions(np.array([0, 2, 3, 1, 2, 2, 0, 2]), 4, sites, 0.5)
    assert shared[["chrom", "start", "end", "people"]].values.tolist() == [
        ["1", 20, 30, 3],
        ["1", 50, 50, 2],
        ["2", 5, 5, 2],
        ["2", 7, 7, 2],
    ]
    assert shared.kb.tolist()[0] == pytest.approx(0.011)


def inbred(spacing_kb, n_sites=1200, n=6):
    """Sites of two chromosomes, and genotypes of which sample 0 is homozygous along the second."""
    rng = np.random.default_rng(5)
    genotypes = rng.binomial(2, 0.4, (n_sites, n)).astype(np.int8)
    genotypes[n_sites // 2 :, 0] = 2 * (genotypes[n_sites // 2 :, 0] > 0)
    steps = rng.integers(500 * spacing_kb, 1500 * spacing_kb, n_sites)
    pos = np.concatenate([np.cumsum(steps[: n_sites // 2]), np.cumsum(steps[n_sites // 2 :])])
    return genotypes, pd.DataFrame({"chrom": np.repeat(["1", "2"], n_sites // 2), "pos": pos})


def f_roh(genotypes, sites, limits):
    used = np.ones(len(sites), bool)
    density = search_density(sites, used, limits)
    people = pd.DataFrame({"ploidy": [2] * genotypes.shape[1]})
    rows = found(genotypes, sites, limits)
    return with_runs(people, rows, sites, used, limits, density), density


def test_a_sparse_panel_has_no_share_in_runs_and_says_what_it_needs():
    genotypes, sites = inbred(180)
    table, density = f_roh(genotypes, sites, RunLimits())
    assert table.f_roh.isna().all() and table.f_roh_16mb.isna().all() and density.searched == 0
    assert 150 < density.kb_per_site < 210
    (note,) = runs_density(vars(density), too_sparse=True)
    assert "in only 0 % of the genome, so F_ROH is not given" in note and "roh.min_sites" in note
    # With limits that fit its density the planted run is found: half of the genome.
    table, density = f_roh(genotypes, sites, RunLimits(kb_per_site=250))
    assert density.searched == 1 and runs_density(vars(density), too_sparse=False) == []
    assert abs(table.f_roh[0] - 0.5) < 0.01 and (table.f_roh[1:] < 0.02).all()
    table, density = f_roh(*inbred(20), RunLimits())
    assert density.searched == 1 and abs(table.f_roh[0] - 0.5) < 0.01


@pytest.mark.parametrize("limits", [RunLimits(), RunLimits(min_sites=30, max_gap_kb=300)])
def test_no_run_lies_where_sites_are_too_sparse(limits):
    """All samples homozygous: what is searched is what runs cover."""
    rng = np.random.default_rng(8)
    steps = np.where(np.arange(900) // 150 % 2, 15_000, 120_000) * rng.uniform(0.5, 1.5, 900)
    steps[rng.integers(0, 900, 5)] = 1_500_000
    sites = pd.DataFrame({"chrom": "1", "pos": np.cumsum(steps.astype(np.int64))})
    density = search_density(sites, np.ones(900, bool), limits)
    genotypes = np.zeros((900, 2), np.int8)
    rows = found(genotypes, sites, limits)[:, 1:3]
    assert 0.05 < density.searched < 0.6
    gaps = np.diff(sites.pos.to_numpy())
    for spacing in (0, 1):  # stretches of either density alone
        own = sites[np.arange(900) // 150 % 2 == spacing].reset_index(drop=True).iloc[:150]
        alone = search_density(own, np.ones(150, bool), RunLimits(max_gap_kb=5000))
        assert alone.searched == (0 if spacing == 0 else 1)
    if len(rows):
        covered = sum(int(gaps[first:last].sum()) for first, last in rows)
        assert covered <= density.searched * gaps.sum() + 1


def test_few_sites_are_never_dense_enough():
    sites = pd.DataFrame({"chrom": ["1"] * 60 + ["2"] * 60, "pos": [*range(1000, 1060)] * 2})
    assert search_density(sites, np.ones(120, bool), RunLimits()).searched == 0
    assert search_density(sites[:1], np.ones(1, bool), RunLimits()).searched == 0


@pytest.mark.parametrize(("kb", "searched"), [(1000, 0.0), (745, 1.0)])
def test_stretches_shorter_than_a_run_are_not_searched(kb, searched):
    """150 dense sites over 745 kb hold no run of 1 Mb; a gap does not join two such stretches."""
    pos = np.concatenate([np.arange(150) * 5_000, 5_000_000 + np.arange(150) * 5_000]) + 1
    sites = pd.DataFrame({"chrom": "1", "pos": pos})
    limits = RunLimits(min_kb=kb, min_sites=50)
    found = search_density(sites, np.ones(300, bool), limits).searched
    assert found == pytest.approx(searched * 2 * 745 / (5000 + 745))
    alone = search_density(sites[:150], np.ones(150, bool), limits).searched
    assert alone == searched


def test_windows_are_the_smallest_that_chance_leaves_alone():
    """Every number of sites and of heterozygous ones, by SciPy's binomial distribution."""
    from scipy.stats import binom

    h = np.array([0.02, 0.05, 0.11, 0.2, 0.29, 0.38, 0.5])
    lengths = np.arange(1, 5000)
    for n_sites, n_samples in ((20_000, 60), (1_000_000, 3000)):
        sites, hets = fitting_windows(h, n_sites, n_samples)
        for own, length, most in zip(h, sites, hets, strict=True):
            fits = {}
            for k in range(6):
                chance = n_sites * n_samples * binom.cdf(k, lengths, own)
                fits[k] = int(lengths[np.argmax(chance <= 0.05)])
            meyermans = np.log(0.05 / (n_sites * n_samples)) / np.log(1 - own)
            assert fits[0] == np.ceil(meyermans)
            allowed = [k for k in range(2, 6) if k <= fits[k] * min(0.02, 0.1 * own)]
            assert most == max([1, *allowed]) and length == fits[most]
    sites, _ = fitting_windows(np.array([0.0, 0.3]), 500, 20)
    assert sites[0] == 501 and sites[1] < 60  # no window tells without any diversity


def random_mating(rng, low, high, n_sites=8000, n=40):
    """Unlinked sites of two populations apart, 20 kb from each other."""
    p = rng.uniform(low, high, n_sites)
    q = np.clip(p + rng.normal(0, 0.3 * (high - low), n_sites), 0.5 * low, 1)
    chosen = np.where(np.arange(n) < n // 2, p[:, None], q[:, None])
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(1, n_sites + 1) * 20_000})
    return rng.binomial(2, chosen).astype(np.int8), sites


def by_heterozygosity(genotypes, sites):
    windows = np.column_stack(fitting_windows((genotypes == 1).mean(axis=0), *genotypes.shape))
    limits = RunLimits(min_sites=None, min_kb=100)
    return find_all_runs(bits(genotypes == 1), None, sites, limits, 1, windows), windows


@pytest.mark.parametrize(("low", "high"), [(0.01, 0.05), (0.01, 0.2), (0.05, 0.5)])
def test_random_mating_has_no_runs_and_inbreeding_has(low, high):
    """At most 5 % of studies have a false run; by PLINK's defaults all, where hets are few."""
    wrong, defaults = 0, 0
    for seed in range(40):
        rng = np.random.default_rng([47, seed])
        genotypes, sites = random_mating(rng, low, high)
        runs, windows = by_heterozygosity(genotypes, sites)
        wrong += len(runs) > 0
        defaults += len(found(genotypes, sites, RunLimits(min_kb=100))) > 0
    assert wrong <= 6  # 2 expected at 5 %; more than 6 has a chance of 0.3 %
    assert (defaults > 30) == (high == 0.05)
    # Autozygous over twice a window: always found, with 1 wrong genotype in 500.
    for sample in range(40):
        first = 150 * sample
        part = genotypes[first : first + 2 * windows[sample, 0], sample]
        part[part == 1] = 0
        part[rng.random(len(part)) < 0.002] = 1
    runs, windows = by_heterozygosity(genotypes, sites)
    assert len(set(runs[:, 0].tolist())) >= 38
