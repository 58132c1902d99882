"""A study without population labels: structure removes no site, too many heterozygotes do."""

from __future__ import annotations

import numpy as np
import pandas as pd
from support.running import snakemake
from support.study import Cohort, make_sites, write_study

from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.cohort.panel import load_panel
from popdesic.core.tables import read_table
from popdesic.report.findings import hardy_weinberg

#: Sites that differ between two populations, those at which all samples are heterozygous, others.
APART, BAD, OTHERS = range(40), range(40, 50), range(50, 200)


def test_structure_without_labels_removes_no_site(tmp_path):
    rng = np.random.default_rng(1)
    frequency = np.repeat(rng.uniform(0.3, 0.7, (200, 1)), 2, axis=1)
    frequency[APART] = 0.05, 0.95
    genotypes = rng.binomial(2, np.repeat(frequency, 40, axis=1)).astype(np.int8)
    genotypes[BAD] = 1
    samples, sites = [f"s{k}" for k in range(80)], make_sites(200)
    cohort = Cohort("only", samples, sites, genotypes, populations=["NA"] * 80)
    write_study(tmp_path, [cohort])
    snakemake(tmp_path, "results/panel/sites.tsv")
    kept = set(load_panel(tmp_path / "results/panel/sites.tsv", ["pos"])[0].pos.astype(int))
    position = [site[1] for site in sites]
    assert not kept & {position[k] for k in BAD}
    assert kept == {position[k] for k in (*APART, *OTHERS)}
    counts = read_table(tmp_path / "results/qc/only.sites.tsv")[["n_ref", "n_het", "n_alt"]]
    alone = hwe_exact(*counts.to_numpy(np.int64).T)
    assert (alone[list(APART)] < 1e-6).all()  # a test for both would remove them
    groups = read_table(tmp_path / "results/qc/only.populations.tsv")
    assert groups[["population", "samples", "tested"]].to_numpy().tolist() == [
        ["NA", "80", "excess"]
    ]
    (found,) = hardy_weinberg(pd.concat([groups]))
    assert found.text.startswith("80 founder samples have no population label")
    assert found.text.endswith(
        "Only an excess of heterozygotes counts against a site there (panel.min_hwe_p)."
    )
