"""Estimates where the truth is known, and nulls under which nothing may be found."""

from __future__ import annotations

import msprime
import numpy as np
import pytest
from scipy.special import gammaln

from popdesic.population.allele_sums_cpu import own_sums, pair_sums, private_sums
from popdesic.population.blocks import block_starts
from popdesic.population.differentiation import pair_table
from popdesic.population.diversity import population_table, spectrum
from popdesic.population.f_statistics import f3_screen, f4_tests, without_skewness
from popdesic.population.jackknife import jackknife
from popdesic.population.measure import FAMILY_WISE, f3_limit
from popdesic.population.sum_names import PAIR_SUMS

#: Mutations and recombinations a base pair and generation.
RATE = 1e-8


def coalescent(demography, sizes, length, seed):
    """Genotypes int8 (n_sites, n), labels and sites of a chromosome, every variant."""
    import pandas as pd

    trees = msprime.sim_ancestry(
        sizes,
        demography=demography,
        sequence_length=length,
        recombination_rate=RATE,
        random_seed=seed,
    )
    trees = msprime.sim_mutations(
        trees, rate=RATE, model=msprime.BinaryMutationModel(), random_seed=seed
    )
    alleles = trees.genotype_matrix()
    kept = (alleles.max(axis=1) == 1) & (alleles.min(axis=1) == 0)
    genotypes = (alleles[:, ::2] + alleles[:, 1::2]).astype(np.int8)[kept]
    pos = trees.tables.sites.position[kept].astype(int) + 1
    labels = np.repeat(list(sizes), list(sizes.values()))
    return genotypes, labels, pd.DataFrame({"chrom": "1", "pos": pos})


def split_of(time, size):
    demography = msprime.Demography()
    for name in ("A", "B", "root"):
        demography.add_population(name=name, initial_size=size)
    demography.add_population_split(time=time, derived=["A", "B"], ancestral="root")
    return demography


@pytest.mark.parametrize("time", [200, 2000])
def test_a_split_of_known_age(make_counts, time):
    """F_ST = T / (T + 2 N), and f2 = 2 mu T a base pair, for a split T generations ago."""
    size, length = 1000, 2e7
    found = coalescent(split_of(time, size), {"A": 8, "B": 5}, length, seed=time)
    genotypes, labels, sites = found
    counts = make_counts(genotypes, labels)
    starts = block_starts(sites, "250 kb")
    masked = np.ones(len(sites), bool)
    sums = pair_sums(counts.alleles, counts.genotypes, masked, starts)
    table = pair_table(counts, sums, np.full(len(starts) - 1, length / (len(starts) - 1)))
    assert 70 < table.blocks[0] <= 80
    assert abs(table.fst[0] - time / (time + 2 * size)) < 4 * table.error[0]
    assert table.error[0] < 0.03
    f2 = sums[:, 0, PAIR_SUMS.index("f2")].sum() / length
    error = table.f2_error[0] * len(sites) / length
    assert abs(f2 - 2 * RATE * time) < 5 * error
    d_xy = 2 * RATE * (time + 2 * size)
    assert abs(table.d_xy[0] - d_xy) < 5 * table.d_xy_error[0] < 0.5 * d_xy


def drift(rng, p, amount):
    """Frequencies after drift (normal, reflected at 0 and 1)."""
    q = p + rng.normal(0, 1, p.shape) * np.sqrt(amount * p * (1 - p))
    return np.abs(1 - np.abs(1 - q))


def sampled(rng, make_counts, frequencies, people, copies):
    """Counts of populations with these frequencies; linked sites are copies of each other."""
    genotypes = [rng.binomial(2, np.repeat(p[:, None], people, axis=1)) for p in frequencies]
    labels = np.repeat(list("ABCDEFGH")[: len(frequencies)], people)
    linked = np.repeat(np.concatenate(genotypes, axis=1), copies, axis=0)
    return make_counts(linked.astype(np.int8), labels)


@pytest.mark.parametrize(("tests", "blocks"), [(1, 21), (12, 50), (60, 60), (8000, 1400)])
def test_the_limit_is_a_quantile_of_t(tests, blocks):
    from scipy.stats import t as student

    np.testing.assert_allclose(f3_limit(tests, blocks), student.ppf(0.05 / tests, blocks - 1), 1e-9)
    assert f3_limit(0, 50) == f3_limit(5, 1) == -np.inf


def test_f4_of_the_right_tree_is_silent(make_counts):
    """|z| > 3 in 0.27 % of draws by the normal law; jackknife errors of 40 blocks: 0.5 %."""
    rng = np.random.default_rng(1)
    draws, beyond = 600, 0
    for _ in range(draws):
        root = rng.uniform(0.1, 0.9, 400)
        left, right = drift(rng, root, 0.1), drift(rng, root, 0.1)
        tips = [drift(rng, p, 0.05) for p in (left, left, right, right)]
        counts = sampled(rng, make_counts, tips, 5, copies=5)
        starts = np.arange(0, 2001, 50)
        beyond += abs(f4_tests(counts, starts, [list("ABCD")]).z[0]) > 3
    assert beyond <= 9  # 3 expected; more than 9 has a chance of 0.1 %


