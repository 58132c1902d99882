"""Files that pages, sources and rules refer to are in the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Files of the repository; a clone without Git has the same folders.
FOLDERS = ("src", "workflow", "kernels", "docs", "config", "tests", "resources", "envs", "slurm")
NAME = re.compile(
    r"(?<![\w/.{}<*-])((?:[\w.-]+/)*[\w-]+\.(?:py|cuh?|smk|hpp|j2|rst|md|R|sh))\b(?![\w(/])"
)
#: What stands for any name, what a run writes, and a file that a user has.
NO_FILES = {"x.py", "x_plan.py", "x_cpu.py", "x_gpu.py", "report/methods.md", "numpy.py"}
#: Words about something that readers do not have.
NOWHERE = re.compile(r"\bnot in the repository|\bDESIGN\b|\bissue \d+|scripts? of our own")


def tracked() -> list[Path]:
    """All text files that belong to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in [*found, *ROOT.iterdir()] if path.is_file()]


FILES = tracked()
#: Every file by its path and by the ends of its path.
ENDS = {
    "/".join(parts[k:])
    for path in FILES
    for parts in [path.relative_to(ROOT).parts]
    for k in range(len(parts))
}
CHECKED = [
    path
    for path in FILES
    if path.name != "CHANGELOG.md"
    and path.suffix in (".md", ".py", ".smk", ".cu", ".cuh", ".yaml", ".rst", ".j2", ".js")
    and (path.suffix == ".md" or path.relative_to(ROOT).parts[0] in ("src", "workflow", "kernels"))
]


def missing(text: str) -> list[str]:
    """Names of files in a text that the repository does not have."""
    names = [match.removeprefix("popdesic/") for match in NAME.findall(text)]
    names = [re.sub(r"^(\.\.?/)+|^results/", "", name) for name in names]
    return [name for name in names if name not in ENDS | NO_FILES and "STEM" not in name]


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(path):
    text = path.read_text("utf-8")
    assert missing(text) == []
    assert NOWHERE.findall(text) == []


def test_a_missing_file_is_found():
    text = "see `engine/gone.py`, ../kernels/README.md, tests/no.py and popdesic/engine/terms.py"
    assert missing(text) == ["engine/gone.py", "tests/no.py"]
    assert NOWHERE.search("DESIGN section 8")


def test_tests_that_are_named_exist():
    """A page that names one test of a file, as `tests/unit/io/test_bed.py::test_name`."""
    named = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
    found = [pair for path in CHECKED for pair in named.findall(path.read_text("utf-8"))]
    assert len(found) > 5
    for path, test in found:
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{path}::{test}"
