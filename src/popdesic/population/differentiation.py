"""Differentiation of pairs of populations, and their tree."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from ..distance.neighbor_joining import neighbor_joining, quoted
from ..io.sites import contig_runs
from .allele_counts import PopulationCounts
from .jackknife import jackknife
from .sum_names import PAIR_SUMS


def _pairs(names: list[str]) -> tuple[list[str], list[str]]:
    first, second = np.triu_indices(len(names), 1)
    return [names[k] for k in first], [names[k] for k in second]


def pair_table(
    counts: PopulationCounts,
    sums: np.ndarray,
    base_pairs: np.ndarray | None = None,
    within: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row a pair of populations, with block jackknife errors.

    Parameters
    ----------
    sums : float64 array, (n_blocks, n_pairs, len(PAIR_SUMS))
        `allele_sums.pair_sums`.
    base_pairs : float64 array, (n_blocks,), optional
        Callable positions (`population.mask`); d_xy is only given with them.
    within : float64 array, (n_blocks, n_pairs, len(PAIR_SUMS)), optional
        Sums over all sites of the mask, if `sums` are over the panel alone; its blocks are those of
        `base_pairs`.

    Returns
    -------
    DataFrame
        `population1`, `population2`; `fst`, `error`, `z` (Hudson); `weir_cockerham` and its error
        (diploid people); `f2` and its error; `sharing_distance`: share of alleles that two people,
        one of each population, do not share; `d_xy`, `d_xy_error`; `sites`, `blocks`.
    """
    s = {name: sums[..., k] for k, name in enumerate(PAIR_SUMS)}
    hudson = jackknife(s["f2"], s["d"], s["sites"])
    f2 = jackknife(s["f2"], s["sites"], s["sites"])
    wc = jackknife(s["a"], s["a"] + s["b"] + s["c"], s["wc_sites"])
    first, second = _pairs(counts.names)
    pairs = s["pairs"].sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        sharing = np.where(pairs > 0, s["differences"].sum(axis=0) / (2 * pairs), np.nan)
    table = pd.DataFrame(
        {
            "population1": first,
            "population2": second,
            "fst": hudson.value,
            "error": hudson.error,
            "z": hudson.z,
            "weir_cockerham": wc.value,
            "weir_cockerham_error": wc.error,
            "f2": f2.value,
            "f2_error": f2.error,
            "sharing_distance": sharing,
            "d_xy": np.nan,
            "d_xy_error": np.nan,
            "sites": hudson.sites.astype(np.int64),
            "blocks": hudson.blocks,
        }
    )
    if base_pairs is not None and len(table):
        differences = (sums if within is None else within)[..., PAIR_SUMS.index("masked_d")]
        found = jackknife(differences, base_pairs[:, None], base_pairs[:, None])
        table["d_xy"], table["d_xy_error"] = found.value, found.error
    return table


def track_table(
    names: list[str], sums: np.ndarray, sites: pd.DataFrame, starts: np.ndarray
) -> pd.DataFrame:
    """Differentiation along the genome, one row a block of sites.

    Returns
    -------
    DataFrame
        `block`, `chrom`, `start`, `end`, `sites`; `fst`: Hudson's over all pairs (ratio of sums);
        `highest`: the largest of a pair, whose names are `population1`, `population2`. A block of
        several contigs has the names of the first and the last, ``first..last``, and ends where it
        would if they lay one after the other.
    """
    s = {name: sums[..., k] for k, name in enumerate(PAIR_SUMS)}
    first, second = (np.array(x, dtype=object) for x in _pairs(names))
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(s["d"] > 0, s["f2"] / s["d"], np.nan)
        below = s["d"].sum(axis=1)
        over_all = np.where(below > 0, s["f2"].sum(axis=1) / below, np.nan)
    names_of, end = chrom[starts[:-1]].astype(object), pos[starts[1:] - 1].copy()
    for k in np.flatnonzero(names_of != chrom[starts[1:] - 1]).tolist():
        here = slice(starts[k], starts[k + 1])
        end[k] = sum(pos[here][last - 1] for _, last in contig_runs(chrom[here]))
        names_of[k] = f"{names_of[k]}..{chrom[here][-1]}"
    table = pd.DataFrame(
        {
            "block": np.arange(1, len(starts)),
            "chrom": names_of,
            "start": pos[starts[:-1]],
            "end": end,
            "sites": np.diff(starts),
            "fst": over_all,
        }
    )
    if len(first):
        best = np.argmax(np.where(np.isnan(each), -np.inf, each), axis=1)
        table["highest"] = each[np.arange(len(each)), best]
        known = np.isfinite(table["highest"].to_numpy())
        table["population1"] = np.where(known, first[best], "NA")
        table["population2"] = np.where(known, second[best], "NA")
    return table


