"""Study folders are data: nothing in them is run, imported or taken as settings of a program.

Python, Snakemake and numba look for modules, profiles and settings in the current folder, and jobs
run in the study's. `popdesic run` therefore starts Snakemake with Python's safe path, and the
Snakefile passes it on to every job. What cannot be switched off is refused (`refuse_programs`).
SECURITY.md says what is trusted.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path

from ..core.errors import UserError

#: Python neither imports from the current folder nor from that of a script.
SAFE_PATH = "PYTHONSAFEPATH"
#: What programs would take from a study's folder, and who would.
REFUSED = {
    ".snakemake/pip-deployments": "Snakemake would import modules from it",
    ".numba_config.yaml": "numba would take it as its settings",
}
#: Environment variable: the Python interpreter that has graph-tool; Debian's by default.
GRAPH_TOOL_PYTHON = "POPDESIC_GRAPH_TOOL_PYTHON"


def refuse_programs(*folders: Path) -> None:
    """Raise a UserError if a folder has something that a program would run or be set by."""
    for folder in folders:
        for name, reason in REFUSED.items():
            if os.path.lexists(folder / name):
                raise UserError(
                    f"{folder / name} exists, and {reason}; a study may hold data only: delete it."
                )


def graph_tool_python() -> str:
    """The interpreter that has graph-tool, which a study cannot name."""
    return os.environ.get(GRAPH_TOOL_PYTHON) or "/usr/bin/python3"


def settle_environment(variables: MutableMapping[str, str] = os.environ) -> None:
    """Set variables for this process's children: Python's safe path, caches that can be written.

    Relative folders of PYTHONPATH, such as the empty one of ``:/opt/lib``, are left out. They would
    be those of the study, in which jobs run.
    """
    variables[SAFE_PATH] = "1"
    if folders := variables.get("PYTHONPATH"):
        kept = [folder for folder in folders.split(os.pathsep) if Path(folder).is_absolute()]
        variables["PYTHONPATH"] = os.pathsep.join(kept)
    # Snakemake appends a folder of modules below the current one.
    sys.path[:] = [folder for folder in sys.path if Path(folder).is_absolute()]
    settle_caches(variables)


def settle_caches(variables: MutableMapping[str, str] = os.environ) -> None:
    """Give Snakemake, numba, matplotlib and CuPy a temporary folder where HOME cannot be written.

    It lasts as long as this process. It must not lie in the study: numba runs what is in its cache.
    matplotlib makes a folder of its own, but deletes it when a forked job ends.
    """
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and a user without a name, as in containers
        home = Path("~")
    caches = Path(variables.get("XDG_CACHE_HOME") or home / ".cache")
    settings = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    if not _writable(caches):
        variables["XDG_CACHE_HOME"] = f"{_temporary()}/cache"
    if not variables.get("MPLCONFIGDIR") and not _writable(settings / "matplotlib"):
        variables["MPLCONFIGDIR"] = f"{_temporary()}/matplotlib"
    if not variables.get("CUPY_CACHE_DIR") and not _writable(home):
        variables["CUPY_CACHE_DIR"] = f"{_temporary()}/cupy"


def _writable(folder: Path) -> bool:
    """Whether a folder can be written; it is made where it does not exist."""
    if not folder.is_absolute():
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@cache
def _temporary() -> str:
    folder, made_by = tempfile.mkdtemp(prefix="popdesic."), os.getpid()

    def remove() -> None:
        if os.getpid() == made_by:  # not a forked job
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
