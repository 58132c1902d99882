"""What docs/architecture.md walks through exists, where it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
STEPS = re.findall(r"^\| .* \| `([^`]+)` \| `(\w+)` \|$", TEXT, re.M)


def defines(text: str, name: str) -> bool:
    """Whether a file defines a function, class, rule, kernel, constant or key of this name."""
    forms = rf"(def|class|rule) {name}\b|^{name}(:| =)|^ +{name}:|{name}\(const "
    return re.search(forms, text, re.M) is not None


def test_there_are_three_walks():
    assert len(STEPS) > 25 and TEXT.count("| what happens | file | name |") == 3


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_a_step_exists(file, name):
    path = ROOT / file if "/" in file else next((ROOT / "kernels").rglob(file))
    assert defines(path.read_text("utf-8"), name)


def test_the_rooms_are_those_of_the_package():
    room_text = TEXT.split("## Rooms")[1].split("## A genotype")[0]
    folders = {path.parent.name for path in (ROOT / "src/popdesic").glob("*/__init__.py")}
    assert folders <= set(re.findall(r"\w+", room_text))


def test_a_step_that_is_gone_is_found():
    assert defines("def launch(\n", "launch") and not defines("relaunch = launch(x)\n", "launch")
