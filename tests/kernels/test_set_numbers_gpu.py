"""Tests of sets of several numbers on a GPU equal those of the CPU, but for rounding."""

from __future__ import annotations

import numpy as np
import pytest

import popdesic

pytestmark = pytest.mark.gpu
cupy = pytest.importorskip("cupy")
P_VALUES = ["p", "p_quadratic", "p_pair", "p_burden"]


@pytest.mark.parametrize("n", [60, 700, 66_000])
@pytest.mark.parametrize("dominance", [True, False])
def test_numbers_equal_those_of_the_cpu(gpu_device, rng, n, dominance):
    genotypes = rng.binomial(2, 0.3, (n, 16)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    genotypes[:, 7] = genotypes[:, 6]  # copies of a site are explained
    genotypes[:, 8] = 1
    numbers = rng.normal(size=(n, 5))
    numbers[:, 1] += 20 / np.sqrt(n) * genotypes[:, 1] * genotypes[:, 3]
    numbers[:3, 2] = np.nan
    sets = {"one": range(9), "two": (range(8, 12), range(10, 16)), "small": [4], "few": [1, 3]}
    given = genotypes, numbers, sets, rng.normal(size=(n, 2))
    found = popdesic.scan_sets(*given, dominance=dominance, device="gpu")
    expected = popdesic.scan_sets(*given, dominance=dominance)
    counted = ["phenotype", "set", "sites", "products"]
    assert found[counted].equals(expected[counted])
    assert found.query("phenotype == 1 and set == 'few'")[["site1", "site2"]].values.tolist() == [
        [1, 3]
    ]
    for name in P_VALUES:
        assert found[name].to_numpy() == pytest.approx(
            expected[name].to_numpy(), rel=1e-9, nan_ok=True
        )
    assert found["p"].min() < 1e-6


def test_a_single_number_takes_the_gpu_too(gpu_device, rng):
    genotypes = rng.binomial(2, 0.3, (500, 6)).astype(np.int8)
    number = rng.normal(size=500)
    found = popdesic.scan_sets(genotypes, number, {"all": range(6)}, device="gpu")
    expected = popdesic.scan_sets(genotypes, number, {"all": range(6)})
    assert found.columns.equals(expected.columns)
    assert found["p_quadratic"][0] == pytest.approx(expected["p_quadratic"][0], rel=1e-9)
