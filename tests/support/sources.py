"""All kernel files with the constants that they are compiled with, as the package states them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import popdesic
from popdesic.engine.layout import KernelSource
from popdesic.engine.variants import MICRO_KERNELS

PACKAGE = Path(popdesic.__file__).parent
_STATED = re.compile(r'KernelSource\.of\(\s*"([a-z0-9_/]+)"')


def stated() -> list[tuple[str, str]]:
    """Module of the package and kernel file of each statement of a source."""
    return [
        (".".join(path.relative_to(PACKAGE).with_suffix("").parts), file)
        for path in sorted(PACKAGE.rglob("*.py"))
        for file in _STATED.findall(path.read_text())
    ]


def _sources() -> dict[str, KernelSource]:
    found = [source for source, _ in MICRO_KERNELS.values()]
    for name in sorted({name for name, _ in stated()}):
        module = importlib.import_module(f"popdesic.{name}")
        found += [one for one in vars(module).values() if isinstance(one, KernelSource)]
    return {one.file: one for one in found}


#: By the path of the file below `kernels/`, without its suffix.
SOURCES = _sources()
