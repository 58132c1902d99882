"""Jobs start fast: what slow libraries an adapter imports before its first step.

A job's start-up is mostly imports, and a study has hundreds of jobs. Libraries that start slowly
are therefore imported inside the functions that use them, except where every job that imports the
module uses the library at once: matplotlib in `report/figures`, jinja2 in `report/page.py`.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from popdesic.core.places import HOME

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((HOME / "workflow/scripts").rglob("*.py"))
RULES = [HOME / "Snakefile", *sorted((HOME / "workflow/rules").glob("*.smk"))]
#: CPU seconds that each takes to start, about: numba 0.15, scipy.special 0.2, scipy.stats 0.5,
#: sklearn 0.8, statsmodels 1, umap 1.5, matplotlib 0.3, zarr 1. pandas, 0.2, is in nearly all jobs.
SLOW = {
    *("numba", "llvmlite", "scipy", "sklearn", "statsmodels", "umap", "pynndescent"),
    *("matplotlib", "jinja2", "zarr", "bio2zarr", "cyvcf2", "cupy", "obstore"),
}
#: Scripts of jobs that draw.
DRAWING = {path for path in SCRIPTS if "popdesic.report.figures" in path.read_text()}
PAGE = {path for path in SCRIPTS if path.stem == "write_report"}


def import_statements(text: str) -> str:
    """The imports at the top of a Python file, as text."""
    tree = ast.parse(text)
    return "\n".join(
        ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))
    )


def slow_modules(pieces: dict[str, str]) -> dict[str, list[str]]:
    """The slow libraries that some imports load, by the first piece that does.

    Parameters
    ----------
    pieces : dict
        Name -> import statements. They run one after the other in one fresh interpreter.
    """
    program = f"""
import json, sys
sys.path.insert(0, {str(ROOT / "src")!r})
found, seen = {{}}, set()
for name, text in {pieces!r}.items():
    exec(text)
    new = {{module.split(".")[0] for module in sys.modules}} & {SLOW!r} - seen
    if new:
        found[name] = sorted(new)
        seen |= new
print(json.dumps(found))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("scripts", "allowed"),
    [
        (set(SCRIPTS) - DRAWING - PAGE, set()),
        (DRAWING, {"matplotlib"}),
        (PAGE, {"matplotlib", "jinja2"}),
    ],
    ids=["computing", "drawing", "page"],
)
def test_adapters_import_slow_libraries_only_where_they_use_them(scripts, allowed):
    found = slow_modules({p.stem: import_statements(p.read_text()) for p in sorted(scripts)})
    too_slow = {name: set(modules) - allowed for name, modules in found.items()}
    assert not any(too_slow.values()), too_slow


def test_planning_imports_nothing_slow():
    """Every job of a cluster parses the rule files again."""
    text = "\n".join(path.read_text() for path in RULES)
    statements = re.findall(r"^from popdesic\S* import (?:\([^)]*\)|.*)", text, re.M)
    assert len(statements) > 20
    assert not slow_modules({statement: statement for statement in statements})


def test_slow_imports_are_seen():
    """The test itself sees an import, also one of a module of the package."""
    found = slow_modules({"a": "import pandas", "b": "import popdesic.cohort.genotypes_cpu"})
    assert found.keys() == {"b"} and "numba" in found["b"]
