"""Every function of the package is used by the workflow, the command line or the public API."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import popdesic
from popdesic.study.reach import PACKAGE, Code

ROOT = Path(__file__).resolve().parents[2]
#: What `tune` runs in a process of its own, by its name.
BY_STRING = {"engine/precompile_gpu.py compile_variant"}


def starts() -> list[tuple]:
    """What is called from outside: scripts, rules, the command line, the public functions."""
    found = [("module", path) for path in (ROOT / "workflow/scripts").rglob("*.py")]
    found += [("module", PACKAGE / "__main__.py"), ("module", PACKAGE / "study/forked_jobs.py")]
    for name, module in popdesic._PUBLIC.items():
        found.append(("name", (PACKAGE / module.replace(".", "/")).with_suffix(".py"), name))
    for path in [ROOT / "Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]:
        text = path.read_text("utf-8")
        for module, names in re.findall(
            r"^ *from popdesic\.?(\S*) import (\([^)]*\)|.*)", text, re.M
        ):
            file = PACKAGE / module.replace(".", "/")
            for name in re.findall(r"(\w+)(?: as \w+)?", names):
                inner = (file / name).with_suffix(".py")
                whole = inner.is_file()
                found.append(
                    ("module", inner) if whole else ("name", file.with_suffix(".py"), name)
                )
    return found


def unreached(code: Code, first: list[tuple]) -> set[str]:
    """Public functions that `first` do not reach: file and name."""
    parts = code.parts(first)
    whole = {label.split(" ", 1)[1] for label in parts if label.startswith("module ")}
    found = set()
    for path in sorted(code.package.rglob("*.py")):
        name = path.relative_to(code.package).as_posix()
        for node in ast.parse(path.read_text("utf-8")).body if name not in whole else ():
            defined = isinstance(node, ast.FunctionDef)
            if (
                defined
                and not node.name.startswith("_")
                and f"name {name} {node.name}" not in parts
            ):
                found.add(f"{name} {node.name}")
    return found


def test_no_function_is_for_tests_alone():
    assert unreached(Code(), starts()) == BY_STRING
