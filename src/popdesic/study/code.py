"""Digests of what a rule's script runs: a rule is run again where its digest is another.

`reach.py` says what takes part.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from pathlib import Path

from ..io.places import HOME, KERNEL_FOLDER
from .reach import BACKENDS, LIBRARIES, PACKAGE, Code, Item, digest, version_of

SCRIPTS = HOME / "workflow" / "scripts"
#: Where a closure is made and continued; see `closing_code`.
CLOSING = ("geodesic/weights.py", "geodesic/closure.py", "geodesic/insertion.py")
#: Digests that were found before, below the folder in which Snakemake runs.
KEPT = Path(".snakemake/popdesic.code")


def code_of(script: str, without: tuple[str, str] | None = None) -> str:
    """Digest of what a script of `workflow/scripts` runs, e.g. ``compute_pca``.

    `without`, a file below the package and a name in it, is what the study's configuration leaves
    out.
    """
    cut = [("name", PACKAGE / without[0], without[1])] if without else []
    return _kept_digest(" ".join([script, *(without or ())]), [script_item(script)], cut)


def closing_code() -> str:
    """Digest of what makes a closure and continues one: weights, min-plus code, its kernels."""
    starts = [("module", PACKAGE / path) for path in CLOSING]
    starts += [("name", PACKAGE / path, name) for path, name in BACKENDS]
    return _kept_digest("", starts, [])


def script_item(script: str) -> Item:
    return ("module", SCRIPTS / f"{script}.py")


def _kept_digest(name: str, starts: list[Item], cut: list[Item]) -> str:
    """A digest, from those that were found before in this very state of all files."""
    kept = _read_kept()
    if name not in kept["digests"]:
        kept["digests"][name] = digest(_code().parts(starts, cut))
        with contextlib.suppress(OSError):  # a folder of somebody else: found again every time
            temporary = KEPT.with_name(f"{KEPT.name}.{os.getpid()}.tmp")
            temporary.write_text(json.dumps(kept), "utf-8")
            temporary.replace(KEPT)
    return kept["digests"][name]


@functools.cache
def _read_kept() -> dict:
    empty = {"state": _state(), "digests": {}}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(KEPT.read_text("utf-8"))
        if kept.keys() == empty.keys() and kept["state"] == empty["state"]:
            return kept
    return empty


def _state() -> str:
    """Digest of all files and versions that any digest may be made of."""
    found = hashlib.blake2b(digest_size=16)
    files = [*PACKAGE.rglob("*.py"), *SCRIPTS.glob("*.py"), *KERNEL_FOLDER.rglob("*.cu*")]
    for path in sorted(files):
        content = path.read_bytes()
        found.update(f"{path} {len(content)}\n".encode() + content)
    for name in sorted({"numpy"}.union(*LIBRARIES.values())):
        found.update(f"{name} {version_of(name)}\n".encode())
    return found.hexdigest()


@functools.cache
def _code() -> Code:
    return Code()
