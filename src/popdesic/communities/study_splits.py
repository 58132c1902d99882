"""The splits of a study's samples: its communities, how deep and stable they are, what is within.

Components of the whole study show what parts its communities. Within one, the components of its own
samples are tested, as those of a study are, and the samples are looked at for a gap on them.
Newcomers take part in the splits. How stable these are, and what is within, founders tell alone
(`founders`): to add a cohort costs one tree of splits, not one for each subsample.

They need the components alone, so that in a large study they are found while geodesics are closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..components.noise_null import significant_axes
from ..components.relationship import CHUNK_SITES, alt_frequency, relationship_among
from ..core.errors import UserError
from ..core.files import content_key, read_json
from ..core.tables import write_npz
from ..core.threads import one_blas_thread, run_forked, run_tasks
from ..io.sites import chunks
from .cline import is_cline, measure_spread
from .depth import Genotypes, measure_depths, open_genotypes
from .founders import Founders, Seen, genotype_keys, group_key
from .splits import (
    MOST_COMPONENTS,
    Split,
    cut_coarse,
    cut_tree,
    evenly_spaced,
    join_depths,
    least_coarse_depth,
    split_samples,
)
from .stability import draw_subsamples, measure_stability

#: Subsamples from which the stability of communities is measured.
SUBSAMPLES = 20

#: Fewest and most samples of a community in which structure is looked for; of more, so many evenly
#: spaced.
FEWEST_SAMPLES, MOST_SAMPLES = 20, 500
#: Samples whose genotypes are in memory at once: 200 MB at the sites of `depth.MOST_SITES`.
READ_SAMPLES = 10_000
#: Allele frequencies below this, in a community, do not count: a few carriers make components.
MIN_MAF = 0.02
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
    genotypes, definition, unrelated
        As in `depth.open_genotypes`: F_ST tells which splits are deep.
    """

    scores: Path
    axes: Path
    genotypes: list[Path]
    definition: Path
    unrelated: Path | None


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
    scores, axes, genotypes, definition, unrelated = source
    significant = int(read_json(axes)["significant"])
    points = np.load(scores)[:, : min(significant, MOST_COMPONENTS)]
    n = len(names)
    opened = open_genotypes(genotypes, definition, unrelated, names)
    known = founders or Founders(np.ones(n, bool))
    among = known.among
    beds = genotype_keys(genotypes, set(names[among]))
    known.recall(points[among], opened.unrelated[among], beds, content_key(definition), draws, seed)
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
    community, fine = number_by_size(cut_coarse(root)), number_by_size(cut_tree(root))
    about = {"significant": significant, "components": points.shape[1]}
    about |= describe_splits(root, significant)
    about["cline"] = _cline(root, points, threads) if about["structure"] == "continuous" else None
    about |= {"communities": int(community.max()), "fine": int(fine.max())}
    # The whole says it already where there is one community.
    about["within"] = []
    if community.max() > 1:
        about["within"] = structure_within(opened, community, fine, threads, known)
    stability = measure_stability(points, community, drawn, known.labels, threads, among)
    known.keep()
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
                "valley": round(node.gap.valley, 4),
            }
            for node in shown
        ],
    }


