"""The distances of one cohort with others: a row of tiles, made by one job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..core.files import checksum_path
from ..engine.backend import Backend
from ..engine.terms import Planes
from .fill_rows import RowWork, update_row
from .rows import Pair, Row, tile_key
from .tiles import measure_tile, sum_parts

#: Ending of a tile of distances.
TILE = (".npz",)


def measure_row(
    out: Path,
    pairs: Sequence[Pair],
    folders: Mapping[str, Path],
    backend: Callable[[int], Backend],
    *,
    metric: str,
    missing: str,
    code: str,
    part: int = 0,
    parts: int = 1,
    whole: Path | None = None,
) -> dict[str, int]:
    """Compute the tiles of a row that are missing or whose planes, options or code have changed.

    Parameters
    ----------
    out : Path
        ``distance/tiles/{owner}/row.json``, or of a part.
    pairs : list of pairs
        The row's pairs, each in sample order.
    folders : dict
        Folder of `planes.npy` and `planes.json` of each cohort of the row.
    backend : function
        See `fill_rows.fill_rows`.
    metric, missing, part, parts
        See `tiles.measure_tile`.
    code : str
        Digest of the code that computes tiles.
    whole : Path, optional
        With parts: the `row.json` of the whole row. Pairs whose tile there is as it should be get
        no part.

    Returns
    -------
    dict
        Counts for the log.
    """
    keys = _keys(pairs, folders, metric, missing, code)
    if parts > 1:
        row = Row(whole.parent, TILE)
        keys = {
            pair: f"{key} {part}/{parts}"
            for pair, key in keys.items()
            if not row.is_fresh(pair, key)
        }

    def compute(
        a: Path, b: Path, files: list[Path], chosen: Backend, held: Mapping[Path, Planes]
    ) -> dict[str, int]:
        options = {"metric": metric, "missing": missing, "part": part, "parts": parts}
        counts = measure_tile(a, b, files[0], chosen, **options, held=held)
        return {"site_pairs": counts["site_pairs"]}

    return update_row(RowWork(out, list(keys), TILE, keys, compute), folders, backend)


def sum_row(
    out: Path,
    parts: Sequence[Path],
    pairs: Sequence[Pair],
    folders: Mapping[str, Path],
    *,
    metric: str,
    missing: str,
    code: str,
) -> dict[str, int]:
    """Add the parts of a row's tiles, and remove them: same bytes as tiles made in one piece.

    Parameters
    ----------
    out : Path
        ``distance/tiles/{owner}/row.json``.
    parts : list of Path
        `row.json` of each part of the row.
    pairs, folders, metric, missing, code
        As in `measure_row`.
    """
    keys = _keys(pairs, folders, metric, missing, code)
    row, pieces = Row(out.parent, TILE), [Row(path.parent, TILE) for path in parts]
    row.folder.mkdir(parents=True, exist_ok=True)
    summed = 0
    for pair, key in keys.items():
        if row.is_fresh(pair, key):
            continue
        row.begin(pair)
        sum_parts([piece.paths(pair)[0] for piece in pieces], row.paths(pair)[0])
        row.finish(pair, key)
        summed += 1
    removed = row.close(keys, out)
    for piece, path in zip(pieces, parts, strict=True):  # Snakemake removes their lists
        piece.remove_all_but([])
        checksum_path(path).unlink(missing_ok=True)
    return {"tiles summed": summed, "tiles kept": len(keys) - summed, "files removed": removed}


def _keys(
    pairs: Sequence[Pair], folders: Mapping[str, Path], metric: str, missing: str, code: str
) -> dict[Pair, str]:
    return {pair: tile_key(pair, folders, metric, missing, code) for pair in pairs}
