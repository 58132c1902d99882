"""Doubletons that populations share: by definition, where the truth is known, and under chance."""

from __future__ import annotations

from itertools import combinations, permutations

import msprime
import numpy as np
import pytest

import popdesic
from popdesic.population.doubletons import sharing_table


def count_slowly(genotypes: np.ndarray, labels: list) -> dict[tuple[str, str], int]:
    """Doubletons of each pair of populations, site by site."""
    known = [k for k, label in enumerate(labels) if label]
    found: dict[tuple[str, str], int] = {}
    for site in genotypes[known].T.tolist():
        called = [g for g in site if g >= 0]
        if len(site) - len(called) > 0.05 * len(site):
            continue
        for copies in (called, [2 - g for g in called]):
            carriers = [k for k, g in zip(known, site, strict=True) if g == 1]
            if sum(copies) == 2 and max(copies) == 1:
                pair = tuple(sorted(labels[k] for k in carriers))
                found[pair] = found.get(pair, 0) + 1
                break
    return found


def found_by(table) -> dict[tuple[str, str], int]:
    rows = zip(table.population1, table.population2, table.doubletons, strict=True)
    return {(a, b): n for a, b, n in rows if n}


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 700])
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_counts_are_those_of_the_definition(n_sites, missing):
    rng = np.random.default_rng(n_sites)
    labels = ["A"] * 9 + ["B"] * 7 + [None] * 5 + ["C"] * 12 + ["D"]
    genotypes = rng.binomial(2, rng.uniform(0, 0.06, n_sites), (34, n_sites)).astype(np.int8)
    turned = rng.random(n_sites) < 0.4
    genotypes[:, turned] = 2 - genotypes[:, turned]
    genotypes[rng.random(genotypes.shape) < missing] = -1
    expected = count_slowly(genotypes, labels)
    assert n_sites < 60 or len(expected) > 2
    for given in (genotypes, popdesic.pack(genotypes), popdesic.pack(genotypes, fill="mode")):
        table = popdesic.shared_doubletons(given, labels, threads=1)
        assert found_by(table) == expected
    assert len(table) == 9  # no two samples are of D
    total = sum(expected.values())
    assert table.expected.sum() == pytest.approx(total)
    size = {"A": 9, "B": 7, "C": 12, "D": 1}
    for row in table.itertuples():
        m, n = size[row.population1], size[row.population2]
        pairs = m * (m - 1) / 2 if row.population1 == row.population2 else m * n
        assert row.expected == pytest.approx(total * pairs / (29 * 28 / 2))


def test_a_label_for_each_sample_gives_pairs_of_samples():
    genotypes = np.zeros((6, 40), np.int8)
    pairs = list(combinations(range(6), 2))
    for site in range(30):
        genotypes[list(pairs[site % 5]), site] = 1
    genotypes[2, 31] = 2  # two copies in one sample
    genotypes[[0, 1, 2], 32] = 1
    table = popdesic.shared_doubletons(genotypes, list("abcdef"))
    assert found_by(table) == {("a", other): 6 for other in "bcdef"}
    assert len(table) == 15 and table.expected.tolist() == [2.0] * 15


def test_nothing_is_shared_where_nothing_varies():
    table = popdesic.shared_doubletons(np.zeros((4, 9), int), ["A", "A", "B", "B"])
    assert table.doubletons.tolist() == [0, 0, 0] and table.ratio.isna().all()


def test_mean_and_variance_are_those_of_all_deals():
    """z of every deal of labels to six samples: mean 0 and variance 1."""
    carriers = np.array([[0, 1]] * 5 + [[1, 2], [1, 3], [4, 2], [0, 5], [5, 0]])
    deals = sorted(set(permutations([0, 0, 0, 1, 1, 2])))
    z = np.array([sharing_table(carriers, np.array(deal), list("ABC")).z for deal in deals])
    assert len(deals) == 60 and z.shape[1] == 5
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.var(axis=0), 1, rtol=1e-12)


def draw(demography: msprime.Demography, samples: dict, seed: int) -> np.ndarray:
    trees = msprime.sim_ancestry(
        samples, demography=demography, sequence_length=2e6, recombination_rate=1e-8,
        random_seed=seed,
    )  # fmt: skip
    trees = msprime.sim_mutations(
        trees, rate=2e-8, model=msprime.BinaryMutationModel(), random_seed=seed
    )
    alleles = trees.genotype_matrix()
    return (alleles[:, ::2] + alleles[:, 1::2]).T.astype(np.int8)


def test_recent_contact_is_told_from_old_ancestry():
    """A and B split 200 generations ago, C from both 1 500; A and B share what C lacks."""
    history = msprime.Demography()
    for name in ("A", "B", "C", "AB", "ABC"):
        history.add_population(name=name, initial_size=5_000)
    history.add_population_split(200, derived=["A", "B"], ancestral="AB")
    history.add_population_split(1_500, derived=["AB", "C"], ancestral="ABC")
    genotypes = draw(history, {"A": 20, "B": 20, "C": 20}, 3)
    table = popdesic.shared_doubletons(genotypes, np.repeat(["A", "B", "C"], 20))
    ratio = table.set_index(["population1", "population2"])
    assert all(ratio.ratio[own, own] > 1.2 for own in "ABC") and ratio.z["C", "C"] > 3
    assert ratio.ratio["A", "B"] > 2 * max(ratio.ratio["A", "C"], ratio.ratio["B", "C"])
    assert max(ratio.z["A", "C"], ratio.z["B", "C"]) < -3


def test_labels_that_mean_nothing_share_as_chance_says():
    """z has mean 0 and variance 1 over labels dealt at random, exactly but for the number of deals.

    One pair of samples is related, and labels are of unequal numbers.
    """
    genotypes = draw(msprime.Demography.isolated_model([5_000]), {"pop_0": 30}, 1)
    genotypes[0] = np.where(np.arange(genotypes.shape[1]) % 3 > 0, genotypes[1], genotypes[0])
    rng, z = np.random.default_rng(2), []
    packed, labels = popdesic.pack(genotypes), np.array(["A"] * 4 + ["B"] * 9 + ["C"] * 17)
    for _ in range(200):
        table = popdesic.shared_doubletons(packed, rng.permutation(labels), threads=1)
        assert table.doubletons.sum() > 200
        z.append(table.z.to_numpy())
    z = np.array(z)
    assert np.abs(z.mean(axis=0)).max() < 4 / 14
    spread = z.var(axis=0)
    error = np.sqrt(((z**2 - spread) ** 2).mean(axis=0) / len(z))
    assert (np.abs(spread - 1) < 4 * error).all(), spread
    assert (np.abs(z[:8]) > 3).mean() < 0.1