@one_blas_thread
def structure_within(
    genotypes: Genotypes,
    community: np.ndarray,
    fine: np.ndarray,
    threads: int = 1,
    known: Founders | None = None,
) -> list[dict[str, Any]]:
    """What is known of each community, in their order.

    Parameters
    ----------
    community, fine : int arrays, (n,)
        Communities 1, 2, … and finer ones.
    threads : int
        Changes no byte: communities are looked at side by side.

    Returns
    -------
    list of dict
        `community`, `samples`, `fine` (finer communities in it), `significant` (components of its
        own unrelated samples; None if these are fewer than FEWEST_SAMPLES) and `structure`:
        ``discrete`` where there are finer communities or where its own components show a gap,
        ``continuous`` where components are significant and show none, ``one`` where none is, and
        ``unknown`` for too few samples.
    """
    known = known or Founders(np.ones(len(community), bool))
    members = [np.flatnonzero(community == k) for k in range(1, int(community.max()) + 1)]
    finer = [len(np.unique(fine[own])) for own in members]
    drawn = [_drawn(genotypes, own, known.among) for own in members]
    keys = [group_key(own, number > 1) for own, number in zip(drawn, finer, strict=True)]
    earlier = {key: known.within[key] for key in keys if key in known.within}

    def look(number: int, values: np.ndarray | None, threads: int) -> Seen:
        if values is None:
            return earlier.get(keys[number], (None, finer[number] > 1))
        scores = _components(values, genotypes.sites, threads)
        gap = finer[number] > 1 or (scores.shape[1] and split_samples(scores).halves)
        return scores.shape[1], bool(gap)

    seen: list[Seen] = []
    unseen = [own[:0] if key in earlier else own for own, key in zip(drawn, keys, strict=True)]
    for first, last in _batches([len(own) for own in unseen]):
        there = _read(genotypes, unseen[first:last])
        share = max(1, threads // len(there))
        tasks = [(number, values, share) for number, values in enumerate(there, first)]
        seen += run_tasks(look, tasks, threads)
    of_founders = (known.among[own].all() for own in drawn)
    known.within = dict(compress(zip(keys, seen, strict=True), of_founders))
    found = []
    for own, number, (significant, gap) in zip(members, finer, seen, strict=True):
        kind = "unknown" if significant is None else "continuous" if significant else "one"
        about = {"community": len(found) + 1, "samples": len(own), "fine": number}
        found.append(about | {"significant": significant, "structure": "discrete" if gap else kind})
    return found


def _drawn(genotypes: Genotypes, members: np.ndarray, founders: np.ndarray) -> np.ndarray:
    """The unrelated of some samples, at most MOST_SAMPLES; none of fewer than FEWEST_SAMPLES.

    Of the founders, if these are enough and at least half of them.
    """
    own = members[genotypes.unrelated[members]]
    first = own[founders[own]]
    if len(first) >= max(FEWEST_SAMPLES, len(own) / 2):
        own = first
    if len(own) < FEWEST_SAMPLES:
        return own[:0]
    return evenly_spaced(own, MOST_SAMPLES)


def _batches(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """First and end of runs of communities of which READ_SAMPLES at most are drawn."""
    first, total = 0, 0
    for number, size in enumerate(sizes):
        if total and total + size > READ_SAMPLES:
            yield first, number
            first, total = number, 0
        total += size
    yield first, len(sizes)


def _read(genotypes: Genotypes, drawn: list[np.ndarray]) -> list[np.ndarray | None]:
    """Genotypes of sets of samples, int8 (n_sites, n) each, in one pass; None of empty sets."""
    parts: list[list[np.ndarray]] = [[np.empty((0, len(own)), np.int8)] for own in drawn]
    for first, last in chunks(len(genotypes.sites), CHUNK_SITES):
        there = genotypes.read(first, last)
        for own, part in zip(drawn, parts, strict=True):
            part.append(there[:, own])
    return [np.concatenate(part) if part[0].shape[1] else None for part in parts]


def _components(values: np.ndarray, sites: pd.DataFrame, threads: int = 1) -> np.ndarray:
    """Scores on the significant components of some genotypes (n_sites, n): (n, k)."""
    n = values.shape[1]
    af = alt_frequency(values)
    with np.errstate(invalid="ignore"):
        common = np.minimum(af, 1 - af) >= MIN_MAF
    values, af, sites = values[common], af[common], sites[common]

    def read(first: int, last: int) -> np.ndarray:
        return values[first:last]

    relationship = relationship_among(read, [n], af, threads)
    try:
        axes, tests, _ = significant_axes(
            relationship, read, [n], af, sites, "auto", threads=threads
        )
    except UserError:  # nothing varies
        return np.empty((n, 0))
    return axes.place(np.ones(n, bool), np.empty((0, n)), np.empty(0))[:, : tests.count]
