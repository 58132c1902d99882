"""Founders discover pairs, newcomers confirm (`epistasis.replication: newcomers`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.running import finished, snakemake
from support.study import FAST, Cohort, make_sites, write_sheets, write_study

N_SITES = 14
SITES = make_sites(N_SITES)
BLOCK = {"order": [2], "replication": "newcomers", "top": 1, "power": [], "covariates": []}


def drawn_cohort(name: str, seed: int, n: int, founder: bool) -> tuple[Cohort, np.ndarray]:
    """Cases and controls; the odds rise where just one of the sites 2 and 9 is heterozygous."""
    rng = np.random.default_rng(seed)
    genotypes = rng.binomial(2, 0.45, (N_SITES, n)).astype(np.int8)
    logit = 2.4 * ((genotypes[2] == 1) ^ (genotypes[9] == 1)) - 1.2
    case = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    names = [f"{name}{k:03d}" for k in range(n)]
    return Cohort(name, names, SITES, genotypes, founder=founder, populations=["P"] * n), case


def write(folder: Path, drawn: list[tuple[Cohort, np.ndarray]]) -> None:
    write_sheets(folder, [cohort for cohort, _ in drawn], FAST | {"epistasis": BLOCK})
    sheet = pd.read_csv(folder / "config/samples.tsv", sep="\t", dtype=str)
    sheet["phenotype"] = np.concatenate([case for _, case in drawn])
    sheet.to_csv(folder / "config/samples.tsv", sep="\t", index=False)


@pytest.mark.slow
def test_newcomers_confirm_and_do_not_change_what_founders_found(tmp_path):
    drawn = [drawn_cohort("north", 1, 400, True), drawn_cohort("south", 2, 300, False)]
    folder = write_study(tmp_path, [cohort for cohort, _ in drawn])
    write(folder, drawn)
    assert finished(snakemake(folder, "epistasis"))["rank_epistasis"] == 1
    results = folder / "results/epistasis"
    samples = pd.read_csv(folder / "results/reorder/samples.tsv", sep="\t")
    assert samples["sample"].str.startswith("north").all() and len(samples) == 400
    table = pd.read_csv(results / "replication.tsv", sep="\t")
    lead = table.iloc[0]
    assert {lead.pos1, lead.pos2} == {SITES[2][1], SITES[9][1]}
    assert (table.n_controls + table.n_cases <= 300).all() and lead.n_cases == drawn[1][1].sum()
    assert lead.p_replication < 1e-4 and lead.p_effect < 1e-4 and lead.cohorts == 1
    assert abs(lead.effect - 1) < 3 * lead.se
    pairs = results / "pairs.tsv"
    before = pairs.read_bytes()
    drawn.append(drawn_cohort("west", 3, 200, False))
    (folder / drawn[2][0].path).write_text(drawn[2][0].vcf())
    write(folder, drawn)
    ran = finished(snakemake(folder, "epistasis"))
    assert not ran["scan_epistasis"] and ran["rank_epistasis"] == 1
    assert pairs.read_bytes() == before
    again = pd.read_csv(results / "replication.tsv", sep="\t")
    assert again.cohorts[0] == 2 and again.p_replication[0] < lead.p_replication
    effects = pd.read_csv(results / "replication_by_cohort.tsv", sep="\t")
    assert effects.cohort.tolist() == ["south", "west"]
