"""Depth of splits: Hudson's F_ST between the two halves, from genotype counts of the leaves.

Every sample is counted once, in its leaf; the counts of a half are the sums of its leaves'. F_ST is
a ratio of sums over sites (Hudson, Slatkin and Maddison 1992; Bhatia et al. 2013, equation 10), so
that sites weigh as much as they tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.site_alleles import names_once, read_cohorts
from ..components.relationship import CHUNK_SITES, Alleles, alleles_of
from ..core.tables import read_table
from ..core.threads import one_blas_thread, run_tasks
from ..io.bed import read_bim
from ..io.layers import Reader, n_layers
from ..io.sites import chunks
from .splits import Split, cut_tree, evenly_spaced

#: Most sites that are counted, evenly spaced: with more, F_ST changes in the fourth decimal.
MOST_SITES = 20_000
#: Trees whose leaves are counted in one pass over the genotypes.
TREES = 25
#: Genotypes that a thread counts at a time, 14 bytes each, and the fewest sites of them.
COUNTED, FEWEST_ROWS = 1 << 21, 16


@dataclass(frozen=True, eq=False)
class Genotypes:
    """Genotypes of a study's samples at the sites of its axes.

    Attributes
    ----------
    read : Reader
        Columns are the samples in the order of the matrices.
    sites : DataFrame
        `chrom`, `pos` of the rows.
    unrelated : bool array, (n,)
        False for close relatives of samples that define the axes. Newcomers count as unrelated:
        whom they are related to must not change earlier results.
    ploidy : int
        Gene copies of a sample. Of an odd ploidy genotypes count each twice (`io.layers`).
    alleles : Alleles, optional
        What genotypes count, where samples are of several ploidies.
    """

    read: Reader
    sites: pd.DataFrame
    unrelated: np.ndarray
    ploidy: int = 2
    alleles: Alleles | None = None

    @property
    def most(self) -> int:
        """The largest genotype."""
        return self.alleles.most if self.alleles else 2 * n_layers(self.ploidy)

    def copies_of(self, samples: np.ndarray) -> np.ndarray | None:
        """`Alleles.copies` of some samples; None where all have as many."""
        return self.alleles.copies[samples] if self.alleles else None


@dataclass(frozen=True)
class Counts:
    """Gene copies of some groups of samples.

    Attributes
    ----------
    alt, called : float64 arrays, (n_groups, n_sites)
        Copies of the ALT allele, and copies of any.
    """

    alt: np.ndarray
    called: np.ndarray


def open_genotypes(
    prefixes: list[Path],
    definition: Path,
    unrelated: Path | None,
    samples: pd.Series,
    ploidy: int = 2,
) -> Genotypes:
    """Genotypes of some samples at the sites that define the axes, at most MOST_SITES of them.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel, in sample order.
    definition : Path
        `embedding/axes.npz`, with `sites`: pruned, without regions of long-range LD.
    unrelated : Path, optional
        `panel/unrelated.tsv`.
    samples : Series of str
        Names in the order of the matrices.
    ploidy : int
        Of all of them.
    """
    with np.load(definition) as axes:
        rows = evenly(axes["sites"])
    read_all, _ = read_cohorts(prefixes, rows)
    everyone = pd.concat([names_once(prefix) for prefix in prefixes])
    place = pd.Series(np.arange(len(everyone)), everyone)[samples].to_numpy()
    alleles = alleles_of(prefixes)
    own = alleles.copies is not None and alleles._replace(copies=alleles.copies[place])
    related = set()
    if unrelated is not None:
        table = read_table(unrelated)
        related = set(table["sample"][table.unrelated == "no"])
    return Genotypes(
        lambda first, last: read_all(first, last)[:, place],
        read_bim(prefixes[0]).iloc[rows][["chrom", "pos"]].reset_index(drop=True),
        ~samples.isin(related).to_numpy(),
        ploidy,
        own or None,
    )


def evenly(rows: np.ndarray) -> np.ndarray:
    """At most MOST_SITES of some rows, evenly spaced."""
    return evenly_spaced(rows, MOST_SITES)


@one_blas_thread
def count_partitions(
    read: Reader,
    n_sites: int,
    partitions: Sequence[np.ndarray],
    threads: int = 1,
    most: int = 2,
    copies: np.ndarray | None = None,
) -> list[Counts]:
    """Gene copies of each group of each partition, in one pass over the genotypes.

    Parameters
    ----------
    read : Reader
        Genotypes of `n_sites` sites, int8 (last - first, n), -1 if missing.
    partitions : sequence of int arrays, (n,)
        Groups 0, 1, …; -1 for samples that are not counted.
    threads : int
        Changes no byte.
    most : int
        The largest genotype: copies of any allele that a called one has.
    copies : int64 array, (n,), optional
        Those of each sample, whose genotypes are in units of 1 / most.
    """
    sizes = [int(partition.max()) + 1 for partition in partitions]
    starts = [0, *np.cumsum(sizes).tolist()]
    member = np.zeros((len(partitions[0]), starts[-1]), np.float32)
    for partition, start in zip(partitions, starts, strict=False):
        counted = np.flatnonzero(partition >= 0)
        member[counted, start + partition[counted]] = 1
    of_sample = None if copies is None else copies[:, None].astype(np.float32)
    alt, called = np.zeros((2, starts[-1], n_sites))

    def count(first: int, last: int) -> None:
        genotypes = read(first, last)
        there = genotypes >= 0  # float32 holds sums of less than 2**24 copies exactly
        if copies is not None:
            genotypes = genotypes // (most // copies).astype(np.int8)
            called[:, first:last] = (there.astype(np.float32) @ (member * of_sample)).T
        alt[:, first:last] = (np.where(there, genotypes, 0).astype(np.float32) @ member).T
        if copies is None:
            called[:, first:last] = most * (there.astype(np.float32) @ member).T

    rows = max(FEWEST_ROWS, COUNTED // len(member))
    run_tasks(count, chunks(n_sites, min(rows, CHUNK_SITES)), threads)
    return [Counts(alt[a:b], called[a:b]) for a, b in pairwise(starts)]


def hudson_f_st(counts: Counts, one: Sequence[int], other: Sequence[int]) -> float:
    """F_ST between two sets of groups; sites with fewer than two copies in either do not count.

    0 where no site tells. Not negative: an estimate below 0 is 0.
    """
    (p, n), (q, m) = (
        (counts.alt[list(own)].sum(axis=0), counts.called[list(own)].sum(axis=0))
        for own in (one, other)
    )
    use = (n > 1) & (m > 1)
    n, m = n[use], m[use]
    p, q = p[use] / n, q[use] / m
    within = p * (1 - p) / (n - 1) + q * (1 - q) / (m - 1)
    between = float((p * (1 - q) + q * (1 - p)).sum())
    return max(0.0, float(((p - q) ** 2 - within).sum()) / between) if between else 0.0


def leaves_to_count(root: Split, unrelated: np.ndarray) -> np.ndarray:
    """Leaf of each sample that is counted, int64 (n,), -1 for others; as `cut_tree` numbers them.

    Close relatives would count the same gene copies twice, so only the unrelated count; a leaf
    without any counts whole.

    Parameters
    ----------
    unrelated : bool array, (n,)
    """
    leaf = cut_tree(root)
    has_any = np.bincount(leaf[unrelated], minlength=leaf.max() + 1) > 0
    return np.where(unrelated | ~has_any[leaf], leaf, -1)


def measure_depths(
    trees: list[Split], genotypes: Genotypes, drawn: list[np.ndarray], threads: int = 1
) -> list[Split]:
    """The trees of some sets of samples with the depth of every split.

    Parameters
    ----------
    trees : list of Split
        One for each set; `members` of a tree are places in its array.
    drawn : list of int64 arrays
        Ascending sample numbers of each set.
    """
    measured = []
    for first, last in chunks(len(drawn), TREES):
        some = list(zip(trees[first:last], drawn[first:last], strict=True))
        partitions = np.full((len(some), len(genotypes.unrelated)), -1)
        for row, (root, own) in zip(partitions, some, strict=True):
            row[own] = leaves_to_count(root, genotypes.unrelated[own])
        given = genotypes.read, len(genotypes.sites), partitions, threads
        copies = genotypes.alleles.copies if genotypes.alleles else None
        counts = count_partitions(*given, genotypes.most, copies)
        if genotypes.ploidy % 2:
            counts = [Counts(own.alt / 2, own.called / 2) for own in counts]
        measured += [with_depths(root, own) for (root, _), own in zip(some, counts, strict=True)]
    return measured


def with_depths(root: Split, counts: Counts) -> Split:
    """The tree with the depth of every split, from the counts of its leaves."""
    return _measure(root, counts, 0)[0]


def _measure(node: Split, counts: Counts, first: int) -> tuple[Split, int]:
    """A node whose first leaf has a number, with depths; and the number after its last leaf."""
    if not node.halves:
        return node, first + 1
    one, middle = _measure(node.halves[0], counts, first)
    other, end = _measure(node.halves[1], counts, middle)
    depth = hudson_f_st(counts, range(first, middle), range(middle, end))
    return replace(node, halves=(one, other), depth=depth), end
