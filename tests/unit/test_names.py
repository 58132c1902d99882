"""Names of the package: one name for one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "popdesic"
#: One thing in two forms: decoders of two formats, a row of tiles of three stages.
TWO_FORMS = {"decode_records", "row_capacity", "row_work", "write_tile"}
#: Programs with a command line: `main`, and the commands that call a function of that name.
PROGRAMS = {"__main__.py", "communities/block_model_fit.py"}


@cache
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


#: The glossary's "not": words for which the project has another one, and where they mean something
#: else. Markers are marks in figures; `individual` is a heading of a user's table.
NOT_OURS = re.compile(r"(?<![a-z])(individuals?|traits?|markers?)(?![a-z])", re.I)
ELSEWHERE = {
    "src/popdesic/report/figures": {"marker", "markers"},
    "src/popdesic/report/pagedata.py": {"marker", "markers"},
    "workflow/report": {"marker", "markers"},
    "src/popdesic/study/init_people.py": {"individual"},
    "src/popdesic/io/trees.py": {"individuals"},  # a function of tskit
    "src/popdesic/report/citations.py": {"traits"},  # in the title of a paper
    "docs/glossary.md": {"individual", "individuals", "marker", "trait"},
}


def forbidden(path: str, text: str) -> set[str]:
    """Words of the glossary's "not" in a text."""
    allowed = {
        word for start, words in ELSEWHERE.items() if path.startswith(start) for word in words
    }
    return {word.lower() for word in NOT_OURS.findall(text)} - allowed


def test_the_glossary_holds_everywhere():
    folders = ("src", "workflow", "kernels", "docs", "config")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    kinds = (".py", ".smk", ".cu", ".cuh", ".md", ".yaml", ".rst", ".j2", ".js")
    files = [path for path in files if path.suffix in kinds]
    assert len(files) > 500
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}
    found = {path: words for path, text in texts.items() if (words := forbidden(path, text))}
    assert found == {}


def test_a_forbidden_word_is_found():
    assert forbidden("src/a.py", "scan_trait_pairs of TRAITS; portraits, straits") == {
        "trait",
        "traits",
    }


#: Most parameters of a function. What belongs together is one NamedTuple or dataclass.
MOST_PARAMETERS = 12


def parameters() -> dict[str, int]:
    """Number of parameters of each function that has more than the most."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                number = sum(one.arg not in ("self", "cls") for one in given)
                if number > MOST_PARAMETERS:
                    name = path.relative_to(PACKAGE).with_suffix("").as_posix()
                    found[f"{name}.{node.name}"] = number
    return found


def test_functions_have_few_parameters():
    assert parameters() == {}
