"""The protocol that every backend implements, and what scans and closures hand to it.

Two semiring products carry all heavy work: `bitgemm` sums weighted popcounts of ANDed bit-planes,
`minplus` is the (min, +) matrix product. The other methods are built on them or feed them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from .constants import BASE, INFINITY_INT32, INFINITY_INT64, PANEL
from .expected import ExpectedKinship
from .genotype_products import Calls, GenotypeProducts
from .group_counts import GroupCounts, Grouping
from .ibd import Candidates, Windows
from .layouts import Layout
from .matches import TopMatches
from .nearest import Measure, Nearest, PlaneParts
from .relatives import Closeness, ClosePairs
from .screen import Screen, Screened
from .terms import Planes, Terms


@dataclass(frozen=True)
class OneHot:
    """Stored genotypes of all scanned sites in one phenotype class, one bit a sample.

    Attributes
    ----------
    words : uint64 array, (n_sites, n_states, n_words)
        Variant-major, little-endian bits, zero from bit `n_samples` on. State 0 holds the samples
        with the site's rarest genotype, state 1 those with the second rarest, both ranked over
        all classes together; state 2, present for every site if any genotype of the scan is
        missing, those whose genotype is missing. Carriers of the third genotype are not stored:
        their counts follow from margins (DESIGN section 8).
    n_samples : int
        Samples of this class; ``n_words >= ceil(n_samples / 64)``.
    """

    words: np.ndarray
    n_samples: int


@dataclass(frozen=True)
class Partners:
    """Which sites may be combined. A pair or triple is scanned if every two of its sites

    1. are on different chromosomes, or at least `min_distance_bp` apart, and
    2. have a squared correlation r2 of their allele counts of at most `max_r2`.

    r2 is that of the combination's own table: over the people who are called at all its sites,
    controls and cases together. So a scan needs no matrix of all pairs of sites: rule 1 is two
    look-ups, rule 2 is tested only for combinations that pass the scan's filter. Where a site does
    not vary in the table, r2 is undefined and the partner is permitted.

    Rule 2 is the same decision on every device. Allele counts are -1, 0 and 1 (0 the heterozygote:
    r2 does not change with the sign); with n people, covariance n Sxy - Sx Sy and variances
    n Sxx - Sx^2 are integers below 2**49. Forbidden is, in float64 with each product rounded once,

        covariance * covariance > max_r2 * (variance_x * variance_y).

    Attributes
    ----------
    chrom : int32 array, (n_sites,)
        A number for each chromosome.
    pos : int32 array, (n_sites,)
        In base pairs.
    middle : int8 array, (n_sites,)
        The state that is the heterozygote: 0 or 1 (stored, see `OneHot`), or 2, the third.
    min_distance_bp : int
    max_r2 : float
        1 or more sets no limit.
    """

    chrom: np.ndarray
    pos: np.ndarray
    middle: np.ndarray
    min_distance_bp: int = 0
    max_r2: float = 1.0


@dataclass(frozen=True)
class ScanData:
    """What a scan of pairs or triples reads.

    The cost of a contingency table is an exact integer, the lower the better:
    ``sum over cells (total[n0 + n1] - part[n0] - part[n1])`` minus the same expression of the one
    cell that holds all samples called at every site of the pair or triple. n0 and n1 count the
    controls and cases of a cell. K2: part = lnGamma(n + 1), total the mean of the sum of both parts
    over random cases, up to a multiple of n (`epistasis.k2_null`); mutual information: total =
    part = n ln n, which gives -N times the information in nats. The subtraction makes pairs with
    different missingness comparable; without missing genotypes it is a constant.

    Attributes
    ----------
    classes : tuple of two OneHot
        Controls, then cases; the same sites, the same number of states.
    total, part : int64 arrays, (n_samples + 1,)
        Natural logarithms scaled by a power of two (`epistasis.scores.score_tables`); n_samples
        counts both classes.
    rank : int32 array, (n_sites,)
        Index of each site in panel order. Sites are ordered by the number of samples in their
        stored states, fewest first, so the smallest index of a triple has the least to compact;
        sites with missing genotypes may come before all others (`epistasis.reorder`). Any order
        gives the same hits.
    partners : Partners or None
        Which sites may be combined; None permits all.
    lr_bits : int or None
        If given, the cost is that of the interaction instead, -LR / 2 in nats with so many bits
        after the point (`engine.host.interaction`), and `total` and `part` are those of the mutual
        information, which bounds it.
    complete_from : int or None
        No site from this one on has missing genotypes (`epistasis.reorder` puts such sites last);
        None: unknown. Scans refuse planes that disagree
        (`scan_work.require_complete`).
    """

    classes: tuple[OneHot, OneHot]
    total: np.ndarray
    part: np.ndarray
    rank: np.ndarray
    partners: Partners | None = None
    lr_bits: int | None = None
    complete_from: int | None = None

    @property
    def n_sites(self) -> int:
        return len(self.rank)

    @property
    def n_samples(self) -> int:
        return self.classes[0].n_samples + self.classes[1].n_samples

    def of_sites(
        self, rows: np.ndarray | slice, classes: tuple[OneHot, OneHot] | None = None
    ) -> ScanData:
        """The same of some sites, in rising order.

        `classes`: their planes, if they lie elsewhere.
        """
        if classes is None:
            parts = [OneHot(one.words[rows], one.n_samples) for one in self.classes]
            classes = (parts[0], parts[1])
        partners, complete = self.partners, self.complete_from
        if partners is not None:
            columns = {name: getattr(partners, name)[rows] for name in ("chrom", "pos", "middle")}
            partners = replace(partners, **columns)
        if complete is not None:
            complete = int((np.arange(self.n_sites)[rows] < complete).sum())
        return replace(
            self,
            classes=classes,
            rank=self.rank[rows],
            partners=partners,
            complete_from=complete,
        )


@dataclass(frozen=True)
class TraitData:
    """What a scan of pairs by residuals reads (`engine.host.trait`: statistic, costs, bound).

    Attributes
    ----------
    planes : OneHot
        All samples as one class.
    levels : uint8 array, (n_samples,)
        Residual of each sample under the null model, rounded; 128 stands for zero.
    variance : float
        Of the levels under the null model, in squared levels; positive.
    rank, partners
        As in `ScanData`.
    """

    planes: OneHot
    levels: np.ndarray
    variance: float
    rank: np.ndarray
    partners: Partners | None = None

    @property
    def n_sites(self) -> int:
        return len(self.rank)

    @property
    def n_samples(self) -> int:
        return self.planes.n_samples


@dataclass(frozen=True)
class SharedTrait:
    """One phenotype of a `SharedScan`; its own scan is the `ScanData` of its people alone.

    Attributes
    ----------
    cases, rest : int
        Numbers of groups: its cases, and the people by whom its controls differ from the base
        group, -1 for none.
    total, part, lr_bits
        As in `ScanData`.
    rank : int32 array, (n_sites,)
        Panel order of the sites.
    place : int32 array, (n_sites,)
        Index of each site in its own scan, -1 for a site that this has not.
    labels : int8 array, (n_sites, 3)
        States in its own scan of the stored states 0 and 1 and of the third one.
    """

    cases: int
    rest: int
    total: np.ndarray
    part: np.ndarray
    rank: np.ndarray
    place: np.ndarray
    labels: np.ndarray
    lr_bits: int | None = None


@dataclass(frozen=True)
class SharedScan:
    """What one scan for several phenotypes reads: people of several of them are counted once.

    Controls of a phenotype are the base group and its `rest`; with `subtract`, the base group less
    its cases and its `rest`. All tables are sums and differences of those of groups, so costs and
    hits are those of a scan of its own.

    Attributes
    ----------
    groups : tuple of OneHot
        The first is the base group. The same sites and number of states; states are ranked over
        the people of all phenotypes, and sites sorted by their stored states.
    traits : tuple of SharedTrait
    subtract : bool
    partners : Partners or None
        Of these sites and states, for all phenotypes.
    """

    groups: tuple[OneHot, ...]
    traits: tuple[SharedTrait, ...]
    subtract: bool
    partners: Partners | None = None

    @property
    def n_sites(self) -> int:
        return len(self.groups[0].words)


@dataclass(frozen=True)
class Hits:
    """The best pairs or triples of a scan, best first.

    Attributes
    ----------
    cost : int64 array, (k,)
    sites : int32 array, (k, order)
        Indices into the scanned sites, ascending in a row. Rows are ordered by cost, then by the
        row's panel ranks in ascending order: the same list from every backend.
    """

    cost: np.ndarray
    sites: np.ndarray


def merge_hits(parts: list[Hits], rank: np.ndarray, top: int) -> Hits:
    """The best `top` hits of all parts, by cost, then by panel order of their sites."""
    cost = np.concatenate([part.cost for part in parts])
    sites = np.concatenate([part.sites for part in parts])
    ranks = np.sort(rank[sites], axis=1)
    best = np.lexsort((*ranks.T[::-1], cost))[:top]
    return Hits(cost[best], np.ascontiguousarray(sites[best]))


def infinity(dtype) -> np.generic:
    """The weight that stands for 'no edge' in `dtype`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return INFINITY_INT32 if dtype == np.int32 else INFINITY_INT64
    return dtype.type(np.inf)


