"""Who of a newcomer cohort counts in populations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.relatives.kinship import COLUMNS, related_newcomers

#: x1, x2, … are newcomers, f1 and f2 founders of whom f2 does not count, y1 came before.
UNRELATED = pd.DataFrame({"sample": ["f1", "f2"], "unrelated": ["yes", "no"]})
NAMES = ["x1", "x2", "x3", "x4", "x5"]


def gone(tmp_path, *pairs, limit=0.1):
    table = pd.DataFrame(pairs, columns=["sample_a", "sample_b", "kinship"])
    table = table.reindex(columns=COLUMNS, fill_value="NA")
    table.to_csv(tmp_path / "tile.tsv", sep="\t", index=False)
    return related_newcomers([tmp_path / "tile.tsv"], NAMES, UNRELATED, limit)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], set()),
        ([("x1", "x2", 0.25)], {"x2"}),
        ([("x1", "x2", 0.05)], set()),
        ([("f1", "x1", 0.25)], {"x1"}),
        ([("x1", "f1", 0.25)], {"x1"}),
        ([("f2", "x1", 0.25)], set()),
        ([("x4", "y1", 0.25)], {"x4"}),
        ([("f1", "f2", 0.25), ("y1", "f1", 0.3)], set()),
        # x1 goes for the founder, so that x2 stays.
        ([("f1", "x1", 0.25), ("x1", "x2", 0.25)], {"x1"}),
        # Of a star the points stay, of a chain every other one.
        ([("x3", "x1", 0.2), ("x3", "x2", 0.2), ("x3", "x4", 0.2)], {"x3"}),
        ([("x1", "x2", 0.2), ("x2", "x3", 0.2), ("x3", "x4", 0.2), ("x4", "x5", 0.2)],
         {"x2", "x4"}),
    ],
)  # fmt: skip
def test_who_is_left_out(tmp_path, pairs, expected):
    assert gone(tmp_path, *pairs) == expected


def test_nobody_left_is_related(tmp_path):
    """Random pairs: no pair of the samples that stay, and nobody could be added."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        others = [*NAMES, "f1", "f2", "y1"]
        pairs = [
            (a, b, 0.25)
            for k, a in enumerate(others)
            for b in others[:k]
            if rng.random() < 0.25 and (a in NAMES or b in NAMES)
        ]
        left = set(NAMES) - gone(tmp_path, *pairs)
        counted = left | {"f1", "y1"}
        assert not any({a, b} <= counted and {a, b} & left for a, b, _ in pairs)
