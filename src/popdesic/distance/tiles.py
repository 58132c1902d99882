"""Tiles of pairwise counts, cohort x cohort, and their assembly into the study's matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.planes import load_planes
from ..core.errors import UserError
from ..core.tables import write_npy, write_table
from ..core.threads import run_tasks
from ..core.triangle import PackedCounts, Tiled, write_triangle
from ..engine.backend import Backend
from ..engine.plane_parts import PlaneParts
from ..engine.terms import SQUARED, SQUARED_IBS0, SQUARED_SUMS, Planes
from ..io.sites import chunks

#: What the tiles of a metric hold: `ibs0` is the number of opposite homozygotes; `sums_a`,
#: `squares_a` are the sums of a's genotypes and of their squares over the sites called in b too.
_TERMS = {
    "euclidean": SQUARED,
    "manhattan": SQUARED_IBS0,
    "ibs": SQUARED_IBS0,
    "normalized": SQUARED_SUMS,
}
#: Matrices of a study that are symmetric: their files have the triangle, or name the tiles.
SYMMETRIC = ("squared", "called", "ibs0")
#: Numbers of a tile on average from which on a study's matrices are not written beside the tiles:
#: of smaller ones every reader would open too many files.
TILE_NUMBERS = 1 << 16
#: Rows of a tile that are turned together, so that a cache holds them; rows of a matrix in which
#: one task counts pairs.
TURNED_ROWS, COUNTED_ROWS = 64, 512


def within_panel(min_called: int, n_sites: int) -> int:
    """Fewest jointly called sites of two samples that are compared on a panel of `n_sites`.

    `distance.min_called`; on a panel of fewer sites, where no pair could be compared, half of it.
    """
    return min_called if n_sites >= min_called else max(1, -(-n_sites // 2))


def limit_in_words(min_called: int, n_sites: int) -> str:
    """`within_panel`, as messages name it."""
    least = within_panel(min_called, n_sites)
    half = f", of which {least} suffice on a panel of {n_sites} sites" if least < min_called else ""
    return f"distance.min_called = {min_called}{half}"


def tile_outputs(metric: str) -> tuple[str, ...]:
    """Names of the integer matrices that the tiles hold for `metric`."""
    return _TERMS[metric].outputs


def count_type(n_sites: int, ploidy: int = 2) -> type[np.signedinteger]:
    """Number type of counts over so many sites: none exceeds their number by the squared ploidy."""
    return np.int32 if ploidy**2 * n_sites <= np.iinfo(np.int32).max else np.int64


def tile_counts(tile: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """A matrix of a tile, (n_a, n_b)."""
    return PackedCounts.of(tile, name)[:]


def refers_to_tiles(metric: str, sizes: Sequence[int]) -> bool:
    """Whether the matrices of a study name its tiles instead of having their numbers again."""
    tiles = len(sizes) * (len(sizes) + 1) // 2
    large = sum(sizes) ** 2 // 2 >= TILE_NUMBERS * tiles
    return large and set(study_matrices(metric)) <= set(SYMMETRIC)


def pairwise_counts(
    a: Planes, b: Planes | None, backend: Backend, *, metric: str, missing: str
) -> dict[str, np.ndarray]:
    """Exact integer counts from which the distances of all pairs of samples are computed.

    Parameters
    ----------
    a, b : Planes
        Blocks of m and n samples over the same sites. ``b=None`` compares a with itself.
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
    missing : {'pairwise', 'imputed'}
        ``pairwise``: jointly called sites; ``imputed``: all sites, imputed genotypes included.

    Returns
    -------
    dict of int64 arrays, (m, n)
        Named as in `tile_outputs`.
    """
    if missing == "imputed":
        a, b = a.without_mask(), None if b is None else b.without_mask()
    terms = _TERMS[metric]
    return dict(zip(terms.outputs, backend.bitgemm(a, b, terms), strict=True))


def load_of_one_panel(folders: Sequence[Path]) -> list[tuple[Planes, dict]]:
    """`load_planes` of each folder; a `UserError` if two were encoded on different panels."""
    loaded = {folder: load_planes(folder) for folder in dict.fromkeys(folders)}
    for folder, (_, about) in loaded.items():
        require_one_panel(folders[0], loaded[folders[0]][1], folder, about)
    return [loaded[folder] for folder in folders]


def require_one_panel(folder_a: Path, about_a: dict, folder_b: Path, about_b: dict) -> None:
    """Raise a `UserError` if two cohorts were encoded on different panels."""
    if about_a["panel"] != about_b["panel"]:
        raise UserError(
            f"{folder_b}/planes.json: encoded on panel {about_b['panel']}, but {folder_a} on "
            f"{about_a['panel']}; delete both planes.npy and rerun."
        )


@dataclass(frozen=True)
class People:
    """The samples of some cohorts, in sample order, and the digest of their panel."""

    samples: list[str]
    cohorts: list[str]
    panel: str


def load_cohorts(folders: Sequence[Path]) -> tuple[PlaneParts, People]:
    """Planes of some cohorts, memory-mapped, and their samples.

    Parameters
    ----------
    folders : list of Path
        Folders of `planes.npy`, in sample order; their names are the cohorts'.

    Raises
    ------
    UserError
        Cohorts were encoded on different panels.
    """
    loaded = load_of_one_panel(folders)
    samples = [name for _, about in loaded for name in about["samples"]]
    names = [folder.name for folder in folders]
    cohorts = [
        name for name, (_, about) in zip(names, loaded, strict=True) for _ in about["samples"]
    ]
    planes = PlaneParts.of([part for part, _ in loaded])
    return planes, People(samples, cohorts, loaded[0][1]["panel"])


def assemble_tiles(
    tiles: dict[tuple[str, str], Path],
    order: list[str],
    out: Path,
    *,
    metric: str,
    min_called: int,
    on_uncomparable: str,
    threads: int = 1,
) -> dict[str, int]:
    """Assemble the tiles of all cohort pairs into the study's matrices.

    Parameters
    ----------
    tiles : dict
        Tile of each pair (a, b), with a before or equal to b in `order` (`rows.read_tiles`).
    out : Path
        Folder for the matrices named by `study_matrices`, `.npy` of `count_type`: the triangle of
        those in SYMMETRIC, (n, n) of others; or, of large tiles, their names (`refers_to_tiles`).
        `triangle.open_symmetric` reads all. And `samples.tsv` (sample, cohort), which gives the
        order of rows and columns.
    min_called, on_uncomparable
        Action for pairs with fewer jointly called sites (`within_panel`): ``error``; ``drop`` the
        sample with more missing genotypes until no such pair is left; or ``keep`` (an infinite
        distance).

    Returns
    -------
    dict
        Samples kept, samples dropped, pairs kept with an infinite distance.

    Raises
    ------
    UserError
        Tiles of different panels, a pair below `min_called` with ``error``, or no comparable pair.
    """
    names, cohorts, start, sizes, panels, sites, ploidy = [], [], {}, {}, {}, {}, 2
    for cohort in order:
        with np.load(tiles[cohort, cohort]) as tile:
            start[cohort], sizes[cohort] = len(names), len(tile["samples_a"])
            names += tile["samples_a"].tolist()
            cohorts += [cohort] * len(tile["samples_a"])
            panels[cohort], sites[cohort] = str(tile["panel"]), int(tile["n_sites"])
            ploidy = int(tile.get("ploidy", ploidy))
    n = len(names)
    least = within_panel(min_called, sites[order[0]])
    limit = limit_in_words(min_called, sites[order[0]])
    dtype = count_type(sites[order[0]], ploidy)
    table = pd.DataFrame({"sample": names, "cohort": cohorts})

    def require_panel(tile: Mapping[str, np.ndarray], path: Path) -> None:
        if str(tile["panel"]) != panels[order[0]]:
            raise UserError(
                f"{path}: made on panel {tile['panel']}, other tiles on {panels[order[0]]}; "
                "delete it and rerun."
            )

    if refers_to_tiles(metric, list(sizes.values())):
        for path in tiles.values():
            with np.load(path) as tile:
                require_panel(tile, path)
        few = _count_few(Tiled.of(out, "called", sizes, tiles, dtype), least, threads)
        if not few or on_uncomparable == "keep":
            for name in study_matrices(metric):
                Tiled.of(out, name, sizes, tiles, dtype).write()
            write_table(out / "samples.tsv", table)
            return {"samples": n, "samples_dropped": 0, "pairs_at_infinity": few}
    matrices = {name: np.zeros((n, n), dtype) for name in study_matrices(metric)}

    def place(a: str, b: str, path: Path) -> None:
        with np.load(path) as tile:
            require_panel(tile, path)
            for name, matrix in matrices.items():
                mine, other = (name, name) if name in tile else (f"{name}_a", f"{name}_b")
                found = tile_counts(tile, mine)
                rows, columns = (
                    slice(start[cohort], start[cohort] + size)
                    for cohort, size in zip((a, b), found.shape, strict=True)
                )
                matrix[rows, columns] = found
                found = found if other == mine else tile_counts(tile, other)
                for first, last in chunks(len(found), TURNED_ROWS):  # what a cache holds
                    matrix[columns, rows][:, first:last] = found[first:last].T

    run_tasks(place, [(*pair, path) for pair, path in tiles.items()], threads)
    kept = _comparable(matrices["called"], names, least, limit, on_uncomparable)
    if len(kept) < n:
        matrices = {name: matrix[np.ix_(kept, kept)] for name, matrix in matrices.items()}

    tasks = [
        (write_triangle if name in SYMMETRIC else write_npy, out / f"{name}.npy", matrix)
        for name, matrix in matrices.items()
    ]
    run_tasks(lambda write, *given: write(*given), tasks, threads)
    write_table(out / "samples.tsv", table.iloc[kept])
    return {
        "samples": len(kept),
        "samples_dropped": n - len(kept),
        "pairs_at_infinity": _count_few(matrices["called"], least, threads),
    }


def _count_few(called: np.ndarray | Tiled, least: int, threads: int) -> int:
    """Pairs of different samples with fewer than `least` jointly called sites."""

    def count(first: int, last: int) -> int:
        return int(np.triu(called[first:last] < least, 1 + first).sum())

    return sum(run_tasks(count, chunks(len(called), COUNTED_ROWS), threads))


def _comparable(
    called: np.ndarray, names: list[str], least: int, limit: str, action: str
) -> np.ndarray:
    """Indices of the samples to keep so that every pair has `least` jointly called sites.

    limit: `least` in words.
    """
    kept = np.arange(len(names))
    if action == "keep":
        return kept
    few = called < least
    np.fill_diagonal(few, False)
    if not few.any():
        return kept
    if action == "error":
        i, j = np.argwhere(few)[0]
        raise UserError(
            f"results/distance: samples '{names[i]}' and '{names[j]}' have {called[i, j]} jointly "
            f"called sites, fewer than {limit} ({int(few.sum()) // 2} such pairs); lower "
            "it, set distance.on_uncomparable to drop or keep, or raise qc.min_sample_call_rate."
        )
    own = np.diagonal(called)
    while few[np.ix_(kept, kept)].any():
        involved = kept[few[np.ix_(kept, kept)].any(axis=1)]
        kept = kept[kept != involved[np.argmin(own[involved])]]
    if len(kept) < 2:
        raise UserError(
            f"results/distance: no two samples have {limit} jointly called sites "
            f"(most: {np.where(few, called, 0).max()}); lower it or loosen the filters of "
            "the panel."
        )
    return kept


def study_matrices(metric: str) -> tuple[str, ...]:
    """Names of the integer matrices that the assembled study holds for `metric`.

    Row i of `sums` and `squares` belongs to sample i, over sites also called in sample j.
    """
    named = (name.removesuffix("_a") for name in _TERMS[metric].outputs if name[-2:] != "_b")
    return tuple(named)