def closure_panel(n: int) -> int:
    """Individuals that become intermediate nodes together in a closure of n.

    Closing a panel costs its length squared times n; shorter panels read the matrix more often. The
    length decides how float sums are split, so all backends use the same (measured on a CPU and an
    H200: tests/bench/bench_minplus.py, bench_minplus_gpu.py).
    """
    return BASE if n <= PANEL else PANEL // 2 if n <= 8 * PANEL else PANEL


@dataclass
class Bounds:
    """What lets a min-plus product c = min(c, a * b) skip work without changing its result.

    A run of k is skipped for a tile of c when ``floor_a + floor_b >= ceiling`` there. Tiles and
    runs are those of the backend's `bound_tiles`.

    Attributes
    ----------
    floor_a : array, (runs, row tiles)
        Smallest entry of each run of columns of a, by tile of its rows.
    floor_b : array, (runs, column tiles)
    ceiling : array, (row tiles, column tiles)
        No entry of c is larger, now or earlier.
    skipped : int
        Operations left out so far, added to by the backend.
    """

    floor_a: np.ndarray
    floor_b: np.ndarray
    ceiling: np.ndarray
    skipped: int = 0


class SpreadMatrix(Protocol):
    """A symmetric matrix of weights that several devices of a machine store together."""

    def close(
        self, close_block: Callable[[np.ndarray], object], prune: bool = True
    ) -> tuple[int, int]:
        """All-pairs shortest paths, in place, with the bytes of a closure on one device.

        Parameters
        ----------
        close_block : function
            Closes a diagonal block, in the memory of the device that calls it.
        prune : bool
            Whether to skip work that changes nothing.

        Returns
        -------
        possible, skipped : int
            Operations (one add, one minimum) of the products of panels, and those left out.
        """
        ...

    def fetch(self, w: np.ndarray) -> None:
        """Copy the matrix back into host memory."""
        ...


