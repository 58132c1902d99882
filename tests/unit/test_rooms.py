"""The import contract: rooms of the package import one way, without circles."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "popdesic"

#: In order: a room imports itself and the rooms before it.
ROOMS = (
    *("core", "io", "engine", "copying", "cohort", "distance"),
    *("relatives", "components", "geodesic", "maps"),
    *("communities", "ibd", "geography", "population", "epistasis", "export"),
    *("api", "study", "report", "__init__", "__main__"),
)
#: Longest chain of files that import each other, calls of kernels among them.
MOST_FLOORS = 10


@cache
def modules() -> dict[str, Path]:
    """Path of each module by its dotted name within the package; a folder stands for `__init__`."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if len(parts) > 1 and parts[-1] == "__init__":
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


#: Last words of the names of modules that import CuPy.
GPU_MODULES = {path.stem for path in PACKAGE.rglob("*_gpu.py")}


@cache
def imports(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """Modules of the package that a module imports, at any depth, and the other packages."""
    path = modules()[module]
    inside, outside = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            outside |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            folder = list(path.relative_to(PACKAGE).parent.parts)
            folder = folder[: len(folder) - (node.level - 1)] if node.level else []
            words = (node.module or "").split(".") if node.module else []
            if not node.level and words[0] != "popdesic":
                outside.add(words[0])
                continue
            base = folder + (words if node.level else words[1:])
            for alias in node.names:
                names = (".".join([*base, alias.name]), ".".join(base) or "__init__")
                inside.add(next(name for name in names if name in modules()))
    return frozenset(inside - {module}), frozenset(outside)


def room(module: str) -> str:
    return module.split(".")[0]


def floor(module: str, below: tuple[str, ...] = ()) -> int:
    """Floor of a module: one more than the highest floor that it imports from."""
    assert module not in below, f"a circle: {' -> '.join([*below, module])}"
    return _floor(module, below)


@cache
def _floors() -> dict[str, int]:
    return {}


def _floor(module: str, below: tuple[str, ...]) -> int:
    known = _floors()
    if module not in known:
        under = [floor(other, (*below, module)) for other in imports(module)[0]]
        known[module] = 1 + max(under, default=0)
    return known[module]


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_run_one_way(module):
    assert room(module) in ROOMS, "a new room needs its place in ROOMS"
    for other in imports(module)[0]:
        assert ROOMS.index(room(other)) <= ROOMS.index(room(module)), f"{module} -> {other}"


def test_no_circles_and_few_floors():
    highest = max(modules(), key=floor)
    assert floor(highest) <= MOST_FLOORS, highest


@pytest.mark.parametrize("module", sorted(modules()))
def test_numba_and_cupy_are_imported_only_where_allowed(module):
    used = imports(module)[1]
    assert "numba" not in used or module.endswith("_cpu")
    assert not used & {"cupy", "cupyx"} or module.endswith("_gpu")


@pytest.mark.parametrize("module", sorted(m for m in modules() if m.endswith("_plan")))
def test_plans_need_neither_cupy_nor_numba(module):
    """Nor does what they import: sizes and launches are planned, and tested, without a GPU."""
    inside, outside = imports(module)
    assert not outside & {"cupy", "cupyx", "numba"}
    assert not [other for other in inside if other.endswith(("_gpu", "_cpu"))]


@pytest.mark.parametrize("module", sorted(m for m in modules() if not m.endswith("_gpu")))
def test_modules_for_a_gpu_are_imported_when_needed(module):
    """At the top of a module only those import CuPy whose name says so."""
    tree = ast.parse(modules()[module].read_text())
    words = [
        word
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for word in [(node.module or "").split(".")[-1], *(alias.name for alias in node.names)]
    ]
    assert not {word for word in words if word.endswith("_gpu")} & GPU_MODULES


def underscored(module: str) -> set[str]:
    """Underscored names of other modules that a module imports, or asks one for."""
    path = modules()[module]
    tree, aliases, found = ast.parse(path.read_text()), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or "popdesic" in (node.module or "")):
            names = {alias.asname or alias.name for alias in node.names}
            aliases |= {name for name in names if any(m.endswith(f".{name}") for m in modules())}
            found |= {name for name in names if name.startswith("_") and name[:2] != "__"}
    for node in ast.walk(tree):
        hidden = isinstance(node, ast.Attribute) and node.attr.startswith("_")
        if hidden and isinstance(node.value, ast.Name) and node.value.id in aliases:
            found.add(f"{node.value.id}.{node.attr}")
    return found


@pytest.mark.parametrize("module", sorted(modules()))
def test_no_module_imports_what_another_keeps_to_itself(module):
    assert not underscored(module)


def test_tests_mirror_the_rooms():
    folders = {path.name for path in (ROOT / "tests" / "unit").iterdir() if any(path.glob("*.py"))}
    assert folders == {name for name in ROOMS if not name.startswith("__")}


def test_a_circle_is_detected(monkeypatch):
    arrows = {"io.a": ["io.b"], "io.b": ["io.c"], "io.c": ["io.a"]}
    monkeypatch.setattr(f"{__name__}.imports", lambda module: (arrows[module], ()))
    with pytest.raises(AssertionError, match=r"io\.a -> io\.b -> io\.c -> io\.a"):
        floor("io.a")
    for module in arrows:
        _floors().pop(module, None)
