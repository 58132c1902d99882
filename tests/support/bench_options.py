"""Options that benchmarks take."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def options_of(bench: str) -> set[str]:
    """Options that the help of a benchmark lists; without CuPy those that its source adds."""
    said = subprocess.run(
        [sys.executable, ROOT / bench, "--help"], cwd=ROOT, capture_output=True, text=True
    )
    if "needs CuPy" in said.stderr:
        calls = [
            n
            for n in ast.walk(ast.parse((ROOT / bench).read_text("utf-8")))
            if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "add_argument"
        ]
        return {n.args[0].value for n in calls if isinstance(n.args[0], ast.Constant)}
    assert said.returncode == 0, said.stderr
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", said.stdout.split("options:")[-1]))