def test_f4_and_f3_find_gene_flow(make_counts):
    rng = np.random.default_rng(2)
    root = rng.uniform(0.1, 0.9, 8000)
    left, right = drift(rng, root, 0.1), drift(rng, root, 0.1)
    amounts = zip((left, left, right, right), (0.02, 0.02, 0.1, 0.1), strict=True)
    a, b, c, d = (drift(rng, p, amount) for p, amount in amounts)
    mixed = 0.7 * a + 0.3 * c
    counts = sampled(rng, make_counts, [mixed, b, c, d], 15, copies=1)
    starts = np.arange(0, 8001, 160)
    assert f4_tests(counts, starts, [list("ABCD")]).z[0] > 5
    table = f3_screen(counts, starts)
    assert table.target[0] == "A" and table.z_corrected[0] < f3_limit(12, 50)
    assert set(table[table.z_corrected < f3_limit(12, 50)].target) == {"A"}


def test_z_without_skewness():
    """Equal blocks: the skewness of SciPy, and Hall's transformation of Student's t."""
    from scipy.stats import skew

    rng = np.random.default_rng(4)
    top = rng.gamma(2.0, size=(40, 3)) - 2.2
    found = jackknife(top, np.ones((40, 3)), np.ones((40, 3)))
    own = skew(top, axis=0)
    np.testing.assert_allclose(found.skewness, own, rtol=1e-9)
    g, z, n = skew(top, axis=0, bias=False).mean(), found.z, 40
    expected = z + g * z**2 / (3 * n**0.5) + g**2 * z**3 / (27 * n) + g / (6 * n**0.5)
    np.testing.assert_allclose(without_skewness(found), expected, rtol=1e-12)
    assert g > 0.5 and (without_skewness(found) > z).all()
    lower = jackknife(-top, np.ones((40, 3)), np.ones((40, 3)))
    np.testing.assert_array_equal(without_skewness(lower), lower.z)  # never makes z lower


def test_the_screen_of_f3_is_silent_in_one_population(make_counts):
    """Six samples of one population: any of 60 triples is significant in about 5 % of studies."""
    rng = np.random.default_rng(3)
    studies, any_found = 80, 0
    for _ in range(studies):
        p = rng.uniform(0.05, 0.95, 600)
        counts = sampled(rng, make_counts, [p] * 6, 8, copies=4)
        table = f3_screen(counts, np.arange(0, 2401, 40))
        assert len(table) == 60
        any_found += bool((table.z_corrected < f3_limit(60, 60)).any())
    # 4 expected at 5 %; more than 10 has a chance of 0.2 %.
    assert FAMILY_WISE == 0.05 and any_found <= 10


@pytest.mark.parametrize("seed", [1, 2])
def test_sites_of_all_frequencies_have_the_spectrum_of_theory(make_counts, seed):
    """Of a neutral population theta / i sites have i copies, and pi is theta; not so on a panel."""
    size, n, length = 1000, 60, 4e7
    demography = msprime.Demography.isolated_model([size])
    genotypes, _, sites = coalescent(demography, {"pop_0": n}, length, seed)
    theta = 4 * size * RATE
    counts = make_counts(genotypes, np.repeat(["A", "B"], n // 2))  # one population
    one = make_counts(genotypes, np.repeat("A", n))
    of_all = np.nan
    for panel in (False, True):
        kept = np.ones(len(sites), bool)
        if panel:
            alt = one.alleles[:, 0, 1]
            kept = np.minimum(alt, 2 * n - alt) >= 0.05 * 2 * n
        starts = block_starts(sites[kept], "1 Mb")
        base_pairs = np.diff(np.append(sites.pos[kept].to_numpy()[starts[:-1]], length))
        every = one.at(kept)
        sums = every.alleles, every.genotypes, np.ones(kept.sum(), bool), starts
        pi = population_table(every, own_sums(*sums), starts, base_pairs).iloc[0]
        found = spectrum(every)
        m = found.alleles[0]
        wanted = theta * length / np.arange(1, m)
        near = np.abs(found.sites[1:m] / wanted - 1).to_numpy()
        singletons = found.sites[1] / found.sites[1:m].sum() * (1 / np.arange(1, m)).sum()
        # Random halves of one population: each has as many private alleles as theory says.
        halves = counts.at(kept)
        private, _ = private_sums(halves.alleles, np.array([0, kept.sum()]), n)
        count = np.arange(1, 2 * n)
        chance = np.exp(gammaln(n + 1) - gammaln(np.maximum(n - count, 0) + 1))
        chance *= np.exp(gammaln(2 * n - count + 1) - gammaln(2 * n + 1))
        chance = np.where(count <= n, chance, 0.0)  # all copies lie in the other half
        expected = theta * length * ((chance + chance[::-1]) / count).sum()
        off = private.sum() / (2 * expected) - 1
        if panel:
            assert pi.pi < 0.96 * of_all and near[0] > 0.5
            assert singletons < 0.6 and off < -0.8
        else:
            of_all = pi.pi
            assert abs(pi.pi - theta) < 4 * pi.pi_error < 0.2 * theta
            assert near[:5].max() < 0.12 and abs(singletons - 1) < 0.1 and abs(off) < 0.1
