"""The report's section on newcomers, beside counts made sample by sample."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.outcomes import make_results
from support.verdicts import write_relatives

from popdesic.core.tables import write_table
from popdesic.report.newcomers import sample_shifts
from popdesic.report.sections import newcomers
from popdesic.report.sections.newcomers import newcomer_section

COHORTS = {
    "old": [f"o{i}" for i in range(40)],
    "near": [f"n{i}" for i in range(12)],
    "far": [f"f{i}" for i in range(7)],
}
LABELS = ["P", "Q", "R", "NA"] * 10 + ["P", "Q"] * 6 + ["S"] * 7


@pytest.fixture
def outcome(tmp_path):
    drift = {"near": {"share_present": 0.9}, "far": {"mean_af_difference": 0.2}}
    made, _ = make_results(
        tmp_path, COHORTS, ["old"], {"population": LABELS}, matrices=False, drift=drift
    )
    table = made.embedding("pca")
    rng = np.random.default_rng(11)
    axes = [column for column in table if column.startswith("PC")]
    table[axes] = rng.normal(0, 1, (len(LABELS), len(axes)))
    table.loc[40:51, "PC1"] += 9.0  # all of `near` lie beside their founders
    write_table(made.folder / "embedding/coordinates/pca.tsv", table)
    return made


def nearest(outcome, first: int, last: int) -> Counter:
    """Labels most frequent among the five nearest labelled founders, by all distances."""
    scores = outcome.embedding("pca")[["PC1", "PC2", "PC3"]].to_numpy()
    founders = [i for i in range(40) if LABELS[i] != "NA"]
    found: Counter = Counter()
    for one in range(first, last):
        order = sorted(founders, key=lambda i: ((scores[i] - scores[one]) ** 2).sum())[:5]
        found[Counter(LABELS[i] for i in order).most_common(1)[0][0]] += 1
    return found


def test_rows_are_what_counting_gives(outcome):
    content = newcomer_section(outcome, "population", related=False)
    near, far = content["rows"]
    assert (near["cohort"], near["samples"], near["present"]) == ("near", 12, 0.9)
    expected = nearest(outcome, 40, 52)
    assert expected.total() == 12
    said = [f"{label} ({count})" for label, count in expected.most_common()]
    assert sorted(near["nearest"].replace(" and ", ", ").split(", ")) == sorted(said)
    # P and Q have ten founders and six newcomers each; PC1 of these was moved.
    assert (near["compared"], near["shifted"], near["drifted"]) == (12, "PC1", False)
    assert (far["off"], far["expected"], far["drifted"]) == ("0.200", "0.010", True)
    assert (far["compared"], far["shifted"], far["nearest"]) == (0, "not tested", "NA")
    assert near["related"] is None and not content["related"]


def test_shifts_of_samples_are_in_standard_deviations_of_their_founders(outcome):
    found = sample_shifts(outcome, "population")
    assert set(found) == {f"n{i}" for i in range(12)}  # no founder has the label of `far`
    scores = outcome.embedding("pca")[["PC1", "PC2", "PC3"]].to_numpy()
    for i in range(12):
        alike = [scores[k] for k in range(40) if LABELS[k] == LABELS[40 + i]]
        mean = sum(alike) / len(alike)
        spread = (sum((one - mean) ** 2 for one in alike) / (len(alike) - 1)) ** 0.5
        off = abs(scores[40 + i] - mean) / spread
        assert found[f"n{i}"] == pytest.approx((max(off), 1 + list(off).index(max(off))))
        assert found[f"n{i}"][0] > 4 and found[f"n{i}"][1] == 1
    # Nine founders are too few, and a study whose samples have no labels has no shifts.
    outcome.samples.loc[0, "population"] = "NA"
    assert set(sample_shifts(outcome, "population")) == {f"n{i}" for i in range(1, 12, 2)}
    assert sample_shifts(outcome, "no such column") == {}


def test_samples_with_relatives_in_another_cohort_are_counted_once(outcome):
    rows = [
        ("n1", "o1", "full siblings"),
        ("n1", "f1", "duplicate or identical twin"),
        ("n2", "n3", "full siblings"),
        ("n4", "o2", "unrelated"),
        ("n5", "o3", "second degree"),
    ]
    table = write_relatives(outcome.folder, rows)
    of = {sample: cohort for cohort, samples in COHORTS.items() for sample in samples}
    for end in "ab":
        table[f"cohort_{end}"] = table[f"sample_{end}"].map(of)
    write_table(outcome.folder / "compare/relatives.tsv", table)
    content = newcomer_section(outcome, "population", related=True)
    assert [row["related"] for row in content["rows"]] == [2, 1]  # n1 and n5; f1


def test_a_study_without_newcomers_has_no_section(tmp_path):
    alone, _ = make_results(tmp_path, {"old": COHORTS["old"]}, ["old"], matrices=False)
    assert newcomer_section(alone, "population", related=False) == {}


def test_nearest_founders_of_very_many_samples_are_not_sought(outcome, monkeypatch):
    monkeypatch.setattr(newcomers, "MOST_PLACED", 18)
    content = newcomer_section(outcome, "population", related=False)
    assert not content["near"] and {row["nearest"] for row in content["rows"]} == {"NA"}
    assert content["rows"][0]["shifted"] == "PC1"
