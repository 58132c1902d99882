"""Groups of a study by painting: donors are divided, everyone else is placed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from popdesic.communities.painted_groups import DRAWS, group_means, group_study, place_samples
from popdesic.core.files import read_json

N_STRETCHES = 24
#: What a sample of a group (row) copies more of a donor's group (column).
NEAR = np.array([[2.0, 0, 0], [0, 2.0, 0.8], [0, 0.8, 2.0]])


def painted(rows: np.ndarray, columns: np.ndarray, seed: int) -> np.ndarray:
    """Lengths (n_samples, n_stretches, n_donors) of samples and donors of some groups."""
    shape = (len(rows), N_STRETCHES, len(columns))
    chance = np.random.default_rng(seed).exponential(1, shape)
    return (chance + NEAR[rows[:, None], columns][:, None]).astype(np.float32)


def study(folder: Path):
    """Two founder cohorts of three groups and a newcomer; truth by cohort."""
    truth = {
        "a": np.repeat([0, 1], [20, 15]),
        "b": np.repeat([2, 0], [25, 3]),
        "new": np.array([2, 0, 1, 1]),
    }
    donors = pd.DataFrame(
        [(f"{c}{k}", c, k) for c in ("a", "b") for k in range(len(truth[c])) if k != 2],
        columns=["sample", "cohort", "row"],
    )
    group = np.concatenate([truth[c][rows] for c, rows in donors.groupby("cohort").row])
    number = {name: k for k, name in enumerate(donors["sample"])}
    files, names = {}, {}
    for seed, (cohort, rows) in enumerate(truth.items()):
        lengths = painted(rows, group, seed)
        names[cohort] = [f"{cohort}{k}" for k in range(len(rows))]
        for k, name in enumerate(names[cohort]):
            if name in number:
                lengths[k, :, number[name]] = 0  # nobody copies from themselves
        files[cohort] = folder / f"{cohort}.npy"
        np.save(files[cohort], lengths)
    return truth, files, names, donors


def test_groups_are_the_true_ones_and_newcomers_change_nothing(tmp_path):
    truth, files, names, donors = study(tmp_path)
    out = tmp_path / "groups.tsv", tmp_path / "groups.json"
    group = group_study(files, names, donors, *out)
    table = pd.read_csv(out[0], sep="\t")
    assert table["sample"].tolist() == [one for some in names.values() for one in some]
    assert (table.painted_group - 1).tolist() == np.concatenate([*truth.values()]).tolist()
    assert table.painted_stability.min() >= 0.9 and len(group) == len(donors) == 61
    about = read_json(out[1])
    assert [one["samples"] for one in about["groups"]] == [24, 17, 26]
    assert [one["donors"] for one in about["groups"]] == np.bincount(group).tolist()
    halves = [sorted(one["halves"]) for one in about["tests"] if one["halves"]]
    assert halves == [[22, 39], [15, 24]] and about["replaced"] == 1
    assert about["tests"][0]["deviations"] > 6 and about["stretches"] == N_STRETCHES
    founders = ["a", "b"]
    alone = tmp_path / "alone.tsv"
    some = ({c: one[c] for c in founders} for one in (files, names))
    assert group_study(*some, donors, alone, tmp_path / "alone.json").tolist() == group.tolist()
    assert out[0].read_text().startswith(alone.read_text())


def test_one_population_has_no_stability(tmp_path):
    truth, files, names, donors = study(tmp_path)
    for seed, (cohort, rows) in enumerate(truth.items()):
        np.save(files[cohort], painted(np.zeros_like(rows), np.zeros(61, np.int64), seed))
    group = group_study(files, names, donors, tmp_path / "g.tsv", tmp_path / "g.json")
    assert not group.any()
    table = pd.read_csv(tmp_path / "g.tsv", sep="\t")
    assert (table.painted_group == 1).all() and table.painted_stability.isna().all()
    about = read_json(tmp_path / "g.json")
    assert about["groups"] == [{"donors": 61, "samples": 67, "stability": None}]
    assert about["tests"][0]["halves"] == [] and about["tests"][0]["deviations"] < 6


def test_means_leave_the_sample_out():
    lengths = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    lengths[1, :, 2] = 0
    means = group_means(lengths, np.array([1, 0, 1, 0]), np.array([-1, 2]))
    np.testing.assert_array_equal(means[0], lengths[0][:, [1, 0, 3, 2]].reshape(3, 2, 2).mean(1))
    np.testing.assert_array_equal(means[1, :, 0], lengths[1][:, [1, 3]].mean(1))
    np.testing.assert_array_equal(means[1, :, 1], lengths[1, :, 0])


def test_a_sample_between_groups_is_not_stable():
    """One that copies more from each group in half of the stretches."""
    means = np.zeros((2, 10, 2))
    means[0, :5, 0] = means[0, 5:, 1] = 1
    means[1, :, 1] = 1
    placed, shares = place_samples(means, np.zeros((10, 2)))
    assert placed.tolist() == [0, 1]
    assert 0.3 < shares[0, 0] < 0.8 and shares[1].tolist() == [0, 1]
    # A stretch counts as often as it is drawn; no two of these sums are equal.
    means = np.zeros((1, 5, 2))
    means[0, :, 0] = np.sqrt([260, 2, 0, 5, 0])
    means[0, :, 1] = np.sqrt([0, 0, 83, 0, 19])
    drawn = np.random.default_rng(5).integers(0, 5, (DRAWS, 5))
    often = (means[0, drawn, 0].sum(axis=1) > means[0, drawn, 1].sum(axis=1)).mean()
    once = np.mean([np.diff(means[0, np.unique(some)].sum(axis=0))[0] < 0 for some in drawn])
    assert place_samples(means, np.zeros((5, 2)))[1][0, 0] == often != once
    # From the first group everyone copies more; this sample less than is usual.
    usual = np.tile([2.0, 0], (10, 1))
    assert place_samples(np.tile([[[1.8, 0.1]]], (1, 10, 1)), usual)[0].tolist() == [1]
