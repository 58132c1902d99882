"""The distances of one cohort with others: a row of tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..engine.backend import Backend
from ..engine.terms import Planes
from .fill_rows import RowWork
from .measure_tile import measure_tile
from .rows import Pair, tile_key

#: Ending of a tile of distances.
TILE = (".npz",)


def row_work(
    out: Path,
    pairs: Sequence[Pair],
    folders: Mapping[str, Path],
    *,
    metric: str,
    missing: str,
    code: str,
) -> RowWork:
    """The integer distances between a cohort and others.

    Parameters
    ----------
    out : Path
        ``distance/tiles/{owner}/row.json``; the tiles lie beside it (`measure_tile.measure_tile`).
    pairs : list of pairs
        The row's pairs, each in sample order.
    folders : dict
        Folder of `planes.npy` and `planes.json` of each cohort of the row.
    metric, missing
        See `measure_tile.measure_tile`.
    code : str
        Digest of the code that computes tiles.
    """

    def compute(
        a: Path, b: Path, files: list[Path], chosen: Backend, held: Mapping[Path, Planes]
    ) -> dict[str, int]:
        counts = measure_tile(a, b, files[0], chosen, metric=metric, missing=missing, held=held)
        return {"site_pairs": counts["site_pairs"]}

    keys = {pair: tile_key(pair, folders, metric, missing, code) for pair in pairs}
    return RowWork(out, pairs, TILE, keys, compute)
