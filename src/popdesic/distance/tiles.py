"""Pairwise distances between samples: tiles of cohort x cohort, assembled, scaled, exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform

from ..cohort.encode import load_planes
from ..engine.base import SQUARED, SQUARED_IBS0, SQUARED_SUMS, Backend, Planes, Terms
from ..io.errors import UserError
from ..io.files import atomic_path
from ..io.sites import chunks
from ..io.tables import open_text, read_table, write_npy, write_npz, write_table

#: What the tiles of a metric hold: `ibs0` is the number of opposite homozygotes; `sums_a`,
#: `squares_a` are the sums of a's genotypes and of their squares over the sites called in b too.
_TERMS = {
    "euclidean": SQUARED,
    "manhattan": SQUARED_IBS0,
    "ibs": SQUARED_IBS0,
    "normalized": SQUARED_SUMS,
}
#: Parts of a tile's site axis begin at whole runs of so many words: every device's vectors.
PART_WORDS = 16
#: Distances in memory at a time: 32 MB, and as much for each integer matrix they come from.
DISTANCE_BLOCK = 1 << 22
#: Rows that stand for all of them where a typical distance is looked for.
PROBE_ROWS = 500


def study_matrices(metric: str) -> tuple[str, ...]:
    """Names of the integer matrices that the assembled study holds for `metric`.

    Row i of `sums` and `squares` belongs to sample i, over the sites called in sample j as well.
    """
    named = (name.removesuffix("_a") for name in _TERMS[metric].outputs if name[-2:] != "_b")
    return tuple(named)


def tile_outputs(metric: str) -> tuple[str, ...]:
    """Names of the integer matrices that the tiles hold for `metric`."""
    return _TERMS[metric].outputs


def site_part(planes: Planes, part: int, parts: int) -> Planes:
    """One of `parts` runs of sites, about equally long, perhaps empty."""
    n_runs = -(-planes.n_sites // (64 * PART_WORDS))
    first, last = (n_runs * k // parts * PART_WORDS for k in (part, part + 1))
    n_sites = min(planes.n_sites, last * 64) - min(planes.n_sites, first * 64)
    return Planes(planes.words[:, :, first:last], n_sites)


def measure_tile(
    folder_a: Path,
    folder_b: Path,
    out: Path,
    backend: Backend,
    *,
    metric: str,
    missing: str,
    part: int = 0,
    parts: int = 1,
) -> dict[str, int]:
    """Integer distances between all samples of two cohorts, written as one tile.

    Parameters
    ----------
    folder_a, folder_b : Path
        Folders with `planes.npy` and `planes.json`; the same folder twice gives the diagonal tile.
    out : Path
        `.npz` with int64 (n_a, n_b) `squared`, `called` (over jointly called sites) and what else
        `metric` needs (`tile_outputs`); `samples_a`, `samples_b`, `n_sites`, `panel`.
    missing : str
        ``pairwise``: jointly called sites; ``imputed``: all sites, imputed genotypes included.
    part, parts : int
        Only this run of the sites, of so many; `sum_parts` adds them up.

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
    terms = _TERMS[metric]
    counts = _count(
        site_part(a, part, parts), None if same else site_part(b, part, parts), terms, backend
    )
    write_npz(
        out,
        **dict(zip(terms.outputs, counts, strict=True)),
        samples_a=np.array(about_a["samples"]),
        samples_b=np.array(about_b["samples"]),
        n_sites=np.int64(a.n_sites),
        panel=np.array(about_a["panel"]),
    )
    pairs = a.n_samples * (a.n_samples + 1) // 2 if same else a.n_samples * b.n_samples
    n_sites = site_part(a, part, parts).n_sites
    return {
        "samples_a": a.n_samples,
        "samples_b": b.n_samples,
        "sites": n_sites,
        "site_pairs": pairs * n_sites,
    }


def _count(a: Planes, b: Planes | None, terms: Terms, backend: Backend) -> np.ndarray:
    if not a.n_sites:  # more parts than runs of sites
        n = a.n_samples if b is None else b.n_samples
        return np.zeros((len(terms.outputs), a.n_samples, n), np.int64)
    return backend.bitgemm(a, b, terms)


