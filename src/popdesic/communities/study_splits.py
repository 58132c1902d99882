"""The splits of a study's samples: its communities, how deep and stable they are, what is within.

They need the components alone, so that in a large study they are found while geodesics are closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.files import read_json
from ..core.tables import write_npz
from ..core.threads import one_blas_thread, run_forked, run_tasks
from .cline import is_cline, measure_spread
from .depth import measure_depths, open_genotypes
from .splits import (
    MOST_COMPONENTS,
    Split,
    cut_coarse,
    cut_tree,
    join_depths,
    least_coarse_depth,
    split_samples,
)
from .stability import draw_subsamples, measure_stability
from .within import structure_within

#: Samples above which copies of this process share the work: threads would wait for each other's
#: Python. Fewer take 0.4 CPU-s less on threads.
FORKED = 2_000
#: Samples above which the whole is split after its subsamples, by all threads.
ALONE = 20_000
#: Samples that are split before copies are made, so that these need not load the code.
LOADED_ON = 60


@dataclass(frozen=True)
class StudySplits:
    """Communities of a study.

    Attributes
    ----------
    community, fine : int64 arrays, (n,)
        Numbered from 1 on, the largest first.
    stability, f_st : float64 arrays, (n,)
        As `partition.find_communities` writes them.
    about : dict
        Its entries of the JSON file, from `significant` to `within`.
    """

    community: np.ndarray
    fine: np.ndarray
    stability: np.ndarray
    f_st: np.ndarray
    about: dict[str, Any]


def write_splits(splits: StudySplits, out: Path) -> None:
    """Write the arrays, and `about` as text of JSON, as npz."""
    arrays = vars(splits) | {"about": np.array(json.dumps(splits.about))}
    write_npz(out, **arrays)


def read_splits(path: Path) -> StudySplits:
    """What `write_splits` wrote."""
    with np.load(path) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    return StudySplits(**found | {"about": json.loads(str(found["about"]))})


def number_by_size(labels: np.ndarray) -> np.ndarray:
    """Labels renumbered 1, 2, … from the largest group on; ties in order of first appearance.

    Negative labels (no group) become 0.
    """
    found, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts, found < 0))
    place = np.empty(len(found), np.int64)
    place[order] = np.arange(1, len(found) + 1)
    place[found < 0] = 0
    return place[inverse]


@one_blas_thread
def split_study(
    scores: Path,
    axes: Path,
    names: pd.Series,
    *,
    genotypes: list[Path],
    definition: Path,
    unrelated: Path | None,
    draws: int,
    seed: int,
    threads: int = 1,
    beside: Sequence[Callable[[], Any]] = (),
) -> tuple[StudySplits, list]:
    """The splits of all samples and of subsamples; parameters as of `partition.find_communities`.

    Parameters
    ----------
    names : Series of str, (n,)
        Samples in the order of the scores.
    threads : int
        Or processes, each of which splits some of the sets; changes no byte.
    beside : sequence of callables
        Further work for these processes, done first.

    Returns
    -------
    splits : StudySplits
    found : list
        What `beside` returned.
    """
    significant = int(read_json(axes)["significant"])
    points = np.load(scores)[:, : min(significant, MOST_COMPONENTS)]
    n = len(names)
    opened = open_genotypes(genotypes, definition, unrelated, names)
    drawn = draw_subsamples(n, draws, seed)
    sets = [np.arange(n), *drawn]
    alone = n > ALONE
    together = sets[1:] if alone else sets
    tasks = [*beside, *(partial(split_samples, points[own]) for own in together)]
    run = run_forked if n > FORKED else run_tasks
    if run is run_forked and threads > 1:
        split_samples(points[:: n // LOADED_ON])
    done = run(lambda k: tasks[k](), zip(range(len(tasks))), threads)
    trees = done[len(beside) :]
    if alone:
        trees.insert(0, split_samples(points, threads))
    root, *others = measure_depths(trees, opened, sets, threads)
    community, fine = number_by_size(cut_coarse(root)), number_by_size(cut_tree(root))
    about = {"significant": significant, "components": points.shape[1]}
    about |= describe_splits(root, significant)
    about["cline"] = _cline(root, points, threads) if about["structure"] == "continuous" else None
    about |= {"communities": int(community.max()), "fine": int(fine.max())}
    # The whole says it already where there is one community.
    about["within"] = []
    if community.max() > 1:
        about["within"] = structure_within(opened, community, fine, threads)
    found = [cut_coarse(tree) for tree in others]
    stability = measure_stability(points, community, drawn, found, threads)
    splits = StudySplits(community, fine, stability, join_depths(root).round(5), about)
    return splits, done[: len(beside)]


def _cline(root: Split, points: np.ndarray, threads: int) -> dict[str, Any] | None:
    """The test for a gradient; None if there are too few samples."""
    spread = measure_spread(points, threads)
    if spread is None:
        return None
    return {"spread": round(spread, 4), "passed": is_cline(spread, root.gap)}


def describe_splits(root: Split, significant: int) -> dict[str, Any]:
    """Kind of structure, and the evidence for each split or, without any, against one."""
    splits = [node for node in root.walk() if node.halves]
    kind = "discrete" if splits else "continuous" if significant else "one"
    shown = splits or ([root] if root.gap else [])
    return {
        "structure": kind,
        "coarse_f_st": round(least_coarse_depth(root), 5) if splits else None,
        "splits": [
            {
                "samples": len(node.members),
                "halves": [len(half.members) for half in node.halves],
                "f_st": round(node.depth, 5) if splits else None,
                "dip": round(node.gap.dip, 5),
                "p": round(node.gap.p, 6),
                "width": round(node.gap.width, 4),
            }
            for node in shown
        ],
    }
