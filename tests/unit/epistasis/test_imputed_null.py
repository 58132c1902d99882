"""Scans and LD of imputed genotypes under a null: as few false hits as with called genotypes."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from scenes.imputed import hide, impute, interaction_p, r2_of
from scenes.mosaics import make_haplotypes, make_sites

from popdesic.cohort.beagle import Beagle
from popdesic.io.genotypes import MISSING

BLOCKS, SITES, PEOPLE = 3, 50, 240


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> dict:
    """Three contigs without a link between them; cases miss 20 % of the calls, controls 5 %."""
    if shutil.which("beagle") is None:
        pytest.skip("beagle is not installed; apt-get install beagle")
    parts = [make_haplotypes(SITES, 2 * PEOPLE, seed) for seed in range(BLOCKS)]
    haplotypes = np.concatenate(parts)
    truth = (haplotypes[:, ::2] + haplotypes[:, 1::2]).astype(np.int8)
    case = np.arange(PEOPLE) % 2 == 1
    called = hide(truth, case, (0.05, 0.2), seed=1)
    sites = make_sites(SITES).iloc[np.tile(np.arange(SITES), BLOCKS)].reset_index(drop=True)
    sites["chrom"] = np.repeat(np.arange(BLOCKS) + 1, SITES).astype(str)
    sites["mode"] = 0
    folder, settings = tmp_path_factory.mktemp("null"), Beagle(memory_mb=300)
    imputed, quality = impute(called, sites, settings, folder, min_r2=0.8)
    rng = np.random.default_rng(5)
    blocks = rng.permuted(np.tile(np.arange(BLOCKS), (3000, 1)), axis=1)[:, :2]
    far = blocks * SITES + rng.integers(0, SITES, blocks.shape)
    near = np.stack([np.arange(len(truth) - 1), np.arange(1, len(truth))], axis=1)
    near = near[near[:, 0] // SITES == near[:, 1] // SITES]
    kinds = {"truth": truth, "called": called, "imputed": imputed}
    return {"kinds": kinds, "case": case, "far": far, "near": near, "quality": quality}


def test_called_genotypes_are_kept_and_most_missing_ones_filled(scene):
    truth, called, imputed = scene["kinds"].values()
    missing = called == MISSING
    np.testing.assert_array_equal(imputed[~missing], truth[~missing])
    filled = missing & (imputed != MISSING)
    assert filled.sum() > 0.5 * missing.sum()
    assert (imputed == truth)[filled].mean() > 0.93
    assert (scene["quality"][filled.any(axis=1)] >= 0.8).all()


def test_no_more_false_interactions_than_with_called_genotypes(scene):
    shares = {}
    for name, genotypes in scene["kinds"].items():
        p = interaction_p(genotypes, scene["case"], scene["far"])
        shares[name] = [(p < level).mean() for level in (0.05, 0.01)]
    # 3000 pairs: standard errors of 0.004 and 0.002, more as pairs share sites. The chi-square
    # distribution itself is a little too narrow in tables of this size.
    for k, (level, slack) in enumerate(((0.05, 0.015), (0.01, 0.006))):
        assert shares["truth"][k] < 2 * level, shares
        assert shares["imputed"][k] < min(shares["truth"][k], shares["called"][k]) + slack, shares


def test_ld_is_that_of_the_truth(scene):
    far = {name: np.nanmean(r2_of(g, scene["far"])) for name, g in scene["kinds"].items()}
    # Unlinked sites have an r2 of about one over the number of people.
    assert far["truth"] == pytest.approx(1 / PEOPLE, rel=0.15)
    assert far["imputed"] == pytest.approx(far["truth"], rel=0.15)
    near = {name: r2_of(g, scene["near"]) for name, g in scene["kinds"].items()}
    wrong = {k: np.nanmean(np.abs(near[k] - near["truth"])) for k in ("called", "imputed")}
    assert wrong["imputed"] < wrong["called"], wrong
    assert abs(np.nanmean(near["imputed"] - near["truth"])) < 0.01
