"""Pairwise distances between samples: tiles of cohort x cohort, assembled, scaled, exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform

from .backend import SQUARED, SQUARED_IBS0, Backend
from .encode import load_planes
from .errors import UserError
from .qc import chunks
from .results import open_text, read_table, write_npy, write_npz, write_table
from .store import atomic_path

#: Metrics that need the number of opposite homozygotes beside the squared distance.
_NEEDS_IBS0 = {"manhattan", "ibs"}
#: Distances in memory at a time: 32 MB, and as much for each integer matrix they come from.
DISTANCE_BLOCK = 1 << 22
#: Rows that stand for all of them where a typical distance is looked for.
PROBE_ROWS = 500


def tile_outputs(metric: str) -> tuple[str, ...]:
    """Names of the integer matrices that tiles and the assembled study hold for `metric`."""
    return (SQUARED_IBS0 if metric in _NEEDS_IBS0 else SQUARED).outputs


def measure_tile(
    folder_a: Path, folder_b: Path, out: Path, backend: Backend, *, metric: str, missing: str
) -> dict[str, int]:
    """Integer distances between all samples of two cohorts, written as one tile.

    Parameters
    ----------
    folder_a, folder_b : Path
        Folders with `planes.npy` and `planes.json`; the same folder twice gives the diagonal tile.
    out : Path
        `.npz` with int64 (n_a, n_b) `squared`, `called` (over jointly called sites) and, where
        `metric` needs it, `ibs0`; `samples_a`, `samples_b`, `n_sites`, `panel`.
    missing : str
        ``pairwise``: jointly called sites; ``imputed``: all sites, imputed genotypes included.

    Returns
    -------
    dict
        Samples of both sides, sites, and site-pairs that were compared.

    Raises
    ------
    UserError
        The two cohorts were encoded on different panels.
    """
    a, about_a = load_planes(folder_a)
    same = folder_a == folder_b
    b, about_b = (a, about_a) if same else load_planes(folder_b)
    require_one_panel(folder_a, about_a, folder_b, about_b)
    if missing == "imputed":
        a, b = a.without_mask(), b.without_mask()
    terms = SQUARED_IBS0 if metric in _NEEDS_IBS0 else SQUARED
    counts = backend.bitgemm(a, None if same else b, terms)
    write_npz(
        out,
        **dict(zip(terms.outputs, counts, strict=True)),
        samples_a=np.array(about_a["samples"]),
        samples_b=np.array(about_b["samples"]),
        n_sites=np.int64(a.n_sites),
        panel=np.array(about_a["panel"]),
    )
    pairs = a.n_samples * (a.n_samples + 1) // 2 if same else a.n_samples * b.n_samples
    return {
        "samples_a": a.n_samples,
        "samples_b": b.n_samples,
        "sites": a.n_sites,
        "site_pairs": pairs * a.n_sites,
    }


def require_one_panel(folder_a: Path, about_a: dict, folder_b: Path, about_b: dict) -> None:
    """Raise a `UserError` where two cohorts were encoded on different panels."""
    if about_a["panel"] != about_b["panel"]:
        raise UserError(
            f"{folder_b}/planes.json: encoded on panel {about_b['panel']}, but {folder_a} on "
            f"{about_a['panel']}; delete both planes.npy and rerun."
        )


def assemble_tiles(
    tiles: dict[tuple[str, str], Path],
    order: list[str],
    out: Path,
    *,
    metric: str,
    min_called: int,
    on_uncomparable: str,
) -> dict[str, int]:
    """Join the tiles of all cohort pairs to the study's matrices.

    Parameters
    ----------
    tiles : dict
        Tile of each pair (a, b), a before or equal to b in `order`.
    out : Path
        Folder of `squared.npy`, `called.npy`, perhaps `ibs0.npy`, all int64 (n, n), and
        `samples.tsv` (sample, cohort), which gives the order of rows and columns.
    min_called, on_uncomparable
        What to do with pairs of fewer jointly called sites: ``error``, ``drop`` the sample with
        more missing genotypes until none is left, or ``keep`` (an infinite distance).

    Returns
    -------
    dict
        Samples, samples dropped, pairs kept at an infinite distance.

    Raises
    ------
    UserError
        Tiles of different panels, a pair below `min_called` with ``error``, or no comparable pair.
    """
    names, cohorts, start, panels = [], [], {}, {}
    for cohort in order:
        with np.load(tiles[cohort, cohort]) as tile:
            start[cohort] = len(names)
            names += tile["samples_a"].tolist()
            cohorts += [cohort] * len(tile["samples_a"])
            panels[cohort] = str(tile["panel"])
    n = len(names)
    matrices = {name: np.zeros((n, n), np.int64) for name in tile_outputs(metric)}
    for (a, b), path in tiles.items():
        with np.load(path) as tile:
            if str(tile["panel"]) != panels[order[0]]:
                raise UserError(
                    f"{path}: made on panel {tile['panel']}, other tiles on {panels[order[0]]}; "
                    "delete it and rerun."
                )
            height, width = tile["called"].shape
            rows = slice(start[a], start[a] + height)
            columns = slice(start[b], start[b] + width)
            for name, matrix in matrices.items():
                matrix[rows, columns] = tile[name]
                matrix[columns, rows] = tile[name].T
    kept = _comparable(matrices["called"], names, min_called, on_uncomparable)
    for name, matrix in matrices.items():
        write_npy(out / f"{name}.npy", matrix if len(kept) == n else matrix[np.ix_(kept, kept)])
    write_table(
        out / "samples.tsv",
        pd.DataFrame({"sample": names, "cohort": cohorts}).iloc[kept],
    )
    called = matrices["called"][np.ix_(kept, kept)]
    return {
        "samples": len(kept),
        "samples_dropped": n - len(kept),
        "pairs_at_infinity": int((np.triu(called < min_called, 1)).sum()),
    }


def _comparable(called: np.ndarray, names: list[str], least: int, action: str) -> np.ndarray:
    """Indices of the samples to keep, so that every pair has `least` jointly called sites."""
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
            f"called sites, fewer than distance.min_called = {least} ({int(few.sum()) // 2} such "
            "pairs); lower it, set distance.on_uncomparable to drop or keep, or raise "
            "qc.min_sample_call_rate."
        )
    own = np.diagonal(called)
    while few[np.ix_(kept, kept)].any():
        involved = kept[few[np.ix_(kept, kept)].any(axis=1)]
        kept = kept[kept != involved[np.argmin(own[involved])]]
    if len(kept) < 2:
        raise UserError(
            f"results/distance: no two samples have distance.min_called = {least} jointly called "
            f"sites (most: {np.where(few, called, 0).max()}); lower it or loosen the filters of "
            "the panel."
        )
    return kept


def metric_distances(
    squared: np.ndarray,
    called: np.ndarray,
    ibs0: np.ndarray | None,
    *,
    metric: str,
    n_sites: int,
    min_called: int,
) -> np.ndarray:
    """Distances of the chosen metric, scaled to all sites.

    ``euclidean``: sqrt(squared * n_sites / called); ``manhattan``: (squared - 2 ibs0) * n_sites /
    called, in allele counts (PLINK 1.9's ``--distance flat-missing``); ``ibs``: (squared - 2 ibs0)
    / (2 called), one minus the share of alleles identical by state.

    Parameters
    ----------
    squared, called, ibs0 : int64 arrays, (m, n)
        Over jointly called sites. With missing genotypes the scaled distance is no metric any
        more: the triangle inequality can fail.

    Returns
    -------
    float64 array, (m, n)
        Infinite where fewer than `min_called` sites are jointly called.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if metric == "euclidean":
            # Multiplied before it is divided: exact while the product stays below 2**53.
            distances = np.sqrt(squared * np.float64(n_sites) / called)
        elif metric == "manhattan":
            distances = (squared - 2 * ibs0) * np.float64(n_sites) / called
        else:
            distances = (squared - 2 * ibs0) / (2.0 * called)
    distances[called < min_called] = np.inf
    return distances


@dataclass(frozen=True)
class Distances:
    """The distance matrix of a study, computed by blocks of rows so that it need not be whole.

    Attributes
    ----------
    folder : Path
        `results/distance`.
    metric : {'euclidean', 'manhattan', 'ibs'}
    n_sites : int
        Sites of the panel.
    min_called : int
        Pairs with fewer jointly called sites are infinitely far.
    """

    folder: Path
    metric: str
    n_sites: int
    min_called: int

    def _matrices(self) -> dict[str, np.ndarray]:
        names = tile_outputs(self.metric)
        return {name: np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in names}

    def __len__(self) -> int:
        return len(self._matrices()["called"])

    def rows(self, which: np.ndarray) -> np.ndarray:
        """float64 (len(which), n) distances of these samples to all, zero to themselves."""
        matrices = {name: matrix[which] for name, matrix in self._matrices().items()}
        block = metric_distances(
            matrices["squared"],
            matrices["called"],
            matrices.get("ibs0"),
            metric=self.metric,
            n_sites=self.n_sites,
            min_called=self.min_called,
        )
        block[np.arange(len(which)), which] = 0.0
        return block

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers and distances of consecutive runs of rows."""
        n = len(self)
        for first, last in chunks(n, max(1, DISTANCE_BLOCK // max(n, 1))):
            which = np.arange(first, last)
            yield which, self.rows(which)

    def probe(self) -> np.ndarray:
        """Finite distances of different samples, from at most PROBE_ROWS rows spread evenly."""
        n = len(self)
        which = np.unique(np.linspace(0, n - 1, min(n, PROBE_ROWS)).astype(np.int64))
        block = self.rows(which)
        other = np.arange(n)[None, :] != which[:, None]
        return block[other & np.isfinite(block)]


def load_distances(folder: Path, *, metric: str, n_sites: int, min_called: int) -> np.ndarray:
    """float64 (n, n) distances of an assembled study, with a zero diagonal."""
    source = Distances(folder, metric, n_sites, min_called)
    distances = np.empty((len(source), len(source)))
    for which, block in source.blocks():
        distances[which] = block
    return distances


def export_distances(folder: Path, *, metric: str, n_sites: int, min_called: int) -> None:
    """Write `distance.mdist` with `.mdist.id` (PLINK's square matrix) and `distance.tsv.gz`.

    The long table has one row a pair: both samples, distance, jointly called sites.
    """
    distances = load_distances(folder, metric=metric, n_sites=n_sites, min_called=min_called)
    called = np.load(folder / "called.npy", mmap_mode="r")
    names = read_table(folder / "samples.tsv")["sample"]
    with atomic_path(folder / "distance.mdist") as temporary:
        np.savetxt(temporary, distances, fmt="%.9g", delimiter="\t")
    with atomic_path(folder / "distance.mdist.id") as temporary:
        temporary.write_text("".join(f"0\t{name}\n" for name in names))
    with open_text(folder / "distance.tsv.gz") as file:
        file.write("sample_a\tsample_b\tdistance\tcalled\n")
        for i, name in enumerate(names):
            file.writelines(
                f"{name}\t{other}\t{distances[i, j]:.9g}\t{called[i, j]}\n"
                for j, other in enumerate(names[i + 1 :], i + 1)
            )


def point_distances(scores: Path, n_components: int) -> np.ndarray:
    """Euclidean distances between the rows of a saved array, by their first components.

    Returns
    -------
    float64 array, (n, n)
    """
    return squareform(pdist(np.load(scores)[:, :n_components]))


def study_distances(
    source: Path, space: str, *, pcs: int, metric: str, n_sites: int, min_called: int
) -> np.ndarray:
    """float64 (n, n) distances of a study in one space: ``genotypes`` or ``pcs``.

    `source` is `embedding/pca.npy` for the components, else any matrix of `distance/`.
    """
    if space == "pcs":
        return point_distances(source, pcs)
    return load_distances(source.parent, metric=metric, n_sites=n_sites, min_called=min_called)
