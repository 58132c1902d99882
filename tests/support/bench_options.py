"""Options that benchmarks take."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def options_of(bench: str) -> set[str]:
    """Options that the source of a benchmark adds to its parser, and those of all benchmarks."""
    calls = [
        node
        for path in (bench, "tests/bench/commandline.py")
        for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
    ]
    words = {one.value for call in calls for one in call.args if isinstance(one, ast.Constant)}
    return {word for word in words if word.startswith("--")}
