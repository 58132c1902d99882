"""Isolation by distance: genetic distances of places, rank test, slope."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scenes.mixtures import draw_mixtures
from scipy.stats import kstest, linregress, rankdata, spearmanr

from popdesic.geography.genetic import genetic_distances, place_sums
from popdesic.geography.isolation import rank_mantel, slope
from popdesic.geography.measure import equally_many, isolation, measure_isolation
from popdesic.geography.places import Places


def symmetric(n: int, rng: np.random.Generator) -> np.ndarray:
    values = np.triu(rng.random((n, n)), 1)
    return values + values.T


def distances_of(points: np.ndarray) -> np.ndarray:
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))


def write_matrices(folder, genotypes: np.ndarray) -> None:
    """`squared.npy` and `called.npy` of genotypes (n_samples, n_sites), -1 where missing."""
    both = (genotypes[:, None] >= 0) & (genotypes[None] >= 0)
    difference = np.where(both, genotypes[:, None] - genotypes[None], 0).astype(np.int64)
    np.save(folder / "squared.npy", (difference**2).sum(-1))
    np.save(folder / "called.npy", both.sum(-1).astype(np.int64))


def hudson(a: np.ndarray, b: np.ndarray) -> float:
    """F_ST of complete genotypes, unbiased, ratio of averages (Bhatia et al. 2013, eq. 10)."""
    p, q = a.mean(axis=0) / 2, b.mean(axis=0) / 2
    m, n = 2 * len(a), 2 * len(b)
    above = (p - q) ** 2 - p * (1 - p) / (m - 1) - q * (1 - q) / (n - 1)
    return float(above.sum() / (p * (1 - q) + q * (1 - p)).sum())


def test_genetic_distance_is_hudsons_f_st(tmp_path):
    rng = np.random.default_rng(3)
    frequencies = np.clip(rng.uniform(0.2, 0.8, 3000) + rng.normal(0, 0.1, (3, 3000)), 0.02, 0.98)
    home = np.repeat([2, 0, 1, 0], [9, 5, 30, 6])
    genotypes = rng.binomial(2, frequencies[home]).astype(np.int8)
    write_matrices(tmp_path, genotypes)
    found = genetic_distances(*place_sums(tmp_path, home, 3, 1))
    assert found.linearised
    for a, b in itertools.combinations(range(3), 2):
        expected = hudson(genotypes[home == a], genotypes[home == b])
        # Hudson's estimate takes gene copies of a person as independent, ours need not.
        assert found.values[a, b] == pytest.approx(expected / (1 - expected), rel=0.02)
        # Barriers divide by the mean diversity of all places instead.
        own = (found.within[a] + found.within[b]) / 2
        ratio = found.values[a, b] / found.differences[a, b]
        assert ratio == pytest.approx((found.within @ [110, 870, 72] / 1052) / own)
    # Few people bias neither: the truth is that of the frequencies.
    p, q = frequencies[:2]
    between = (p * (1 - q) + q * (1 - p)).sum()
    truth = ((p - q) ** 2).sum() / between
    assert found.values[0, 1] == pytest.approx(truth / (1 - truth), rel=0.1)


def test_missing_genotypes_and_samples_without_a_place(tmp_path, monkeypatch):
    monkeypatch.setattr("popdesic.geography.genetic.BLOCK", 40)  # several blocks of rows
    rng = np.random.default_rng(4)
    genotypes = rng.binomial(2, 0.4, (17, 60)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.3] = -1
    genotypes[5] = -1
    home = rng.integers(-1, 4, 17)
    write_matrices(tmp_path, genotypes)
    sums, pairs = place_sums(tmp_path, home, 5, 20)
    expected, number = np.zeros((5, 5)), np.zeros((5, 5), int)
    for i, j in itertools.permutations(range(17), 2):
        both = (genotypes[i] >= 0) & (genotypes[j] >= 0)
        if home[i] >= 0 and home[j] >= 0 and both.sum() >= 20:
            difference = genotypes[i, both].astype(int) - genotypes[j, both]
            expected[home[i], home[j]] += (difference**2).mean()
            number[home[i], home[j]] += 1
    np.testing.assert_array_equal(pairs, number)
    np.testing.assert_allclose(sums, expected)
    found = genetic_distances(sums, pairs)
    assert np.isnan(found.values[4, :4]).all() and np.isnan(found.within[4])


def test_places_of_one_person_take_the_mean_within(tmp_path):
    genotypes = np.random.default_rng(5).binomial(2, 0.4, (5, 500)).astype(np.int8)
    write_matrices(tmp_path, genotypes)
    alone = genetic_distances(*place_sums(tmp_path, np.arange(5), 5, 1))
    assert not alone.linearised and alone.values[0, 1] > 0.5
    some = genetic_distances(*place_sums(tmp_path, np.array([0, 0, 0, 1, 2]), 3, 1))
    assert some.linearised and abs(some.values[1, 2]) < 0.2
    assert np.isnan(some.within[1]) and some.within[0] > 0


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(6)
    genetic, ground = symmetric(9, rng), symmetric(9, rng)
    genetic[2, 3] = genetic[3, 2] = np.nan
    upper = np.triu_indices(9, 1)
    known = np.isfinite(genetic[upper])
    found = rank_mantel([(genetic, ground)], permutations=99, rng=rng)
    # The ranks of the missing pair's distance are left out, not closed up.
    expected = spearmanr(genetic[upper][known], ground[upper][known]).statistic
    assert found["correlation"] == pytest.approx(expected, abs=0.01)
    assert (found["pairs"], found["permutations"], found["exact"]) == (35, 99, False)


def test_few_places_are_arranged_in_all_ways():
    rng = np.random.default_rng(7)
    genetic, ground = symmetric(4, rng), symmetric(4, rng)
    upper = np.triu_indices(4, 1)
    all_of_them = [
        spearmanr(genetic[upper], ground[np.ix_(order, order)][upper]).statistic
        for order in itertools.permutations(range(4))
    ]
    found = rank_mantel([(genetic, ground)], permutations=999, rng=rng)
    assert (found["permutations"], found["exact"]) == (24, True)
    assert found["p"] == pytest.approx(np.mean(np.array(all_of_them) >= all_of_them[0] - 1e-9))
    assert rank_mantel([(genetic[:2, :2], ground[:2, :2])], permutations=9, rng=rng) is None
    assert rank_mantel([(np.ones((4, 4)), ground)], permutations=9, rng=rng) is None


def test_p_is_uniform_where_geography_means_nothing():
    """Genetic distances have structure of their own (a plane), which people's places ignore."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(200):
        genetic = distances_of(rng.normal(size=(12, 2)))
        ground = distances_of(rng.normal(size=(12, 2)))
        found.append(rank_mantel([(genetic, ground)], permutations=199, rng=rng)["p"])
    assert kstest(found, "uniform").pvalue > 0.01
    assert np.mean(np.array(found) <= 0.05) <= 0.09  # 0.05 and 2.6 standard errors


