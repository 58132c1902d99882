"""Digests of the code that a rule's script runs: a rule is rerun when its digest has changed.

`reach.py` explains what a digest covers.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from ..core.places import HOME, KERNEL_FOLDER
from .reach import BACKENDS, LIBRARIES, PACKAGE, Code, Item, digest_of_parts, version_of

SCRIPTS = HOME / "workflow" / "scripts"
#: Modules that compute closures and insert newcomers into them; see `closure_code`.
CLOSURE_MODULES = ("geodesic/weights.py", "geodesic/closure.py", "geodesic/insertion.py")
#: Functions that compute what jobs keep: decoded files; tiles of distances by store, of the rest.
TILE_WORK = {
    "decoded": ("cohort/decode.py", "decode_unit"),
    "dense": ("distance/measure_row.py", "row_work"),
    "near": ("distance/neighbors.py", "row_work"),
    "compare": ("relatives/cohorts.py", "row_work"),
    "evaluation": ("cohort/accuracy.py", "evaluate_mode"),
    "ibd": ("ibd/cohorts.py", "measure_rows"),
    "sets": ("epistasis/kept_sets.py", "renew_scores"),
    "population": ("population/counts.py", "count_cohorts"),
    "painting": ("cohort/paint_cohorts.py", "paint_cohorts"),
}
#: Cached digests of a study, relative to the folder in which Snakemake runs.
CACHE = Path(".snakemake/popdesic.code")


def shared_cache() -> Path:
    """Digests for studies that have none yet, in the user's cache folder; may not exist."""
    folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(folder) if folder else Path.home() / ".cache") / "popdesic" / "code.json"


def code_of(script: str, without: tuple[str, str] | None = None) -> str:
    """Digest of the code that a script of `workflow/scripts`, e.g. ``compute_pca``, runs.

    `without` is a file of the package and a name defined in it that the digest leaves out, because
    the study's configuration does not use it.
    """
    cut = [("name", PACKAGE / without[0], without[1])] if without else []
    return _cached_digest(" ".join([script, *(without or ())]), [script_item(script)], cut)


def closure_code() -> str:
    """Digest of the code behind closures: weights, shortest paths, insertion and the kernels."""
    starts = [("module", PACKAGE / path) for path in CLOSURE_MODULES]
    starts += [("name", PACKAGE / path, name) for path, name in BACKENDS]
    return _cached_digest("", starts, [])


def tile_code(stage: str) -> str:
    """Digest of the code behind tiles of a stage of `TILE_WORK`, part of their keys."""
    return _cached_digest(f"tiles {stage}", tile_items(stage), [])


def tile_items(stage: str) -> list[Item]:
    path, function = TILE_WORK[stage]
    starts: list[Item] = [("name", PACKAGE / path, function)]
    return starts + [("name", PACKAGE / path, name) for path, name in BACKENDS]


def script_item(script: str) -> Item:
    return ("module", _script_files()[script])


@functools.cache
def _script_files() -> dict[str, Path]:
    """Files of the scripts by name, which no two share."""
    return {path.stem: path for path in SCRIPTS.rglob("*.py")}


def _cached_digest(name: str, starts: list[Item], cut: list[Item]) -> str:
    """A digest, from the cache if no file or library version has changed since."""
    cache = _read_cache()
    if name not in cache["digests"]:
        with _no_collection():
            cache["digests"][name] = digest_of_parts(_code().parts(starts, cut))
        _write_cache(CACHE)
    return cache["digests"][name]


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Without searches for circles of objects: syntax trees are many objects and have none.

    The searches took half of the time of all digests. Those that come later pass the trees over.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()


def share_digests() -> int:
    """Compute the digests of all scripts for studies to come; return their number."""
    for script in _script_files():
        code_of(script)
    closure_code()
    for stage in TILE_WORK:
        tile_code(stage)
    with contextlib.suppress(OSError):
        shared_cache().parent.mkdir(parents=True, exist_ok=True)
    _write_cache(shared_cache())
    return len(_read_cache()["digests"])


@functools.cache
def _read_cache() -> dict:
    empty = {"state": _state(), "digests": {}}
    for path in (CACHE, shared_cache()):
        with contextlib.suppress(OSError, ValueError):
            cache = json.loads(path.read_text("utf-8"))
            if cache.keys() == empty.keys() and cache["state"] == empty["state"]:
                return cache
    return empty


def _write_cache(path: Path) -> None:
    with contextlib.suppress(OSError):  # read-only folder: computed again every time
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps(_read_cache()), "utf-8")
        temporary.replace(path)


def _state() -> str:
    """Digest of all files and library versions that any of the digests can depend on.

    The digests name files by their place in these folders, so those of a copy are the same.
    """
    state = hashlib.blake2b(digest_size=16)
    for folder, ending in ((PACKAGE, "*.py"), (SCRIPTS, "*.py"), (KERNEL_FOLDER, "*.cu*")):
        for path in sorted(folder.rglob(ending)):
            content = path.read_bytes()
            name = path.relative_to(folder.parent).as_posix()
            state.update(f"{name} {len(content)}\n".encode() + content)
    for name in sorted({"numpy"}.union(*LIBRARIES.values())):
        state.update(f"{name} {version_of(name)}\n".encode())
    return state.hexdigest()


@functools.cache
def _code() -> Code:
    return Code()
