"""docs/seeds.md: every item of the five papers has a row, and what a row names is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from support.bench_options import options_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/seeds.md").read_text("utf-8")
STATES = ("fine", "by design", "measured", "missing")
#: Items of each paper, and those that were found later.
ITEMS = {"E": 38, "T": 30, "J": 26, "P": 30, "G": 48, "N": 28}
ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+?) \| ([a-z ]+) \| (.+) \|$", re.M)
ROWS = [match.groups() for match in ROW.finditer(PAGE)]


@cache
def names_in(path: str) -> set[str]:
    """Names of the tests that pytest would collect from a module."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def wrong(shown: str) -> list[str]:
    """What a cell names that is not there: files, tests, options of the bench before them."""
    bench, found = None, []
    names = re.findall(r"`([^`]+)`", shown)
    for name in names:
        path, _, test = name.partition("::")
        if name.startswith("--"):
            if bench is None or name not in options_of(bench):
                found.append(name)
        elif not (ROOT / path).is_file() or (test and test not in names_in(path)):
            found.append(name)
        elif Path(path).name.startswith("bench_"):
            bench = path
    return found or ([] if names else ["nothing is named"])


def test_every_item_has_one_row_in_order():
    assert [item for item, *_ in ROWS] == [
        f"{paper}{number}" for paper, n in ITEMS.items() for number in range(1, n + 1)
    ]


def test_states_are_known_and_counted_in_the_summary():
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.M)
    counts = [Counter(state for item, _, state, _ in ROWS if item[0] == p) for p in ITEMS]
    counts.append(sum(counts, Counter()))
    assert all(count.keys() <= set(STATES) for count in counts)
    assert [[int(number) for number in row[1:]] for row in rows] == [
        [count.total(), *(count[state] for state in STATES)] for count in counts
    ]
    titles = re.findall(r"^## (.+)$", PAGE, re.M)
    assert [row[0] for row in rows] == [*titles, "all"]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_what_a_row_names_is_there(row):
    assert wrong(row[3]) == []


def test_a_measured_row_names_a_benchmark_or_a_page():
    for item, _, state, shown in ROWS:
        if state == "measured":
            assert re.search(r"/bench_\w+\.py|\.md`", shown), item


def test_what_is_gone_is_found():
    assert wrong("`docs/seeds.md`, `docs/no.md`") == ["docs/no.md"]
    assert wrong("`tests/docs/test_seeds.py::test_no`") == ["tests/docs/test_seeds.py::test_no"]
    assert wrong("`tests/bench/bench_units.py`, `--units`, `--no`") == ["--no"]
    assert wrong("`--units`") == ["--units"]
    assert wrong("a word") == ["nothing is named"]
