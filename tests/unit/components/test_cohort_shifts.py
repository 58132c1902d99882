"""Founder cohorts that lie apart although their labels agree, and axes of one region."""

import numpy as np
import pandas as pd
import pytest

from popdesic.components.cohort_shifts import find_cohort_shifts
from popdesic.components.loadings import find_regions

POPULATIONS = ["FIN", "TSI", "YRI"]


def scene(rng: np.random.Generator, shift: float = 0.0, cohorts=("a", "b")):
    """Three populations in each cohort; on PC2 the last cohort is shifted, in within-label sd."""
    rows = [(c, p) for c in cohorts for p in POPULATIONS for _ in range(20)]
    samples = pd.DataFrame(rows, columns=["cohort", "population"])
    scores = rng.normal(size=(len(rows), 4))
    scores += 5 * samples.population.map(POPULATIONS.index).to_numpy()[:, None]
    scores[(samples.cohort == cohorts[-1]).to_numpy(), 1] += shift
    return scores, samples


def test_a_batch_is_found_on_its_axis():
    scores, samples = scene(np.random.default_rng(1), 2.0, ("a", "b", "c"))
    (found,) = find_cohort_shifts(scores, samples)
    assert found["axis"] == 2 and "c" in found["cohorts"] and found["labels"] == POPULATIONS
    # a shift of two standard deviations of a third: 4 * 2 / 9 over that and 1
    assert found["share"] == pytest.approx(0.47, abs=0.1)


def test_chance_is_no_batch():
    found = [find_cohort_shifts(*scene(np.random.default_rng(seed))) for seed in range(60)]
    assert sum(map(bool, found)) <= 1


def test_nothing_is_said_without_labels_in_common():
    scores, samples = scene(np.random.default_rng(1), 9.0)
    apart = samples.assign(population=samples.cohort + samples.population)
    assert find_cohort_shifts(scores, apart) == []
    assert find_cohort_shifts(scores, samples.drop(columns="population")) == []
    assert find_cohort_shifts(scores, samples.assign(population="NA")) == []
    few = np.r_[np.arange(60), 60, 80, 100]  # one sample of each label in cohort b
    assert find_cohort_shifts(scores[few], samples.iloc[few]) == []
    assert find_cohort_shifts(scores[few + 0], samples.iloc[few].reset_index(drop=True)) == []


def test_populations_in_unequal_numbers_are_no_batch():
    """Cohort a is mostly FIN and b mostly YRI: their means differ, within a label they do not."""
    scores, samples = scene(np.random.default_rng(3))
    keep = np.random.default_rng(1).random(120) < np.where(
        (samples.cohort == "a") == (samples.population == "FIN"), 1.0, 0.4
    )
    assert find_cohort_shifts(scores[keep], samples[keep]) == []


def genome(n: int = 4000) -> pd.DataFrame:
    return pd.DataFrame(
        {"chrom": np.repeat(["1", "2"], n // 2), "pos": 50_000 * np.tile(np.arange(n // 2), 2)}
    )


def test_a_region_that_carries_an_axis_is_found():
    loadings = np.random.default_rng(2).normal(size=(4000, 3))
    loadings[2100:2140, 1] *= 12
    (found,) = find_regions(genome(), loadings)
    assert found["axis"] == 2 and found["chrom"] == "2"
    assert 5_000_000 - 3e6 <= found["start"] <= 5_000_000 and found["end"] >= 6_950_000
    squared = loadings[:, 1] ** 2
    inside = (genome().chrom == "2") & genome().pos.between(found["start"], found["end"])
    assert found["sites"] == inside.sum()
    assert found["share"] == pytest.approx(squared[inside].sum() / squared.sum(), abs=1e-5)
    assert found["expected"] == pytest.approx(found["sites"] / 4000, abs=1e-5)


def test_even_loadings_and_few_sites_have_none():
    rng = np.random.default_rng(3)
    assert find_regions(genome(), rng.normal(size=(4000, 20))) == []
    little = rng.normal(size=(4000, 1))
    little[2100:2140] *= 2.5  # more than chance gives, and too little to carry an axis
    assert find_regions(genome(), little) == []
    # 51 sites within one window, and a few sites with one heavy among them, anywhere
    assert find_regions(genome().iloc[:51], rng.normal(size=(51, 5))) == []
    few = genome().iloc[::400].reset_index(drop=True)
    assert find_regions(few, np.eye(10)[:, :4]) == []