def population_tree(names: list[str], sums: np.ndarray, *, draws: int, seed: int) -> str:
    """Neighbour-joining tree of f2, with bootstrap support over blocks.

    f2 is a squared difference of frequencies without the part of sampling; drift on separate
    branches adds up in it, so that on a tree it is a sum of branch lengths.

    Parameters
    ----------
    sums : float64 array, (n_blocks, n_pairs, len(PAIR_SUMS))
    draws : int
        Blocks are drawn with replacement so often; 0: no support.

    Returns
    -------
    str
        Newick. The label of an inner branch is the share of draws, in percent, whose tree has it.
        Empty if fewer than three populations can be compared.
    """
    n = len(names)
    f2, sites = sums[..., PAIR_SUMS.index("f2")], sums[..., PAIR_SUMS.index("sites")]
    if n < 3 or not (sites.sum(axis=0) > 0).all():
        return ""
    rng = np.random.default_rng(seed)
    tree = _tree_of(f2.sum(axis=0) / sites.sum(axis=0), n)
    seen: dict[frozenset[int], int] = {}
    valid = 0
    for _ in range(draws):
        times = np.bincount(rng.integers(0, len(f2), len(f2)), minlength=len(f2)).astype(float)
        below = times @ sites
        if (below == 0).any():
            continue
        valid += 1
        for split in _splits(_tree_of((times @ f2) / below, n), n):
            seen[split] = seen.get(split, 0) + 1
    support = {split: 100 * count / valid for split, count in seen.items()}
    return _labelled(tree, names, support if valid else None)


def _tree_of(values: np.ndarray, n: int) -> str:
    """Newick of a vector of distances, populations named 0, 1, …"""
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = values
    return neighbor_joining(matrix + matrix.T, [str(k) for k in range(n)])


def _groups(tree: str) -> list[tuple[int, frozenset[int]]]:
    """Position behind each closing bracket, and the populations within that bracket."""
    found: list[tuple[int, frozenset[int]]] = []
    stack: list[set[int]] = []
    for word in re.finditer(r"[(),;]|:[^(),;]*|\d+", tree):
        if word[0] == "(":
            stack.append(set())
        elif word[0] == ")":
            own = stack.pop()
            found.append((word.end(), frozenset(own)))
            if stack:
                stack[-1] |= own
        elif word[0].isdigit():
            stack[-1].add(int(word[0]))
    return found


def _split(group: frozenset[int], n: int) -> frozenset[int]:
    """The side of a split without population 0."""
    return frozenset(range(n)) - group if 0 in group else group


def _splits(tree: str, n: int) -> set[frozenset[int]]:
    """Inner branches of an unrooted tree."""
    return {_split(group, n) for _, group in _groups(tree) if 1 < len(group) < n - 1}


def _labelled(tree: str, names: list[str], support: dict[frozenset[int], float] | None) -> str:
    """The tree with names of populations, and support where known."""
    n = len(names)
    marks = {
        place: f"{support.get(_split(group, n), 0.0):.0f}"
        for place, group in (_groups(tree) if support is not None else [])
        if 1 < len(group) < n - 1
    }
    out, here = [], 0
    for word in re.finditer(r"(?<=[(,])\d+", tree):
        places = [p for p in sorted(marks) if here < p <= word.start()]
        for place in places:
            out += [tree[here:place], marks[place]]
            here = place
        out += [tree[here : word.start()], quoted(names[int(word[0])])]
        here = word.end()
    for place in (p for p in sorted(marks) if p > here):
        out += [tree[here:place], marks[place]]
        here = place
    return "".join([*out, tree[here:]])
