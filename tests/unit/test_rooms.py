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
    *("io", "engine", "cohort"),
    *(
        "distance",
        "geodesic",
        "embedding",
        "communities",
        "compare",
        "ibd",
        "geography",
        "population",
        "epistasis",
        "export",
    ),
    *("api", "study", "report", "__init__", "__main__"),
)
#: Longest chain of files that import each other.
MOST_FLOORS = 11
#: Compiled decoders of genotype files; elsewhere only the engine imports numba.
DECODERS = {"io.codecs", "io.vcf_text", "io.zarr_calls", "io.bcf_records"}
#: All modules that import CuPy. The others of engine.gpu work, and are tested, without a GPU.
LAUNCHERS = {
    f"engine.gpu.{name}"
    for name in (
        *("backend", "band", "bitgemm", "compare", "compile", "epistasis", "epistasis_operands"),
        *("epistasis_best", "epistasis_classes", "epistasis_crowds", "epistasis_launches"),
        *(
            "close_pairs",
            "epistasis_blocks",
            "epistasis_planes",
            "epistasis_trait",
            "expected",
            "genotype_products",
            "genotype_passes",
            "code_sums",
            "columns",
            "group_counts",
            "ibd",
            "minplus",
            "near_lists",
            "spread",
            "nearest",
            "pair_screen",
            "pinned",
            "rare_sites",
            "rare_sites_kernels",
            "stream",
            "tiles",
            "tune",
            "umap",
            "usual",
        ),
    )
}


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
    assert (
        "numba" not in used
        or module.startswith(("engine.cpu", "engine.host"))
        or module in DECODERS
    )
    assert not used & {"cupy", "cupyx"} or module in LAUNCHERS


@pytest.mark.parametrize("module", sorted(m for m in modules() if m.startswith("engine.gpu")))
def test_plans_need_neither_cupy_nor_numba(module):
    if module in LAUNCHERS:
        assert module in modules()
        return
    assert not imports(module)[0] & LAUNCHERS
    assert not imports(module)[1] & {"cupy", "cupyx", "numba"}


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
