"""The splits of a study's samples: its communities, how deep and stable they are, what is within.

Components of the whole study show what parts its communities, those of each community's own samples
what is in it (`within`). Newcomers take part in the splits. How stable these are, and what is
within, founders tell alone (`founders`): to add a cohort costs one tree of splits, not one for each
subsample.

They need the components alone, so that in a large study they are found while geodesics are closed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..core.files import content_key, read_json
from ..core.tables import write_npz
from ..core.threads import one_blas_thread, run_forked, run_tasks
from .bridges import find_bridges
from .cline import is_cline, measure_spread
from .depth import measure_depths, open_genotypes
from .founders import Founders, genotype_keys
from .splits import (
    MOST_COMPONENTS,
    Split,
    cut_coarse,
    describe_split,
    join_depths,
    least_coarse_depth,
    split_samples,
)
from .stability import draw_subsamples, measure_stability
from .within import structure_within

#: Subsamples from which the stability of communities is measured.
SUBSAMPLES = 20

#: Samples above which copies of this process share the work: threads would wait for each other's
#: Python. Fewer take 0.4 CPU-s less on threads.
FORKED = 2_000
#: Samples above which the whole is split after its subsamples, by all threads.
ALONE = 20_000
#: Samples that are split before copies are made, so that these need not load the code.
LOADED_ON = 60


class SplitSource(NamedTuple):
    """Files that splits are found from.

    Attributes
    ----------
    scores, axes : Path
        `embedding/pca.npy`, and `embedding/axes.json`, which says how many components are
        `significant`. The scores may have more components, or fewer if the study asks for few: the
        first MOST_COMPONENTS of the significant ones among them define the communities.
    genotypes, definition, unrelated, ploidy
        As in `depth.open_genotypes`: F_ST tells which splits are deep.
    """

    scores: Path
    axes: Path
    genotypes: list[Path]
    definition: Path
    unrelated: Path | None
    ploidy: int = 2


@dataclass(frozen=True)
class StudySplits:
    """Communities of a study.

    Attributes
    ----------
    community, fine : int64 arrays, (n,)
        Numbered from 1 on, the largest first.
    stability, f_st : float64 arrays, (n,)
    between : str array, (n,)
        As `partition.find_communities` writes them.
    about : dict
        Its entries of the JSON file, from `significant` to `within`.
    """

    community: np.ndarray
    fine: np.ndarray
    stability: np.ndarray
    f_st: np.ndarray
    between: np.ndarray
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
    source: SplitSource,
    names: pd.Series,
    *,
    founders: Founders | None = None,
    draws: int = SUBSAMPLES,
    seed: int,
    threads: int = 1,
    beside: Sequence[Callable[[], Any]] = (),
) -> tuple[StudySplits, list]:
    """The splits of all samples and of subsamples; parameters as of `partition.find_communities`.

    Parameters
    ----------
    names : Series of str, (n,)
        Samples in the order of the scores.
    founders : Founders, optional
        By default everyone is a founder, and nothing is kept.
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
    scores, axes, genotypes, definition, unrelated, ploidy = source
    significant = int(read_json(axes)["significant"])
    points = np.load(scores)[:, : min(significant, MOST_COMPONENTS)]
    n = len(names)
    opened = open_genotypes(genotypes, definition, unrelated, names, ploidy)
    known = founders or Founders(np.ones(n, bool))
    among = known.among
    beds = genotype_keys(genotypes, set(names[among]))
    drawing = content_key(definition), draws, seed, ploidy
    known.recall(points[among], opened.unrelated[among], beds, *drawing)
    first = np.flatnonzero(among)
    drawn = [first[own] for own in draw_subsamples(len(first), draws, seed)]
    sets = [np.arange(n), *(drawn if known.labels is None else [])]
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
    if known.labels is None:
        known.labels = [cut_coarse(tree) for tree in others]
    community = number_by_size(cut_coarse(root))
    about = {"significant": significant, "components": points.shape[1]}
    about |= describe_splits(root, significant)
    about["cline"] = _cline(root, points, threads) if about["structure"] == "continuous" else None
    # The whole says it already where there is one community.
    groups, within = np.zeros(n, np.int64), []
    if community.max() > 1:
        groups, within = structure_within(opened, community, threads, known)
    fine = number_by_size(community * (groups.max() + 1) + groups)
    about |= {"communities": int(community.max()), "fine": int(fine.max()), "within": within}
    bridges = find_bridges(points, community, among & opened.unrelated)
    between = np.array(["-".join(map(str, own)) or "NA" for own in bridges])
    about["between"] = [
        {"communities": list(own), "samples": count}
        for own, count in sorted(Counter(bridges).items())
        if own
    ]
    stability = measure_stability(points, community, drawn, known.labels, threads, among)
    known.keep()
    depths = join_depths(root).round(5)
    splits = StudySplits(community, fine, stability, depths, between, about)
    return splits, done[: len(beside)]


def _cline(root: Split, points: np.ndarray, threads: int) -> dict[str, Any] | None:
    """The test for a gradient; None if there are too few samples."""
    spread = measure_spread(points, threads)
    if spread is None:
        return None
    return {"spread": round(spread, 4), "passed": is_cline(spread, root.gap)}


def describe_splits(root: Split, significant: int) -> dict[str, Any]:
    """Kind of structure, and the evidence for each coarse split or, without any, against one."""
    least = least_coarse_depth(root)
    splits = [node for node in root.walk() if node.halves and node.deepest >= least]
    kind = "discrete" if splits else "continuous" if significant else "one"
    shown = [describe_split(node) for node in splits or ([root] if root.gap else [])]
    return {
        "structure": kind,
        "coarse_f_st": round(least, 5) if splits else None,
        "splits": shown if splits else [one | {"f_st": None} for one in shown],
    }
