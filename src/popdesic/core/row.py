"""A row of tiles on disk: parts of a result that a job keeps for its next run.

Beside every tile lies its key: a digest of all that decides its bytes. A job that runs again makes
only tiles whose key has changed. Tiles are of pairs of cohorts; where they are of one cohort each,
the row is named by its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import checksum_of, checksum_path, is_dated, kept_checksum, record_path, write_json
from .threads import run_forked

#: Name of the list of a row's tiles.
ROW = "row.json"

#: Two cohorts, the first one earlier in sample order; or one cohort twice.
Pair = tuple[str, str]


def other_of(row: str, pair: Pair) -> str:
    """The cohort that is not the row's; the row's own of the pair with itself."""
    a, b = pair
    return a if b == row else b


@dataclass(frozen=True)
class Row:
    """The tiles of one row on disk.

    Attributes
    ----------
    folder : Path
        The owner's folder.
    endings : tuple of str
        Endings of the files of one tile.
    unread : tuple of str
        Those of large files whose size and date tell whether they are as they were written.
    """

    folder: Path
    endings: tuple[str, ...]
    unread: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        return self.folder.name

    def paths(self, pair: Pair) -> list[Path]:
        """Files of a tile, one for each ending."""
        other = other_of(self.owner, pair)
        return [self.folder / f"{other}{ending}" for ending in self.endings]

    def _key_path(self, other: str) -> Path:
        return self.folder / f".{other}.key"

    def is_fresh(self, pair: Pair, key: str) -> bool:
        """Whether the tile was made with this key and is as it was written."""
        kept = kept_key(self, pair)
        return kept == key and all(map(self._is_intact, self.paths(pair)))

    def _is_intact(self, path: Path) -> bool:
        if path.name.endswith(self.unread):
            return path.is_file() and is_dated(path)
        return is_intact(path)

    def begin(self, pair: Pair) -> None:
        """A tile is about to be written: its key is valid no more."""
        self._key_path(other_of(self.owner, pair)).unlink(missing_ok=True)

    def finish(self, pair: Pair, key: str) -> None:
        """All files of a tile were written with this key."""
        path = self._key_path(other_of(self.owner, pair))
        temporary = path.with_name(f"{path.name}.tmp")
        temporary.write_text(key, "utf-8")
        temporary.replace(path)

    def close(self, keys: Mapping[Pair, str], out: Path) -> int:
        """Remove tiles of cohorts that are not in the row any more, and write `out`, its list.

        Returns
        -------
        int
            Files removed.
        """
        removed = self.remove_all_but(keys)
        write_json(out, {"cohort": self.owner, "tiles": [[*p, key] for p, key in keys.items()]})
        return removed

    def remove_all_but(self, pairs: Iterable[Pair]) -> int:
        """Remove all tiles but those of some pairs; return the number of files removed."""
        pairs = list(pairs)
        kept = {path for pair in pairs for path in self.paths(pair)}
        others = {other_of(self.owner, pair) for pair in pairs}
        removed = 0
        for path in list(self.folder.iterdir()):
            name = path.name
            if name.startswith("."):
                if name.endswith(".key") and name[1:-4] not in others:
                    path.unlink(missing_ok=True)
            elif name.endswith(self.endings) and path not in kept:
                for left in (path, checksum_path(path), record_path(path)):
                    left.unlink(missing_ok=True)
                removed += 1
        return removed


def renew_cohorts(
    out: Path,
    endings: tuple[str, ...],
    keys: Mapping[str, str],
    make: Callable[[str, list[Path]], Any],
    processes: int = 1,
    unread: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Make the tiles of single cohorts whose key has changed, and write the list of their row.

    Parameters
    ----------
    out : Path
        ``row.json`` in the folder of the tiles.
    keys : dict
        Of all cohorts of the row.
    make : callable
        Given a cohort and the files of its tile, one for each ending, writes them.
    processes : int
        Cohorts at a time; copies of this process make them if there are several.
    unread : tuple of str
        Endings as of `Row`.

    Returns
    -------
    dict
        What `make` returned, by the cohorts that were made.
    """
    row = Row(out.parent, endings, unread)
    row.folder.mkdir(parents=True, exist_ok=True)
    pairs = {(cohort, row.owner): key for cohort, key in keys.items()}

    def renew(pair: Pair) -> Any:
        row.begin(pair)
        found = make(pair[0], row.paths(pair))
        row.finish(pair, pairs[pair])
        return found

    stale = [pair for pair, key in pairs.items() if not row.is_fresh(pair, key)]
    made = run_forked(renew, [(pair,) for pair in stale], processes)
    row.close(pairs, out)
    return {pair[0]: found for pair, found in zip(stale, made, strict=True)}


def kept_key(row: Row, pair: Pair) -> str:
    """The key that lies beside a tile; empty if there is none."""
    try:
        return row._key_path(other_of(row.owner, pair)).read_text("utf-8", "replace")
    except OSError:
        return ""


def is_intact(path: Path) -> bool:
    """Whether a result has the checksum with which it was written."""
    kept = kept_checksum(path)
    return bool(kept) and path.is_file() and kept[:2] == checksum_of(path).split()