def strata_of(genetic, ground, community):
    """Places of each community, which lives in no place of another."""
    groups = [np.flatnonzero(community == k) for k in np.unique(community[community > 0])]
    return [tuple(m[np.ix_(own, own)] for m in (genetic, ground)) for own in groups]


def test_communities_are_not_isolation_by_distance():
    """Two communities far apart, nothing within: the stratified test stays silent."""
    rng = np.random.default_rng(9)
    silent, plain = [], []
    for _ in range(100):
        community = np.repeat([1, 2], 7)
        points = rng.normal(size=(14, 2)) + 20 * community[:, None]
        both = (
            distances_of(np.column_stack([rng.normal(size=(14, 2)), 9 * community])),
            distances_of(points),
        )
        plain.append(rank_mantel([both], permutations=99, rng=rng)["p"] <= 0.05)
        strata = strata_of(*both, community)
        silent.append(rank_mantel(strata, permutations=99, rng=rng)["p"] <= 0.05)
    assert np.mean(plain) > 0.9
    assert np.mean(silent) <= 0.12


def test_isolation_within_communities_is_found():
    rng = np.random.default_rng(10)
    community = np.array([1] * 8 + [2] * 8 + [0])
    points = rng.normal(size=(17, 2)) + 5 * community[:, None]
    ground = distances_of(points)
    genetic = ground + 0.3 * symmetric(17, rng)
    strata = strata_of(genetic, ground, community)
    found = isolation(strata, permutations=199, rng=rng)
    assert found["p"] == 0.005 and (found["pairs"], found["strata"]) == (56, 2)
    # The correlation is that of ranks about the means of their strata.
    upper = np.triu_indices(8, 1)
    ranks = [
        np.concatenate([rankdata(stratum[k][upper]) - 14.5 for stratum in strata]) for k in (0, 1)
    ]
    assert found["correlation"] == pytest.approx(np.corrcoef(*ranks)[0, 1])
    # A stratum in which nothing varies says nothing.
    same = isolation([*strata, (np.ones((4, 4)), ground[:4, :4])], permutations=0, rng=rng)
    assert same["correlation"] == found["correlation"] and same["p"] is None
    assert isolation([], permutations=9, rng=rng) is None


