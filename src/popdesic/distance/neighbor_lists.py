"""The lists of a study's nearest samples, joined from the tiles of all rows (`neighbors.py`).

The founders' lists alone give their minimum spanning tree. Their rows hold pairs of founders only,
so a newcomer changes neither.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.tables import write_npy, write_npz, write_table
from ..engine.backend import Backend
from ..engine.needs import product_bytes
from ..engine.plane_parts import PlaneParts
from .founder_tree import founder_tree
from .landmarks import choose_landmarks
from .nearest import NOBODY, Nearest
from .neighbors import TILE, asked_planes, measure_of
from .outside_parts import KEPT_BYTES, OutsideParts
from .rows import Pair, read_tiles
from .tiles import People, limit_in_words, load_cohorts

log = logging.getLogger(__name__)


def join_lists(
    tiles: Mapping[Pair, Path], order: Sequence[str], k: int, threads: int = 1
) -> tuple[Nearest, People, int]:
    """The nearest samples of everyone among the cohorts of some tiles.

    Parameters
    ----------
    tiles : dict
        Tile of each pair (`rows.read_tiles`).
    order : list of str
        Cohorts in sample order.
    k : int
        At most that of the tiles.

    Returns
    -------
    lists : Nearest
    people : People
    n_sites : int

    Raises
    ------
    UserError
        Tiles of different panels.
    """
    samples, cohorts, starts = [], [], {}
    for cohort in order:
        with np.load(tiles[cohort, cohort]) as tile:
            starts[cohort] = len(samples)
            samples += tile["samples"].tolist()
            cohorts += [cohort] * len(tile["samples"])
            panel, n_sites = str(tile["panel"]), int(tile["n_sites"])
    found = Nearest.empty(len(samples), k)
    for (a, b), path in tiles.items():
        with np.load(path) as tile:
            if str(tile["panel"]) != panel:
                raise UserError(
                    f"{path}: made on panel {tile['panel']}, other tiles on {panel}; delete it "
                    "and rerun."
                )
            found.few += int(tile["few"])
            sides = [("a", a, b)] if a == b else [("a", a, b), ("b", b, a)]
            for side, own, other in sides:
                _merge_side(found, tile, side, starts[own], starts[other], threads)
    assert not (found.index == NOBODY).any(), "a list that is not full"
    return found, People(samples, cohorts, panel), n_sites


def _merge_side(found: Nearest, tile, side: str, own: int, other: int, threads: int) -> None:
    """Merge one side of a tile into the lists of its samples, from number `own` on."""
    from .neighbor_lists_cpu import merge_lists  # numba starts slowly

    lists = Nearest(tile[f"index_{side}"], tile[f"distance_{side}"], tile[f"called_{side}"])
    mine = slice(own, own + len(lists.index))
    part = Nearest(found.index[mine], found.distance[mine], found.called[mine])
    merge_lists(part, lists, other, threads)


def span_founders(
    rows: Iterable[Path],
    folders: Mapping[str, Path],
    order: Sequence[str],
    out: Path,
    backend: Callable[[int], Backend],
    *,
    k: int,
    metric: str,
    missing: str,
    min_called: int,
    threads: int = 1,
) -> dict[str, int]:
    """Write the founders' minimum spanning tree.

    Parameters
    ----------
    rows : list of Path
        `row.json` of each founder cohort.
    folders : dict
        Folder of `planes.npy` of each founder cohort.
    order : list of str
        Founder cohorts in sample order.
    out : Path
        `distance/founder_tree.npz`: `edges` int64 (n_edges, 2), founders in their order, and
        `lengths` (`founder_tree.founder_tree`).
    backend : function
        Gives the backend, which is asked for only where a list ends too early; its argument is
        the memory in bytes that a product needs on a device.
    k, metric, missing, min_called
        See `neighbors.nearest_samples`.

    Returns
    -------
    dict
        Founders and edges.
    """
    found, people, _ = join_lists(read_tiles(rows, TILE[0]), order, k, threads)
    planes, _ = load_cohorts([folders[cohort] for cohort in order])
    planes = PlaneParts.of([asked_planes(part, missing) for part in planes.parts])

    @functools.cache
    def chosen() -> Backend:
        found = backend(product_bytes(outside.block_shape) + KEPT_BYTES)
        log.info("device: %s", found.describe())
        return found

    outside = OutsideParts(planes, chosen, measure_of(metric, planes.n_sites, min_called))
    everyone = np.ones(len(people.samples), bool)
    edges, lengths = founder_tree(found.index, found.distance, everyone, outside)
    write_npz(out, edges=edges, lengths=lengths)
    return {"founders": len(everyone), "edges": len(edges)}


def join_neighbors(
    rows: Iterable[Path],
    tree: Path,
    order: Sequence[str],
    founders: Sequence[str],
    out: Path,
    landmarks_out: Path,
    *,
    k: int,
    min_called: int,
    on_uncomparable: str = "keep",
    threads: int = 1,
) -> dict[str, int]:
    """Join the tiles of all rows into the study's nearest samples.

    Parameters
    ----------
    rows : list of Path
        `row.json` of each cohort.
    tree : Path
        From `span_founders`.
    order, founders : list of str
        All cohorts and the founder cohorts, in sample order.
    out : Path
        `distance/neighbors.npz`: `index` int32 (n, k), rows of `samples.tsv`; `distance` float64
        (n, k); `called` int32 (n, k), jointly called sites; `n_sites`, `panel`, `few` (pairs with
        too few jointly called sites); `landmarks` int64 (L,); `tree` int64 (n_edges, 2) and
        `tree_lengths`: the founders' minimum spanning tree. The sample order, `samples.tsv`
        (sample, cohort), is written beside it.
    landmarks_out : Path
        `distance/landmarks.npy`: float32 (L, n), distances of the landmarks to everyone.
    k : int
        All others where there are fewer.
    min_called : int
        For the message.
    on_uncomparable : {'keep', 'error'}
        Action for pairs with too few jointly called sites.

    Returns
    -------
    dict
        Samples, neighbours of each, pairs with too few jointly called sites, neighbours at an
        infinite distance, landmarks.

    Raises
    ------
    UserError
        Tiles of different panels, or pairs with too few jointly called sites with ``error``.
    """
    tiles = read_tiles(rows, TILE[0])
    found, people, n_sites = join_lists(tiles, order, k, threads)
    if found.few and on_uncomparable != "keep":
        raise UserError(
            f"{out}: {found.few} pairs of samples have fewer jointly called sites than "
            f"{limit_in_words(min_called, n_sites)}; lower it, raise qc.min_sample_call_rate, or "
            "set distance.on_uncomparable to keep (drop needs all pairs: distance.dense_limit)."
        )
    cohorts = np.array(people.cohorts)
    who = np.flatnonzero(np.isin(cohorts, sorted(founders)))
    landmarks = choose_landmarks(people.cohorts, set(founders))
    _write_landmarks(tiles, cohorts, landmarks, landmarks_out)
    with np.load(tree) as kept:
        edges, lengths = who[kept["edges"]].reshape(-1, 2), kept["lengths"]
    write_npz(
        out,
        index=found.index,
        distance=found.distance,
        called=found.called,
        n_sites=np.int64(n_sites),
        panel=np.array(people.panel),
        few=np.int64(found.few),
        landmarks=landmarks,
        tree=edges,
        tree_lengths=lengths,
    )
    table = pd.DataFrame({"sample": people.samples, "cohort": people.cohorts})
    write_table(out.parent / "samples.tsv", table)
    return {
        "samples": len(cohorts),
        "neighbours of each": found.index.shape[1],
        "pairs with too few jointly called sites": found.few,
        "neighbours at infinity": int(np.isinf(found.distance).sum()),
        "landmarks": len(landmarks),
    }


def _write_landmarks(
    tiles: Mapping[Pair, Path], cohorts: np.ndarray, landmarks: np.ndarray, out: Path
) -> None:
    """Write the distances of landmarks to everyone, from the tiles' blocks of them.

    cohorts: of every sample, in sample order.
    """
    names, starts = np.unique(cohorts, return_index=True)
    ends = starts + np.unique(cohorts, return_counts=True)[1]
    people = {name: slice(a, b) for name, a, b in zip(names.tolist(), starts, ends, strict=True)}
    places = {
        name: slice(*np.searchsorted(landmarks, (who.start, who.stop)))
        for name, who in people.items()
    }
    rows = np.empty((len(landmarks), len(cohorts)), np.float32)
    for (a, b), path in tiles.items():
        with np.load(path) as tile:
            rows[places[a], people[b]] = tile["rows_a"]
            if a != b:
                rows[places[b], people[a]] = tile["rows_b"]
    write_npy(out, rows)
