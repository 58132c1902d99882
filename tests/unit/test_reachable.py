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


#: Methods that others call by their name: a handler of the log, and nodes of syntax by kind.
CALLED_BY_OTHERS = re.compile(r"emit|_read_\w+")


def unasked(modules: list[str], others: list[str]) -> set[str]:
    """Methods of classes in `modules` whose name nothing asks an object for, in these or `others`.

    A name of another class's method hides one, and so does a text of this name (`getattr`).
    """
    defined, asked = set(), set()
    for node in (node for text in modules for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.ClassDef):
            defined |= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        elif isinstance(node, ast.Attribute):
            asked.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            asked.add(node.value)
    asked |= {name for text in others for name in re.findall(r"\.(\w+)", text)}
    return {
        name
        for name in defined - asked
        if name[:2] != "__" and not CALLED_BY_OTHERS.fullmatch(name)
    }


def test_no_method_is_for_tests_alone():
    modules = [path.read_text("utf-8") for path in PACKAGE.rglob("*.py")]
    files = [ROOT / "Snakefile", *(ROOT / "workflow").rglob("*.*")]
    others = [
        path.read_text("utf-8") for path in files if path.suffix in (".py", ".smk", ".j2", "")
    ]
    assert unasked(modules, others) == set()


def test_a_method_that_nothing_asks_for_is_found():
    text = "class A:\n def used(self): ...\n def kept(self): ...\n def lost(self): self.kept()\n"
    assert unasked([text], ["{{ a.used() }}"]) == {"lost"}
