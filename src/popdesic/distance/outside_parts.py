"""The nearest founder outside a part, by products of planes (`founder_tree.Outside`).

Parts are halved again and again. Founders of one half are compared with those of the other, so that
each pair of founders of different parts is looked at once for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..engine.backend import Backend
from ..engine.plane_parts import PlaneParts
from ..engine.terms import Planes
from ..io.sites import chunks
from .find_nearest import nearest_between
from .nearest import Measure

#: Most founders whose planes are compared at a time, and bytes of them; bytes of those that are
#: gathered once for all they are compared with.
MOST_OF_BLOCK, BLOCK_BYTES, KEPT_BYTES = 1 << 14, 1 << 28, 1 << 31


class OutsideParts:
    """The nearest founder outside its part of some founders, exact, of equals the first.

    Parameters
    ----------
    planes : PlaneParts
        Of all founders, in their order, with the mask that distances ask for.
    backend : function
        Gives the backend when it is needed.
    measure : Measure
    """

    def __init__(
        self, planes: PlaneParts, backend: Callable[[], Backend], measure: Measure
    ) -> None:
        self.planes, self.measure, self._backend = planes, measure, backend
        row = 8 * planes.n_planes * planes.n_words
        self.block = int(np.clip(BLOCK_BYTES // max(row, 1), 1, MOST_OF_BLOCK))
        self.kept = KEPT_BYTES // max(row, 1)

    @property
    def block_shape(self) -> tuple[int, int, int]:
        """Of the planes that are compared at a time."""
        return self.block, self.planes.n_planes, self.planes.n_words

    def __call__(
        self, which: np.ndarray, part: np.ndarray, best: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `founder_tree.Outside`."""
        n = self.planes.n_samples
        asked = np.zeros(n, bool)
        asked[which] = True
        far, other = np.full(n, np.inf), np.full(n, n)
        order = np.argsort(part, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(part))[:-1])
        for some, others in _halves([who for who in members if len(who)]):
            few, fewer = some[asked[some]], others[asked[others]]
            if len(few) * len(others) + len(some) * len(fewer) < len(some) * len(others):
                self._compare(few, others, far, other)
                self._compare(fewer, some, far, other)
            else:
                self._compare(some, others, far, other)
        return far[which], other[which]

    def _compare(
        self, some: np.ndarray, others: np.ndarray, far: np.ndarray, near: np.ndarray
    ) -> None:
        """Offer two sets of founders to each other."""
        if not len(some) or not len(others):
            return
        backend = self._backend()
        if len(some) > len(others):
            some, others = others, some
        bounds = list(chunks(len(others), self.block))
        held: dict[int, Planes] = {}
        for first, last in chunks(len(some), self.block):
            own = some[first:last]
            planes = backend.keep_planes(self._planes_of(own))
            for start, end in bounds:
                theirs = others[start:end]
                known = held.get(start)
                if known is None:
                    known = backend.keep_planes(self._planes_of(theirs))
                    if end <= self.kept and last < len(some):
                        held[start] = known
                lists = nearest_between(backend, planes, known, self.measure, 1)
                for mine, found, whom in ((own, lists[0], theirs), (theirs, lists[1], own)):
                    value, number = found.distance[:, 0], whom[found.index[:, 0]]
                    nearer = (value < far[mine]) | ((value == far[mine]) & (number < near[mine]))
                    far[mine[nearer]], near[mine[nearer]] = value[nearer], number[nearer]

    def _planes_of(self, who: np.ndarray) -> Planes:
        """Planes of some founders, a copy."""
        planes = self.planes
        words = np.empty((len(who), planes.n_planes, planes.n_words), np.uint64)
        for start, part in zip(planes.starts, planes.parts, strict=False):
            mine = np.flatnonzero((who >= start) & (who < start + part.n_samples))
            if len(mine):
                taken = part.words[who[mine] - start, :, : planes.n_words]
                piece = Planes(taken, planes.n_sites)
                words[mine] = (piece if planes.n_planes == 2 else piece.with_mask()).words
        return Planes(words, planes.n_sites)


def _halves(members: list[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both halves of some parts, then of each half, until each is one part; `members` of each."""
    waiting = [members]
    while waiting:
        parts = waiting.pop()
        if len(parts) < 2:
            continue
        ends = np.cumsum([len(who) for who in parts])
        cut = int(np.clip(np.searchsorted(ends, ends[-1] / 2) + 1, 1, len(parts) - 1))
        halves = parts[:cut], parts[cut:]
        yield tuple(np.sort(np.concatenate(half)) for half in halves)
        waiting.extend(halves)
