"""Epistasis scans by Snakemake: planted effects are found, killed runs resume, units do not matter.

One phenotype with three kinds of cases: by a pair, by a triple whose sites and pairs have effects
too, and by the exclusive or of three sites, of which no single site or pair has an effect.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.running import (
    contents,
    finished,
    jobs_of_plan,
    kill_and_resume,
    snakemake,
    snapshot,
)
from support.study import FAST, Cohort, make_cohorts, make_sites, write_sheets, write_study

N_SITES = 22
PAIR, TRIPLE, XOR = (2, 15), (4, 9, 18), (6, 11, 20)
#: Four sites, half of whose samples are carriers.
QUAD = (2, 6, 11, 15)
#: ALT frequency at which half of the people are carriers.
HALF = 1 - np.sqrt(0.5)


def planted() -> tuple[list[Cohort], np.ndarray]:
    """Two cohorts and the cases among all their samples."""
    rng = np.random.default_rng(20)
    n = 900
    frequency = rng.uniform(0.2, 0.45, N_SITES)
    frequency[[*PAIR, *XOR]] = HALF
    frequency[list(TRIPLE)] = 0.16
    genotypes = rng.binomial(2, frequency[:, None], (N_SITES, n))
    carrier = genotypes > 0
    risk = np.where(carrier[list(PAIR)].sum(axis=0) % 2, 0.9, 0.1)
    kind = rng.integers(0, 3, n)
    # 30 % carry each of these, so that the parity also has effects of single sites and pairs.
    risk = np.where(kind == 1, carrier[list(TRIPLE)].sum(axis=0) % 2, risk)
    risk = np.where(kind == 2, carrier[list(XOR)].sum(axis=0) % 2, risk)
    genotypes[rng.random(genotypes.shape) < 0.005] = -1
    sites, cohorts = make_sites(N_SITES), []
    for name, members in (("north", range(500)), ("south", range(500, n))):
        names = [f"{name[0].upper()}{k:03d}" for k in members]
        drawn = genotypes[:, list(members)].astype(np.int8)
        cohorts.append(Cohort(name, names, sites, drawn, populations=["P"] * len(names)))
    return cohorts, rng.random(n) < risk


def write(folder: Path, **epistasis) -> None:
    """Sheets of the study with its phenotypes, and its configuration."""
    cohorts, case = planted()
    everything = {"min_distance_bp": 0, "max_r2": 1}
    block = everything | {"order": [2, 3], "permutations": 19} | epistasis
    write_sheets(folder, cohorts, FAST | {"epistasis": block})
    path = folder / "config/samples.tsv"
    sheet = pd.read_csv(path, sep="\t", dtype=str)
    sheet["phenotype"] = case.astype(int)
    sheet.to_csv(path, sep="\t", index=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> dict:
    """Scanned in three units per order; killed as soon as one is done, then resumed."""
    folder = write_study(tmp_path_factory.mktemp("epistasis"), planted()[0])
    write(folder, units=3)
    # When Snakemake reports the end of a unit, it has recorded it.
    killed, output = kill_and_resume(
        folder, "epistasis", lambda said: "(Rule: scan_epistasis)" in said
    )
    return {"folder": folder, "killed": killed, "output": output}


def hits(folder: Path, name: str) -> pd.DataFrame:
    table = pd.read_csv(folder / f"results/epistasis/{name}.tsv", sep="\t")
    columns = [column for column in table if column.startswith("id")]
    table["sites"] = [frozenset(int(name[2:]) for name in row) for row in table[columns].to_numpy()]
    return table


def test_planted_pair_is_the_best(study):
    pairs = hits(study["folder"], "pairs")
    listed = pd.Series([site for pair in pairs.sites for site in pair]).value_counts()
    assert set(listed.index) == set(range(N_SITES)) and listed.max() == 10
    assert pairs.sites[0] == set(PAIR)
    assert pairs.p_interaction[0] < 1e-4 and pairs.p_permutation.isna().all()
    assert pairs.lr_p[0] < 1e-9 and pairs.interaction_gain[0] > 20
    assert pairs.sites[1] < set(TRIPLE), "the part of the triple that shows alone"


def test_planted_triples_add_most_over_their_parts(study):
    """First the exclusive or, no part of which has an effect."""
    triples = hits(study["folder"], "triples")
    gains = triples.sort_values("interaction_gain", ascending=False)
    assert list(triples.sites.head(2)) == list(gains.sites.head(2)) == [set(XOR), set(TRIPLE)]
    xor = triples.iloc[0]
    assert min(xor.main1, xor.main2, xor.main3, xor.best_pair_score) > -6
    assert triples.lr_p[0] < 1e-15 and triples.lr_p[1] < 1e-5 < 1e-4 < triples.lr_p[2]


def test_screen_finds_the_triple_with_a_pair_but_not_the_exclusive_or(study):
    screen = hits(study["folder"], "screen")
    assert set(screen.exhaustive) == {"no"}
    assert screen.sites[0] == set(TRIPLE)
    assert frozenset(XOR) not in set(screen.sites)


def test_killed_units_resume(study):
    """Finished units are kept; the others run once."""
    before, after = study["killed"], snapshot(study["folder"])
    done = [name for name in before if name.startswith("epistasis/units/")]
    assert 1 <= len(done) < 6
    assert "epistasis/triples.tsv" not in before
    again = finished(study["output"])["scan_epistasis"]
    kept = [name for name in done if before[name] == after[name]]
    assert kept and again == 6 - len(kept)
    assert all(before[name][1] == after[name][1] for name in done)


def test_the_number_of_units_changes_no_byte(study, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(study["folder"], folder, symlinks=True)
    write(folder, units=1)
    ran = finished(snakemake(folder, "epistasis"))
    assert ran["scan_epistasis"] == 2 and not ran["permute_epistasis"]
    tables = ("pairs.tsv", "triples.tsv", "screen.tsv")
    first, second = contents(study["folder"]), contents(folder)
    for name in tables:
        assert first[f"epistasis/{name}"] == second[f"epistasis/{name}"], name


def test_association_scores_are_permuted_and_the_interaction_is_not(study, tmp_path):
    assert not finished(study["output"])["permute_epistasis"]
    folder = tmp_path / "study"
    shutil.copytree(study["folder"], folder, symlinks=True)
    write(folder, units=3, score="k2", order=[2])
    ran = finished(snakemake(folder, "results/epistasis/pairs.tsv"))
    assert ran["permute_epistasis"] == 3
    pairs = hits(folder, "pairs")
    assert pairs.p_permutation[0] == 1 / 20 and pairs.p_association[0] < 1e-6


def test_errors_are_found_before_the_scans(study, tmp_path):
    """Errors in the sheets before any job."""
    folder = tmp_path / "study"
    shutil.copytree(study["folder"], folder, symlinks=True)
    write(folder, units=3, strata="batch")
    output = snakemake(folder, "epistasis", fails=True)
    assert "epistasis.strata is 'batch', which is not a column of config/samples.tsv" in output
    assert not finished(output) and "Traceback" not in output


def test_a_number_is_scanned_with_its_covariates(study, tmp_path):
    """The same study with a number for a phenotype: the pair's cases have more of it."""
    folder = tmp_path / "study"
    shutil.copytree(study["folder"], folder, symlinks=True)
    write(folder, order=[2], covariates=["age"])
    path = folder / "config/samples.tsv"
    sheet = pd.read_csv(path, sep="\t", dtype=str)
    rng = np.random.default_rng(21)
    sheet["age"] = rng.integers(20, 80, len(sheet))
    noise = rng.normal(0, 0.5, len(sheet))
    sheet["phenotype"] = (sheet.phenotype.astype(int) + 0.1 * sheet.age + noise).round(4)
    sheet.to_csv(path, sep="\t", index=False)
    ran = finished(snakemake(folder, "epistasis"))
    assert ran["scan_sites"] == ran["rank_epistasis"] == 1
    pairs = hits(folder, "pairs")
    assert pairs.sites[0] == set(PAIR) and pairs.p_interaction[0] < 1e-4
    text = (folder / "logs/scan_sites.log").read_text()
    assert "linear" in text and "stratum=south, age" in text
    sites = pd.read_csv(folder / "results/epistasis/sites.tsv", sep="\t")
    assert len(sites) == N_SITES and sites.p.between(0, 1).all()
    for name in ("manhattan", "qq_sites", "penetrance.pairs"):
        assert (folder / f"results/figures/{name}.svg").stat().st_size > 1000