def sum_parts(parts: list[Path], out: Path) -> dict[str, int]:
    """Add the parts of one tile: the bytes of the tile measured in one piece.

    Parameters
    ----------
    parts : list of Path
        What `measure_tile` wrote for each run of the sites.
    out : Path
        The tile.

    Returns
    -------
    dict
        The number of parts.

    Raises
    ------
    UserError
        The parts are not of one panel and the same samples.
    """
    with np.load(parts[0]) as first:
        tile = dict(first)
    for path in parts[1:]:
        with np.load(path) as part:
            for name in ("panel", "samples_a", "samples_b", "n_sites"):
                if not np.array_equal(part[name], tile[name]):
                    raise UserError(
                        f"{path}: its {name} differs from that of {parts[0]}; delete both and "
                        "rerun."
                    )
            for name in tile.keys() - {"panel", "samples_a", "samples_b", "n_sites"}:
                tile[name] += part[name]
    write_npz(out, **tile)
    return {"parts": len(parts)}


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
        Folder of the matrices that `study_matrices` names, `.npy`, int64 (n, n), and
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
    matrices = {name: np.zeros((n, n), np.int64) for name in study_matrices(metric)}
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
                mine, other = (name, name) if name in tile else (f"{name}_a", f"{name}_b")
                matrix[rows, columns] = tile[mine]
                matrix[columns, rows] = tile[other].T
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
    sums: tuple[np.ndarray, np.ndarray] | None = None,
    squares: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Distances of the chosen metric, scaled to all sites.

    ``euclidean``: sqrt(squared * n_sites / called); ``manhattan``: (squared - 2 ibs0) * n_sites /
    called, in allele counts (PLINK 1.9's ``--distance flat-missing``); ``ibs``: (squared - 2 ibs0)
    / (2 called), one minus the share of alleles identical by state; ``normalized``: the Euclidean
    distance of the two individuals, each divided by the sum of its own genotypes, over jointly
    called sites alone. Both then sum to one whatever is missing, so nothing is scaled.

    Parameters
    ----------
    squared, called, ibs0 : int64 arrays, (m, n)
        Over jointly called sites. With missing genotypes the scaled distance is no metric any
        more: the triangle inequality can fail.
    sums, squares : two int64 arrays, (m, n), each
        ``normalized``: sums of the genotypes, and of their squares, of the sample of the row and of
        that of the column, over jointly called sites.

    Returns
    -------
    float64 array, (m, n)
        Infinite where fewer than `min_called` sites are jointly called, and, ``normalized``, where
        one of the two has no ALT allele at any of them.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if metric == "euclidean":
            # Multiplied before it is divided: exact while the product stays below 2**53.
            distances = np.sqrt(squared * np.float64(n_sites) / called)
        elif metric == "manhattan":
            distances = (squared - 2 * ibs0) * np.float64(n_sites) / called
        elif metric == "ibs":
            distances = (squared - 2 * ibs0) / (2.0 * called)
        else:
            distances = _normalized(squared, *sums, *squares)
    distances[called < min_called] = np.inf
    return distances


def _normalized(squared, sum_a, sum_b, square_a, square_b) -> np.ndarray:
    """Distances between a / sum_a and b / sum_b; infinite where a sum is 0.

    square_a / sum_a^2 + square_b / sum_b^2 - 2 a.b / (sum_a sum_b), brought to one denominator and
    to terms that are 0 for equal samples: (sum_a sum_b squared + (sum_b - sum_a)(square_a sum_b -
    square_b sum_a)) / (sum_a sum_b)^2. The inner products fit int64 up to 2^30 sites.
    """
    scale = sum_a * np.float64(1) * sum_b
    uneven = (sum_b - sum_a) * (square_a * sum_b - square_b * sum_a).astype(np.float64)
    # rounding may leave a little less than nothing
    distances = np.sqrt(np.maximum(scale * squared + uneven, 0)) / scale
    distances[scale == 0] = np.inf
    return distances


@dataclass(frozen=True)
class Distances:
    """The distance matrix of a study, computed by blocks of rows so that it need not be whole.

    Attributes
    ----------
    folder : Path
        `results/distance`.
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
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
        names = study_matrices(self.metric)
        return {name: np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in names}

    def __len__(self) -> int:
        return len(self._matrices()["called"])

    def rows(self, which: np.ndarray) -> np.ndarray:
        """float64 (len(which), n) distances of these samples to all, zero to themselves."""
        stored = self._matrices()
        matrices = {name: matrix[which] for name, matrix in stored.items()}
        both = {
            name: (matrices[name], stored[name][:, which].T)
            for name in ("sums", "squares")
            if name in stored
        }
        block = metric_distances(
            matrices["squared"],
            matrices["called"],
            matrices.get("ibs0"),
            metric=self.metric,
            n_sites=self.n_sites,
            min_called=self.min_called,
            **both,
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
