"""Processes of MPI in tests, which are skipped where it is missing."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

#: Open MPI starts as root, and more processes than cores, only where it is told so.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def launcher() -> str:
    """`mpiexec` of the tests' environment, or of the machine."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    found = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip("mpiexec is not installed")
    os.environ.update(ENVIRONMENT)
    return found


#: Teams of some of the processes, one after the other.
TEAMS = """
import pickle, sys, time
from pathlib import Path
from mpi4py import MPI
from popdesic.engine.team import Team
from {module} import {function} as take_part
world = MPI.COMM_WORLD
folder = Path(sys.argv[1])
tasks = pickle.loads((folder / "tasks").read_bytes())
teams = [world.Split(world.rank < size, world.rank) for size, _ in tasks]
for (size, task), few in zip(tasks, teams):
    if world.rank < size:
        take_part(Team(few), task)
last = world.Ibarrier()
while not last.Test():  # MPI itself would wait on a busy core
    time.sleep(0.01)
"""


def run_teams(folder: Path, function, tasks: list[tuple[int, object]]) -> None:
    """Call ``function(team, task)`` of a module in teams of some of four processes, in turn.

    tasks: of processes and a task that can be pickled.
    """
    command = [launcher(), "-n", "4", sys.executable, "-c"]
    (folder / "tasks").write_bytes(pickle.dumps(tasks))
    program = TEAMS.format(module=function.__module__, function=function.__name__)
    run = subprocess.run(
        [*command, program, folder],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # where the tests' modules are
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 0, run.stdout + run.stderr
