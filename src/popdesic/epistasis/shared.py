"""One scan for several phenotypes: people whom they share are counted once.

The planes of all phenotypes (`reorder.py`) are put together: sites that any of them scans, people
that any of them has. Each phenotype keeps its own sites, scores and best hits, so that its results
are those of a scan of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.base import Backend, OneHot, SharedScan, SharedTrait
from ..engine.scan_work import first_site_work
from ..io.sites import chunks
from .partners import partners_of
from .reorder import read_reordered
from .scan import genotypes_of, write_unit
from .scores import lr_bits, score_tables
from .sharing import Groups, share_groups
from .units import count_stored, unit_range

#: Genotypes that are put together at once.
BLOCK_GENOTYPES = 1 << 26
#: A genotype of a person at a site that no phenotype of this person scans.
UNREAD = -2


def read_shared(folders: list[Path], score: str, min_distance_bp: int, max_r2: float) -> SharedScan:
    """The scan of several phenotypes.

    Parameters
    ----------
    folders : list of Path
        `results/reorder/PHENOTYPE` of each.
    score, min_distance_bp, max_r2
        As in `scan.load_scan`.
    """
    read = [read_reordered(folder) for folder in folders]
    names = pd.Index(pd.unique(np.concatenate([one["sample"] for _, _, one in read])))
    people = [names.get_indexer(one["sample"]) for _, _, one in read]
    classes = np.full((len(read), len(names)), -1, np.int8)
    for row, rows, (_, _, samples) in zip(classes, people, read, strict=True):
        row[rows] = samples["class"] == "case"
    groups = share_groups(classes)
    tables = [sites for _, sites, _ in read]
    sites = pd.concat(tables).drop_duplicates("rank").sort_values("rank", ignore_index=True)
    words, labels = _planes_of(groups, sites, read, people)
    sites[["state0", "state1", "other"]] = labels
    order = np.lexsort((sites["rank"], sum(count_stored(one).sum(axis=1) for one in words)))
    sites = sites.iloc[order].reset_index(drop=True)
    planes = tuple(
        OneHot(np.ascontiguousarray(one[order]), int(members.sum()))
        for one, members in zip(words, groups.members, strict=True)
    )
    traits = tuple(
        _trait(table, sites, row, score, groups.cases[t], groups.rest[t])
        for t, (table, row) in enumerate(zip(tables, classes, strict=True))
    )
    partners = partners_of(sites, min_distance_bp, max_r2)
    return SharedScan(planes, traits, groups.subtract, partners)


def _planes_of(
    groups: Groups, sites: pd.DataFrame, read: list, people: list[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Planes of each group as in `OneHot`, and ALT counts of the states 0, 1 and third of sites."""
    ranks, n_people = sites["rank"].to_numpy(), len(groups.members[0])
    words: list[list[np.ndarray]] = [[] for _ in groups.members]
    labels, lacking = [], False
    for first, last in chunks(len(sites), max(1, BLOCK_GENOTYPES // n_people)):
        genotypes = np.full((last - first, n_people), UNREAD, np.int8)
        for (planes, table, samples), rows in zip(read, people, strict=True):
            own = np.flatnonzero(np.isin(table["rank"], ranks[first:last]))
            place = np.searchsorted(ranks[first:last], table["rank"].to_numpy()[own])
            n_cases = int((samples["class"] == "case").sum())
            sizes = len(samples) - n_cases, n_cases
            genotypes[np.ix_(place, rows)] = genotypes_of(planes[own], table.iloc[own], *sizes)
        counts = np.stack([(genotypes == g).sum(axis=1) for g in range(3)], axis=1)
        ranked = np.argsort(counts, axis=1, kind="stable")
        labels.append(ranked)
        lacking |= bool((genotypes == -1).any())
        kinds = [ranked[:, :1], ranked[:, 1:2], np.int8(-1)]
        for members, of_group in zip(groups.members, words, strict=True):
            of_group.append(_pack([genotypes[:, members] == kind for kind in kinds]))
    stored = [np.concatenate(of_group)[:, : 2 + lacking] for of_group in words]
    return stored, np.concatenate(labels)


def _pack(states: list[np.ndarray]) -> np.ndarray:
    """uint64 (n_sites, n_states, n_words) of the people in each state, bool (n_sites, n_people)."""
    n_sites, n = states[0].shape
    out = np.zeros((n_sites, len(states), -(-n // 64) * 8), np.uint8)
    for k, state in enumerate(states):
        bits = np.packbits(state, axis=1, bitorder="little")
        out[:, k, : bits.shape[1]] = bits
    return out.view(np.uint64)


def _trait(
    own: pd.DataFrame, sites: pd.DataFrame, classes: np.ndarray, score: str, cases: int, rest: int
) -> SharedTrait:
    """One phenotype; `own` are its sites."""
    names = ["state0", "state1", "other"]
    by_rank = pd.Series(np.arange(len(own)), own["rank"])
    place = by_rank.reindex(sites["rank"]).fillna(-1).to_numpy(np.int32)
    theirs = own[names].to_numpy()[place]  # those of a site that it has not are not read
    labels = (sites[names].to_numpy()[:, :, None] == theirs[:, None, :]).argmax(axis=2)
    n_controls, n_cases = int((classes == 0).sum()), int((classes == 1).sum())
    return SharedTrait(
        cases,
        rest,
        *score_tables(score, n_controls, n_cases),
        rank=sites["rank"].to_numpy(np.int32),
        place=place,
        labels=labels.astype(np.int8),
        lr_bits=lr_bits(score, n_controls + n_cases),
    )


def scan_shared_unit(
    folders: list[Path],
    backend: Backend,
    outs: list[Path],
    *,
    order: int,
    unit: int,
    n_units: int,
    score: str,
    top: int,
    min_distance_bp: int,
    max_r2: float,
) -> dict[str, int]:
    """Run one unit of the scan of several phenotypes; write the best `top` hits of each.

    Units are cut along the sites of all phenotypes, whose number the files hold (`write_unit`).
    """
    data = read_shared(folders, score, min_distance_bp, max_r2)
    words = np.concatenate([group.words for group in data.groups], axis=2)
    work = first_site_work(count_stored(words), words.shape[2], order, "cpu")
    del words
    first = unit_range(work, unit, n_units)
    hits = backend.scan_shared(data, order, first, top)
    for out, one in zip(outs, hits, strict=True):
        write_unit(out, first, one, of=data.n_sites)
    people = sum(trait.total.size - 1 for trait in data.traits)
    return {
        "phenotypes": len(data.traits),
        "people_counted": sum(group.n_samples for group in data.groups),
        "people_of_scans_apart": people,
        "first_sites": len(first),
        "hits": sum(len(one.cost) for one in hits),
    }
