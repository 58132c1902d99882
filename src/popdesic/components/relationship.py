"""Genetic relationship of samples: mean products of standardised genotypes.

A genotype g at a site with ALT frequency p is standardised to (g - 2p) / sqrt(2p (1 - p))
(Patterson, Price and Reich 2006); of polyploids, with `most` in place of 2. The relationship of two
samples is the mean of their products over the sites called in both; sites with p = 0 or 1 are
skipped. Of samples of several ploidies `most` is a common multiple, and genotypes are shares of
alleles in units of 1 / `most`. Each sample then has a weight, which gives it the variance of its
ploidy: so its standard genotype is (a - k p) / sqrt(k p (1 - p)), with a of its k alleles ALT.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core.threads import one_blas_thread, run_ordered, run_tasks
from ..engine.genotype_products import Calls
from ..io.bed import ChosenSamples, open_bed, read_fam
from ..io.genotypes import MISSING
from ..io.layers import Reader, common_most, layers_in, sizes_in
from ..io.sites import chunks

#: Sites of one pass over the genotypes.
CHUNK_SITES = 2_048
#: Most bytes of passes that are made ahead.
AHEAD_BYTES = 1 << 29
#: Samples per side of one block of the products.
BLOCK_SAMPLES = 512
#: Products that each pass makes for itself, and that are added in order.
SMALL_BYTES = 1 << 23
#: Memory of the products of one group of samples with those that define the axes, and bytes of a
#: pair: products, pairs called, and a temporary of either (measured).
GROUP_BYTES, PAIR_BYTES = 2 << 30, 8 + 8 + 8
#: How many times as fast a dense product handles an element.
DENSE_GAIN = 100


class Alleles(NamedTuple):
    """What genotypes of `read_cohorts` count.

    Attributes
    ----------
    most : int
        The largest genotype that there can be: 2 of diploids and haploids.
    copies : int64 array, (n,), optional
        Alleles of each sample (an odd ploidy counts each twice) where samples differ in it.
    layered : bool
        Whether .bed files have several columns of a sample.
    """

    most: int = 2
    copies: np.ndarray | None = None
    layered: bool = False

    @property
    def weights(self) -> np.ndarray | None:
        """Weight of each sample's standard genotypes, float64 (n,); None: all 1."""
        return None if self.copies is None else np.sqrt(self.copies / self.most)

    def as_shares(self, scores: np.ndarray) -> np.ndarray:
        """Scores (n, k) on axes, as those of shares of alleles.

        Without this, samples of k alleles would lie sqrt(k) times as far from the origin. Now
        samples of one population lie together, whatever their ploidy.
        """
        if self.copies is None:
            return scores
        return scores / np.sqrt(self.copies / self.most)[:, None]


#: Of diploids and haploids.
DIPLOID = Alleles()


def alleles_of(prefixes: list[Path], keep: list[np.ndarray] | None = None) -> Alleles:
    """What the genotypes of these cohorts count; arguments as of `read_cohorts`."""
    fams = [read_fam(prefix) for prefix in prefixes]
    sizes = [sizes_in(fam) for fam in fams]
    most, layered = common_most(sizes), any(layers_in(fam) > 1 for fam in fams)
    if len(np.unique(np.concatenate(sizes))) == 1:
        return Alleles(most, None, layered)
    chosen = sizes if keep is None else [own[who] for own, who in zip(sizes, keep, strict=True)]
    return Alleles(most, 2 * np.concatenate(chosen), layered)


def calls_of(
    prefixes: list[Path], sites: np.ndarray, keep: list[np.ndarray], af: np.ndarray
) -> Calls:
    """Packed genotypes of what `read_cohorts` reads, with the sites' ALT frequencies.

    Of a cohort of which half or less is kept, the others' genotypes are left out of the rows.
    """
    parts, kept = [], []
    for prefix, who in zip(prefixes, keep, strict=True):
        rows, chosen = open_bed(prefix), np.flatnonzero(who)
        few = 0 < 2 * len(chosen) <= len(who)
        parts.append(ChosenSamples(rows, chosen) if few else rows)
        kept.append(np.ones(len(chosen), bool) if few else who)
    return Calls(tuple(parts), sites, tuple(kept), af)


