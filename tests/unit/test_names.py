"""Names of the package: one name for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "popdesic"
#: One thing in two forms: decoders of two formats, a row of tiles of three stages.
TWO_FORMS = {"decode_records", "row_capacity", "measure_row", "row_work", "write_tile"}
#: Programs with a command line: `main`, and the commands that call a function of that name.
PROGRAMS = {"__main__.py", "communities/block_model_fit.py"}


def definitions() -> dict[str, list[str]]:
    """Modules of each function and class at the top of a module, private ones left out."""
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def doubled(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Names with two meanings.

    A function and what computes it on a CPU and on a GPU, in `_cpu` and `_gpu` of the same room,
    are one.
    """
    twice = {}
    for name, modules in found.items():
        others = [module for module in modules if module not in PROGRAMS]
        plain = [module for module in others if not module.endswith(("_cpu.py", "_gpu.py"))]
        rooms = {module.split("/")[0] for module in others}
        kinds = {module.rsplit("_", 1)[-1] for module in set(others) - set(plain)}
        one = len(rooms) == 1 and len(plain) <= 1 and len(others) == len(plain) + len(kinds)
        if len(others) > 1 and not one and name not in TWO_FORMS:
            twice[name] = others
    return twice


def test_no_name_has_two_meanings():
    assert doubled(definitions()) == {}


def test_names_with_two_forms_have_two():
    assert {name for name, modules in definitions().items() if len(modules) > 1} >= TWO_FORMS


def test_a_name_with_two_meanings_is_found():
    found = {
        "one": ["distance/a.py", "distance/a_cpu.py", "distance/b_gpu.py"],
        "two": ["distance/a.py", "maps/a_cpu.py"],
        "three": ["maps/a.py", "maps/b.py"],
        "four": ["maps/a_cpu.py", "maps/b_cpu.py"],
    }
    assert doubled(found).keys() == {"two", "three", "four"}
