"""A genome of 5 000 scaffolds without chromosomes, by the defaults of the statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.running import snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.cohort.panel import load_panel
from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.study.configuration import read_config
from popdesic.study.validation import validate_study

#: Sites of one scaffold and number of scaffolds.
SITES_EACH, SCAFFOLDS = 2, 5_000


@pytest.fixture(scope="module")
def scaffolds(tmp_path_factory):
    """Scaffolds of 5 to 500 kb, with two sites each, the last one near the end."""
    rng = np.random.default_rng(1)
    lengths = np.exp(rng.uniform(np.log(5e3), np.log(5e5), SCAFFOLDS)).astype(int)
    cohorts = [
        replace(
            cohort,
            sites=[
                (
                    f"scaffold_{k // SITES_EACH + 1}",
                    int(length) - 2000 * (1 - k % 2),
                    ".",
                    *site[3:],
                )
                for k, (length, site) in enumerate(
                    zip(np.repeat(lengths, SITES_EACH), cohort.sites, strict=True)
                )
            ],
        )
        for cohort in make_cohorts((16, 14), n_sites=SITES_EACH * SCAFFOLDS)
    ]
    population = {"analyses": ["diversity", "differentiation"]}
    folder = write_study(
        tmp_path_factory.mktemp("scaffolds"), cohorts, FAST | {"population": population}
    )
    return folder, lengths


def test_nothing_asks_for_chromosomes(scaffolds):
    folder, _ = scaffolds
    remarks = validate_study(read_config(folder), folder)[2]
    assert not [remark for remark in remarks if "contig" in remark or "chromosome" in remark]


def test_blocks_join_scaffolds(scaffolds):
    """Blocks of about 2 Mb over all scaffolds of the panel, in its order, none of them twice."""
    folder, lengths = scaffolds
    snakemake(folder, "population")
    panel, _ = load_panel(folder / "results/panel/sites.tsv")
    blocks = read_table(folder / "results/population/blocks.tsv")
    about = read_json(folder / "results/population/summary.json")
    assert len(set(panel.chrom)) > 4_000
    assert len(blocks) == about["blocks"] < 1.1 * lengths.sum() / 2e6
    assert blocks.sites.astype(int).sum() == len(panel)
    assert blocks.chrom.str.contains("..", regex=False).all()
    ends = blocks.end.astype(int)
    assert ends[:-1].between(2_000_000, 2_500_000).all()
    first = [name.split("..")[0] for name in blocks.chrom]
    order = {name: k for k, name in enumerate(panel.chrom.unique())}
    assert np.all(np.diff([order[name] for name in first]) > 0)
    pairs = read_table(folder / "results/population/pairs.tsv")
    assert float(pairs.error[0]) > 0
