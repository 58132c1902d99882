"""f2, F_ST and f3 of populations whose samples are inbred."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.population import f2_of_samples
from scenes.inbreeding import inbred_populations

import popdesic
from popdesic.population.allele_sums_cpu import own_sums, pair_sums
from popdesic.population.differentiation import pair_table
from popdesic.population.diversity import population_table
from popdesic.population.f_statistics import f2_blocks, f3_screen
from popdesic.population.measure import inbred_populations as find_inbred
from popdesic.population.sum_names import PAIR_SUMS


def pairs_of(counts, starts):
    masked = np.zeros(len(counts.alleles), bool)
    sums = pair_sums(counts.alleles, counts.genotypes, masked, starts, 1, counts.inbred)
    return sums, pair_table(counts, sums)


def found_inbred(counts, starts):
    masked = np.zeros(len(counts.alleles), bool)
    own = own_sums(counts.alleles, counts.genotypes, masked, starts)
    return find_inbred(population_table(counts, own, starts))


@pytest.mark.parametrize("haploid", [(), (1, 3, 9), range(12)], ids=["none", "some", "all"])
def test_f2_is_that_of_pairs_of_different_samples(make_counts, haploid):
    rng = np.random.default_rng(1)
    genotypes, labels, _ = inbred_populations(rng, (0.4, 0.1), (7, 5), 65)
    single = np.isin(np.arange(12), haploid)
    genotypes[:, single] = np.where(genotypes[:, single] == 1, 2, genotypes[:, single])
    genotypes[rng.random(genotypes.shape) < 0.3] = -1
    genotypes[:3, 1:7] = -1  # one sample is called, whose alleles are no pair
    counts = make_counts(genotypes, labels, single)
    sums, _ = pairs_of(replace(counts, inbred=np.ones(2, bool)), np.array([0, 30, 65]))
    samples = [
        np.column_stack([g == 2] if alone else [g > 0, g == 2]) * 1 - 9 * (g < 0)[:, None]
        for g, alone in zip(genotypes.T, single, strict=True)
    ]
    groups = [[s for s, own in zip(samples, labels, strict=True) if own == name] for name in "AB"]
    total, sites = f2_of_samples(*groups)
    here = dict(zip(PAIR_SUMS, sums.sum(axis=0)[0], strict=True))
    assert here["sites"] == sites and sites < 65
    np.testing.assert_allclose(here["f2"], total, rtol=1e-10)
    if single.all():  # one allele of a sample: there is nothing to correct
        np.testing.assert_allclose(pairs_of(counts, np.array([0, 30, 65]))[0], sums, rtol=1e-10)


def test_estimates_of_inbred_samples_have_no_bias(make_counts):
    """40 scenes: samples selfed for generations (F 0.6) and a random population."""
    errors = {True: [], False: []}
    for seed in range(40):
        rng = np.random.default_rng([47, seed])
        genotypes, labels, p = inbred_populations(rng, (0.6, 0.0, 0.3), (4, 9, 6), 4000)
        counts, starts = make_counts(genotypes, labels), np.arange(0, 4001, 100)
        for corrected, found in errors.items():
            own = replace(counts, inbred=np.array([True, False, True])) if corrected else counts
            _, table = pairs_of(own, starts)
            truth = [((p[:, a] - p[:, b]) ** 2).mean() for a, b in ((0, 1), (0, 2), (1, 2))]
            below = [
                (p[:, a] + p[:, b] - 2 * p[:, a] * p[:, b]).mean()
                for a, b in ((0, 1), (0, 2), (1, 2))
            ]
            f3 = f3_screen(own, starts).set_index("target").f3
            true_f3 = ((p[:, 0] - p[:, 1]) * (p[:, 0] - p[:, 2])).mean()
            blocks, sizes = f2_blocks(own, starts)
            f2 = np.average(blocks, axis=-1, weights=sizes)
            np.testing.assert_allclose(f2[[0, 0, 1], [1, 2, 2]], table.f2, rtol=1e-9)
            bias = [*(table.f2 - truth), *(table.fst - np.divide(truth, below)), f3["A"] - true_f3]
            found.append(bias)
    z = {c: np.mean(v, axis=0) / np.std(v, axis=0, ddof=1) * np.sqrt(40) for c, v in errors.items()}
    assert np.abs(z[True]).max() < 4  # seven estimates
    assert z[False].min() > 8  # without it all are too large


def test_inbred_populations_are_found_and_random_ones_are_not(make_counts):
    found = {0.0: 0, 0.1: 0}
    for f in found:
        for seed in range(100):
            rng = np.random.default_rng([48, seed])
            genotypes, labels, _ = inbred_populations(rng, (0.0, f, 0.0), (8, 10, 12), 1200)
            counts = make_counts(genotypes, labels)
            marks = found_inbred(counts, np.arange(0, 1201, 40))
            found[f] += marks.any() if f == 0 else marks[1]
    assert found[0.0] <= 11, found  # 5 expected; more than 11 has a chance of 0.4 %
    assert found[0.1] >= 95, found


def test_functions_take_names_of_inbred_populations():
    rng = np.random.default_rng(5)
    genotypes, labels, p = inbred_populations(rng, (0.5, 0.0, 0.0), (5, 9, 9), 6000)
    options = {"genotypes": genotypes.T, "populations": labels, "blocks": 60}
    truth = ((p[:, 0] - p[:, 1]) ** 2).mean()
    for function, column in ((popdesic.f2, "f2"), (popdesic.f_st, "fst"), (popdesic.f3, "f3")):
        plain, right = function(**options), function(**options, inbred=["A"])
        moved = plain.sort_index()[column] - right[column]
        assert moved.max() > 2 * right.error.max()
        with pytest.raises(ValueError, match="give a list of some of A, B, C"):
            function(**options, inbred=["a"])
    right = popdesic.f2(**options, inbred=["A"])
    assert abs(right.f2[0] - truth) < 4 * right.error[0]
