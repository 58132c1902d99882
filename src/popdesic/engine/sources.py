"""Texts of the CUDA sources in `kernels/`; no CuPy."""

from __future__ import annotations

import re
from pathlib import Path

from ..core.errors import UserError
from ..core.places import KERNEL_FOLDER

_INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
_ONCE = "#pragma once\n"


def read_source(name: str) -> str:
    """The text of one kernel file with the text of the files that it includes.

    CuPy's cache of compiled kernels does not see changes in included files, so they become part of
    the text. A file is included once, relative to the file that names it.

    Parameters
    ----------
    name : str
        Path below `kernels/` without its suffix, such as ``engine/minplus``.

    Raises
    ------
    UserError
        The folder of kernels is incomplete.
    """
    included: set[Path] = set()

    def read(path: Path) -> str:
        if path in included:
            return ""
        included.add(path)
        text = path.read_text().replace(_ONCE, "")
        return _INCLUDE.sub(lambda line: read((path.parent / line[1]).resolve()), text)

    try:
        return read((KERNEL_FOLDER / f"{name}.cu").resolve())
    except OSError as reason:
        raise UserError(
            f"{reason.filename}: this CUDA source cannot be read ({reason.strerror}); install "
            f"Popdesic again, or run it from a whole copy of its repository."
        ) from None