#: Called with rows, columns (int64) and r2 (float64) of all pairs of a block of sites.
OnBlock = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


class Backend(Protocol):
    """The array primitives that one kind of device provides. Results are numpy arrays."""

    #: Of the device: ``cpu`` or ``gpu``.
    name: str
    #: CPU threads that the job may use, for what the host computes as well.
    threads: int

    def describe(self) -> str:
        """One line for the log: which device and which kernels will do the work."""
        ...

    def bitgemm(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        """Weighted AND+popcount products between all samples of `a` and of `b`.

        Parameters
        ----------
        a, b : Planes
            Blocks of m and n samples over the same sites. ``b=None`` means `a` against itself:
            only one triangle is computed, then mirrored.
        terms : Terms
            Letters are evaluated over called genotypes. Where a block is complete its c is all
            ones. With ``b=None`` and terms that are not symmetric, a GPU computes all pairs.

        Returns
        -------
        int64 array, (n_outputs, m, n)
            Exact. Missing genotypes add nothing.
        """
        ...

    def keep_planes(self, planes: Planes) -> Planes:
        """The same planes where products read them fastest: those of a block used many times.

        On the device if they are small beside its memory, otherwise as they are. Only `bitgemm`
        reads them.
        """
        ...

    def minplus(
        self,
        c: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        *,
        symmetric: bool = False,
        bounds: Bounds | None = None,
    ) -> None:
        """In place ``c[i, j] = min(c[i, j], min_k a[i, k] + b[k, j])``.

        Parameters
        ----------
        c, a, b : arrays (m, n), (m, k), (k, n), of one dtype: int32, int64, float32 or float64
            Any strides, in host memory or on the backend's device. `c` may not overlap `a` or
            `b`. Values are not negative, integers at most `infinity`, so that no sum overflows.
        symmetric : bool
            The product and `c` are symmetric, and the caller reads only the upper triangle:
            entries below the diagonal may be left unchanged (see `mirror`).
        bounds : Bounds, optional
            What may be skipped.
        """
        ...

    def close_block(self, w: np.ndarray) -> None:
        """Floyd-Warshall of a symmetric block of at most 128; its upper triangle is read."""
        ...

    def mirror(self, w: np.ndarray) -> None:
        """Copy the upper triangle of a square matrix onto the lower, in place."""
        ...

    def transpose(self, source: np.ndarray, target: np.ndarray) -> None:
        """``target = source.T`` for two blocks whose rows are contiguous."""
        ...

    def bound_tiles(self, dtype: np.dtype) -> tuple[int, int, int]:
        """Rows and columns of the tiles, and length of the runs, that `Bounds` speak of."""
        ...

    def tile_minima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        """The smallest entry of each height x width block of `x`; the last ones may be cut."""
        ...

    def tile_maxima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        """The largest entry of each height x width block of `x`."""
        ...

    def hold(self, w: np.ndarray) -> np.ndarray:
        """A copy of a square matrix of weights in the memory that this backend computes in.

        It may be padded with individuals that have no edges. A CPU returns `w` itself, as a GPU
        does with a matrix that is too large for it.
        """
        ...

    def fetch(self, held: np.ndarray, w: np.ndarray) -> None:
        """Copy the matrix that `hold` returned for `w` back into `w`."""
        ...

    def spread_matrix(self, w: np.ndarray) -> SpreadMatrix | None:
        """A copy of a square matrix of weights on all devices that the job has.

        None where it has one, or one closes the matrix as fast.
        """
        ...

    def panel(self, w: np.ndarray) -> int:
        """Individuals that become intermediate nodes together in the closure of `w`.

        `closure_panel`, except for a matrix that is too large for the device: its floats may then
        differ in the last digits.
        """
        ...

    def r2_pairs(
        self,
        planes: Planes,
        ends: np.ndarray,
        least: float,
        on_block: OnBlock | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of sites within their windows whose squared correlation is at least `least`.

        Parameters
        ----------
        planes : Planes
            Variant-major: a row is a site, a bit a sample.
        ends : int64 array, (n_sites,)
            Site i is compared with the sites i + 1 ... ends[i] - 1.
        least : float
        on_block : callable, optional
            Called with rows, columns (int64) and r2 (float64) of all pairs of a block, in a fixed
            order; of many blocks those of every n-th row of blocks.

        Returns
        -------
        rows, columns : int64 arrays
        r2 : float64 array
            Over jointly called samples. Ordered by row, then column; the same from every backend.
        """
        ...

    def band_r2(self, planes: Planes, ends: np.ndarray, first: int, last: int) -> np.ndarray:
        """Squared correlations of some sites with those that follow within narrow windows.

        Parameters
        ----------
        planes : Planes
            Variant-major.
        ends : int64 array, (n_sites,)
            As in `r2_pairs`.
        first, last : int
            The sites i of this call.

        Returns
        -------
        float64 array, (last - first, width)
            Of site first + i with site first + i + 1 + k, over jointly called samples; NaN beyond
            the window, and where a site does not vary. The same bytes from every backend.
        """
        ...

    def genotype_products(self, calls: Calls) -> GenotypeProducts:
        """Products of standardised genotypes with vectors; the same bytes from every backend."""
        ...

    def expected_kinship(self, basis: np.ndarray, n_sites: int) -> ExpectedKinship:
        """Kinship of all pairs beside expected genotypes; the same bytes from every backend."""
        ...

    def count_groups(
        self,
        words: np.ndarray,
        used: np.ndarray,
        values: np.ndarray,
        n_sites: int,
        grouping: Grouping,
        n_groups: int,
    ) -> GroupCounts:
        """Counts of genotypes by site over groups of samples, and sums by sample.

        Parameters
        ----------
        words : uint64 array, (n_samples, 2 or 3, n_words)
            Planes carrier, hom and called; without the third all genotypes are called. A memory
            map is read once, in parts; pinned memory is sent to a GPU without staging.
        used : uint64 array, (n_words,)
            Sites that count; none from `n_sites` on.
        values : int64 array, (64 * n_words,)
            Of sites, not negative; their sum is below 2**63 (`group_counts.fixed_point`).
        n_sites : int
        grouping : callable
            Called for one part after the other, in the order of the samples.
        n_groups : int
            Groups have numbers below this.

        Returns
        -------
        GroupCounts
            The same bytes from every backend.
        """
        ...

    def top_matches(
        self, queries: Planes, database: Planes, k: int, min_called: int = 1
    ) -> TopMatches:
        """The `k` profiles of a database with the smallest share of mismatches, for each query.

        Parameters
        ----------
        queries, database : Planes
            Samples over the same sites; the database may be a memory map, it is read in parts.
        k : int
            At least 1.
        min_called : int
            Pairs with fewer jointly called sites are no match.

        Returns
        -------
        TopMatches
            Arrays (n_queries, k), best first, ties by profile number; `index` -1 where there are
            fewer than `k`. The same from every backend.
        """
        ...

    def nearest_samples(self, planes: PlaneParts, measure: Measure, k: int) -> Nearest:
        """The `k` nearest other samples of every sample, without an array of all pairs.

        Parameters
        ----------
        planes : PlaneParts
        measure : Measure
        k : int
            At most `nearest.MOST_NEIGHBORS`; all others where there are fewer.

        Returns
        -------
        Nearest
            Ties go to the earlier sample; samples at an infinite distance are listed only where
            there are not enough others. The same bytes from every backend.
        """
        ...

    def nearest_between(
        self, a: Planes, b: Planes, measure: Measure, k: int
    ) -> tuple[Nearest, Nearest]:
        """The `k` nearest samples in b of every sample of a, and the reverse.

        Parameters
        ----------
        a, b : Planes
            Different samples over the same sites. Memory maps will do; either may be what
            `keep_planes` gave.
        measure, k
            As in `nearest_samples`; all of the others where there are fewer.

        Returns
        -------
        of_a, of_b : Nearest
            Samples are numbered in either block. `few` of both is the same.
        """
        ...

    def nearest_points(self, points: np.ndarray, k: int) -> Nearest:
        """The `k` nearest other points of every point by Euclidean distance.

        Parameters
        ----------
        points : float64 array, (n, m)
            Finite.
        k : int
            As in `nearest_samples`.

        Returns
        -------
        Nearest
            By squared distances, summed in float64 in the order of the coordinates; `distance`
            holds their roots. Ties go to the earlier point. The same bytes from every backend.
        """
        ...

    def lay_out(self, layout: Layout) -> np.ndarray:
        """Points of a map after all epochs, int64 (n, 2); the same from every backend."""
        ...

    def close_pairs(self, planes: PlaneParts, closeness: Closeness) -> ClosePairs:
        """All pairs of samples that are close, with their counts, without an array of all pairs.

        Raises
        ------
        UserError
            More pairs than `closeness.most`.
        """
        ...

    def screen_pairs(self, a: Planes, b: Planes | None, screen: Screen, top: int) -> Screened:
        """Pairs of samples that are looked at again, with their counts, and best matches.

        Parameters
        ----------
        a, b : Planes
            Different samples over the same sites; ``b=None``: `a` with itself. Memory maps will
            do; either may be what `keep_planes` gave.
        screen : Screen
        top : int
            Best matches of each sample of b in a.

        Returns
        -------
        Screened
            Best matches, and counts of each pair, are the same from every backend.
        """
        ...

    def candidates(
        self,
        a: Planes,
        b: Planes | None,
        windows: Windows,
        *,
        tolerance: int,
        min_length: float,
        most: int,
    ) -> Candidates:
        """Runs of windows in which two samples may be identical by descent (`engine.ibd`).

        Parameters
        ----------
        a, b : Planes
            Blocks of samples over the same sites, memory maps will do; imputed genotypes do not
            count. ``b=None``: the pairs i < j of `a`.
        windows : Windows
        tolerance : int
            Opposite homozygotes that a good window may have.
        min_length : float
            In cM.
        most : int
            More candidates than this are an error.

        Returns
        -------
        Candidates
            The same bytes from every backend.

        Raises
        ------
        UserError
            More candidates than `most`.
        """
        ...

    def scan_pairs(self, data: ScanData, first: range, top: int, cutoff: int | None = None) -> Hits:
        """The best `top` pairs x < y with x in `first`, that `partners` permits.

        Parameters
        ----------
        data : ScanData
        first : range
            The smallest site index of the pairs: a unit of work.
        top : int
            How many to keep, at least 1.
        cutoff : int, optional
            Pairs that cost more may be left out; pairs that cost as much may not.
        """
        ...

    def scan_triples(
        self, data: ScanData, first: range, top: int, cutoff: int | None = None
    ) -> Hits:
        """The best `top` triples x < y < z, x in `first`, all three pairs permitted.

        Parameters as in `scan_pairs`.
        """
        ...

    def scan_trait_pairs(
        self, data: TraitData, first: range, top: int, cutoff: int | None = None
    ) -> Hits:
        """The best `top` pairs x < y by `engine.host.trait`, x in `first`, that `partners` permits.

        Costs are -T / 2 in units of 2**-20. Other parameters as in `scan_pairs`.
        """
        ...

    def scan_shared(self, data: SharedScan, order: int, first: range, top: int) -> list[Hits]:
        """The best `top` pairs or triples of each phenotype, whose smallest site is in `first`.

        Sites of hits are those of the phenotype's own scan (`SharedTrait.place`).

        Raises
        ------
        UserError
            The device is a GPU, which has no kernel for it: phenotypes are scanned apart.
        """
        ...