def test_equal_numbers_of_samples():
    home = np.array([*range(12), -1, *range(10), *range(10), 0])
    # Ten places of three samples are worth more than twelve of one; no place need be full.
    expected = np.array([*range(10), -1, -1, -1, *range(10), *range(10), -1])
    np.testing.assert_array_equal(equally_many(home), expected)
    # Nine places of four would be worth most, but would not be tested.
    more = np.concatenate([home, np.repeat(range(9), 9)])
    np.testing.assert_array_equal(equally_many(more)[: len(home)], expected)
    alone = np.arange(5)
    np.testing.assert_array_equal(equally_many(alone), alone)
    np.testing.assert_array_equal(equally_many(np.full(3, -1)), np.full(3, -1))


def test_more_samples_along_a_line_are_no_isolation(tmp_path):
    """One population; unequal numbers give 0.09 for 0.05."""
    found = []
    for seed in range(120):
        sizes = list(range(1, 24, 2))
        genotypes, home, _ = draw_mixtures(seed, groups=1, per_place=sizes, sites=200)
        write_matrices(tmp_path, genotypes.T)
        places = Places("plane", np.column_stack([np.arange(12.0), np.zeros(12)]), home)
        about = measure_isolation(
            *(tmp_path, home, places, None), min_called=1, permutations=99, seed=seed
        )
        found.append(about["all"]["p"] <= 0.05)
    assert (about["all"]["places"], about["all"]["samples"]) == (10, 5)
    assert sum(found) <= 12  # 6, and 2.5 standard errors


def test_slope_and_its_jackknife():
    rng = np.random.default_rng(11)
    genetic, distance = symmetric(8, rng), symmetric(8, rng) + 100
    genetic[0, 5] = genetic[5, 0] = np.nan
    upper = np.triu_indices(8, 1)

    def line(keep):
        rows, columns = (side[np.isin(upper[0], keep) & np.isin(upper[1], keep)] for side in upper)
        known = np.isfinite(genetic[rows, columns])
        return linregress(distance[rows, columns][known], genetic[rows, columns][known])

    found = slope(genetic, distance)
    whole = line(np.arange(8))
    assert found["slope"] == pytest.approx(whole.slope)
    assert found["intercept"] == pytest.approx(whole.intercept)
    each = np.array([line(np.delete(np.arange(8), k)).slope for k in range(8)])
    error = np.sqrt(7 / 8 * ((each - each.mean()) ** 2).sum())
    assert found["standard_error"] == pytest.approx(error)
    assert slope(genetic, np.full((8, 8), 3.0)) is None
