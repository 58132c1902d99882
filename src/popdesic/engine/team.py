"""Processes of MPI that compute together; one of them leads, and the others do what it calls.

The first process has the algorithm, its matrices and its decisions. The others keep their shares of
the data and answer: so no process waits for another that has decided otherwise by a last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from ..core.threads import run_tasks

#: Seconds between two looks at what the leader calls; a pass over genotypes takes far more.
PAUSE = 0.001


class Team:
    """The processes of a communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm

    Attributes
    ----------
    rank, size : int
        Number of this process, the leader's is 0, and number of processes.
    products : SharedProducts or None
        The latest ones that the team has made.
    """

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.products: Any = None

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """``function(team, *given)`` in every process, for the leader; the leader's result.

        `function` is one of a module, so that it can be pickled by its name.
        """
        self.meet()
        self.comm.bcast((function, given))
        return function(self, *given)

    def follow(self) -> None:
        """Do what the leader calls, until it ends."""
        while True:
            self.meet()
            asked = self.comm.bcast(None)
            if asked is None:
                return
            function, given = asked
            function(self, *given)

    def end(self) -> None:
        """Let the others go, for the leader."""
        self.meet()
        self.comm.bcast(None)

    def meet(self) -> None:
        """Wait for all. MPI waits on a busy core; the others' cores are free while one leads."""
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(PAUSE)

    def run_tasks(self, work: Callable[..., Any], tasks: Iterable[tuple], threads: int) -> list:
        """`core.threads.run_tasks`, a share in each process; all results in every process."""
        tasks = list(tasks)
        own = run_tasks(work, tasks[self.rank :: self.size], threads)
        self.meet()
        shares = self.comm.allgather(own)
        return [shares[task % self.size][task // self.size] for task in range(len(tasks))]