def test_cases_are_scanned_with_their_covariates(study, tmp_path):
    """`score: residuals` ranks pairs by residuals, and triples as ever."""
    folder = tmp_path / "study"
    shutil.copytree(study["folder"], folder, symlinks=True)
    write(folder, units=3, score="residuals")
    ran = finished(snakemake(folder, "epistasis"))
    assert ran["scan_epistasis"] == 3  # the plan of triples comes out with the bytes that it had
    pairs = hits(folder, "pairs")
    assert pairs.sites[0] == set(PAIR) and pairs.p_interaction[0] < 1e-4


@pytest.mark.slow
def test_quads_of_listed_sites(study, tmp_path):
    """The parity of four sites, of which no triple says anything; in halves, units and again."""
    folder = tmp_path / "study"
    shutil.copytree(study["folder"], folder, symlinks=True)
    (folder / "sites.txt").write_text("\n".join(f"rs{site}" for site in (*QUAD, 4, 9, 18, 20)))
    block = {"order": [4], "restrict": "sites.txt", "top": 5, "replication": "half"}
    write(folder, units=2, **block)
    path = folder / "config/samples.tsv"
    sheet, rng = pd.read_csv(path, sep="\t", dtype=str), np.random.default_rng(21)
    carrier = np.concatenate([cohort.genotypes for cohort in planted()[0]], axis=1)[list(QUAD)] > 0
    odd = carrier.sum(axis=0) % 2 == 1
    sheet["phenotype"] = (rng.random(len(sheet)) < np.where(odd, 0.9, 0.1)).astype(int)
    sheet.to_csv(path, sep="\t", index=False)
    ran = finished(snakemake(folder, "epistasis"))
    assert ran["scan_epistasis"] == 2 and ran["plan_epistasis"] == ran["rank_epistasis"] == 1
    quads = hits(folder, "quads")
    assert quads.sites[0] == set(QUAD) and quads.p_interaction[0] < 1e-6
    assert (quads.p_interaction[1:] > 1e-3).all()
    results = folder / "results/epistasis"
    assert len(pd.read_csv(results / "loci_quads.tsv", sep="\t"))
    tested = pd.read_csv(results / "replication.tsv", sep="\t")
    assert tested.scan[0] == "quads" and tested.p_replication[0] < 1e-6
    assert (folder / "results/figures/penetrance.quads.svg").exists()
    before = contents(folder)["epistasis/quads.tsv"]
    for name in ("units/order4.1.npz", "quads.tsv"):
        (results / name).unlink()
    assert finished(snakemake(folder, "epistasis"))["scan_epistasis"] == 1
    assert contents(folder)["epistasis/quads.tsv"] == before


def test_quads_by_interaction_ask_for_no_gpu(tmp_path):
    """Triples of the same study do, and so do quads by a score of association."""
    cohorts = make_cohorts((8, 7), n_sites=40)
    for score, wanted in (("interaction", 0), ("k2", 1)):
        block = {"order": [3, 4], "score": score, "permutations": [0, 0, 1]}
        folder = write_study(
            tmp_path / score, cohorts, FAST | {"device": "auto", "epistasis": block}
        )
        rules = "scan_epistasis", "permute_epistasis"
        scans = [job for job in jobs_of_plan(folder) if job["rule"] in rules]
        found = {(job["rule"], job["wildcards"]["order"]): job["gpu"] for job in scans}
        permuted = {("permute_epistasis", "4"): 1} if wanted else {}
        assert found == {("scan_epistasis", "3"): 1, ("scan_epistasis", "4"): wanted} | permuted
