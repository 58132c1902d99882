"""Every cell of the table of ploidies on docs/organisms.md names a test that exists."""

from __future__ import annotations

import re

from support.clone import ROOT

PAGE = (ROOT / "docs/organisms.md").read_text("utf-8")
#: Files by their letters.
LETTERS = dict(re.findall(r"`([A-Z])` is\s+`(tests/[^`]+)`", PAGE))


def exists(test: str) -> bool:
    """Whether the file is there, and the function in it."""
    letter, _, function = test.partition("::")
    path = ROOT / LETTERS.get(letter, letter)
    return path.is_file() and (not function or f"def {function}(" in path.read_text("utf-8"))


def test_every_cell_has_a_test():
    table = PAGE.split("| stage | haploid | diploid |")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert len(rows) > 15
    for stage, *_, tests in rows:
        found = [re.fullmatch("`([^`]+)`", test) for test in tests.split(" · ")]
        assert len(found) == 3 and all(found), stage
        assert all(exists(test[1]) for test in found), (stage, tests)


def test_every_test_that_is_named_exists():
    named = [one for one in re.findall(r"`(tests/[^` ]+)`", PAGE) if "*" not in one]
    assert len(named) > 20
    for one in named:
        assert exists(one) or (ROOT / one).is_dir(), one
