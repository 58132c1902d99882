"""The nearest samples of everyone by the chosen distance, without a matrix of all pairs.

For studies too large for `distance.npy`: the same integers, the same distances, the same order as
in the matrix of all pairs (`tiles.py`, `matrix.py`), of which only the k nearest are kept. They are
found by rows of tiles (`rows.py`): a tile has the nearest of two cohorts in each other, whatever
the other cohorts are. The lists of the study are joined from all tiles (`neighbor_lists.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..core.tables import write_npz
from ..engine.backend import Backend
from ..engine.plane_parts import PlaneParts
from ..engine.terms import ALLELES, SQUARED, SQUARED_SUMS, Planes
from .fill_rows import RowWork
from .find_nearest import nearest_between, nearest_samples
from .nearest import RATIO, ROOT, SHARES, Measure
from .rows import Pair, tile_key
from .sample_rows import rows_to_block
from .tiles import load_of_one_panel, within_panel

#: Ending of a tile of lists.
TILE = (".npz",)


def measure_of(metric: str, n_sites: int, min_called: int) -> Measure:
    """The distance of `matrix.metric_distances` as a backend computes it.

    Parameters
    ----------
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
    n_sites : int
        Sites of the panel, which distances are scaled to.
    min_called : int
        Pairs with fewer jointly called sites (`tiles.within_panel`) have an infinite distance.
    """
    terms, form, times, share = {
        "euclidean": (SQUARED, ROOT, n_sites, 1),
        "manhattan": (ALLELES, RATIO, n_sites, 1),
        "ibs": (ALLELES, RATIO, 1, 2),
        "normalized": (SQUARED_SUMS, SHARES, 1, 1),
    }[metric]
    return Measure(terms, form, float(times), float(share), within_panel(min_called, n_sites))


def asked_planes(planes: Planes, missing: str) -> Planes:
    """The planes that `missing` asks for.

    ``pairwise``: jointly called sites; ``imputed``: all sites, imputed genotypes included.
    """
    return planes if missing == "pairwise" else planes.without_mask()


def row_work(
    out: Path,
    pairs: Sequence[Pair],
    folders: Mapping[str, Path],
    *,
    k: int,
    metric: str,
    missing: str,
    min_called: int,
    landmarks: Mapping[str, np.ndarray],
    code: str,
) -> RowWork:
    """The nearest samples of a cohort and of others in each other: a row of tiles.

    Parameters
    ----------
    out : Path
        ``distance/tiles/{owner}/row.json``; the tiles lie beside it (`write_tile`).
    pairs : list of pairs
        The row's pairs, each in sample order.
    folders : dict
        Folder of `planes.npy` and `planes.json` of each cohort of the row.
    k : int
        At most 256; all others where there are fewer.
    metric, min_called
        See `measure_of`.
    missing
        See `asked_planes`.
    landmarks : dict
        Landmarks of each founder cohort (`landmarks.landmarks_of_cohorts`).
    code : str
        Digest of the code that finds neighbours.
    """
    options = {"metric": metric, "missing": missing, "min_called": min_called}

    def key_of(pair: Pair) -> str:
        chosen = [landmarks[cohort].tolist() for cohort in pair if cohort in landmarks]
        return tile_key(pair, folders, "nearest", k, *options.values(), chosen, code)

    def compute(
        a: Path, b: Path, files: list[Path], chosen: Backend, held: Mapping[Path, Planes]
    ) -> dict[str, int]:
        return write_tile(a, b, files[0], chosen, k=k, **options, landmarks=landmarks, held=held)

    return RowWork(out, pairs, TILE, {pair: key_of(pair) for pair in pairs}, compute)


def write_tile(
    folder_a: Path,
    folder_b: Path,
    out: Path,
    backend: Backend,
    *,
    k: int,
    metric: str,
    missing: str,
    min_called: int,
    landmarks: Mapping[str, np.ndarray],
    held: Mapping[Path, Planes] | None = None,
) -> dict[str, int]:
    """Write the nearest samples of two cohorts in each other, or of one cohort in itself.

    Parameters
    ----------
    folder_a, folder_b : Path
        Folders with `planes.npy` and `planes.json`; the same folder twice for one cohort.
    out : Path
        `.npz` with `index_a` int32, `distance_a` float64 and `called_a` int32, each (n_a, k): the
        nearest in b of every sample of a, numbered in b; `index_b`, ... the reverse, not of one
        cohort. k is the number of others where there are fewer. `rows_a` float32 (L_a, n_b):
        distances of the landmarks of a to b; `rows_b`. `few`: pairs with too few jointly called
        sites. `samples` of one cohort; `n_sites`, `panel`.
    k : int
        At most 256; all others where there are fewer.
    metric, min_called
        See `measure_of`.
    missing
        See `asked_planes`.
    landmarks : dict
        Numbers in its cohort of each landmark, by cohort.
    held : dict
        Planes of a folder that the backend has at hand (`Backend.keep_planes`).

    Returns
    -------
    dict
        Pairs compared, and those with too few jointly called sites.

    Raises
    ------
    UserError
        The two cohorts were encoded on different panels.
    """
    (a, about_a), (b, _) = load_of_one_panel([folder_a, folder_b])
    same = folder_a == folder_b
    a, b = asked_planes(a, missing), asked_planes(b, missing)
    near = dict(held or {})
    for folder, planes in ((folder_a, a), (folder_b, b)):  # landmarks need them once more
        if folder not in near:
            near[folder] = backend.keep_planes(planes)
    near_a, near_b = (asked_planes(near[folder], missing) for folder in (folder_a, folder_b))
    measure = measure_of(metric, a.n_sites, min_called)
    sides = {"a": (folder_a, a, near_b, same), "b": (folder_b, b, near_a, same)}
    if same:
        del sides["b"]
        lists = (nearest_samples(backend, PlaneParts.of([near_a]), measure, k),)
        pairs = a.n_samples * (a.n_samples - 1) // 2
    else:
        lists = nearest_between(backend, near_a, near_b, measure, k)
        pairs = a.n_samples * b.n_samples
    arrays: dict[str, np.ndarray] = {}
    for (side, (folder, own, others, itself)), found in zip(sides.items(), lists, strict=True):
        some = landmarks.get(folder.name, np.empty(0, np.int64))
        arrays |= {
            f"index_{side}": found.index,
            f"distance_{side}": found.distance,
            f"called_{side}": found.called,
            f"rows_{side}": rows_to_block(
                own,
                some,
                others,
                backend,
                metric=metric,
                missing=missing,
                min_called=min_called,
                same=itself,
            ),
        }
    if same:
        arrays["samples"] = np.array(about_a["samples"])
    write_npz(
        out,
        **arrays,
        few=np.int64(lists[0].few),
        n_sites=np.int64(a.n_sites),
        panel=np.array(about_a["panel"]),
    )
    return {"pairs": pairs, "pairs with too few jointly called sites": lists[0].few}
