"""The form of rule files: a header of what they need and give, one room each, no code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import popdesic
from popdesic.core.places import HOME

FILES = sorted((HOME / "workflow/rules").glob("*.smk"))
#: Rule files that hold what the others share.
SHARED = {"common", "functions", "resources"}
#: Maximum number of lines of a rule file.
MOST_LINES = 420


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rule_files_are_short_and_say_what_they_need_and_give(path: Path):
    lines = path.read_text().splitlines()
    head = "\n".join(lines[: lines.index("")])
    assert head.startswith("# ") and "# needs   " in head and "# gives   " in head
    assert len(lines) <= MOST_LINES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rules_have_no_long_lambdas(path: Path):
    """A lambda takes one line; limits come from `memory`, `minutes` or a named function."""
    for line in path.read_text().splitlines():
        assert not re.search(r"\blambda\b", line) or line.endswith(","), line
        assert not re.match(r"\s+(mem_mb|runtime)=lambda", line), line


def test_rule_files_and_scripts_bear_the_names_of_rooms():
    """`epistasis.smk` runs the scripts of `scripts/epistasis`."""
    for path in FILES:
        if path.stem not in SHARED:
            room = path.stem.split("_")[0]
            assert (HOME / "workflow/scripts" / room).is_dir(), path.stem
            assert (Path(popdesic.__file__).parent / room).is_dir(), path.stem
            folders = re.findall(r'"\.\./scripts/(\w+)/\w+\.py"', path.read_text())
            assert set(folders) <= {room}, path.stem


def test_every_rule_file_is_included():
    text = (HOME / "Snakefile").read_text()
    assert re.findall(r'include: "workflow/rules/(\w+)\.smk"', text) != []
    assert set(re.findall(r"rules/(\w+)\.smk", text)) == {path.stem for path in FILES}


def test_a_file_of_the_user_that_is_replaced_by_an_older_one_reruns_its_rules():
    """Snakemake compares dates of inputs with those of results; params hold what else tells."""
    keys = {"MAP_FILES": "map_key", "FROZEN": "(reference|evaluation)_key", "SETS": "file_key"}
    found = []
    for path in FILES:
        for rule in re.split(r"\n(?= *rule(?: \w+)?:\n)", path.read_text())[1:]:
            given, _, params = rule.partition("params:")
            read = set(re.findall(r"=([A-Z_]+)\b", given.partition("output:")[0])) & set(keys)
            for files in sorted(read):
                assert re.search(rf"=.*\b{keys[files]}\b", params), (rule.splitlines()[0], files)
            found += read
    assert set(found) == set(keys) and len(found) >= 6


def test_rule_and_script_share_a_digest():
    """The digest in a rule's params is that of the script that the rule runs."""
    for path in FILES:
        for rule in re.split(r"\n(?=rule |checkpoint |use rule )", path.read_text())[1:]:
            script = re.search(r'script:\n\s+"\.\./scripts/\w+/(\w+)\.py"', rule)
            code = re.search(r'code=code_of\(\s*"(\w+)"', rule)
            if script and not any(f"**{shared}" in rule for shared in ("RANKING", "ROW_OPTIONS")):
                assert code and code[1] == script[1], rule.splitlines()[0]
