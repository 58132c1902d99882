"""Benchmarks call, and tests import, what there is: few machines run them all."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
BENCH = TESTS / "bench"


def imported(tree: ast.Module) -> dict[str, object]:
    """What a file imports from the package by name, as far as this machine has its libraries."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("popdesic"):
            with contextlib.suppress(ImportError):  # CuPy, which machines without a GPU lack
                module = importlib.import_module(node.module)
                found |= {a.asname or a.name: getattr(module, a.name, None) for a in node.names}
    return found


def calls(path: Path) -> Iterator[tuple[ast.Call, inspect.Signature]]:
    """Calls of imported functions whose arguments are all written out."""
    tree = ast.parse(path.read_text("utf-8"))
    known = imported(tree)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = None if node.func.id in own else known.get(node.func.id)
            starred = any(isinstance(one, ast.Starred) for one in node.args)
            if inspect.isfunction(function) and not starred and all(w.arg for w in node.keywords):
                yield node, inspect.signature(function)


def test_calls_fit_the_signatures():
    checked, wrong = 0, []
    for path in sorted(BENCH.glob("*.py")):
        for node, signature in calls(path):
            checked += 1
            try:
                signature.bind(*node.args, **{word.arg: word.value for word in node.keywords})
            except TypeError as error:
                wrong.append(f"{path.name}, line {node.lineno}: {node.func.id}: {error}")
    assert checked > 100 and not wrong, wrong


def top_names(path: Path) -> set[str]:
    """Names that a file has at its top."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
            names |= {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    return names


def test_tests_import_what_there_is():
    """Of each other; without a GPU the tests of kernels skip before they say so."""
    checked, wrong, names = 0, [], {}
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or node.level:
                continue
            name = f"{(node.module or '').replace('.', '/')}.py"
            for source in {path.parent / name, TESTS / name}:
                if source.is_file():
                    checked += len(node.names)
                    names.setdefault(source, top_names(source))
                    absent = {a.name for a in node.names} - names[source]
                    wrong += [f"{path}, line {node.lineno}: {name} has no {a}" for a in absent]
    assert checked > 500 and not wrong, wrong
