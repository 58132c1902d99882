"""The documentation as a site: its pages, their links, and a strict build where mkdocs is."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import popdesic
from popdesic.report.methods import REFERENCES

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs/build_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    load().lay_out(folder)
    return folder


def listed(entry) -> list[str]:
    """Pages of the navigation."""
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [name for value in values for name in listed(value)]


def test_every_page_is_in_the_navigation(pages):
    text = (ROOT / "docs/mkdocs.yml").read_text()
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    assert sorted(listed(nav)) == sorted(path.name for path in pages.glob("*.md"))


def test_links_lead_to_pages_and_pictures(pages):
    for page in pages.glob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
            assert (pages / target).is_file(), f"{page.name}: {target}"


def test_links_are_turned():
    turn = load().turn_links
    known = {"config/README.md": "config.md", "docs/maps.md": "maps.md"}
    text = "[a](../config/README.md#keys) [b](../Makefile) ![c](pictures/c.png)\n"
    code = "```text\n[a](../config/README.md)\n```\n"
    expected = "[a](config.md#keys) b (`Makefile`) ![c](pictures/c.png)\n"
    assert turn(text + code, "docs/maps.md", known) == expected + code
    with pytest.raises(SystemExit, match=r"docs/maps\.md: the link to map\.md leads nowhere"):
        turn("[a](map.md)", "docs/maps.md", known)


def test_pages_made_from_the_code(pages):
    reference = (pages / "reference.md").read_text()
    for name in popdesic.__all__[1:]:
        assert f".{name}\n" in reference
    commands = (pages / "commands.md").read_text()
    assert "## crate\n" in commands and "usage: popdesic run" in commands
    assert (pages / "references.md").read_text().count("\n- ") == len(REFERENCES)


def test_strict_build(tmp_path):
    """No broken link or anchor, no docstring that the generator cannot read."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if shutil.which("mkdocs", path=places) is None:
        pytest.skip("mkdocs is not installed; `make docs` installs it")
    done = subprocess.run(
        [sys.executable, "docs/build_site.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = Path(done.stdout.split()[-1]).parent
    found = (site / "reference.html").read_text()
    assert "pairwise_distance" in found and "Parameters" in found
    assert "panel.min_maf" in (site / "config.html").read_text()
    assert not re.search(r'(src|href)="https?://fonts\.', found), "nothing is fetched"
