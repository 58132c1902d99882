"""The nested stochastic block model of a graph, under an interpreter that has graph-tool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

import numpy as np

from ..core.files import atomic_path, content_key
from ..core.processes import end_with_parent
from ..core.row import is_intact
from ..core.tables import write_npz
from .block_model_fit import MISSING

#: Number of fits, of which the best is kept, and of partitions sampled from the posterior.
RESTARTS, DRAWS = 1, 50

#: What is kept of a fit, beside it; hidden, as what founders tell is.
KEPT = ".blocks.npz"
FIT = Path(__file__).with_name("block_model_fit.py")


class NoGraphToolError(Exception):
    """An interpreter cannot fit the blocks; the message says why."""


def fit_blocks(
    graph: Path,
    out: Path,
    *,
    python: str,
    seed: int,
    restarts: int = RESTARTS,
    draws: int = DRAWS,
    code: str | None = None,
    threads: int = 1,
) -> str:
    """Fit the blocks of a graph; without graph-tool, write and return one sentence instead.

    The blocks are kept beside `out`: a run that has the same graph again, as where a cohort of
    newcomers arrives, does not fit it again.

    Parameters
    ----------
    graph : Path
        npz of `geodesics.build_neighbor_graph` (`edges` int64 (n_edges, 2), `n`), or of
        `ibd.graph.build_graph`, which has `weights` too.
    out : Path
        npz as described in `block_model_fit.py`. Without graph-tool it holds only `missing`, the
        sentence: no optional part stops a run, and the block model's levels are then left out.
    python : str
        Interpreter that has graph-tool. The workflow's own interpreter is tried next: in a conda
        environment it has graph-tool too.
    seed, restarts, draws : int
        Seed of graph-tool's generator; number of fits, of which the best is kept; number of
        partitions sampled from the posterior.
    code : str, optional
        Digest of the code; None keeps nothing.

    Returns
    -------
    str
        Empty if the blocks were fitted.

    Raises
    ------
    RuntimeError
        graph-tool is installed but failed.
    """
    numbers = [str(number) for number in (seed, restarts, draws)]
    kept, key = out.with_name(KEPT), " ".join([content_key(graph), python, *numbers, str(code)])
    if code is not None and is_intact(kept) and _read(kept) == key:
        with atomic_path(out) as temporary:
            copyfile(kept, temporary)
        return ""
    reasons = []
    for interpreter in dict.fromkeys([python, sys.executable]):
        try:
            with atomic_path(out) as temporary:
                _fit(interpreter, [str(graph), str(temporary), *numbers], threads)
            if code is not None:
                _keep(out, kept, key)
            return ""
        except NoGraphToolError as reason:
            reasons.append(f"{interpreter} ({reason})")
    sentence = (
        f"communities: graph-tool was not found by {' nor by '.join(reasons)}, so there are no "
        "block-model communities; install Debian's python3-graph-tool or conda's graph-tool, or "
        "set POPDESIC_GRAPH_TOOL_PYTHON to the interpreter that has it."
    )
    write_npz(out, missing=np.array(sentence))
    return sentence


def _key_of(kept: Path) -> Path:
    return kept.with_suffix(".key")


def _read(kept: Path) -> str:
    return _key_of(kept).read_text("utf-8", "replace") if _key_of(kept).is_file() else ""


def _keep(out: Path, kept: Path, key: str) -> None:
    """Keep a result under another name; the key comes last, when all is there."""
    _key_of(kept).unlink(missing_ok=True)
    with atomic_path(kept) as temporary:
        copyfile(out, temporary)
    _key_of(kept).write_text(key, "utf-8")


def _fit(interpreter: str, arguments: list[str], threads: int) -> None:
    """Run `block_model_fit.py` under an interpreter, with only that interpreter's packages."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    # Isolated: variables of the workflow's Python, perhaps another version, do not count.
    command = [interpreter, "-I", str(FIT), *arguments]
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent
        )
    except OSError as reason:
        raise NoGraphToolError(reason.strerror) from None
    if done.returncode == MISSING:
        raise NoGraphToolError(done.stdout.strip())
    if done.returncode != 0:
        raise RuntimeError(f"graph-tool under {interpreter} stopped with {done.returncode}.")
    if not Path(arguments[1]).is_file():
        raise NoGraphToolError("it is no Python interpreter")
