"""The table of size limits says what the values are, and no other file has limits of its own."""

from __future__ import annotations

import re

from popdesic.core import limits
from popdesic.core.places import HOME


def values() -> dict[str, int]:
    return {name: value for name, value in vars(limits).items() if name.isupper()}


def test_the_table_has_every_limit_with_its_value():
    rows = re.findall(r"^\| `(\w+)` \| ([\d ]+) \| ([^|]+) \| ([^|]+) \|$", limits.__doc__, re.M)
    assert {name: int(number.replace(" ", "")) for name, number, *_ in rows} == values()
    assert all(unit.strip() and change.strip() for *_, unit, change in rows)


def test_every_limit_decides_something_and_is_defined_once():
    files = [HOME / "Snakefile", *HOME.rglob("workflow/rules/*.smk")]
    files += [path for path in (HOME / "src/popdesic").rglob("*.py") if path.stem != "limits"]
    text = "\n".join(path.read_text("utf-8") for path in files)
    for name in values():
        assert not re.search(rf"^{name} = ", text, re.M), f"{name} belongs into core/limits.py"
        uses = [line for line in text.splitlines() if re.search(rf"\b{name}\b", line)]
        assert [line for line in uses if not re.match(r"\s*(#|from |import )", line)], name


def test_rules_compare_numbers_of_samples_with_these_limits_alone():
    """No rule has a number of its own beside `n_samples`."""
    for path in [HOME / "Snakefile", *HOME.rglob("workflow/rules/*.smk")]:
        found = re.findall(r"n_samples\([^)]*\)\s*[<>]=?\s*\d[\d_]*", path.read_text("utf-8"))
        assert not found, (path.name, found)
