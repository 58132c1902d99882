"""The distances of a study by its store: all pairs (``dense``) or the nearest (``near``).

`Study.store` says which one a study has. Rows of tiles, their joining and readers ask here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.files import read_json
from . import measure_row, neighbors
from .fill_rows import RowWork
from .landmarks import NearDistances, landmarks_of_cohorts, read_landmarks, read_neighbors
from .matrix import Distances
from .neighbor_lists import join_neighbors
from .rows import Pair, read_tiles
from .tiles import assemble_tiles


def row_work(
    store: str,
    out: Path,
    pairs: Sequence[Pair],
    folders: Mapping[str, Path],
    founders: Mapping[str, Path],
    *,
    code: str,
    **options: Any,
) -> RowWork:
    """A row of tiles of distances.

    Parameters
    ----------
    store : {'dense', 'near'}
    out : Path
        ``distance/tiles/{owner}/row.json``.
    pairs : list of pairs
        The row's pairs, each in sample order.
    folders : dict
        Folder of `planes.npy` and `planes.json` of each cohort of the row.
    founders : dict
        `planes.json` of each founder cohort, of whom some are landmarks of the near store.
    code : str
        Digest of the code that computes tiles.
    options
        Of `measure_row.row_work`, or of `neighbors.row_work` without `landmarks`.
    """
    if store == "dense":
        return measure_row.row_work(out, pairs, folders, code=code, **options)
    sizes = {cohort: len(read_json(path)["samples"]) for cohort, path in founders.items()}
    landmarks = landmarks_of_cohorts(sizes)
    return neighbors.row_work(out, pairs, folders, landmarks=landmarks, code=code, **options)


def join_rows(
    store: str,
    rows: Sequence[Path],
    order: Sequence[str],
    founders: Sequence[str],
    out: Path,
    *,
    k: int,
    metric: str,
    min_called: int,
    on_uncomparable: str,
    threads: int = 1,
) -> dict[str, int]:
    """Join the tiles of all rows into what later stages read.

    Parameters
    ----------
    store : {'dense', 'near'}
    rows : list of Path
        `row.json` of each cohort.
    order, founders : list of str
        All cohorts and the founder cohorts, in sample order.
    out : Path
        Folder `distance`: see `tiles.assemble_tiles` and `neighbor_lists.join_neighbors`, which
        takes `founder_tree.npz` from there.
    k : int
        Of the near store: nearest samples of everyone.
    metric, min_called, on_uncomparable, threads
        As those take them.

    Returns
    -------
    dict
        Counts for the log.
    """
    limits: dict[str, Any] = {"min_called": min_called, "on_uncomparable": on_uncomparable}
    limits["threads"] = threads
    if store == "dense":
        tiles = read_tiles(rows, measure_row.TILE[0])
        return assemble_tiles(tiles, list(order), out, metric=metric, **limits)
    files = (out / name for name in ("neighbors.npz", "landmarks.npy"))
    return join_neighbors(rows, out / "founder_tree.npz", order, founders, *files, k=k, **limits)


def open_distances(
    store: str, folder: Path, *, metric: str, n_sites: int, min_called: int, threads: int = 1
) -> Distances | NearDistances:
    """The distances below `results/distance`, of a study with or without all pairs."""
    if store == "dense":
        return Distances(folder, metric, n_sites, min_called, threads)
    lists = read_neighbors(folder / "neighbors.npz")
    return NearDistances(lists, read_landmarks(folder / "landmarks.npy", lists.landmarks, metric))
