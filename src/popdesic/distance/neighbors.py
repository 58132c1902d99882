"""The nearest samples of everyone by the chosen distance, without a matrix of all pairs.

For studies too large for `distance.npy`: the same integers, the same distances, the same order as
in the matrix of all pairs (`tiles.py`, `matrix.py`), of which only the k nearest are kept.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.base import Backend
from ..engine.nearest import RATIO, ROOT, SHARES, Measure, Nearest, PlaneParts
from ..engine.needs import neighbors_bytes
from ..engine.terms import ALLELES, SQUARED, SQUARED_SUMS
from ..io.errors import UserError
from ..io.files import digest
from ..io.tables import write_npy, write_npz, write_table
from .founder_tree import founder_tree
from .landmarks import choose_landmarks
from .rows import content_key, tile_key
from .sample_rows import rows_of_samples
from .tiles import load_cohorts

log = logging.getLogger(__name__)


def measure_of(metric: str, n_sites: int, min_called: int) -> Measure:
    """The distance of `matrix.metric_distances` as a backend computes it.

    Parameters
    ----------
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
    n_sites : int
        Sites of the panel, which distances are scaled to.
    min_called : int
        Pairs with fewer jointly called sites have an infinite distance.
    """
    terms, form, times, share = {
        "euclidean": (SQUARED, ROOT, n_sites, 1),
        "manhattan": (ALLELES, RATIO, n_sites, 1),
        "ibs": (ALLELES, RATIO, 1, 2),
        "normalized": (SQUARED_SUMS, SHARES, 1, 1),
    }[metric]
    return Measure(terms, form, float(times), float(share), min_called)


def nearest_samples(
    planes: PlaneParts, backend: Backend, *, k: int, metric: str, missing: str, min_called: int
) -> Nearest:
    """The k nearest other samples of every sample.

    Parameters
    ----------
    planes : PlaneParts
        Planes of all cohorts, in sample order.
    k : int
        At most 256; all others where there are fewer.
    metric, min_called
        See `measure_of`.
    missing : {'pairwise', 'imputed'}
        ``pairwise``: jointly called sites; ``imputed``: all sites, imputed genotypes included.

    Returns
    -------
    Nearest
        Nearest first, ties in sample order: the first k of each row of the matrix of all pairs,
        sorted. Samples at an infinite distance are listed only where there are not enough others.
    """
    measure = measure_of(metric, planes.n_sites, min_called)
    return backend.nearest_samples(_without_mask(planes, missing), measure, k)


def _without_mask(planes: PlaneParts, missing: str) -> PlaneParts:
    """The planes that `missing` asks for."""
    if missing == "pairwise":
        return planes
    return PlaneParts.of([part.without_mask() for part in planes.parts])


@dataclass(frozen=True)
class Known:
    """Neighbours of an earlier run, from which a later one continues.

    Attributes
    ----------
    lists : Nearest
    cohorts : list of str
        Cohorts of that run, in sample order.
    landmarks : float32 array, (L, n_earlier), or None
        Rows of the landmarks, memory-mapped.
    tree : pair of arrays
        From `founder_tree`: it depends on the founders alone.
    """

    lists: Nearest
    cohorts: list[str]
    landmarks: np.ndarray | None
    tree: tuple[np.ndarray, np.ndarray]


def device_need(folders: Sequence[Path], k: int, metric: str) -> int:
    """Device memory in bytes with which `write_neighbors` runs at full speed."""
    planes, _ = load_cohorts(folders)
    outputs = len(measure_of(metric, planes.n_sites, 1).terms.outputs)
    return neighbors_bytes(planes.n_samples, planes.n_bytes, k, outputs)


def write_neighbors(
    folders: Sequence[Path],
    out: Path,
    backend: Backend,
    *,
    k: int,
    metric: str,
    missing: str,
    min_called: int,
    on_uncomparable: str = "keep",
    founders: Sequence[str] = (),
    landmarks_out: Path | None = None,
    code: str = "",
) -> dict[str, int]:
    """Write the nearest samples of everyone of a study.

    If `out` exists and cohorts have arrived since, only pairs with a newcomer are computed. The
    bytes are those of a computation from scratch.

    Parameters
    ----------
    folders : list of Path
        Folders of `planes.npy` of all cohorts, in sample order.
    out : Path
        `distance/neighbors.npz`: `index` int32 (n, k), rows of `samples.tsv`; `distance` float64
        (n, k); `called` int32 (n, k), jointly called sites; `n_sites`, `panel`, `few` (pairs with
        too few jointly called sites); `landmarks` int64 (L,); `tree` int64 (n_edges, 2) and
        `tree_lengths`: the founders' minimum spanning tree (`founder_tree`); `cohorts`, `keys`,
        `about`: what it was made from. The sample order, `samples.tsv` (sample, cohort), is
        written beside it.
    k, metric, missing, min_called
        See `nearest_samples`.
    on_uncomparable : {'keep', 'error'}
        Action for pairs with too few jointly called sites.
    founders : sequence of str
        Founder cohorts, of whom landmarks are chosen.
    landmarks_out : Path, optional
        `distance/landmarks.npy`: float32 (L, n), see `sample_rows.rows_of_samples`.
    code : str
        Digest of the code; lists made by different code are not continued.

    Returns
    -------
    dict
        Samples, those of them that arrived, neighbours of each, pairs with too few jointly called
        sites, neighbours at an infinite distance, landmarks.

    Raises
    ------
    UserError
        Planes of different panels, or pairs with too few jointly called sites with ``error``.
    """
    planes, people = load_cohorts(folders)
    options = {"metric": metric, "missing": missing, "min_called": min_called}
    by_name = {folder.name: folder for folder in folders}
    keys = {name: tile_key((name,), by_name) for name in by_name}
    landmarks = choose_landmarks(people.cohorts, set(founders))
    about = digest(repr([k, *options.values(), code, people.panel, sorted(founders)]))
    known = read_known(out, landmarks_out, keys, about)
    arrived = set(by_name) - set(known.cohorts if known else ())
    new = np.isin(np.array(people.cohorts), sorted(arrived))
    if known:
        log.info("%s join those of %s", ", ".join(sorted(arrived)) or "none", out)
        measured = _without_mask(planes, missing)
        measure = measure_of(metric, planes.n_sites, min_called)
        found = backend.extend_nearest(measured, measure, k, known.lists, new)
    else:
        found = nearest_samples(planes, backend, k=k, **options)
    if found.few and on_uncomparable != "keep":
        raise UserError(
            f"{out}: {found.few} pairs of samples have fewer jointly called sites than "
            f"distance.min_called = {min_called}; lower it, raise qc.min_sample_call_rate, or set "
            "distance.on_uncomparable to keep (drop needs all pairs: distance.dense_limit)."
        )
    among = np.isin(np.array(people.cohorts), sorted(founders))
    if known:
        tree, lengths = known.tree
    else:
        who = np.flatnonzero(among)
        tree, lengths = founder_tree(
            found.index,
            found.distance,
            among,
            lambda which: rows_of_samples(planes, who[which], who, backend, **options),
        )
    if landmarks_out:
        rows = rows_of_samples(
            planes, landmarks, np.flatnonzero(new), backend, **options, dtype=np.float32
        )
        if known:
            whole = np.empty((len(landmarks), len(new)), np.float32)
            whole[:, ~new], whole[:, new] = known.landmarks, rows
            rows = whole
        write_npy(landmarks_out, rows)
    write_npz(
        out,
        index=found.index,
        distance=found.distance,
        called=found.called,
        n_sites=np.int64(planes.n_sites),
        panel=np.array(people.panel),
        few=np.int64(found.few),
        landmarks=landmarks,
        tree=tree,
        tree_lengths=lengths,
        cohorts=np.array(list(keys)),
        keys=np.array(list(keys.values())),
        about=np.array(about),
        rows=np.array(content_key(landmarks_out) if landmarks_out else ""),
    )
    table = pd.DataFrame({"sample": people.samples, "cohort": people.cohorts})
    write_table(out.parent / "samples.tsv", table)
    return {
        "samples": planes.n_samples,
        "newcomers": int(new.sum()) if known else 0,
        "neighbours of each": found.index.shape[1],
        "pairs with too few jointly called sites": found.few,
        "neighbours at infinity": int(np.isinf(found.distance).sum()),
        "landmarks": len(landmarks),
    }


def read_known(
    out: Path, landmarks_out: Path | None, keys: Mapping[str, str], about: str
) -> Known | None:
    """Neighbours that a run with the cohorts `keys` can continue from, if there are any.

    Parameters
    ----------
    keys : dict
        Key of the planes of each cohort, in sample order.
    about : str
        Digest of everything else that decides the lists.
    """
    if not out.is_file() or (landmarks_out and not landmarks_out.is_file()):
        return None
    try:
        with np.load(out) as kept:
            earlier = dict(zip(kept["cohorts"].tolist(), kept["keys"].tolist(), strict=True))
            same = str(kept["about"]) == about and earlier.items() <= dict(keys).items()
            if not same or list(earlier) != [name for name in keys if name in earlier]:
                return None
            if landmarks_out and str(kept["rows"]) != content_key(landmarks_out):
                return None
            lists = Nearest(kept["index"], kept["distance"], kept["called"], int(kept["few"]))
            tree = kept["tree"], kept["tree_lengths"]
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        log.warning("%s cannot be continued (%s): computed from scratch", out, error)
        return None
    rows = np.load(landmarks_out, mmap_mode="r") if landmarks_out else None
    return Known(lists, list(earlier), rows, tree)
