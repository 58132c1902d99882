"""Products of standardised genotypes whose blocks of sites are shared among processes of MPI.

Each process reads every size-th block of a pass, and keeps blocks as `CpuProducts` does. Floating
sums of blocks are added as one process adds them, block after block: for that each process has a
share of the samples, and gets their rows of all blocks. So the bytes are those of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .genotype_products import Calls, Flips, SampleSums, site_blocks
from .genotype_products_cpu import CpuProducts
from .sample_sums import finished_sums, whole_sums
from .team import Team


class SharedProducts(CpuProducts):
    """`CpuProducts` of a team. The leader calls its methods, and only there the results are whole.

    Every process of the team makes one, of the same calls; the latest one is in use.
    """

    def __init__(self, calls: Calls, threads: int, team: Team) -> None:
        super().__init__(calls, threads)
        self.team, self.shares = team, team.size
        self.flips: Flips | None = None
        team.products = self

    def sample_sums(self) -> SampleSums:
        return self.team.call(_sample_sums)

    def normal(self, vectors: np.ndarray, factors: np.ndarray | None = None) -> np.ndarray:
        return self.team.call(_answer, "normal", vectors, factors)

    def joint(self, vectors: np.ndarray) -> np.ndarray:
        return self.team.call(_answer, "joint", vectors)

    def project(self, vectors: np.ndarray) -> np.ndarray:
        return self.team.call(_answer, "project", vectors)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        return self.team.call(_answer, "combine", weights)

    def flipped(self, vectors: np.ndarray, flips: Flips) -> np.ndarray:
        self._send(flips)
        return self.team.call(_answer_flips, "flipped", vectors)

    def spread_by_person(self, flips: Flips) -> np.ndarray:
        self._send(flips)
        return self.team.call(_answer_flips, "spread_by_person")

    def _send(self, flips: Flips) -> None:
        """Signs are as large as many passes' vectors, so they are sent once."""
        if self.flips is not flips:
            self.team.call(_keep_flips, flips)

    def _own(self, work: Callable, blocks: list[tuple[int, int]]) -> Iterator[Any]:
        """Results of this process's blocks, in order."""
        return super()._each(work, blocks[self.team.rank :: self.team.size])

    def _each(
        self, work: Callable[[Any, int, int], Any], blocks: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        """Results of all blocks for the leader. The others have zeros, of which nothing is used."""
        blocks, comm = list(blocks), self.team.comm
        own = self._own(work, blocks)
        if self.team.rank:
            for one in own:
                comm.send(one, 0)
            yield from (np.zeros((1, 2)) for _ in blocks)
            return
        for place in range(len(blocks)):
            owner = place % self.team.size
            yield comm.recv(source=owner) if owner else next(own)

    def _sum(self, work: Callable, blocks: list[tuple[int, int]], k: int) -> np.ndarray | None:
        """Sums of all blocks for each sample, (n, k), for the leader.

        In each round every process has one block. It gets its own samples' rows of all of them.
        """
        comm, rank, size = self.team.comm, self.team.rank, self.team.size
        bounds = np.arange(size + 1) * self.n_places // size * k
        counts, starts = np.diff(bounds), bounds[:-1]
        total = np.zeros(counts[rank])
        own = self._own(work, blocks)
        for first in range(0, len(blocks), size):
            there = min(size, len(blocks) - first)  # processes with a block
            one, sent = np.empty(0), np.zeros(size, np.int64)
            if rank < there:
                one, sent = np.ascontiguousarray(next(own)).ravel(), counts
            taken = np.where(np.arange(size) < there, counts[rank], 0)
            rows = np.empty((there, counts[rank]))
            places = np.minimum(np.arange(size), there) * counts[rank]
            self.team.meet()
            comm.Alltoallv([one, (sent, starts)], [rows, (taken, places)])
            for row in rows:
                total += row
        whole = np.empty(bounds[-1]) if rank == 0 else None
        comm.Gatherv(total, None if whole is None else [whole, (counts, starts)])
        return None if whole is None else whole.reshape(self.n_places, k)[self._where]


# What every process does when the leader calls. `CpuProducts` has the method itself, whose sums are
# those of `SharedProducts`.


def _answer(team: Team, method: str, *given: Any) -> Any:
    return getattr(CpuProducts, method)(team.products, *given)


def _answer_flips(team: Team, method: str, *given: Any) -> Any:
    return getattr(CpuProducts, method)(team.products, *given, team.products.flips)


def _keep_flips(team: Team, flips: Flips) -> None:
    team.products.flips = flips


def _sample_sums(team: Team) -> SampleSums:
    products = team.products
    blocks = site_blocks(products.calls.n_sites)[team.rank :: team.size]
    sums, joint = whole_sums(products.calls, products.threads, blocks)
    return finished_sums(team.comm.allreduce(sums), team.comm.allreduce(joint))
