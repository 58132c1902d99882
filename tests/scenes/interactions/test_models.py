"""The penetrance models of the power bench are what they say, and PLINK reads the same studies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from popdesic.epistasis.power import cell_probabilities, expected_interaction
from popdesic.epistasis.significance import hit_tables
from scenes.interactions.models import (
    MODELS,
    draw_study,
    pair_tables,
    pure_penetrance,
    statistics,
    tuned,
    without_interaction,
)
from scenes.interactions.peers import TESTS, run_plink

SIZES = (600, 400)


@pytest.mark.parametrize("maf", [0.05, 0.2, 0.5])
def test_pure_models_have_no_main_effect_and_the_stated_heritability(maf):
    heritability = 0.005 if maf == 0.05 else 0.1
    risk = pure_penetrance(maf, heritability, np.random.default_rng(1)).reshape(3, 3)
    share = np.array([(1 - maf) ** 2, 2 * maf * (1 - maf), maf**2])
    prevalence = share @ risk @ share
    np.testing.assert_allclose(risk @ share, prevalence)
    np.testing.assert_allclose(share @ risk, prevalence)
    variance = share @ (risk - prevalence) ** 2 @ share
    assert variance / (prevalence * (1 - prevalence)) == pytest.approx(heritability)
    assert pure_penetrance(0.05, 0.4, np.random.default_rng(1)) is None


@pytest.mark.parametrize("name", MODELS)
def test_models_reach_the_power_asked_for(name):
    model = tuned(name, 0.3, SIZES, 1770, power=0.5)
    assert model.power == pytest.approx(0.5, abs=0.01)
    assert expected_interaction(model.cells, *SIZES)[0] > 5


@pytest.mark.parametrize("name", MODELS)
def test_the_null_model_keeps_all_but_the_interaction(name):
    model = tuned(name, 0.3, SIZES, 1770)
    assert expected_interaction(model.without, *SIZES)[0] == pytest.approx(0, abs=1e-4)
    with_, none = (x.reshape(2, 3, 3) for x in (model.cells, model.without))
    for axis in (1, 2):
        np.testing.assert_allclose(none.sum(axis=axis), with_.sum(axis=axis), atol=1e-9)
    of_genotypes = np.array(SIZES) @ model.cells
    np.testing.assert_allclose(np.array(SIZES) @ model.without, of_genotypes, atol=1e-6)


def test_tables_of_all_pairs():
    rng = np.random.default_rng(2)
    genotypes = draw_study(cell_probabilities([0.3, 0.3], [0.1] * 8 + [0.9]), SIZES, 7, rng)
    tables = pair_tables(genotypes, SIZES[0])
    want = [hit_tables(genotypes[[i, j]], SIZES[0]) for i in range(7) for j in range(i + 1, 7)]
    assert np.array_equal(tables.reshape(-1, 2, 3, 3), want)


def test_statistics_of_plink_are_those_of_the_same_pairs(tmp_path):
    if shutil.which("plink1.9") is None:
        pytest.skip("plink1.9 is not installed; apt-get install plink1.9 to compare with it.")
    model = tuned("product", 0.4, SIZES, 45, power=0.99)
    genotypes = draw_study(model.cells, SIZES, 10, np.random.default_rng(3))
    first, second = np.triu_indices(10, 1)
    ours = statistics(pair_tables(genotypes, SIZES[0]), SIZES)["LR"]
    theirs = {test: run_plink(test, genotypes, SIZES[0], tmp_path) for test in TESTS}
    boost = theirs["BOOST"].set_index(["site1", "site2"]).statistic
    assert len(boost) == 45
    np.testing.assert_allclose(
        ours, [boost[i, j] for i, j in zip(first, second, strict=True)], atol=1e-4
    )
    for table in theirs.values():
        best = table.loc[table.statistic.idxmax()]
        assert (best.site1, best.site2) == (0, 1) and best.p < 1e-4


def test_iterative_fit_leaves_an_additive_model_as_it_is():
    odds = np.add.outer([0.0, 0.7, 1.4], [0.0, 1.0, 1.1]) - 1
    cells = cell_probabilities([0.3, 0.4], (1 / (1 + np.exp(-odds))).ravel())
    np.testing.assert_allclose(without_interaction(cells, SIZES), cells, atol=1e-9)
