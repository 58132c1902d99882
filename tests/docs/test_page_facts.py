"""Facts that pages state, computed from the repository's files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = {
    name
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for name in re.findall(
        r"^\s*(?:use rule \w+ as|rule) (\w+)(?::| with:)", path.read_text("utf-8"), re.M
    )
}
#: Of rules that a loop defines, too: their jobs name the code that they run.
RULES |= {
    name
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for name in re.findall(r'code_of\("(\w+)"', path.read_text("utf-8"))
}


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/slurm.md"])
def test_a_clone_is_of_something(page):
    """Who reads of a clone must be able to make one."""
    text = (ROOT / page).read_text("utf-8")
    assert "git clone" in text or not re.search(r"\b(fresh|a) clone\b", text)


def test_the_first_command_is_given_where_it_works():
    text = (ROOT / "README.md").read_text("utf-8")
    before, command = re.search(r"([^\n]*)\n+```\n(make \w+)\n```", text).groups()
    assert before.endswith("in the root folder of this repository:")
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M)


def test_the_table_of_slurm_names_rules():
    """Rules of the table still exist."""
    text = (ROOT / "docs/slurm.md").read_text("utf-8")
    table = text[text.index("| rule | jobs |") :].split("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines()[2:]]
    listed = {name for cell in first for name in re.findall(r"[a-z]+(?:_[a-z]+)+", cell)}
    assert listed <= RULES, listed - RULES
    assert len(listed) > 25


def test_bounds_of_shared_controls_are_those_of_their_program():
    """The table of docs/interactions.md is what its command prints."""
    command = [sys.executable, "tests/bench/bench_phenotypes.py", "--bound"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    printed = re.findall(r"^ *(\d+ \+ \d+) +([\d.]+) +([\d.]+)$", done.stdout, re.M)
    text = (ROOT / "docs/interactions.md").read_text("utf-8")
    assert printed == re.findall(r"^\| (\d+ \+ \d+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)
    assert printed[0][1] == "3.40"  # (3 000 + 7 x 2 000) / (3 000 + 2 000)
