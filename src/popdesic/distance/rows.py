"""Rows of tiles: which cohort a pair of cohorts belongs to, and what of a row is computed again.

A tile holds the results of one pair of cohorts. A row is the tiles of one cohort, its owner, with
other cohorts and with itself. One job makes a row, in the owner's folder: the tile of `owner` and
`other` is ``tiles/{owner}/{other}{ending}``, and ``row.json`` lists the row's tiles. Beside every
tile lies its key: a digest of all that decides its bytes. A job that runs again computes only
tiles whose key has changed, and leaves the files of the others as they are (`fill_rows.py`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from ..core.errors import UserError
from ..core.files import content_key, digest, read_json
from ..core.row import ROW, Pair, Row, kept_key, other_of


class Rows:
    """Which row each pair of a study's cohorts belongs to.

    1. A pair of a founder and a newcomer belongs to the newcomer. The founders' rows thus hold
       pairs of founders alone.
    2. A pair whose tile exists belongs to the cohort in whose folder it lies.
    3. A pair of which one cohort has no row yet belongs to that one: it arrives.
    4. Otherwise a pair belongs to the later cohort in sample order.

    So a cohort that arrives runs one row, wherever it stands in the sheet. Only the tiles on disk
    are asked, and every process of a run finds the same rows, because a row's own tile, which
    says that the cohort has a row, is written last.

    Parameters
    ----------
    folder : Path
        The folder of the rows.
    order : list of str
        Cohorts in sample order.
    founders : collection of str
    ending : str
        Ending of a tile's file.
    """

    def __init__(
        self, folder: Path, order: Sequence[str], founders: Iterable[str], ending: str
    ) -> None:
        self.folder, self.order, self.ending = folder, list(order), ending
        self.founders = set(founders)

    @functools.cached_property
    def _held(self) -> dict[str, set[str]]:
        """Names of the files in each cohort's folder."""
        held: dict[str, set[str]] = {}
        for cohort in self.order:
            try:
                held[cohort] = set(os.listdir(self.folder / cohort))  # noqa: PTH208 - only names
            except FileNotFoundError:
                held[cohort] = set()
        return held

    def _holds(self, owner: str, other: str) -> bool:
        return other + self.ending in self._held[owner]

    def owner(self, a: str, b: str) -> str:
        """The cohort whose row has the tile of a and b; a is b or comes before b in the order."""
        if a in self.founders and b not in self.founders:
            return b
        for one, other in ((b, a), (a, b)):
            if self._holds(one, other):
                return one
        for one, other in ((b, a), (a, b)):
            if not self._holds(one, one) and self._holds(other, other):
                return one
        return b

    @functools.cached_property
    def by_row(self) -> dict[str, list[Pair]]:
        """Pairs of each row, as from `pairs`."""
        rows: dict[str, list[Pair]] = {cohort: [] for cohort in self.order}
        for i, a in enumerate(self.order):
            for b in self.order[i + 1 :]:
                rows[self.owner(a, b)].append((a, b))
        for cohort, pairs in rows.items():
            pairs.append((cohort, cohort))  # last: it says that the cohort has a row
        return rows

    def pairs(self, row: str) -> list[Pair]:
        """Pairs of a row, in sample order, the owner with itself last."""
        return self.by_row[row]

    def lost(self) -> list[str]:
        """Rows that are listed as made but lack a tile, by name; their jobs have to run again."""
        return [
            row
            for row in self.order
            if ROW in self._held[row]
            and not all(self._holds(row, other_of(row, pair)) for pair in self.by_row[row])
        ]


def study_rows(study: Path, order: Sequence[str], founders: Iterable[str]) -> dict[str, Rows]:
    """The rows of a study by stage: ``distance``, ``compare`` and ``ibd``."""
    endings = {"distance": ".npz", "compare": ".kinship.tsv", "ibd": ".segments.tsv.gz"}
    return {
        stage: Rows(study / f"results/{stage}/tiles", order, founders, ending)
        for stage, ending in endings.items()
    }


def folders_of(planes: Iterable[Path | str]) -> dict[str, Path]:
    """Folder of each cohort, by name, of the files of its planes."""
    return {Path(path).parent.name: Path(path).parent for path in planes}


def tile_key(pair: Pair, folders: Mapping[str, Path], *rest: object) -> str:
    """Digest of all that decides a tile: both cohorts' planes, and what the caller adds."""
    planes = [
        content_key(folders[cohort] / name)
        for cohort in pair
        for name in ("planes.npy", "planes.json")
    ]
    return digest(repr([*pair, *planes, *rest]))


def read_tiles(rows: Iterable[Path | str], ending: str, *, closed: bool = True) -> dict[Pair, Path]:
    """The tiles that rows list, by pair, sorted by name.

    Parameters
    ----------
    rows : iterable of Path
        `row.json` of each row.
    ending : str
        Of the tile's file that is wanted.
    closed : bool
        Together the rows have to hold all pairs of their cohorts, and no others.

    Raises
    ------
    UserError
        A list is damaged, a tile is missing or was made for another row than its list, or the rows
        lack a pair of their cohorts or have one of another cohort.
    """
    found, lists = {}, {Path(path).parent.name: Path(path) for path in rows}
    for path in lists.values():
        row = Row(path.parent, (ending,))
        try:
            listed = [(a, b, key) for a, b, key in read_json(path)["tiles"]]
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path} is damaged; delete it and run again.") from None
        for a, b, key in listed:
            (tile,) = row.paths((a, b))
            if not tile.is_file() or kept_key(row, (a, b)) != key:
                wrong = "is missing" if not tile.is_file() else "is not the one that the row lists"
                raise UserError(f"{tile} {wrong}; delete {path} and run again.")
            if closed and (a not in lists or b not in lists):
                raise UserError(
                    f"{path} lists the pair of {a} and {b}, which are not both asked for; delete "
                    "it and run again."
                )
            found[a, b] = tile
    for one, other in combinations(lists, 2) if closed else ():
        if (one, other) not in found and (other, one) not in found:
            raise UserError(
                f"neither {lists[one]} nor {lists[other]} lists the pair of {one} and {other}; "
                "delete both and run again."
            )
    return dict(sorted(found.items()))
