"""Which departures from Hardy-Weinberg proportions count: simulated groups of known mating."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import reference

from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.cohort.hwe_groups import (
    FEW,
    LEAST_SAMPLES,
    MANY,
    REST,
    UNLABELLED,
    group_samples,
    judge_groups,
)

N_SITES = 600


def frequencies(rng: np.random.Generator, n: int = N_SITES) -> np.ndarray:
    return rng.uniform(0.05, 0.95, n)


def inbred(rng, p: np.ndarray, n: int, f: float) -> np.ndarray:
    """Genotypes (n_sites, n): both alleles of a sample are the same by descent at a share f."""
    first = rng.random((len(p), n)) < p[:, None]
    second = np.where(rng.random(first.shape) < f, first, rng.random(first.shape) < p[:, None])
    return (first.astype(np.int8) + second).astype(np.int8)


def judge(genotypes: np.ndarray, label: str):
    rows = np.frombuffer(reference.bed_bytes(genotypes)[3:], np.uint8).reshape(len(genotypes), -1)
    group = np.zeros(genotypes.shape[1], np.int64)
    return judge_groups(rows, np.arange(len(rows)), group, [label])[0]


def removed(genotypes: np.ndarray, label: str, limit: float = 1e-6) -> int:
    """Sites that the filter removes."""
    tested = judge(genotypes, label).tested
    if tested == "none":
        return 0
    counts = [(genotypes == g).sum(axis=1) for g in range(3)]
    return int((hwe_exact(*counts, excess=tested == "excess") < limit).sum())


@pytest.mark.parametrize("n", [20, 45, 300])
def test_random_mating_is_tested(n):
    """Every one of 20 draws: the null under which all departures count."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        drawn = inbred(rng, frequencies(rng), n, 0.0)
        assert judge(drawn, "P").tested == "both", seed
        assert judge(drawn, REST).tested == "excess", seed


def lines(rng, n=40):
    return inbred(rng, frequencies(rng), n, 0.98)


def selfing(rng, n=60):
    return inbred(rng, frequencies(rng), n, 0.7)


def haploid(rng, n=80):
    return inbred(rng, frequencies(rng), n, 1.0)


def two_populations(rng, n=100):
    p, drift = frequencies(rng), rng.normal(0, 0.2, (2, N_SITES))
    parts = [inbred(rng, np.clip(p + drift[k], 0.01, 0.99), n // 2, 0.0) for k in range(2)]
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("draw", [lines, selfing, haploid, two_populations])
def test_a_deficit_of_most_sites_is_no_error(draw):
    """As long as it counted, most sites of some of these went."""
    lost = []
    for seed in range(10):
        drawn = draw(np.random.default_rng(seed))
        found = judge(drawn, "P")
        assert (found.tested, found.reason) == ("excess", FEW)
        assert found.inbreeding > 0.05
        assert removed(drawn, "P") == removed(drawn, REST) == 0
        lost.append((hwe_exact(*((drawn == g).sum(axis=1) for g in range(3))) < 1e-6).sum())
    assert max(lost) > (10 if draw is two_populations else N_SITES // 2)


def copies(rng, lineages: int, each: int, others: int = 0) -> np.ndarray:
    founders = inbred(rng, frequencies(rng), lineages, 0.0)
    return np.concatenate(
        [np.repeat(founders, each, axis=1), inbred(rng, frequencies(rng), others, 0.0)], axis=1
    )


def siblings(rng, n=200) -> np.ndarray:
    """One family: either parent gives one of two alleles at each site."""
    parents = rng.random((4, N_SITES)) < frequencies(rng)
    pick = rng.integers(0, 2, (2, N_SITES, n))
    father = np.where(pick[0], parents[0][:, None], parents[1][:, None])
    mother = np.where(pick[1], parents[2][:, None], parents[3][:, None])
    return (father.astype(np.int8) + mother).astype(np.int8)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: copies(rng, 1, 300),
        lambda rng: copies(rng, 10, 30),
        lambda rng: copies(rng, 1, 150, 150),
        siblings,
    ],
    ids=["300 copies", "ten lineages", "copies among others", "one family"],
)
@pytest.mark.parametrize("label", ["P", REST])
def test_an_excess_of_most_sites_is_no_error(draw, label):
    for seed in range(10):
        drawn = draw(np.random.default_rng(seed))
        found = judge(drawn, label)
        assert (found.tested, found.reason) == ("none", MANY), (seed, found)


@pytest.mark.parametrize("label", ["P", REST])
def test_some_bad_sites_are_still_found(label):
    """Power: one site in ten is heterozygous in everyone, as where two copies of a gene align."""
    rng = np.random.default_rng(1)
    drawn = inbred(rng, frequencies(rng), 60, 0.0)
    drawn[:60] = 1
    assert removed(drawn, label) == 60


def test_a_deficit_counts_within_a_label_alone():
    rng = np.random.default_rng(1)
    drawn = inbred(rng, frequencies(rng), 60, 0.0)
    drawn[:20][drawn[:20] == 1] = 2
    assert removed(drawn, "P") >= 15
    assert removed(drawn, REST) == 0


def test_small_populations_and_unlabelled_samples_are_one_group():
    names = ["b"] * LEAST_SAMPLES + ["a"] * (LEAST_SAMPLES - 1) + ["NA"] * LEAST_SAMPLES
    labels, group = group_samples(names)
    assert labels == ["b", REST]
    assert np.bincount(group).tolist() == [LEAST_SAMPLES, 2 * LEAST_SAMPLES - 1]
    assert group_samples(["x"] * LEAST_SAMPLES)[0] == ["x"]
    found = judge(np.zeros((5, 30), np.int8), REST)
    assert (found.tested, found.reason) == ("excess", UNLABELLED)
    assert np.isnan(found.inbreeding)