def alt_frequency(
    genotypes: np.ndarray, most: int = 2, copies: np.ndarray | None = None
) -> np.ndarray:
    """ALT frequency among called genotypes, (n_sites, n) to float64 (n_sites,); NaN where none.

    `most`, `copies`: of `Alleles`.
    """
    if copies is not None:
        there = genotypes >= 0
        alt, called = np.where(there, genotypes, 0) @ copies, there @ copies
        with np.errstate(invalid="ignore"):
            return alt / (most * called)
    alt = sum(k * (genotypes == k).sum(axis=1) for k in range(1, most + 1))
    called = (genotypes >= 0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return alt / (most * called)


def standardize(
    genotypes: np.ndarray, af: np.ndarray, most: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Standardised genotypes of the polymorphic sites, 0 where missing, and what is called.

    Returns
    -------
    values : float64 array, (n_polymorphic, n)
    called : bool array, (n_polymorphic, n)
    """
    from ..cohort.standard_genotypes_cpu import standard_rows, value_table

    rows, table = value_table(af, most)
    return standard_rows(genotypes, rows, table), genotypes[rows] != MISSING


@one_blas_thread
def relationship_among(
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    threads: int = 1,
    most: int = 2,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Relationship of all samples with each other, float64 (n, n), symmetric.

    Parameters
    ----------
    sizes : list of int
        Number of samples of each cohort, n in total.
    af : float64 array, (n_sites,)
        ALT frequency of the sites that `read` gives.
    threads : int
        Number of threads; the numbers are bit-identical for any number.
    most, weights
        Of `Alleles`.
    """
    pairs = block_pairs(sizes)
    n = sum(sizes)
    products, called = np.zeros((n, n)), JointlyCalled(n, n)
    everyone = np.arange(n)

    def one(bounds: tuple[int, int]) -> tuple[np.ndarray, tuple]:
        from ..cohort.standard_genotypes_cpu import standard_rows, value_table

        genotypes = read(*bounds)
        rows, table = value_table(af[slice(*bounds)], most)
        missing = missing_in_both(genotypes, rows, everyone, everyone)
        return standard_rows(genotypes, rows, table), missing

    for values, missing in run_ordered(one, chunks(len(af), CHUNK_SITES), ahead(n, threads)):
        add_block_products(products, values, values, pairs, threads)
        called.include(*missing)
    counts = called.counts()
    products /= np.maximum(counts, 1, out=counts)
    if weights is not None:
        products *= weights[:, None] * weights
    return np.triu(products) + np.triu(products, 1).T


@one_blas_thread
def relationship_to(
    read: Reader,
    sizes: list[int],
    axes: np.ndarray,
    af: np.ndarray,
    threads: int = 1,
    blocks: list[tuple[int, int]] | None = None,
    most: int = 2,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Relationship of the other samples to those that define the axes, and to themselves.

    A sample's numbers depend on its own genotypes and those of `axes` alone, to the last bit.

    Parameters
    ----------
    sizes : list of int
        Number of samples of each cohort, n in total.
    axes : bool array, (n,)
        Samples that define the axes, a in total.
    af, threads, most, weights
        As in `relationship_among`.
    blocks : list of (first, last), optional
        Some consecutive blocks of `blocks_of_others`: only these samples.

    Returns
    -------
    rows : float64 array, (n - a, a)
    own : float64 array, (n - a,)
        Mean square of each sample's own standardised genotypes.
    """
    others, founders = np.flatnonzero(~axes), np.flatnonzero(axes)
    if not len(others):
        return np.zeros((0, len(founders))), np.zeros(0)
    left, right = blocks_of_others(sizes, axes), blocks_of_others(sizes, ~axes)
    if blocks is not None:
        start = blocks[0][0]
        others = others[start : blocks[-1][1]]
        left = [(first - start, last - start) for first, last in blocks]
    products = np.zeros((len(others), len(founders)))
    called = JointlyCalled(len(others), len(founders))
    squares, own_called = np.zeros(len(others)), np.zeros(len(others))
    small = products.nbytes <= SMALL_BYTES
    read_pass = _Pass(read, af, others, founders, left, right if small else [], most)
    for part in run_ordered(
        read_pass, chunks(len(af), CHUNK_SITES), min(threads, read_pass.at_once(small))
    ):
        if small:
            products += part.products
        else:
            pairs = [(one, other) for one in left for other in right]
            add_block_products(products, part.theirs, part.founders, pairs, threads)
        called.include(*part.missing)
        own_called += part.missing[0] - part.missing[1][0]
        squares += part.squares
    counts = called.counts()
    products /= np.maximum(counts, 1, out=counts)
    own = squares / np.maximum(own_called, 1)
    if weights is not None:
        products *= weights[others, None] * weights[founders]
        own *= weights[others] ** 2
    return products, own


@dataclass
class _Part:
    """What one pass adds to `relationship_to`: products if they are small, else their factors."""

    squares: np.ndarray
    missing: tuple[int, tuple[np.ndarray, np.ndarray], np.ndarray | None]
    products: np.ndarray | None = None
    theirs: np.ndarray | None = None
    founders: np.ndarray | None = None


class _Pass:
    """Passes of `relationship_to`, one on each thread, from genotypes to what is added up.

    With `right`, the blocks of those who define the axes, products are made here, block by block;
    without, both factors are given.
    """

    def __init__(self, read: Reader, af, others, founders, left, right, most: int) -> None:
        self.read, self.af, self.left, self.right, self.most = read, af, left, right, most
        self.others, self.founders = others, founders

    def at_once(self, small: bool) -> int:
        """Passes whose arrays take AHEAD_BYTES at most, but at least one."""
        n, m = len(self.founders) + len(self.others), len(self.others)
        own = 4 * n + 8 * (m + (BLOCK_SAMPLES if small else n - m))  # a site
        own = own * CHUNK_SITES + 4 * SMALL_BYTES * small
        return max(1, AHEAD_BYTES // own if small else (AHEAD_BYTES // own - 1) // 2)

    def __call__(self, bounds: tuple[int, int]) -> _Part:
        from ..cohort.standard_genotypes_cpu import standard_columns, value_table

        genotypes = self.read(*bounds)
        sites = value_table(self.af[slice(*bounds)], self.most)
        theirs = standard_columns(genotypes, *sites, self.others)
        squares = np.empty(len(self.others))
        for first, last in self.left:  # cohort by cohort: numpy sums one column in another order
            block = theirs[:, first:last]
            squares[first:last] = np.einsum("ij,ij->j", block, block)
        missing = missing_in_both(genotypes, sites[0], self.others, self.founders)
        if not self.right:
            axes = standard_columns(genotypes, *sites, self.founders)
            return _Part(squares, missing, theirs=theirs, founders=axes)
        products = np.empty((len(self.others), len(self.founders)))
        for other in self.right:
            axes = standard_columns(genotypes, *sites, self.founders[slice(*other)])
            for one in self.left:
                products[slice(*one), slice(*other)] = theirs[:, slice(*one)].T @ axes
        return _Part(squares, missing, products)


def missing_in_both(
    genotypes: np.ndarray, rows: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[int, tuple[np.ndarray, np.ndarray], np.ndarray | None]:
    """What `JointlyCalled.include` takes, of some sites and of two lists of samples.

    Few genotypes are missing, so the product of who is missing is one of sparse matrices; where
    many are, a dense one is faster. All are counts, so both give the same numbers.
    """
    from scipy.sparse import csr_array

    from ..cohort.standard_genotypes_cpu import list_missing

    lists = [list_missing(genotypes, rows, columns) for columns in (left, right)]
    sizes = len(left), len(right)
    absent = tuple(
        np.bincount(items, minlength=n) for (_, items), n in zip(lists, sizes, strict=True)
    )
    pairs = int(np.prod([np.diff(starts) for starts, _ in lists], axis=0).sum())
    if not pairs:
        return len(rows), absent, None
    if pairs * DENSE_GAIN < len(rows) * sizes[0] * sizes[1]:
        one, other = (
            csr_array((np.ones(len(items), np.int32), items, starts), (len(rows), n))
            for (starts, items), n in zip(lists, sizes, strict=True)
        )
        return len(rows), absent, (one.T @ other).toarray()
    one, other = (
        (genotypes[np.ix_(rows, columns)] == MISSING).astype(np.float32)
        for columns in (left, right)
    )
    return len(rows), absent, one.T @ other  # exact below 2**24


def blocks_of_others(sizes: list[int], axes: np.ndarray) -> list[tuple[int, int]]:
    """`sample_blocks` of the samples that do not define the axes, numbered among themselves."""
    cohort = np.repeat(np.arange(len(sizes)), sizes)
    return sample_blocks(np.bincount(cohort[~axes], minlength=len(sizes)).tolist())


def groups_of_others(
    sizes: list[int], axes: np.ndarray, most_bytes: int = GROUP_BYTES
) -> list[list[tuple[int, int]]]:
    """Blocks of `blocks_of_others` whose products take at most so many bytes, but at least one."""
    groups: list[list[tuple[int, int]]] = []
    for first, last in blocks_of_others(sizes, axes):
        fits = groups and PAIR_BYTES * int(axes.sum()) * (last - groups[-1][0][0]) <= most_bytes
        if fits:
            groups[-1].append((first, last))
        else:
            groups.append([(first, last)])
    return groups


def sample_blocks(sizes: list[int]) -> list[tuple[int, int]]:
    """Bounds of blocks of at most BLOCK_SAMPLES samples, each within one cohort.

    The shape of a matrix product decides the order of its sums. With blocks within cohorts, the
    products of two cohorts are bit-identical whichever other cohorts are present.
    """
    first, found = 0, []
    for size in sizes:
        found += [(first + a, first + b) for a, b in chunks(size, BLOCK_SAMPLES)]
        first += size
    return found


def block_pairs(sizes: list[int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of `sample_blocks` in the upper triangle."""
    blocks = sample_blocks(sizes)
    return [(one, other) for i, one in enumerate(blocks) for other in blocks[i:]]


def ahead(n: int, threads: int, n_sites: int = CHUNK_SITES) -> int:
    """Threads that make passes of n samples ahead: `run_ordered` keeps 2 k + 1 results of k."""
    room = AHEAD_BYTES // (n_sites * max(n, 1) * 9)  # of values, and of what is called
    return min(threads, (room - 1) // 2)


class JointlyCalled:
    """Sites called in both samples of each pair, summed over passes.

    All sites, less those missing in one or the other, plus those missing in both.
    """

    def __init__(self, m: int, n: int) -> None:
        self._sites, self._missing = 0, (np.zeros(m, np.int64), np.zeros(n, np.int64))
        self._both = np.zeros((m, n))

    def include(
        self, n_sites: int, missing: tuple[np.ndarray, np.ndarray], both: np.ndarray | None
    ) -> None:
        """Add sites: their number, those missing in each sample, and in both (None: in none)."""
        self._sites += n_sites
        for total, one in zip(self._missing, missing, strict=True):
            total += one
        if both is not None:
            self._both += both

    def counts(self) -> np.ndarray:
        """float64 (m, n), in the memory of the sums: they end here."""
        left, right = self._missing
        self._both += (self._sites - left)[:, None]
        self._both -= right
        return self._both


def add_block_products(
    total: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    pairs: list[tuple[tuple[int, int], tuple[int, int]]],
    threads: int,
) -> None:
    """Add left' * right to these blocks of `total`.

    Callers limit BLAS to one thread (`one_blas_thread`), because the order of its sums depends on
    its number of threads; blocks are shared among threads.
    """

    def work(one: tuple[int, int], other: tuple[int, int]) -> None:
        total[slice(*one), slice(*other)] += left[:, slice(*one)].T @ right[:, slice(*other)]

    run_tasks(work, pairs, threads)
