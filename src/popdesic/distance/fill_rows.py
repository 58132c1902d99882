"""Compute what is missing or changed of rows of tiles (`rows.py`), one or several at once.

Planes are what a row reads. So the tiles of several stages, and of several rows whose planes a
device keeps, are computed while the planes of another cohort are at hand.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..cohort.planes import load_planes
from ..core.files import flushing_together
from ..engine.backend import Backend
from ..engine.needs import product_bytes
from ..engine.terms import Planes
from .rows import Pair, Row, other_of

log = logging.getLogger(__name__)
#: Planes are read ahead if they are smaller than this share of the machine's memory, in blocks.
AHEAD_SHARE, AHEAD_BYTES = 0.35, 8 << 20
#: Cohorts whose rows are computed together, so that the planes of others are read a third as often:
#: three with 10 000 samples and 10 million sites fit a device of 141 GB.
ROWS_TOGETHER = 3


@dataclass(frozen=True)
class RowWork:
    """One row of one stage.

    Attributes
    ----------
    out : Path
        `row.json` in the owner's folder.
    pairs : list of pairs
        From `Rows.pairs`.
    endings : tuple of str
        Endings of the files of one tile.
    keys : dict
        Key of each pair (`rows.tile_key`).
    compute : function
        Writes the tile of a pair; its arguments are both folders of planes, the files of the tile,
        the backend and planes that this has at hand, by folder. Returns counts for the log.
    label : str
        Before the names of these counts.
    """

    out: Path
    pairs: Sequence[Pair]
    endings: tuple[str, ...]
    keys: Mapping[Pair, str]
    compute: Callable[[Path, Path, list[Path], Backend, Mapping[Path, Planes]], dict[str, int]]
    label: str = ""

    @property
    def row(self) -> Row:
        return Row(self.out.parent, self.endings)

    def stale(self) -> list[Pair]:
        """Pairs whose tile is missing or was made with another key."""
        self.out.parent.mkdir(parents=True, exist_ok=True)
        return [pair for pair in self.pairs if not self.row.is_fresh(pair, self.keys[pair])]


#: A tile to be computed.
Task = tuple[RowWork, Pair]


def together(order: Sequence[str]) -> dict[str, list[str]]:
    """Cohorts whose rows are computed together, by the first one of each group.

    `order`: cohorts in sample order.
    """
    return {
        order[first]: list(order[first : first + ROWS_TOGETHER])
        for first in range(0, len(order), ROWS_TOGETHER)
    }


def leader_of(row: str, order: Sequence[str]) -> str:
    """The first cohort of the group of a row."""
    return order[order.index(row) // ROWS_TOGETHER * ROWS_TOGETHER]


def read_ahead(cohorts: Sequence[str], folders: Mapping[str, Path]) -> Iterator[str]:
    """Yield cohorts; meanwhile a thread reads the planes of the next one.

    It reads them into the system's cache of files, where memory maps find them.
    """
    stopped = threading.Event()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def fetch(path: Path) -> None:
        if path.stat().st_size > AHEAD_SHARE * memory:
            return
        block = bytearray(AHEAD_BYTES)
        with open(path, "rb", buffering=0) as file:
            while not stopped.is_set() and file.readinto(block):
                pass

    with ThreadPoolExecutor(1) as reader:
        try:
            for place, cohort in enumerate(cohorts):
                if place + 1 < len(cohorts):
                    reader.submit(fetch, folders[cohorts[place + 1]] / "planes.npy")
                yield cohort
        finally:
            stopped.set()


def fill_rows(
    works: Sequence[RowWork], folders: Mapping[str, Path], backend: Callable[[int], Backend]
) -> dict[str, int]:
    """Compute the tiles of some rows whose key has changed; keep the others.

    Parameters
    ----------
    works : list of RowWork
        Rows of one or several stages.
    folders : dict
        Folder of the planes of each cohort of the rows.
    backend : function
        Gives the backend, which is asked for only if there is something to compute; its argument
        is the memory in bytes that the largest product needs on a device.

    Returns
    -------
    dict
        Tiles computed, tiles kept, and the sums of what `RowWork.compute` counted.
    """
    tasks = [(work, pair) for work in works for pair in work.stale()]
    n_tiles = sum(len(work.pairs) for work in works)
    counts = {"tiles computed": len(tasks), "tiles kept": n_tiles - len(tasks)}
    if not tasks:
        return counts
    owners = list(dict.fromkeys(work.row.owner for work, _ in tasks))
    chosen = backend(_need(tasks, owners, folders))
    log.info("device: %s", chosen.describe())
    while owners:
        held = _keep(owners, folders, chosen)
        now, owners = owners[: len(held)], owners[len(held) :]
        for other, some in _visits(tasks, now, folders):
            at_hand = held
            if other and len(some) > 1:
                planes = load_planes(folders[other])[0]
                at_hand = held | {folders[other]: chosen.keep_planes(planes)}
            for work, pair in some:
                _compute(work, pair, folders, chosen, at_hand, counts)
    return counts


def _need(tasks: Sequence[Task], owners: Sequence[str], folders: Mapping[str, Path]) -> int:
    """Device memory with which tiles are computed at full speed."""
    cohorts = dict.fromkeys(cohort for _, pair in tasks for cohort in pair)
    shapes = {cohort: load_planes(folders[cohort])[0].words.shape for cohort in cohorts}
    own = max((shapes[owner] for owner in owners), key=math.prod)
    need = product_bytes(own, list(shapes.values()))
    if len(tasks) > len(cohorts):  # several tiles of a pair: its planes are kept too
        need += 8 * sum(sorted(map(math.prod, shapes.values()))[-len(owners) :])
    return need


def _keep(
    owners: Sequence[str], folders: Mapping[str, Path], backend: Backend
) -> dict[Path, Planes]:
    """Planes of the first of some cohorts, as many as the backend keeps at hand; at least one."""
    held: dict[Path, Planes] = {}
    for owner in owners:
        planes = load_planes(folders[owner])[0]
        kept = backend.keep_planes(planes)
        if held and kept is planes and backend.name != "cpu":
            break
        held[folders[owner]] = kept
    return held


def _visits(
    tasks: Sequence[Task], owners: Sequence[str], folders: Mapping[str, Path]
) -> Iterator[tuple[str | None, list[Task]]]:
    """Tiles of some rows, cohort by cohort of those that they are compared with.

    Tiles of the rows' own cohorts come last (None): the one of a row with itself, which says that
    the cohort has a row, is the row's last.
    """
    outside: dict[str, list[Task]] = {}
    inside: list[Task] = []
    for work, pair in tasks:
        owner = work.row.owner
        if owner in owners:
            other = other_of(owner, pair)
            (inside if other in owners else outside.setdefault(other, [])).append((work, pair))
    for other in read_ahead(list(outside), folders):
        yield other, outside[other]
    yield None, sorted(inside, key=lambda task: owners.index(task[0].row.owner))


def _compute(
    work: RowWork,
    pair: Pair,
    folders: Mapping[str, Path],
    backend: Backend,
    held: Mapping[Path, Planes],
    counts: dict[str, int],
) -> None:
    """Compute one tile, and add what it counts."""
    row, (a, b) = work.row, pair
    row.begin(pair)
    found = work.compute(folders[a], folders[b], row.paths(pair), backend, held)
    row.finish(pair, work.keys[pair])
    for name, value in found.items():
        counts[work.label + name] = counts.get(work.label + name, 0) + value


def update_rows(
    works: Sequence[RowWork],
    folders: Mapping[str, Path],
    backend: Callable[[int], Backend],
    owner: str | None = None,
) -> dict[str, int]:
    """Make rows: compute the tiles whose key has changed, keep the others, remove what is left.

    Parameters
    ----------
    works, folders, backend
        See `fill_rows`.
    owner : str, optional
        The cohort whose rows are listed; those of other cohorts are filled, and listed by jobs of
        theirs. By default all are listed.

    Returns
    -------
    dict
        As `fill_rows`, and files removed.
    """
    with flushing_together():
        counts = fill_rows(works, folders, backend)
    own = [work for work in works if owner in (None, work.row.owner)]
    counts["files removed"] = sum(work.row.close(work.keys, work.out) for work in own)
    return counts
