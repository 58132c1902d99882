"""Axes of the PCA by several processes, which a launcher of MPI starts on one node or on several.

The job starts the launcher, passes its arguments through a file of the study, and logs what the
processes say. The first process leads and writes the results (`engine.team`).
"""

from __future__ import annotations

import importlib.util
import json
import logging
import pickle
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..core.errors import UserError
from ..core.files import carrying_panel, one_panel
from ..core.processes import end_with_parent
from ..engine.team import Team
from .define_axes import define_axes

log = logging.getLogger(__name__)
#: How to go on without MPI.
WITHOUT = "or run without the resource mpi of define_axes"


class Task(NamedTuple):
    """What the processes are to do: `processes` in number, arguments of `define_axes`, its inputs.

    Attributes
    ----------
    inputs : list of str
        Results that carry the panel's digest.
    """

    processes: int
    arguments: dict
    inputs: list[str]


def define_together(
    launcher: str, processes: int, arguments: dict, inputs: Iterable[str | Path] = ()
) -> dict:
    """`define_axes` by processes that share contigs and passes over the genotypes.

    Parameters
    ----------
    launcher : str
        Command that takes ``-n`` and the number of processes, for example ``srun`` or ``mpirun``.
    arguments : dict
        Of `define_axes`; they can be pickled.

    Raises
    ------
    UserError
        There is no MPI, or the launcher belongs to another one; or as `define_axes`.
    """
    words = shlex.split(launcher)
    if importlib.util.find_spec("mpi4py") is None:
        raise UserError(
            "define_axes has the resource mpi, but the Python package mpi4py is missing here; "
            f"install it (pip install mpi4py), {WITHOUT}."
        )
    if not words or shutil.which(words[0]) is None:
        raise UserError(
            f"define_axes has the resource mpi={launcher!r}, but there is no such command here; "
            f"name the launcher of the cluster's MPI, {WITHOUT}."
        )
    about = Path(arguments["out"]["about"])
    with tempfile.TemporaryDirectory(prefix=".axes", dir=about.parent) as folder:
        asked = Task(processes, arguments, [str(path) for path in inputs])
        (Path(folder) / "task.pickle").write_bytes(pickle.dumps(asked))
        name = join_team.__name__
        program = f"from {join_team.__module__} import {name}; {name}({folder!r})"
        command = [*words, "-n", str(processes), sys.executable, "-c", program]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=partial(end_with_parent, signal.SIGTERM),
        ) as started:
            for line in started.stdout:
                log.info("%s", line.rstrip())
        problem = Path(folder) / "problem"
        if problem.exists():
            raise UserError(problem.read_text("utf-8"))
    if started.returncode:
        raise UserError(
            f"define_axes: `{launcher}` ended with status {started.returncode}; "
            f"the log says what its processes wrote; repair it, {WITHOUT}."
        )
    return json.loads(about.read_text("utf-8"))


def join_team(folder: str) -> None:
    """One process of the team, in the folder that holds the task."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        _tell(folder, f"mpi4py finds no MPI library ({error}); load the cluster's MPI, {WITHOUT}.")
        raise SystemExit(1) from None
    team = Team(MPI.COMM_WORLD)
    try:
        take_part(team, pickle.loads((Path(folder) / "task.pickle").read_bytes()))
    except BaseException as error:
        if isinstance(error, UserError):
            _tell(folder, str(error))
        else:
            traceback.print_exc()
        sys.stderr.flush()
        team.comm.Abort(1)  # the others wait for this one


def take_part(team: Team, task: Task) -> None:
    """Do this process's part of a task; the first one writes the results."""
    if team.size != task.processes:
        raise UserError(
            f"{task.processes} processes of define_axes were started, but MPI joined {team.size}: "
            f"the launcher belongs to another MPI than mpi4py; name its own, {WITHOUT}."
        )
    if team.rank:
        team.follow()
    else:
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
        with carrying_panel(one_panel(task.inputs)):
            define_axes(**task.arguments, team=team)
        team.end()
    peaks = team.comm.gather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    if peaks:
        told = ", ".join(f"{peak:.0f}" for peak in peaks)
        log.info("%d processes; most memory of each, MB: %s", team.size, told)
        sys.stdout.flush()


def _tell(folder: str, sentence: str) -> None:
    """Leave a sentence for the job that started the processes."""
    (Path(folder) / "problem").write_text(sentence, "utf-8")
