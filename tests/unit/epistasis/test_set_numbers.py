"""Several phenotypes in one scan of sets: each as by its definition and as scanned alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles import sets as oracle

import popdesic
from popdesic.epistasis import set_numbers, set_products

P_VALUES = ["p_quadratic", "p_burden", "p_pair"]
COUNTED = ["set", "sites", "products", "site1", "site2"]
SETS = {"one": range(6), "two": ([0, 1, 4], [6, 8, 9]), "none": [3]}


def draw(seed: int, n: int = 700):
    """Genotypes, four phenotypes (the second has an interaction, the third is unknown of some, the
    last has cases) and covariates."""
    rng = np.random.default_rng(seed)
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.6, 10), (n, 10)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    covariates = rng.normal(size=(n, 2))
    phenotypes = rng.normal(size=(n, 4)) + 0.3 * covariates[:, :1] + 0.2 * genotypes[:, :1]
    phenotypes[:, 1] += 0.9 * genotypes[:, 1] * genotypes[:, 4]
    phenotypes[: n // 17, 2] = np.nan
    phenotypes[:, 3] = phenotypes[:, 3] > 0.5
    return genotypes, phenotypes, covariates


@pytest.mark.parametrize("dominance", [True, False])
@pytest.mark.parametrize("people", [64, 512])
def test_every_phenotype_equals_the_oracle(monkeypatch, dominance, people):
    monkeypatch.setattr(set_numbers, "PEOPLE", people)
    genotypes, phenotypes, covariates = draw(3)
    found = popdesic.scan_sets(genotypes, phenotypes, SETS, covariates, dominance=dominance)
    assert found["phenotype"].tolist() == np.repeat(range(4), 3).tolist()
    pairs = {"one": oracle.all_pairs(6), "two": [(i, j) for i in range(3) for j in range(3, 6)]}
    for k, response in enumerate(phenotypes.T):
        rows = found[found["phenotype"] == k].set_index("set")
        known = np.isfinite(response)
        for name, sites in (("one", range(6)), ("two", [0, 1, 4, 6, 8, 9])):
            expected = oracle.set_tests(
                genotypes[known][:, list(sites)], response[known], covariates[known], pairs[name],
                binary=k == 3, dominance=dominance,
            )  # fmt: skip
            for test in P_VALUES:
                assert rows.loc[name, test] == pytest.approx(expected[test], rel=1e-6), (k, test)
        assert np.isnan(rows.loc["none", "p"])
    assert found["p_quadratic"][3] < 1e-6
    assert found.loc[3, ["site1", "site2"]].tolist() == [1, 4]


@pytest.mark.parametrize("transform", ["none", "normal"])
@pytest.mark.parametrize("n", [40, 700])
def test_every_phenotype_is_as_scanned_alone(transform, n):
    genotypes, phenotypes, covariates = draw(4, n)
    chosen = SETS | {"all": range(10)}  # 45 products, more than 40 people
    given = {"transform": transform, "threads": 2}
    many = 3 if n == 40 else 4  # cases of 40 people are separated
    found = popdesic.scan_sets(genotypes, phenotypes[:, :many], chosen, covariates, **given)
    for k in range(many):
        alone = popdesic.scan_sets(genotypes, phenotypes[:, k], chosen, covariates, **given)
        rows = found[found["phenotype"] == k].reset_index(drop=True)
        assert rows[COUNTED].equals(alone[COUNTED])
        for test in ["p", *P_VALUES]:
            expected = pytest.approx(alone[test].to_numpy(), rel=1e-9, nan_ok=True)
            assert rows[test].to_numpy() == expected


def test_threads_change_no_byte_and_columns_keep_their_names():
    genotypes, phenotypes, covariates = draw(5)
    table = pd.DataFrame(phenotypes, columns=["height", "weight", "age", "disease"])
    one = popdesic.scan_sets(genotypes, table, SETS, covariates, threads=1)
    two = popdesic.scan_sets(genotypes, table, SETS, covariates, threads=2)
    assert one.equals(two)
    assert one["phenotype"].unique().tolist() == list(table.columns)


def test_numbers_that_the_sites_explain_are_named_and_others_are_tested():
    genotypes, phenotypes, _ = draw(6)
    genotypes[genotypes < 0] = 0
    phenotypes[:, 0] = genotypes[:, 0] - 0.5 * genotypes[:, 2]
    with pytest.warns(UserWarning, match="explain the phenotype completely"):
        found = popdesic.scan_sets(genotypes, phenotypes[:, :2], {"one": range(6)})
    assert np.isnan(found["p"][0])
    assert found["p"][1] < 1e-6


def test_too_many_products_are_named_for_every_phenotype(monkeypatch):
    monkeypatch.setattr(set_products, "MOST_ROWS", 10)
    genotypes, phenotypes, _ = draw(7)
    with pytest.warns(UserWarning, match=r"15 products of two of its 6 sites.*divide the set"):
        found = popdesic.scan_sets(genotypes, phenotypes[:, :2], {"one": range(6), "few": range(4)})
    assert np.isnan(found["p"]).tolist() == [True, False] * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((700, 2, 2)), "shape"),
        (np.zeros((600, 2)), "shape"),
        (np.zeros((700, 0)), "no column"),
    ],
)
def test_phenotypes_of_another_shape_are_refused(given, said):
    genotypes, _, _ = draw(8)
    with pytest.raises(ValueError, match=said):
        popdesic.scan_sets(genotypes, given, SETS)


def test_a_device_must_be_known():
    genotypes, phenotypes, _ = draw(9)
    with pytest.raises(ValueError, match="device"):
        popdesic.scan_sets(genotypes, phenotypes, SETS, device="tpu")
